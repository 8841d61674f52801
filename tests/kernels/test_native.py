"""Every native kernel against the oracle, in every type, in 1, 2 and 64 parts; wrong types and shapes are refused."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gsnmf._kernels import native
from kernels import oracle

FLOATS = [np.float64, np.float32]
SEEDS = st.integers(0, 2**32 - 1)
NOT_LOOPS = {"add_entries", "member_weights", "best_member_change", "processor_runs", "available_builds"}


def triangle(rng, r):
    """The columns of a triangle, of unit length, as rows; and their inner products."""
    columns = rng.random((3 * r, r))
    R = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[1]
    return np.ascontiguousarray(R.T), np.ascontiguousarray(R.T @ R)


def hull(rng, r):
    columns = np.zeros((r + 1, r + 1))
    columns[1:, 1:] = triangle(rng, r)[0]
    return columns, columns @ columns.T + 1.0


def compressed(rng, shape, dtype, index, least=0):
    """A matrix by rows, in which every row has at least ``least`` entries."""
    dense = rng.random(shape) * (rng.random(shape) < 0.4)
    for row in dense:
        row[rng.choice(shape[1], least, replace=False)] += 0.5
    matrix = sp.csr_array(dense.astype(dtype))
    return matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data


def entries(rng, shape, dtype, index, least=0):
    indptr, indices, values = compressed(rng, shape, dtype, index, least)
    weights = rng.uniform(0.5, 2, values.size) if rng.random() < 0.5 else np.empty(0)
    return indptr, indices, values, weights.astype(dtype)


def doubles(draw):
    """A kernel that knows double precision alone."""
    return {"draw": lambda rng, dtype, index, n, r: draw(rng, n, r), "types": [(np.float64, None)]}


def floats(draw):
    return {
        "draw": lambda rng, dtype, index, n, r: [
            a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in draw(rng, n, r)
        ],
        "types": [(dtype, None) for dtype in FLOATS],
    }


def sparse(draw):
    return {"draw": draw, "types": [(dtype, index) for dtype in FLOATS for index in (np.int32, np.int64)]}


def normal(rng, *shape):
    return rng.standard_normal(shape)


# What each kernel is called with; arrays that it changes are found by comparing with copies
CASES = {
    "sweep_rows": doubles(lambda rng, n, r: [rng.random((n, r)), normal(rng, n, r), triangle(rng, r)[1]]),
    "pivot_rows": doubles(
        lambda rng, n, r: [np.zeros((n, r)), *triangle(rng, r), normal(rng, n, r), False, np.empty(n, np.uint8)]
    ),
    "active_set_rows": doubles(lambda rng, n, r: [rng.random((n, r)), *triangle(rng, r), normal(rng, n, r)]),
    "passive_inverse_rows": doubles(
        lambda rng, n, r: [np.maximum(normal(rng, n, r), 0), triangle(rng, r)[1], np.zeros((n, r * (r + 1) // 2))]
    ),
    "project_on_hull_rows": doubles(
        lambda rng, n, r: [
            np.eye(1, r + 1).repeat(n, axis=0),
            np.empty((n, r + 1)),
            np.empty(n),
            *hull(rng, r),
            1.0,
            np.hstack([np.zeros((n, 1)), normal(rng, n, r)]),
        ]
    ),
    "simplex_least_squares_rows": doubles(
        lambda rng, n, r: [(normal(rng, n, r) > 0).astype(float), *triangle(rng, r), 1.0, normal(rng, n, r)]
    ),
    "positive_square_rows": doubles(lambda rng, n, r: [normal(rng, n, r), np.empty(n)]),
    "exchange_score_rows": doubles(
        lambda rng, n, r: [normal(rng, n, 3 * r), rng.random((n, r)), rng.random((r, 3 * r)), np.empty((n, r))]
    ),
    "cross_product_chunks": doubles(
        lambda rng, n, r: [
            np.maximum(normal(rng, n, r), 0),
            normal(rng, n, r + 1),
            np.zeros((native.N_CHUNKS, r, r + 1)),
        ]
    ),
    "descend_trial_chunks": doubles(
        lambda rng, n, r: [
            rng.random((n, r)),
            normal(rng, n, r),
            rng.random((n, 2)),
            normal(rng, 2, r),
            triangle(rng, r)[1],
            np.zeros((native.N_CHUNKS, 3)),
        ]
    ),
    "sweep_rows_with_grams": doubles(
        lambda rng, n, r: [
            rng.random((n, r)),
            normal(rng, n, r),
            np.array([triangle(rng, r)[1] * (i % 3 > 0) for i in range(n)]),
        ]
    ),
    "descend_blocks": floats(
        lambda rng, n, r: [rng.random((r, n)), normal(rng, r, n), triangle(rng, r)[1] * (np.arange(r) != 1), 3, 0.0]
    ),
    "project_on_simplex_blocks": floats(lambda rng, n, r: [normal(rng, r, n), bool(rng.integers(2))]),
    "descend_on_simplex_blocks": floats(
        lambda rng, n, r: [np.full((r, n), 1 / r), normal(rng, r, n), triangle(rng, r)[1], 0.5 / r, True, 3, 0.0]
    ),
    "project_rows_on_omega": floats(
        lambda rng, n, r: [
            normal(rng, n, 2 * r),
            rng.uniform(0.2, 1, 2 * r),
            rng.integers(0, 2 * r, n),
            np.zeros((n, 2 * r)),
        ]
    ),
    "shrink_euclidean_rows": floats(lambda rng, n, r: [normal(rng, n, 2 * r) + 0.5, rng.uniform(0.1, 2, n)]),
    "shrink_maximum_rows": floats(lambda rng, n, r: [normal(rng, n, 2 * r) + 0.5, rng.uniform(0.1, 2, n)]),
    "trace_score_rows": {
        "draw": lambda rng, dtype, index, n, r: [
            normal(rng, n, 2 * r).astype(dtype),
            rng.integers(0, 2 * r, n),
            (rng.random(2 * r) * (np.arange(2 * r) != 1)).astype(dtype),
            np.empty(n),
        ],
        "types": [(dtype, None) for dtype in FLOATS],
    },
    "group_score_rows": {
        "draw": lambda rng, dtype, index, n, r: [
            normal(rng, n, 2 * r).astype(dtype),
            bool(rng.integers(2)),
            np.empty(n),
        ],
        "types": [(dtype, None) for dtype in FLOATS],
    },
    "sparse_dot_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *compressed(rng, (n, 40), dtype, index),
            rng.random((40, width := int(rng.integers(1, 13)))).astype(block := rng.choice(FLOATS)),
            np.empty((n, width), block),
        ]
    ),
    "sparse_gram_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *compressed(rng, (r, n), dtype, index),
            *compressed(rng, (n, 30), dtype, index),
            np.zeros((r, 30)),
        ]
    ),
    "add_entries": sparse(
        lambda rng, dtype, index, n, r: [
            *compressed(rng, (n, 30), dtype, index)[1:],
            bool(rng.integers(2)),
            np.zeros(30),
        ]
    ),
    "column_sums": sparse(
        lambda rng, dtype, index, n, r: [*compressed(rng, (n, 30), dtype, index), bool(rng.integers(2)), np.empty(n)]
    ),
    "ridge_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index),
            rng.random((30, r)),
            0.1,
            np.zeros((n, r)),
        ]
    ),
    "nonnegative_observed_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index, least=2 * r),
            normal(rng, 30, r),
            rng.random(r),
            np.zeros((n, r)),
            np.zeros(n),
        ]
    ),
    "simplex_observed_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index, least=2 * r),
            normal(rng, 30, r),
            np.zeros((n, r)),
        ]
    ),
    "row_grams": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index),
            rng.random((30, r)),
            np.empty((n, r, r)),
            np.empty((n, r)),
        ]
    ),
    "observed_residuals": sparse(
        lambda rng, dtype, index, n, r: [
            *(drawn := entries(rng, (n, 30), dtype, index)),
            rng.random((n, r)),
            rng.random((30, r)),
            np.empty(drawn[1].size),
        ]
    ),
    "observed_slopes": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index),
            rng.random((n, r)),
            rng.random((30, r)),
            normal(rng, 30, r + 1),
            bool(rng.integers(2)),
            np.zeros((n, r + 1)),
        ]
    ),
    "descend_observed_rows": sparse(
        lambda rng, dtype, index, n, r: [
            *entries(rng, (n, 30), dtype, index),
            rng.random((30, r)),
            rng.random((n, r)),
            2,
            rng.random((n, r)) < 0.8 if rng.random() < 0.7 else np.ones((0, 0), bool),
            *((rng.random((n, r)), rng.random((n, r))) if rng.random() < 0.7 else (np.ones((0, 0)), np.ones((0, 0)))),
            np.zeros(n),
        ]
    ),
}
KINDS = [
    pytest.param(name, dtype, index, id=f"{name}-{np.dtype(dtype)}" + (f"-{np.dtype(index)}" if index else ""))
    for name, case in CASES.items()
    for dtype, index in case["types"]
]


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def run(name, arguments, n_parts=1):
    """Call a kernel part by part, in an order in which threads might; returns the arrays afterwards."""
    arguments = copies(arguments)
    if name in NOT_LOOPS:
        getattr(native, name)(*arguments)
    else:
        for part in reversed(range(n_parts)):
            getattr(native, name)(*arguments, part, n_parts)
    return arguments


def test_there_is_a_case_for_every_kernel():
    kernels = {name for name, value in vars(native).items() if callable(value) and not name.startswith("_")}
    kernels -= {"import_module", "find_spec", "Any"}
    assert kernels - {"member_weights", "best_member_change", "processor_runs", "available_builds"} == set(CASES)
    assert set(CASES) <= {name for name, value in vars(oracle).items() if inspect.isfunction(value)}


@pytest.mark.parametrize(("name", "dtype", "index"), KINDS)
@given(seed=SEEDS, n=st.sampled_from([1, 3, 130]), r=st.integers(2, 5))
@settings(max_examples=8, deadline=None)
def test_kernel_is_the_oracle(name, dtype, index, seed, n, r):
    arguments = CASES[name]["draw"](np.random.default_rng(seed), dtype, index, n, r)
    expected = copies(arguments)
    getattr(oracle, name)(*expected)
    whole = run(name, arguments)
    single = dtype == np.float32 or any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in arguments)
    tolerance = 3e-4 if single else 1e-7
    for given_, wanted, found in zip(arguments, expected, whole, strict=True):
        if isinstance(given_, np.ndarray) and not np.array_equal(given_, wanted, equal_nan=True):
            if name in ("cross_product_chunks", "descend_trial_chunks") and wanted.shape[0] == native.N_CHUNKS != n:
                wanted, found = wanted.sum(axis=0), found.sum(axis=0)
            assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("name", "dtype", "index"), KINDS)
def test_the_number_of_parts_changes_nothing(name, dtype, index):
    """To the last bit."""
    arguments = CASES[name]["draw"](np.random.default_rng(1), dtype, index, 300, 4)
    whole = run(name, arguments)
    for n_parts in (2, 64):
        for one, other in zip(whole, run(name, arguments, n_parts), strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("by_gram", [False, True])
def test_pivoting_by_the_gram_matrix_too(by_gram):
    rng = np.random.default_rng(0)
    columns, gram = triangle(rng, 5)
    targets = rng.standard_normal((50, 5))
    right = np.ascontiguousarray(targets @ columns.T) if by_gram else targets
    X, failed = np.zeros((50, 5)), np.empty(50, np.uint8)
    native.pivot_rows(X, np.linalg.cholesky(gram) if by_gram else columns, gram, right, by_gram, failed, 0, 1)
    expected = np.empty((50, 5))
    oracle.active_set_rows(expected, columns, gram, targets)
    assert not failed.any()
    assert_allclose(X, expected, atol=1e-9)


@given(seed=SEEDS, n_members=st.integers(0, 4), most=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_best_member_change_is_the_best_of_all(seed, n_members, most):
    rng = np.random.default_rng(seed)
    M, t = rng.random((12, 9)), rng.random(12)
    gram, linear = M.T @ M, M.T @ t
    members = rng.choice(9, min(n_members, most), replace=False)
    weights = np.empty(members.size)
    native.member_weights(gram[np.ix_(members, members)].copy(), linear[members], weights)
    if members.size:
        expected_weights = np.empty(members.size)
        oracle.member_weights(gram[np.ix_(members, members)], linear[members], expected_weights)
        assert_allclose(weights, expected_weights, atol=1e-8)
    members = members[weights > 0]
    allowed = rng.random(9) < 0.8
    allowed[members] = False
    least = float(rng.random())
    rows = np.ascontiguousarray(gram[members])
    found = native.best_member_change(members, rows, gram.diagonal().copy(), linear, allowed, most, least)
    expected = oracle.best_member_change(members, gram, linear, allowed, most, least)
    assert found[2] == pytest.approx(expected[2], rel=1e-9)
    assert (found[0] < 0) == (expected[0] < 0)


# Places of arrays whose length no other argument determines: factors with one row per column of a sparse matrix, and
# sums over its columns
FREE_LENGTH = {
    "project_on_simplex_blocks": 0,
    "sparse_dot_rows": 3,
    "add_entries": 3,
    "ridge_rows": 4,
    "nonnegative_observed_rows": 4,
    "simplex_observed_rows": 4,
    "row_grams": 4,
    "descend_observed_rows": 4,
    "observed_residuals": 5,
}


@pytest.mark.parametrize(("name", "dtype", "index"), KINDS)
def test_wrong_types_orders_and_shapes_are_refused(name, dtype, index):
    arguments = CASES[name]["draw"](np.random.default_rng(3), dtype, index, 5, 3)
    kernel, whole = getattr(native, name), () if name in NOT_LOOPS else (0, 1)
    for place, array in enumerate(arguments):
        if not isinstance(array, np.ndarray) or array.size == 0:
            continue
        wrong = [array.astype(np.complex128), array[None], np.repeat(array, 2, axis=-1)[..., ::2]]
        if place != FREE_LENGTH.get(name):
            wrong.append(np.concatenate([array, array[:1]]))
        for bad in wrong:
            with pytest.raises(TypeError):
                kernel(*arguments[:place], bad, *arguments[place + 1 :], *whole)
    if name not in NOT_LOOPS:
        for part, n_parts in ((-1, 1), (1, 1), (0, 0)):
            with pytest.raises(TypeError):
                kernel(*arguments, part, n_parts)


def test_read_only_arrays_are_not_written_to():
    X, linear = np.ones((3, 2)), np.ones((3, 2))
    X.flags.writeable = linear.flags.writeable = False
    with pytest.raises(TypeError):
        native.sweep_rows(X, linear, np.eye(2), 0, 1)
    native.sweep_rows(X.copy(), linear, np.eye(2), 0, 1)


def test_indices_of_rows_are_checked():
    square = np.ones((2, 2))
    for i in (-1, 2):
        with pytest.raises(TypeError, match="index out of range"):
            native.project_rows_on_omega(square, np.ones(2), np.array([0, i]), square.copy(), 0, 1)


class TestBuilds:
    def use(self, build):
        code = "from gsnmf._kernels import native; print(native.BUILD)"
        environment = os.environ | {"GSNMF_KERNELS": build}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    def test_a_build_can_be_asked_for(self):
        for build in native.available_builds():
            assert self.use(build).stdout.strip() == build

    def test_a_build_that_is_not_there_is_refused(self):
        assert "GSNMF_KERNELS must be one of" in self.use("abacus").stderr

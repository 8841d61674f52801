"""Compiled kernels against plain computations, in one thread and in all, and what becomes of them on disk."""

import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import gsnmf
from gsnmf import _parallel
from gsnmf._kernels import (
    active_set,
    convex_hull,
    coordinate_descent,
    least_squares,
    reductions,
    simplex,
    sparse_products,
)
from gsnmf._kernels.active_set import Points
from gsnmf._kernels.convex_hull import project_on_hull
from gsnmf._kernels.least_squares import nonnegative_least_squares, nonnegative_quadratic, passive_inverses
from gsnmf._kernels.reductions import positive_squares
from gsnmf._kernels.sparse_products import sparse_column_sums, sparse_dot, sparse_gram_rows

RNG_SEED = 7


@pytest.fixture(params=["serial", "parallel"])
def policy(request, monkeypatch):
    """Every kernel in one thread, or every kernel in three."""
    monkeypatch.setattr(_parallel, "PARALLEL_WORK", math.inf if request.param == "serial" else 0)
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    return request.param


def triangle(rng, r, *, dependent=False):
    columns = rng.random((3 * r, r))
    if dependent:
        columns[:, -1] = columns[:, 0]
    return np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[1]


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("n", [1, 5, 200])
def test_nonnegative_least_squares_is_that_of_scipy(policy, n, dependent):
    rng = np.random.default_rng(RNG_SEED)
    R, targets = triangle(rng, 6, dependent=dependent), rng.standard_normal((n, 6))
    X = np.zeros((n, 6))
    nonnegative_least_squares(X, R, targets)
    for x, target in zip(X, targets, strict=True):
        expected, distance = nnls(R, target)
        assert_allclose(np.linalg.norm(R @ x - target), distance, atol=1e-12)
        if not dependent:
            assert_allclose(x, expected, atol=1e-10)


def full_exchanges_end(gram, linear):
    """Whether exchanging all indices of the wrong sign at once, from none on, ever leaves none."""
    passive, seen = np.zeros(len(linear), dtype=bool), set()
    while passive.tobytes() not in seen:
        seen.add(passive.tobytes())
        x = np.zeros(len(linear))
        x[passive] = np.linalg.solve(gram[np.ix_(passive, passive)], linear[passive])
        wrong = np.where(passive, x < 0, linear - gram @ x > 1e-12)
        if not wrong.any():
            return True
        passive ^= wrong
    return False


def test_pivoting_ends_where_full_exchanges_go_round_in_circles(policy):
    columns = np.array([[-22, 19, 31, 27], [74, -78, 15, -66], [3, -57, -35, 3], [-64, -17, -87, 70]], dtype=float)
    R = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))[1]
    gram, targets = R.T @ R, np.random.default_rng(RNG_SEED).standard_normal((300, 4))
    assert not all(full_exchanges_end(gram, R.T @ target) for target in targets)
    X = np.zeros((300, 4))
    assert least_squares._pivot(X, np.ascontiguousarray(R.T), gram, targets, by_gram=False).size == 0
    assert_allclose(X, [nnls(R, target)[0] for target in targets], atol=1e-9)


def test_quadratic_and_least_squares_agree(policy):
    rng = np.random.default_rng(RNG_SEED)
    R, targets = triangle(rng, 8), rng.standard_normal((150, 8))
    by_columns, by_gram = np.zeros((150, 8)), np.zeros((150, 8))
    nonnegative_least_squares(by_columns, R, targets)
    nonnegative_quadratic(by_gram, R.T @ R, targets @ R)
    assert_allclose(by_gram, by_columns, atol=1e-9)


def test_quadratic_problems_with_columns_that_nearly_depend(policy, monkeypatch):
    """The Cholesky factor of the Gram matrix exists, but two columns are too close for pivoting."""
    entered = []
    enter = least_squares._enter
    monkeypatch.setattr(least_squares, "_enter", lambda *arguments: (entered.extend(arguments[4]), enter(*arguments)))
    sine = 7e-8
    R = np.array([[1.0, 0.0, math.sqrt(1.0 - sine**2)], [0.0, 1.0, 0.0], [0.0, 0.0, sine]])
    targets = np.random.default_rng(RNG_SEED).standard_normal((40, 3))
    X = np.zeros((40, 3))
    nonnegative_quadratic(X, R.T @ R, targets @ R)
    assert 0 < len(entered) < 40
    assert X.min() >= 0.0
    for x, target in zip(X, targets, strict=True):
        assert_allclose(np.linalg.norm(R @ x - target), nnls(R, target)[1], atol=3 * sine)


@pytest.mark.parametrize(
    ("x", "z", "expected"),
    [
        ([1.0, 2.0, 4.0], [3.0, 5.0, 7.0], [3.0, 5.0, 7.0]),
        ([1.0, 2.0, 4.0], [-1.0, 6.0, -12.0], [0.5, 3.0, 0.0]),  # a quarter of the way
        ([4.0, 2.0, 1.0], [-12.0, 6.0, -1.0], [0.0, 3.0, 0.5]),
        ([1.0, 2.0, 4.0], [0.0, 6.0, 8.0], [0.0, 6.0, 8.0]),  # all the way, where one is zero
        ([1.0, 0.0, 4.0], [3.0, -1.0, 5.0], [1.0, 0.0, 4.0]),  # no way at all
        ([1.0, 0.0, 4.0], [3.0, 0.0, 5.0], [1.0, 0.0, 4.0]),
    ],
)
def test_weights_move_until_one_is_zero(x, z, expected):
    plain = getattr(active_set.move, "py_func", active_set.move)
    order, moved = np.array([2, 0, 1]), np.array([*x, 9.0])
    assert plain(moved, np.array(z)[order], order, 3) == (0.0 in expected)
    assert_array_equal(moved, [*expected, 9.0])


def test_pivoting_starts_from_sweeps_of_coordinate_descent():
    rng = np.random.default_rng(RNG_SEED)
    R = triangle(rng, 6)
    gram, linear = R.T @ R, rng.standard_normal(6)
    expected, found = np.zeros(6), np.zeros(6)
    for _ in range(3):
        for i in range(6):
            expected[i] = max(0.0, expected[i] + linear[i] - gram[i] @ expected)
    plain = getattr(least_squares._guess, "py_func", least_squares._guess)
    plain(found, gram, linear, np.empty((active_set.N_BUFFERS, 6)))
    assert_allclose(found, expected, atol=1e-14)


def test_inverses_on_the_positive_entries(policy):
    rng = np.random.default_rng(RNG_SEED)
    R, X = triangle(rng, 5), np.maximum(rng.standard_normal((70, 5)), 0.0)
    gram = R.T @ R
    inverses = passive_inverses(X, gram)
    for x, packed in zip(X, inverses, strict=True):
        expected = np.zeros((5, 5))
        passive = np.flatnonzero(x)
        expected[np.ix_(passive, passive)] = np.linalg.inv(gram[np.ix_(passive, passive)])
        assert_allclose(packed, expected[np.triu_indices(5)], atol=1e-9)


def test_nearest_point_in_a_hull_meets_the_optimality_conditions(policy):
    rng = np.random.default_rng(RNG_SEED)
    n, r = 150, 6
    points = np.zeros((r + 1, r + 1))
    points[1:, 1:] = triangle(rng, r).T
    targets = np.zeros((n, r + 1))
    targets[:, 1:] = rng.standard_normal((n, r))
    X, residuals, multipliers = np.zeros((n, r + 1)), np.empty((n, r + 1)), np.empty(n)
    X[:, 0] = 1.0
    project_on_hull(X, residuals, multipliers, points, targets)
    assert X.min() >= 0
    assert_allclose(X.sum(axis=1), 1.0, atol=1e-12)
    assert_allclose(residuals, targets - X @ points, atol=1e-12)
    slopes = residuals @ points.T
    assert_allclose(slopes.max(axis=1), multipliers, atol=1e-10)
    assert_allclose((slopes - multipliers[:, None])[X > 0], 0.0, atol=1e-10)


@pytest.mark.parametrize("exponent", [-70, 70])
@pytest.mark.parametrize("dependent", [False, True])
def test_the_unit_of_the_targets_does_not_matter(dependent, exponent):
    rng = np.random.default_rng(RNG_SEED)
    R, targets = triangle(rng, 6, dependent=dependent), rng.standard_normal((50, 6))
    X, scaled = np.zeros((50, 6)), np.zeros((50, 6))
    nonnegative_least_squares(X, R, targets)
    nonnegative_least_squares(scaled, R, np.ldexp(targets, exponent))
    assert_array_equal(scaled, np.ldexp(X, exponent))


@pytest.mark.parametrize("exponent", [-70, 70])
def test_the_unit_of_a_hull_does_not_matter(exponent):
    rng = np.random.default_rng(RNG_SEED)
    points, targets = np.zeros((6, 6)), np.zeros((50, 6))
    points[1:, 1:], targets[:, 1:] = triangle(rng, 5).T, rng.standard_normal((50, 5))
    weights = []
    for unit in (0, exponent):
        X = np.zeros((50, 6))
        X[:, 0] = 1.0
        project_on_hull(X, np.empty((50, 6)), np.empty(50), np.ldexp(points, unit), np.ldexp(targets, unit))
        weights.append(X)
    assert_array_equal(*weights)


def test_a_start_on_dependent_points_of_a_hull_begins_again_at_the_origin():
    points = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    targets = np.array([[0.0, 0.25, 3.0], [0.0, -1.0, 0.0], [0.0, 5.0, 0.0]])
    X, residuals, multipliers = np.tile([0.0, 0.5, 0.5], (3, 1)), np.empty((3, 3)), np.empty(3)
    project_on_hull(X, residuals, multipliers, points, targets)
    assert_allclose(X[:, 0], [0.75, 1.0, 0.0], atol=1e-15)
    assert_allclose(X[:, 1:].sum(axis=1), [0.25, 0.0, 1.0], atol=1e-15)
    assert_allclose(residuals, [[0.0, 0.0, 3.0], [0.0, -1.0, 0.0], [0.0, 4.0, 0.0]], atol=1e-15)
    assert_allclose(multipliers, [0.0, 0.0, 4.0], atol=1e-15)


def test_descent_leaves_coordinates_without_curvature_and_ends_at_the_tolerance():
    gram = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0]])
    target, start = np.array([[3.0], [7.0], [3.0]]), np.array([[0.0], [5.0], [0.0]])
    outcomes = {}
    for tolerance, max_sweeps in ((0.0, 1), (0.0, 60), (0.5, 60)):
        X = start.copy()
        coordinate_descent.descend(X, target, gram, max_sweeps, tolerance)
        outcomes[tolerance, max_sweeps] = X[:, 0]
    assert_allclose(outcomes[0.0, 60], [1.0, 5.0, 1.0], atol=1e-15)
    assert_array_equal(outcomes[0.0, 1], [1.5, 5.0, 0.75])
    assert_array_equal(outcomes[0.5, 60], [1.125, 5.0, 0.9375])  # the second sweep moves it by less than half


def test_division_by_zero_does_not_end_a_projection():
    """Columns of lengths 1e10 and 1e-5, of which the shorter is nothing to the longer one."""
    selection = gsnmf.select(np.array([[1e-7, 1e-5], [1e10, 0.0]]), 2, method="snpa")
    assert_array_equal(selection.columns, [0, 1])


def test_squares_of_positive_entries(policy):
    rows = np.random.default_rng(RNG_SEED).standard_normal((30, 41))
    assert_allclose(positive_squares(rows), np.square(np.maximum(rows, 0)).sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    ("dtype", "block_type", "index"),
    [
        (np.float64, np.float64, np.int32),
        (np.float32, np.float32, np.int64),
        (np.float32, np.float64, np.int32),
        (np.float64, np.float32, np.int64),
    ],
)
@pytest.mark.parametrize("width", [None, 1, 3, 4, 5, 7, 20])
def test_sparse_product(monkeypatch, width, dtype, block_type, index):
    rng = np.random.default_rng(RNG_SEED)
    dense = sp.random_array((90, 40), density=0.3, rng=rng, dtype=dtype).toarray()
    dense[5:60] = 0  # many rows have no entries
    matrix = sp.csr_array(dense)
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    block = rng.random(40 if width is None else (40, width)).astype(block_type)
    expected = (dense.astype(np.float64) @ block.astype(np.float64)).astype(block_type)
    found = []
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    for work in (math.inf, 0):
        monkeypatch.setattr(_parallel, "PARALLEL_WORK", work)
        for order in "CF":
            found.append(sparse_dot(matrix, np.asarray(block, order=order)))
    for product in found:
        assert product.dtype == block_type
        assert_allclose(product, expected, rtol=1e-6 if block_type == np.float32 else 1e-14)
        assert_array_equal(product, found[0])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_empty_sparse_product(policy, shape):
    product = sparse_dot(sp.csr_array(shape), np.ones((shape[1], 2)))
    assert_array_equal(product, np.zeros((shape[0], 2)))


def test_float32_sums_are_accumulated_in_double_precision(policy):
    n = 100_000
    ones = sp.csr_array(np.full((1, n), np.float32(0.1)))
    found = sparse_dot(ones, np.ones(n, dtype=np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, n * np.float64(np.float32(0.1)), rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_rows_of_a_sparse_matrix(policy, dtype):
    matrix = sp.random_array((50, 130), density=0.2, format="csr", rng=np.random.default_rng(RNG_SEED), dtype=dtype)
    chosen = matrix.tocsc()[:, :100]
    dense = matrix.toarray().astype(np.float64)
    assert_allclose(sparse_gram_rows(chosen, matrix), dense[:, :100].T @ dense, rtol=1e-12)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compiled", [False, True])
def test_sums_of_columns(monkeypatch, form, dtype, compiled):
    monkeypatch.setattr(sparse_products, "is_small", lambda work: not compiled)
    matrix = sp.random_array((50, 30), density=0.1, format=form, rng=np.random.default_rng(RNG_SEED), dtype=dtype)
    dense = matrix.toarray().astype(np.float64)
    assert_allclose(sparse_column_sums(matrix), dense.sum(axis=0), rtol=1e-13)
    assert_allclose(sparse_column_sums(matrix, squared=True), np.square(dense).sum(axis=0), rtol=1e-13)
    assert_array_equal(sparse_column_sums(sp.csr_array((4, 3))), np.zeros(3))


def test_all_loops_give_the_same_in_one_thread_and_in_all(monkeypatch):
    """To the last bit: the number of threads changes nothing."""
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    rng = np.random.default_rng(RNG_SEED)
    r, n = 9, 300
    R, targets = triangle(rng, r), rng.standard_normal((n, r))
    gram = R.T @ R
    points = np.zeros((r + 1, r + 1))
    points[1:, 1:] = R.T
    padded = np.hstack([np.zeros((n, 1)), targets])
    origin = np.zeros((n, r + 1))
    origin[:, 0] = 1.0
    matrix = sp.random_array((n, n), density=0.1, format="csr", rng=rng)
    sparse = matrix.indptr, matrix.indices, matrix.data
    columns = np.ascontiguousarray(R.T)
    wide = np.ascontiguousarray(np.abs(targets).T)
    failed = np.empty(n, dtype=np.uint8)
    cases = [
        (least_squares._pivot_rows, [np.zeros((n, r))], (columns, gram, targets, False, False, failed)),
        (
            least_squares._pivot_rows,
            [np.zeros((n, r))],
            (np.linalg.cholesky(gram), gram, targets @ R, True, False, failed),
        ),
        (least_squares._enter_rows, [np.zeros((n, r))], (columns, gram, targets, False)),
        (
            convex_hull._project_rows,
            [origin, np.empty((n, r + 1)), np.empty(n)],
            (Points(points, points @ points.T + 1.0, 1.0), padded, True),
        ),
        (coordinate_descent._sweep_rows, [np.zeros((n, r))], (-targets, gram)),
        (coordinate_descent._descend_blocks, [np.zeros((r, n))], (wide, gram, 5, 0.0)),
        (simplex._project_blocks, [2 * wide], (True,)),
        (simplex._descend_blocks, [np.zeros((r, n))], (wide, gram, 0.1, False, 5, 0.0)),
        (reductions._sum_rows, [targets, np.empty(n)], ()),
        (sparse_products._dot_rows, [], (*sparse, rng.random((n, 20)))),
    ]
    for kernel, changed, rest in cases:
        outcomes = [[array.copy() for array in changed or [np.empty((n, 20))]] for _ in range(2)]
        for outcome, work in zip(outcomes, (0, math.inf), strict=True):
            kernel(*([*outcome, *rest] if changed else [*rest, *outcome]), work=work)
        for one, other in zip(*outcomes, strict=True):
            assert_array_equal(one, other, err_msg=kernel.__name__)


USE = """
import sys, warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from gsnmf._kernels.coordinate_descent import coordinate_sweep
    from gsnmf._kernels.reductions import positive_squares
    X = np.zeros((1, 2))
    coordinate_sweep(X, np.array([[-3.0, 1.0]]), np.eye(2))
    assert X.tolist() == [[3.0, 0.0]], X
    assert positive_squares(np.array([[2.0, -1.0]])).tolist() == [4.0]
print(sum("cannot be kept on disk" in str(warning.message) for warning in caught), len(caught))
"""


def use_kernels(folder, before=""):
    """Numbers of warnings about the folder, and of all, in a new process that calls two kernels."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", before + USE]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(int, outcome.stdout.split()))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are not compiled")
class TestFilesOfKernels:
    @pytest.mark.long
    def test_damaged_ones_are_replaced_with_one_warning(self, tmp_path):
        assert use_kernels(tmp_path) == (0, 0)
        stored = sorted(file for file in tmp_path.rglob("*") if file.suffix in {".nbi", ".nbc"})
        assert {file.suffix for file in stored} == {".nbi", ".nbc"}
        for i, file in enumerate(stored):
            half = file.read_bytes()[: file.stat().st_size // 2]
            file.write_bytes((half, b"", b"\0" * 100, b"not a pickle")[i % 4])
        assert use_kernels(tmp_path) == (1, 1)
        assert use_kernels(tmp_path) == (0, 0)

    @pytest.mark.long
    def test_truncated_code_is_replaced(self, tmp_path):
        use_kernels(tmp_path)
        for file in tmp_path.rglob("*.nbc"):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        assert use_kernels(tmp_path) == (1, 1)

    @pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
    def test_full_disk_gives_one_warning(self, tmp_path):
        full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        about_kernels, _ = use_kernels(tmp_path, full)  # joblib warns of its own troubles
        assert about_kernels == 1
        assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size]

    def test_no_folder_at_all_gives_one_warning(self, tmp_path):
        nowhere = "import numba.core.caching as c; c.CacheImpl._locator_classes = []\n"
        assert use_kernels(tmp_path, nowhere) == (1, 1)

    @pytest.mark.long
    def test_another_folder_is_taken_where_one_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("", encoding="utf-8")
        assert use_kernels(tmp_path / "file") == (0, 0)

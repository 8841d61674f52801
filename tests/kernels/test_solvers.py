"""Solvers and products on top of the native kernels: properties, degenerate problems, and units."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

import gsnmf
from gsnmf import _parallel
from gsnmf._kernels import coordinate_descent, least_squares
from gsnmf._kernels.exchange import positive_squares
from gsnmf._kernels.least_squares import nonnegative_least_squares, nonnegative_quadratic, passive_inverses
from gsnmf._kernels.simplex import project_on_hull
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
    solve = least_squares._solve_from_zero
    spy = lambda *arguments: (entered.extend(arguments[4]), solve(*arguments))  # noqa: E731
    monkeypatch.setattr(least_squares, "_solve_from_zero", spy)
    sine = 7e-8
    R = np.array([[1.0, 0.0, math.sqrt(1.0 - sine**2)], [0.0, 1.0, 0.0], [0.0, 0.0, sine]])
    targets = np.random.default_rng(RNG_SEED).standard_normal((40, 3))
    X = np.zeros((40, 3))
    nonnegative_quadratic(X, R.T @ R, targets @ R)
    assert 0 < len(entered) < 40
    assert X.min() >= 0.0
    for x, target in zip(X, targets, strict=True):
        assert_allclose(np.linalg.norm(R @ x - target), nnls(R, target)[1], atol=3 * sine)


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
def test_sums_of_columns(policy, form, dtype):
    matrix = sp.random_array((50, 30), density=0.1, format=form, rng=np.random.default_rng(RNG_SEED), dtype=dtype)
    dense = matrix.toarray().astype(np.float64)
    assert_allclose(sparse_column_sums(matrix), dense.sum(axis=0), rtol=1e-13)
    assert_allclose(sparse_column_sums(matrix, squared=True), np.square(dense).sum(axis=0), rtol=1e-13)
    assert_array_equal(sparse_column_sums(sp.csr_array((4, 3))), np.zeros(3))

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from gsnmf.convex import project
from gsnmf.convex.fast_gradient import fast_gradient, memory_needed
from gsnmf.convex.model import ConvexModel
from gsnmf.convex.penalties import TRACE
from gsnmf.convex.selection import fast_gradient_selection
from gsnmf.datasets import fully_random
from gsnmf.matrix import wrap


@pytest.fixture(scope="module")
def matrix():
    return np.asarray(fully_random(0.1, shape=(14, 11), n_columns=2, n_rows=3, random_state=0).matrix)


def run(matrix, strength, axes=("columns", "rows"), **options):
    held = wrap(matrix)
    m, n = held.shape
    none = np.empty(0, dtype=np.intp)
    model = ConvexModel(held, strength, TRACE, axes)
    return fast_gradient(model, none, none, np.empty((0, n)), np.empty((m, 0)), **options)


def textbook(M, strength, n_iterations):
    """Algorithm 2 of the paper from zero, line by line."""
    m, n = M.shape
    L = 2 * np.linalg.svd(M, compute_uv=False)[0] ** 2
    alpha = 0.05
    X, Y = np.zeros((n, n)), np.zeros((m, m))
    X_last, Y_last = X, Y
    for _ in range(n_iterations):
        in_X = M.T @ M @ X + M.T @ Y @ M - M.T @ M + strength * np.eye(n)
        in_Y = M @ X @ M.T + Y @ M @ M.T - M @ M.T + strength * np.eye(m)
        X_next = project(X - in_X / L, M.sum(axis=0))
        Y_next = project((Y - in_Y / L).T, M.sum(axis=1)).T
        following = np.roots([1, alpha**2, -(alpha**2)]).max()  # alpha_k^2 = (1 - alpha_k) alpha_{k-1}^2
        beta = alpha * (1 - alpha) / (alpha**2 + following)
        alpha = following
        X, Y = X_next + beta * (X_next - X_last), Y_next + beta * (Y_next - Y_last)
        X_last, Y_last = X_next, Y_next
    return X_last, Y_last


@pytest.mark.parametrize("n_iterations", [1, 2, 7, 60])
def test_it_is_the_algorithm_of_the_paper(matrix, n_iterations):
    solution = run(matrix, 0.3, tolerance=1e-15, max_iterations=n_iterations)
    X, Y = textbook(matrix, 0.3, n_iterations)
    found = np.zeros_like(X), np.zeros_like(Y)
    found[0][solution.columns], found[1][:, solution.rows] = solution.X, solution.Y
    assert_allclose(found[0], X, atol=1e-10)
    assert_allclose(found[1], Y, atol=1e-10)
    assert solution.n_iterations == n_iterations
    assert not solution.converged
    assert solution.stop_reason == "max_iterations reached"


@pytest.mark.parametrize("axes", [("columns", "rows"), ("columns",)])
def test_the_gap_closes(matrix, axes):
    gaps = []
    for n_iterations in (10, 100, 3000):
        solution = run(matrix, 0.3, axes, tolerance=1e-15, max_iterations=n_iterations)
        gaps.append(solution.gap)
        assert "rows" in axes or solution.rows.size == 0
    assert gaps[0] > gaps[1] > gaps[2] > -1e-9
    assert gaps[2] < 1e-3


def test_a_smaller_tolerance_takes_longer_and_is_closer(matrix):
    rough, fine = (run(matrix, 0.3, tolerance=tolerance, max_iterations=10000) for tolerance in (1e-2, 1e-6))
    assert rough.converged
    assert fine.converged
    assert rough.n_iterations < fine.n_iterations
    assert fine.objective < rough.objective


def test_the_printed_rule_looks_at_the_objective_alone(matrix):
    rough, fine = (run(matrix, 0.3, tolerance=tolerance, as_printed=True) for tolerance in (1e-1, 1e-3))
    assert rough.converged
    assert fine.converged
    assert 2 <= rough.n_iterations < fine.n_iterations
    best = run(matrix, 0.3, tolerance=1e-15, max_iterations=3000)
    model = ConvexModel(wrap(matrix), 0.3, TRACE)
    again = fast_gradient(model, best.columns, best.rows, best.X, best.Y, tolerance=1e-3, as_printed=True)
    assert again.n_iterations == 2


def test_sparse_is_dense(matrix):
    dense, sparse = run(matrix, 0.3, max_iterations=50), run(sp.csr_array(matrix), 0.3, max_iterations=50)
    assert_array_equal(sparse.columns, dense.columns)
    assert_allclose(sparse.X, dense.X, atol=1e-12)  # equal but for the order of memory
    assert_allclose(sparse.objective, dense.objective, rtol=1e-12)
    assert_allclose(sparse.lower_bound, dense.lower_bound, rtol=1e-9)


def test_zero_matrix():
    solution = run(np.zeros((3, 4)), 1.0)
    assert solution.columns.size == solution.rows.size == 0
    assert solution.objective == solution.lower_bound == 0


def test_what_does_not_fit_is_refused_with_a_remedy():
    large = sp.csr_array(([1.0], ([0], [0])), shape=(40000, 40000))
    with pytest.raises(ValueError, match=r"method='gs-fgm' .* 119 GiB .* use method='convex'"):
        fast_gradient_selection(wrap(large), 5)
    with pytest.raises(ValueError, match=r"method='fgnsr' .* 60 GiB .* use method='convex'"):
        fast_gradient_selection(wrap(large), 5, axes=("columns",), method="fgnsr")


def test_memory_grows_with_the_squares_of_the_sides():
    assert memory_needed((10, 20)) == 5 * memory_needed((10, 10), axes=("columns",))

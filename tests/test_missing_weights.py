"""Weights on observed entries against independent solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, nnls

import gsnmf
from gsnmf.kernels.observed_entries import nonnegative_rows
from gsnmf.matrices.observed import observe
from gsnmf.weights.observed import ObservedProblem, observed_coefficients, solve_observed_weights


@pytest.fixture(params=[False, True], ids=["equal", "weighted"])
def problem(request):
    rng = np.random.default_rng(0)
    matrix = rng.random((20, 14)) + rng.random((20, 3)) @ rng.random((3, 14))
    weights = rng.uniform(0.1, 3.0, matrix.shape) if request.param else np.ones(matrix.shape)
    weights[rng.random(matrix.shape) < 0.35] = 0.0
    return matrix, weights, rng.random((20, 3)), rng.random((2, 14))


def objective(matrix, weights, C, R, P1, P2):
    return float((weights * (matrix - C @ P1 - P2 @ R) ** 2).sum())


def test_columns_alone_are_exact(problem):
    matrix, weights, C, _ = problem
    solved = solve_observed_weights(observe(matrix, entry_weights=weights), C, np.empty((0, 14)))
    root = np.sqrt(weights)
    expected = np.column_stack([nnls(root[:, [j]] * C, root[:, j] * matrix[:, j])[0] for j in range(14)])
    assert_allclose(solved.column_weights, expected, atol=1e-10)
    assert solved.optimality < 1e-12
    error = objective(matrix, weights, C, np.empty((0, 14)), expected, np.empty((20, 0)))
    assert solved.relative_error == pytest.approx(np.sqrt(error / (weights * matrix**2).sum()))


def test_rows_alone_are_the_columns_of_the_transpose(problem):
    matrix, weights, C, _ = problem
    by_columns = solve_observed_weights(observe(matrix, entry_weights=weights), C, np.empty((0, 14)))
    by_rows = solve_observed_weights(observe(matrix.T, entry_weights=weights.T), np.empty((14, 0)), C.T)
    assert_allclose(by_rows.row_weights, by_columns.column_weights.T, atol=1e-12)


def joint_reference(matrix, weights, C, R):
    """The joint problem as one bounded least-squares problem, by SciPy."""
    (m, n), r1, r2 = matrix.shape, C.shape[1], R.shape[0]
    design = np.hstack([np.kron(C, np.eye(n)), np.kron(np.eye(m), R.T)])
    root = np.sqrt(weights).ravel()
    found = lsq_linear(root[:, None] * design, root * matrix.ravel(), bounds=(0, np.inf), method="bvls", tol=1e-14)
    return found.x[: r1 * n].reshape(r1, n), found.x[r1 * n :].reshape(m, r2)


def test_both_sides_agree_with_a_general_solver(problem):
    matrix, weights, C, R = problem
    solved = solve_observed_weights(observe(matrix, entry_weights=weights), C, R, tolerance=1e-9)
    best = objective(matrix, weights, C, R, *joint_reference(matrix, weights, C, R))
    ours = objective(matrix, weights, C, R, solved.column_weights, solved.row_weights)
    assert ours == pytest.approx(best, rel=1e-9)
    assert solved.converged
    assert min(solved.column_weights.min(), solved.row_weights.min()) >= 0


def test_never_worse_than_the_start(problem):
    matrix, weights, C, R = problem
    seen = observe(matrix, entry_weights=weights)
    rng = np.random.default_rng(2)
    for scale in (0.0, 0.1, 10.0):
        start = scale * rng.random((3, 14)), scale * rng.random((20, 2))
        solved = solve_observed_weights(seen, C, R, start=start, max_iterations=1, tolerance=1e-12)
        ours = objective(matrix, weights, C, R, solved.column_weights, solved.row_weights)
        assert ours <= objective(matrix, weights, C, R, *start)


def test_without_holes_the_error_is_that_of_fit_weights():
    rng = np.random.default_rng(4)
    matrix = rng.random((15, 12))
    full = gsnmf.fit_weights(matrix, [0, 3], [1, 2], tolerance=1e-10)
    seen = observe(matrix, missing_values=np.nan)
    ours = solve_observed_weights(seen, matrix[:, [0, 3]], matrix[[1, 2]], tolerance=1e-10)
    assert ours.relative_error == pytest.approx(full.relative_error, rel=1e-9)


def test_gradient_is_the_derivative(problem):
    matrix, weights, C, R = problem
    held = ObservedProblem(observe(matrix, entry_weights=weights), C, np.ascontiguousarray(R.T))
    rng = np.random.default_rng(1)
    P, Q = rng.random((14, 3)), rng.random((20, 2))
    plain_P, plain_Q = held.plain(P, Q)
    gradient = held.gradient(P, Q)
    residual = weights * (C @ plain_P.T + plain_Q @ R - matrix)
    assert_allclose(gradient[0], (residual.T @ C) * (plain_P / P))
    assert_allclose(gradient[1], (residual @ R.T) * (plain_Q / Q))
    value = objective(matrix, weights, C, R, plain_P.T, plain_Q)
    assert held.squared_error(P, Q, gradient) == pytest.approx(value)


def test_dependent_and_empty_columns():
    matrix = np.array([[1.0, np.nan, 2.0], [2.0, np.nan, 4.0], [3.0, np.nan, 1.0]])
    C = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [1.0, 2.0, 0.0]])
    seen = observe(matrix, missing_values=np.nan)
    solved = solve_observed_weights(seen, C, np.empty((0, 3)))
    expected = [nnls(C, matrix[:, j])[1] for j in (0, 2)]
    assert_allclose(np.linalg.norm((C @ solved.column_weights - matrix)[:, [0, 2]], axis=0), expected)
    assert_allclose(solved.column_weights[:, 1], 0.0)
    joint = solve_observed_weights(seen, C, np.array([[1.0, 5.0, 1.0]]))
    assert joint.converged
    assert np.isfinite(joint.column_weights).all()


def test_single_precision_stays_and_is_close():
    rng = np.random.default_rng(0)
    matrix, C, R = rng.random((30, 20)), rng.random((30, 3)), rng.random((2, 20))
    matrix[rng.random((30, 20)) < 0.3] = np.nan
    double, single = (
        solve_observed_weights(observe(matrix.astype(kind), missing_values=np.nan), C, R)
        for kind in (np.float64, np.float32)
    )
    assert single.column_weights.dtype == np.float32
    assert single.relative_error == pytest.approx(double.relative_error, rel=1e-5)


def test_coefficients_of_samples_with_holes():
    rng = np.random.default_rng(0)
    components, truth = rng.random((4, 30)), rng.random((10, 4))
    samples = truth @ components
    samples[rng.random(samples.shape) < 0.5] = np.nan
    samples[3] = np.nan
    found = observed_coefficients(observe(samples, missing_values=np.nan), components)
    truth[3] = 0.0
    assert_allclose(found, truth, atol=1e-8)


def test_many_random_problems_against_nnls():
    rng = np.random.default_rng(7)
    for rank, missing in ((1, 0.5), (2, 0.5), (5, 0.5), (9, 0.5), (9, 0.8)):  # at last more unknowns than equations
        F = rng.standard_normal((25, rank))
        matrix = rng.random((40, 25))
        matrix[rng.random(matrix.shape) < missing] = np.nan
        found, violations = nonnegative_rows(observe(matrix, missing_values=np.nan).entries, F)
        for x, row in zip(found, matrix, strict=True):
            seen = np.isfinite(row)
            reference = nnls(F[seen], row[seen])[1]
            assert np.linalg.norm(F[seen] @ x - row[seen]) <= reference * (1 + 1e-9) + 1e-9
        assert violations.max() < 1e-16

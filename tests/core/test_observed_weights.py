"""Weights on observed entries against independent solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, nnls

import gsnmf
from gsnmf._kernels.observed_entries import (
    ALL_FREE,
    NO_PRIOR,
    descend_observed,
    nonnegative_rows,
    residuals,
    ridge_rows,
    row_grams,
    row_slopes,
    simplex_rows,
    sweep_with_grams,
)
from gsnmf._kernels.simplex import simplex_least_squares
from gsnmf.matrix.input import observe
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


@pytest.fixture(params=[False, True], ids=["equal", "weighted"])
def separate(request):
    """Rows with many, few and no entries: their entries, the matrix and its weights as arrays, and a factor."""
    rng = np.random.default_rng(3)
    matrix, F = rng.random((9, 13)), rng.standard_normal((13, 4))
    weights = rng.uniform(0.1, 3.0, matrix.shape) if request.param else np.ones(matrix.shape)
    weights[rng.random(matrix.shape) < np.linspace(0.0, 0.9, 9)[:, None]] = 0.0
    weights[4], F[:5, 3], weights[5, 5:] = 0.0, 0.0, 0.0  # no entries, and entries that show nothing of one unknown
    return observe(matrix, entry_weights=weights).entries, matrix, weights, F


def test_rows_with_a_ridge_solve_their_systems(separate):
    entries, matrix, weights, F = separate
    expected = [
        np.linalg.solve(F.T * w @ F + 0.3 * np.eye(4), F.T * w @ row) for row, w in zip(matrix, weights, strict=True)
    ]
    assert_allclose(ridge_rows(entries, F, 0.3), expected, atol=1e-12)


def test_gram_matrices_of_rows_have_a_unit_diagonal(separate):
    entries, _, weights, F = separate
    grams, lengths = row_grams(entries, F)
    expected = np.array([F.T * w @ F for w in weights])
    assert_allclose(grams * lengths[:, :, None] * lengths[:, None, :], expected, atol=1e-12)
    assert_allclose(np.einsum("ikk->ik", grams), lengths > 0)
    assert 0 < (lengths == 0).sum() < lengths.size


def test_residuals_and_slopes_are_those_of_the_whole_matrix(separate):
    entries, matrix, weights, F = separate
    A, B = np.random.default_rng(0).standard_normal((2, 13, 3))
    A = A[:9]
    assert_allclose(residuals(entries, A, B), (matrix - A @ B.T)[weights > 0], atol=1e-12)
    for with_values in (False, True):
        expected = (weights * (A @ B.T - with_values * matrix)) @ F
        assert_allclose(row_slopes(entries, A, B, F, with_values=with_values), expected, atol=1e-12)


def test_rows_on_the_simplex_are_those_of_the_complete_problems(separate):
    entries, matrix, weights, F = separate
    F = np.abs(F) + np.eye(13, 4)
    root = np.sqrt(weights)
    found = simplex_rows(entries, F)
    for x, row, w in zip(found, matrix, root, strict=True):
        best = simplex_least_squares(w[:, None] * F, (w * row)[None])[0]
        ours, theirs = (np.linalg.norm(w * (F @ z - row)) for z in (x, best))
        assert ours == pytest.approx(theirs, abs=1e-12)
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert found.min() >= 0.0
    assert found[4].tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("exponent", [-60, 60])
def test_the_unit_of_the_entries_does_not_matter(separate, exponent):
    entries, _, _, F = separate
    scaled = entries._replace(values=np.ldexp(entries.values, exponent))
    assert_allclose(simplex_rows(scaled, np.ldexp(F, exponent)), simplex_rows(entries, F), atol=1e-12)
    expected = nonnegative_rows(entries, F)[0]
    assert_allclose(nonnegative_rows(scaled, F)[0], np.ldexp(expected, exponent), rtol=1e-12)
    assert_allclose(nonnegative_rows(scaled, np.ldexp(F, exponent))[0], expected, rtol=1e-12)


def test_unknowns_that_too_little_is_seen_of_are_zero(separate):
    entries, matrix, weights, F = separate
    mean = weights[weights > 0].mean()
    shown = [np.square(F).T @ w >= 0.4 * mean * np.square(F).sum(axis=0) for w in weights]
    found, violations = nonnegative_rows(entries, F, 0.4)
    for x, row, w, part in zip(found, matrix, np.sqrt(weights), shown, strict=True):
        best = nnls(w[:, None] * F * part, w * row)[1]
        assert np.linalg.norm(w * (F @ x - row)) == pytest.approx(best, abs=1e-12)
        assert not x[~part].any()
    assert violations.max() < 1e-20
    assert 0 < np.sum(shown) < found.size


def plain_descent(gram, linear, x, n_sweeps, free):
    """Coordinate descent on x'Gx / 2 - b'x over x >= 0, and the squared violation at the start."""
    x, violation = x.copy(), 0.0
    moving = [k for k in range(x.size) if free[k] and gram[k, k] > 0]
    for k in moving:
        violation += min(x[k] * gram[k, k], gram[k] @ x - linear[k]) ** 2 / gram[k, k]
    for _ in range(n_sweeps):
        for k in moving:
            x[k] = max(0.0, x[k] - (gram[k] @ x - linear[k]) / gram[k, k])
    return x, violation


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("all_free", [False, True])
@pytest.mark.parametrize("n_sweeps", [0, 1, 3])
def test_descent_on_observed_entries_is_that_of_plain_numpy(separate, n_sweeps, all_free, with_prior):
    entries, matrix, weights, F = separate
    rng = np.random.default_rng(4)
    X = rng.random((9, 4)) * (rng.random((9, 4)) < 0.7)
    free = (rng.random((9, 4)) < 0.7) | all_free
    prior, stiffness = rng.random((9, 4)), rng.random((9, 4)) * with_prior
    expected, violations = X.copy(), np.zeros(9)
    for i, (row, w) in enumerate(zip(matrix, weights, strict=True)):
        gram, linear = F.T * w @ F + np.diag(stiffness[i]), F.T * w @ row + stiffness[i] * prior[i]
        expected[i], violations[i] = plain_descent(gram, linear, X[i], n_sweeps, free[i])
    pull = (prior, stiffness) if with_prior else (NO_PRIOR, NO_PRIOR)
    found = descend_observed(entries, F, X, n_sweeps, ALL_FREE if all_free else free, *pull)
    assert_allclose(found, violations, atol=1e-12)
    assert_allclose(X, expected, atol=1e-12)


def test_a_sweep_over_scaled_rows_is_coordinate_descent(separate):
    entries, matrix, weights, F = separate
    grams, lengths = row_grams(entries, F)
    X = np.random.default_rng(5).random((9, 4))
    linear = np.divide((weights * matrix) @ F, lengths, out=np.zeros((9, 4)), where=lengths > 0)
    expected = [
        plain_descent(gram, b, x, 1, np.ones(4, dtype=bool))[0] for gram, b, x in zip(grams, linear, X, strict=True)
    ]
    slopes = np.einsum("ikl,il->ik", grams, X) - linear
    sweep_with_grams(X, slopes, grams)
    assert_allclose(X, expected, atol=1e-12)
    assert_allclose(slopes, np.einsum("ikl,il->ik", grams, X) - linear, atol=1e-12)

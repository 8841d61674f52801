"""Least squares on the simplex: the optimality conditions hold, and no face of the simplex has a better point."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from gsnmf._kernels.simplex import _with_sum_alone, simplex_least_squares
from gsnmf._parallel import in_one_thread


def best_error(matrix, target):
    """The least error over all faces, each by its own linear system."""
    r, best = matrix.shape[1], np.inf
    for size in range(1, r + 1):
        for face in combinations(range(r), size):
            part = matrix[:, face]
            system = np.block([[part.T @ part, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            z = np.linalg.lstsq(system, np.append(part.T @ target, 1.0), rcond=None)[0][:size]
            if z.min() >= -1e-12 and abs(z.sum() - 1) < 1e-9:
                best = min(best, np.linalg.norm(part @ z - target))
    return best


def violation(matrix, X, targets):
    """How far the optimality conditions are from holding: slopes of zero weights above those of positive ones."""
    slopes = (targets - X @ matrix.T) @ matrix
    highest = slopes.max(axis=1)
    used = np.where(X > 0, slopes, np.inf).min(axis=1)
    return (highest - used).max() / max(1e-300, np.abs(targets).max() * np.abs(matrix).max() * matrix.shape[0])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 6), r=st.integers(1, 5), kind=st.integers(0, 4))
def test_no_face_has_a_better_point(seed, rows, r, kind):
    rng = np.random.default_rng(seed)
    matrix = rng.random((rows, r)) * (1e6 if kind == 3 else 1.0)
    if kind == 1:
        matrix[:, 0] = 0.0
    if kind == 2:
        matrix[:, -1] = matrix[:, 0]
    targets = rng.standard_normal((4, rows)) * rng.choice([0.3, 1.0, 10.0]) * max(np.abs(matrix).max(), 1e-3)
    X = simplex_least_squares(matrix, targets)
    assert X.min() >= 0
    np.testing.assert_allclose(X.sum(axis=1), 1.0, atol=1e-12)
    for x, target in zip(X, targets, strict=True):
        assert np.linalg.norm(matrix @ x - target) <= best_error(matrix, target) + 1e-10 * np.linalg.norm(target)


@pytest.mark.parametrize("r", [3, 12, 30])
def test_optimality_conditions(r):
    rng = np.random.default_rng(r)
    matrix = rng.random((60, r))
    targets = rng.dirichlet(np.full(r, 0.3), 500) @ matrix.T + 0.05 * rng.standard_normal((500, 60))
    X = simplex_least_squares(matrix, targets)
    assert violation(matrix, X, targets) < 1e-12
    assert (X == 0).any()


def test_general_solver():
    rng = np.random.default_rng(0)
    matrix, targets = rng.random((8, 4)), rng.random((5, 8))
    X = simplex_least_squares(matrix, targets)
    for x, target in zip(X, targets, strict=True):
        general = minimize(
            lambda z, b=target: 0.5 * np.sum((matrix @ z - b) ** 2),
            np.full(4, 0.25),
            jac=lambda z, b=target: matrix.T @ (matrix @ z - b),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda z: z.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(x, general.x, atol=1e-6)


def test_one_thread_gives_the_same():
    rng = np.random.default_rng(1)
    matrix, targets = rng.random((10, 8)), rng.random((4000, 10))
    with in_one_thread():
        alone = simplex_least_squares(matrix, targets)
    np.testing.assert_array_equal(simplex_least_squares(matrix, targets), alone)


def test_nearly_equal_columns():
    rng = np.random.default_rng(2)
    matrix = rng.random((20, 5))
    matrix[:, 4] = matrix[:, 3] + 1e-9 * rng.random(20)
    targets = rng.random((50, 20))
    X = simplex_least_squares(matrix, targets)
    without = simplex_least_squares(matrix[:, :4], targets)
    errors = np.linalg.norm(X @ matrix.T - targets, axis=1)
    assert np.all(errors <= np.linalg.norm(without @ matrix[:, :4].T - targets, axis=1) + 1e-9)


def test_weights_with_the_sum_alone_are_as_exact_as_nearly_equal_columns_allow():
    rng = np.random.default_rng(0)
    columns, weights = rng.random((5, 5)), rng.standard_normal((6, 5))
    columns[4] = columns[3] + 0.01 * rng.random(5)
    weights[:, 0] += 1.0 - weights.sum(axis=1)
    found = _with_sum_alone(columns, columns @ columns.T, weights @ columns)
    np.testing.assert_allclose(found, weights, rtol=0, atol=5e-12)


def test_dependent_columns_have_no_weights_with_the_sum_alone():
    columns = np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(_with_sum_alone(columns, columns @ columns.T, np.ones((3, 2))), np.zeros((3, 2)))

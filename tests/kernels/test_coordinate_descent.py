"""Coordinate descent against the same steps written with NumPy, and against exact solutions."""

import numpy as np
import pytest
from scipy.optimize import nnls

from gsnmf._kernels.coordinate_descent import coordinate_sweep, descend

BLOCK = 128  # columns that are updated together (coordinate_descent.hpp); rows are in tiles of half as many


def drawn(n, r, dtype=np.float64):
    """A Gram matrix with a diagonal that is not constant, targets for n problems, and weights to start from."""
    rng = np.random.default_rng(n + r)
    factor = rng.random((2 * r + 1, r)) * (1.0 + np.arange(r))
    targets = (factor.T @ rng.standard_normal((2 * r + 1, n))).astype(dtype)
    return factor, (factor.T @ factor).astype(dtype), targets, rng.random((r, n)).astype(dtype)


def swept(X, targets, gram):
    """One sweep over the coordinates of all columns, and by how much it moved them in the norm of the diagonal."""
    X, change = X.astype(np.float64), 0.0
    for i in np.flatnonzero(gram.diagonal() > 0):
        moved = np.maximum(0.0, X[i] + (targets[i] - gram[i] @ X) / gram[i, i]) - X[i]
        X[i] += moved
        change += gram[i, i] * (moved**2).sum()
    return X, change


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("r", [1, 2, 5])
def test_a_sweep_over_rows_is_the_textbook_one(n, r):
    _, gram, targets, start = drawn(n, r)
    X = start.T.copy()
    coordinate_sweep(X, np.ascontiguousarray(-targets.T), gram)
    np.testing.assert_allclose(X.T, swept(start, targets, gram)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("n", [1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
@pytest.mark.parametrize("n_sweeps", [1, 2, 3])
def test_sweeps_over_columns_are_the_textbook_ones(n, n_sweeps, dtype, precision):
    _, gram, targets, expected = drawn(n, 4, dtype)
    X = expected.copy()
    descend(X, targets, gram, n_sweeps, 0.0)
    for _ in range(n_sweeps):
        expected, _ = swept(expected, targets, gram)
    np.testing.assert_allclose(X, expected, rtol=precision, atol=precision)


def test_many_sweeps_end_at_the_exact_solution():
    factor, _, _, _ = drawn(20, 4)
    data = np.random.default_rng(3).standard_normal((factor.shape[0], 20))
    X = np.zeros((4, 20))
    descend(X, factor.T @ data, factor.T @ factor, 5000, 0.0)
    for x, target in zip(X.T, data.T, strict=True):
        np.testing.assert_allclose(x, nnls(factor, target)[0], atol=1e-8)


@pytest.mark.parametrize("tolerance", [0.5, 0.01, 0.001])
def test_a_block_ends_after_the_sweep_that_moves_it_little(tolerance):
    _, gram, targets, start = drawn(40, 6)
    X, changes = start, []
    while len(changes) < 2 or changes[-1] > tolerance**2 * changes[0]:
        X, change = swept(X, targets, gram)
        changes.append(change)
    found = start.copy()
    descend(found, targets, gram, 1000, tolerance)
    np.testing.assert_allclose(found, X, rtol=1e-9, atol=1e-12)


def test_a_coordinate_without_curvature_stays_as_it_is():
    _, gram, targets, start = drawn(5, 3)
    gram[1] = gram[:, 1] = 0.0
    X = start.copy()
    descend(X, targets, gram, 4, 0.0)
    np.testing.assert_array_equal(X[1], start[1])
    assert not np.array_equal(X[0], start[0])

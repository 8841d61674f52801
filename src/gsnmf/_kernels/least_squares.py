"""Nonnegative least squares for many targets with the same few columns, and the curvature at the solutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from gsnmf._kernels.active_set import (
    FLAGS,
    N_BUFFERS,
    RESIDUAL,
    SLOPES,
    SOLUTION,
    active_set,
    append,
    factor_positive,
    least_squares,
    slope,
    slope_threshold,
    solve,
)
from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import loop
from gsnmf.support.arrays import Doubles, Indices

_CHANCES = 3
"""How often in a row a full exchange may fail to set a new low in the number of wrong indices."""

_GUESSING_SWEEPS = 3

_PER_WEIGHT, _PER_WEIGHT_BY_GRAM = 500, 100
"""Operations per weight that come on top of those in proportion to the square of the number of columns; measured with
3 to 51 columns."""


def nonnegative_least_squares(X: Doubles, triangle: Doubles, targets: Doubles) -> None:
    """Turn each row x of X in place into the minimiser of |R x - b| over x >= 0, b its row of ``targets``.

    R is upper triangular with columns of unit length. Block principal pivoting (Kim and Park 2011), started from the
    positive entries of x: solve on the passive set, exchange all indices of the wrong sign, or only the last one once
    that no longer helps; this ends after finitely many steps. If it meets columns that depend on each other to working
    precision, the active-set method of Lawson and Hanson takes over. Solutions on the passive set come from its Gram
    matrix and are refined with R itself, so they are as accurate as those of a QR decomposition.

    References
    ----------
    J. Kim, H. Park, Fast nonnegative matrix factorization: an active-set-like method and comparisons, SIAM J. Sci.
    Comput. 33 (2011), doi:10.1137/110821172.

    Examples
    --------
    >>> X = np.zeros((2, 2))
    >>> nonnegative_least_squares(X, np.eye(2), np.array([[3.0, -1.0], [1.0, 2.0]]))
    >>> X
    array([[3., 0.],
           [1., 2.]])
    """
    columns = np.ascontiguousarray(triangle.T)  # row i holds column i: i + 1 entries, then zeros
    gram = columns @ triangle
    failed = _pivot(X, columns, gram, targets, by_gram=False)
    _enter(X, columns, gram, targets[failed], failed)


def nonnegative_quadratic(X: Doubles, gram: Doubles, linear: Doubles) -> None:
    """Turn each row of X, which holds zeros, in place into the minimiser x of x G x / 2 - x . b over x >= 0.

    b is the matching row of ``linear``. G must have a unit diagonal and be well conditioned; otherwise use
    `nonnegative_least_squares`. Coordinate descent guesses the positive entries and skips what stays zero; block
    principal pivoting then makes the guess exact. The cost thus follows the number of positive entries.
    """
    lower = np.asarray(np.linalg.cholesky(gram), dtype=np.float64)
    failed = _pivot(X, lower, gram, linear, by_gram=True)
    if failed.size:
        targets = linalg.solve_triangular(lower, linear[failed].T, lower=True).T
        _enter(X, lower, gram, np.ascontiguousarray(targets), failed)


def _pivot(X: Doubles, columns: Doubles, gram: Doubles, right: Doubles, *, by_gram: bool) -> Indices:
    """Block principal pivoting for all rows of X, in place; returns those at which it met dependent columns."""
    failed = np.empty(X.shape[0], dtype=np.uint8)
    per_weight = _PER_WEIGHT_BY_GRAM if by_gram else _PER_WEIGHT
    _pivot_rows(X, columns, gram, right, by_gram, False, failed, work=X.size * (per_weight + 8 * X.shape[1]))
    return np.flatnonzero(failed)


def _enter(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles, rows: Indices) -> None:
    """The active-set method for some rows of X, which have one target each."""
    if rows.size:
        solutions = np.zeros((rows.size, X.shape[1]))
        _enter_rows(solutions, columns, gram, targets, False, work=solutions.size * (_PER_WEIGHT + 8 * X.shape[1]))
        X[rows] = solutions


def passive_inverses(X: Doubles, gram: Doubles) -> Doubles:
    """Upper triangle of the inverse Gram matrix of the positive entries of each row of X, zero elsewhere.

    All zero where those columns depend on each other.
    """
    n, r = X.shape
    inverses = np.zeros((n, r * (r + 1) // 2))
    _invert_rows(X, gram, inverses, work=X.size * r * r)
    return inverses


@loop(reordered=True)
def _pivot_rows(
    X: Doubles,
    columns: Doubles,
    gram: Doubles,
    right: Doubles,
    by_gram: bool,
    with_sum: bool,
    failed: NDArray[np.uint8],
    first: int,
    stride: int,
) -> None:
    n, r = X.shape
    lower, buffers, indices = np.empty((r, r)), np.empty((N_BUFFERS, r)), np.empty(r, dtype=np.int64)
    for j in range(first, n, stride):
        if by_gram:
            _guess(X[j], gram, right[j], buffers)
        failed[j] = not _principal_pivoting(X[j], columns, gram, right[j], by_gram, with_sum, lower, buffers, indices)


@loop(reordered=True)
def _enter_rows(
    X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles, with_sum: bool, first: int, stride: int
) -> None:
    n, r = X.shape
    lower, buffers, indices = np.empty((r, r)), np.empty((N_BUFFERS, r)), np.empty(r, dtype=np.int64)
    for j in range(first, n, stride):
        for i in range(r):
            X[j, i] = 0.0
        threshold = slope_threshold(targets[j])
        active_set(X[j], columns, gram, targets[j], threshold, with_sum, lower, buffers, indices, int(np.int64(0)))


@compiled(inner=True, reordered=True)
def _guess(x: Doubles, gram: Doubles, linear: Doubles, buffers: Doubles) -> None:
    """A few sweeps of coordinate descent from zero; the cost follows the entries that change."""
    slopes = buffers[SLOPES]
    for i in range(x.size):
        slopes[i] = linear[i]
    for _ in range(_GUESSING_SWEEPS):
        for i in range(x.size):
            step = max(slopes[i], -x[i])
            if step != 0.0:
                x[i] += step
                for k in range(x.size):
                    slopes[k] -= step * gram[i, k]


@compiled(inner=True, reordered=True)
def _principal_pivoting(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    right: Doubles,
    by_gram: bool,
    with_sum: bool,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> bool:
    """Block principal pivoting from the positive entries of x; False if it met dependent columns.

    ``right`` is the target or, with ``by_gram``, its products with the columns.
    """
    r, passive = x.size, buffers[FLAGS]
    for i in range(r):
        passive[i] = 1.0 if x[i] > 0.0 else 0.0
    threshold = slope_threshold(right)
    fewest, chances = r + 1, _CHANCES
    for _ in range(20 * r + 20):
        size = int(np.int64(0))
        for i in range(r):
            if passive[i] > 0.0:
                if not append(gram, i, lower, indices, size):
                    return False
                size += 1
        if by_gram:
            _gram_solution(gram, indices, size, right, lower, buffers)
        else:
            least_squares(columns, indices, size, right, with_sum, lower, buffers)
            for i in range(r):
                if passive[i] == 0.0:
                    buffers[SLOPES, i] = slope(columns, i, buffers[RESIDUAL])
        for i in range(r):
            x[i] = 0.0
        for a in range(size):
            x[indices[a]] = buffers[SOLUTION, a]
        n_wrong = 0
        for i in range(r):
            n_wrong += _is_wrong(x[i], passive[i], buffers[SLOPES, i], threshold)
        if n_wrong == 0:
            return True
        chances = _CHANCES if n_wrong < fewest else chances - 1
        fewest = min(fewest, n_wrong)
        for i in range(r - 1, -1, -1):
            if _is_wrong(x[i], passive[i], buffers[SLOPES, i], threshold):
                passive[i] = 1.0 - passive[i]
                if chances < 0:
                    break
    return False


@compiled(inner=True, reordered=True)
def _is_wrong(value: float, passive: float, slope: float, threshold: float) -> bool:
    return value < 0.0 if passive > 0.0 else slope > threshold


@compiled(inner=True, reordered=True)
def _gram_solution(
    gram: Doubles, indices: NDArray[np.int64], size: int, linear: Doubles, lower: Doubles, buffers: Doubles
) -> None:
    """Solution z on the passive set, and the slopes at z."""
    slopes, z = buffers[SLOPES], buffers[SOLUTION]
    for a in range(size):
        z[a] = linear[indices[a]]
    solve(lower, size, z)
    for k in range(linear.size):
        slopes[k] = linear[k]
    for a in range(size):
        for k in range(linear.size):
            slopes[k] -= z[a] * gram[indices[a], k]


@loop(reordered=True)
def _invert_rows(X: Doubles, gram: Doubles, inverses: Doubles, first: int, stride: int) -> None:
    n, r = X.shape
    lower, right, indices = np.empty((r, r)), np.empty(r), np.empty(r, dtype=np.int64)
    for j in range(first, n, stride):
        size = factor_positive(X[j], gram, lower, indices)
        for a in range(size):
            for b in range(size):
                right[b] = 1.0 if a == b else 0.0
            solve(lower, size, right)
            i = indices[a]
            for b in range(a, size):
                inverses[j, i * r - i * (i - 1) // 2 + indices[b] - i] = right[b]

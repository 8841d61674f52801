r"""Compiled loops over the observed entries of a matrix: sums, small problems, and residuals.

The entries are given by rows, as `Entries`. Each row i of the matrix is a least-squares problem of its own,

.. math:: \min_x \; \tfrac12 \sum_{j \text{ observed}} w_{ij} (m_{ij} - x^T f_j)^2 ,

in which f_j is row j of a factor F. Which j take part differs from row to row, so every row has its own Gram matrix.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gsnmf._kernels.active_set import N_BUFFERS, Points, active_set, slope_threshold
from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.least_squares import _principal_pivoting
from gsnmf._kernels.loops import loop
from gsnmf._kernels.sum_to_one import from_nearest
from gsnmf.support.arrays import Doubles, Floats


class Entries(NamedTuple):
    """Observed entries by rows, as in a CSR array; stored zeros are entries like any other."""

    indptr: NDArray[np.integer[Any]]
    indices: NDArray[np.integer[Any]]
    values: Floats
    weights: Floats
    """One positive weight per entry; empty if all of them are one."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.indptr.size) - 1


def ridge_rows(entries: Entries, F: Doubles, ridge: float) -> Doubles:
    """The minimiser x of each row's problem with ``ridge`` / 2 |x|^2 added to it, one per row.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 2]), np.array([2.0, 4.0]), np.empty(0))
    >>> ridge_rows(entries, np.array([[1.0], [9.0], [2.0]]), 1e-12).round(6)
    array([[2.]])
    """
    X = np.zeros((entries.n_rows, F.shape[1]))
    _ridge_rows(entries, F, ridge, X, work=entries.values.size * F.shape[1] ** 2)
    return X


def nonnegative_rows(entries: Entries, F: Doubles, least: float = 0.0) -> tuple[Doubles, Doubles]:
    """The minimiser x >= 0 of each row's problem, and the squared violation of its optimality conditions.

    Each unknown is scaled so that its second derivative is one. An unknown is zero if F is zero at all observed entries
    of the row, or if these entries hold less than the fraction ``least`` of the squared length of its column of F.

    Notes
    -----
    Block principal pivoting on the Gram matrix of the row; where it meets dependent columns, the active-set method of
    Lawson and Hanson on its Cholesky factor. The memory does not grow with the number of rows.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 1]), np.array([3.0, 1.0]), np.empty(0))
    >>> nonnegative_rows(entries, np.array([[1.0, -1.0], [0.0, 1.0], [5.0, 5.0]]))[0]
    array([[4., 1.]])
    """
    X, violations = np.zeros((entries.n_rows, F.shape[1])), np.zeros(entries.n_rows)
    shown = least * np.square(F).sum(axis=0)
    if entries.weights.size:
        shown *= float(entries.weights.mean(dtype=np.float64))
    _nonnegative_rows(entries, F, shown, X, violations, work=entries.values.size * F.shape[1] ** 2)
    return X, violations


def simplex_rows(entries: Entries, F: Doubles) -> Doubles:
    """The minimiser x of each row's problem over x >= 0 with sum one; the first vertex for a row without entries.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 2]), np.array([1.0, 3.0]), np.empty(0))
    >>> simplex_rows(entries, np.array([[0.0, 2.0], [7.0, 7.0], [2.0, 4.0]]))
    array([[0.5, 0.5]])
    """
    X = np.zeros((entries.n_rows, F.shape[1]))
    _simplex_rows(entries, F, X, True, work=entries.values.size * F.shape[1] ** 2)
    return X


def row_grams(entries: Entries, F: Doubles) -> tuple[Doubles, Doubles]:
    """The Gram matrix of each row's problem, scaled to a unit diagonal, and the square roots of the original diagonals.

    Where a diagonal entry is zero, so are its row and column.
    """
    r = F.shape[1]
    grams, lengths = np.zeros((entries.n_rows, r, r)), np.zeros((entries.n_rows, r))
    _row_grams(entries, F, grams, lengths, work=entries.values.size * r**2)
    return grams, lengths


def sweep_rows(X: Doubles, slopes: Doubles, grams: Doubles) -> None:
    """One sweep of coordinate descent over x >= 0 for each row of X, in place; ``slopes`` are the gradients at X."""
    _sweep_rows(X, slopes, grams, work=grams.size)


def residuals(entries: Entries, A: Doubles, B: Doubles) -> Doubles:
    """m_ij - a_i . b_j at every observed entry, for factors with one row per row and per column of the matrix.

    Examples
    --------
    >>> entries = Entries(np.array([0, 1]), np.array([1]), np.array([7.0]), np.empty(0))
    >>> residuals(entries, np.array([[2.0]]), np.array([[5.0], [3.0]]))
    array([1.])
    """
    left = np.empty(entries.values.size)
    _residuals(entries, A, B, left, work=2 * left.size * A.shape[1])
    return left


def row_slopes(entries: Entries, A: Doubles, B: Doubles, F: Doubles, *, with_values: bool) -> Doubles:
    """Sum over the observed entries of each row of w_ij (a_i . b_j - m_ij) f_j; without m_ij unless ``with_values``."""
    slopes = np.zeros((entries.n_rows, F.shape[1]))
    work = 2 * entries.values.size * (A.shape[1] + F.shape[1])
    _row_slopes(entries, A, B, F, with_values, slopes, work=work)
    return slopes


@compiled(inner=True, reordered=True)
def accumulate(entries: Entries, i: int, F: Doubles, gram: Doubles, linear: Doubles) -> None:
    """Gram matrix, its lower triangle, and linear term of row i."""
    indptr, indices, values, weights = entries
    r = F.shape[1]
    for k in range(r):
        linear[k] = 0.0
        for l in range(k + 1):  # noqa: E741
            gram[k, l] = 0.0
    end = indptr[i + 1]
    fours = end - (end - indptr[i]) % 4
    for q in range(indptr[i], fours, 4):  # four entries together read and write the sums once
        w0, w1, w2, w3 = 1.0, 1.0, 1.0, 1.0
        if weights.size:
            w0, w1 = np.float64(weights[q]), np.float64(weights[q + 1])
            w2, w3 = np.float64(weights[q + 2]), np.float64(weights[q + 3])
        v0, v1 = w0 * np.float64(values[q]), w1 * np.float64(values[q + 1])
        v2, v3 = w2 * np.float64(values[q + 2]), w3 * np.float64(values[q + 3])
        f0, f1 = F[np.uint64(indices[q])], F[np.uint64(indices[q + 1])]
        f2, f3 = F[np.uint64(indices[q + 2])], F[np.uint64(indices[q + 3])]
        for k in range(r):
            linear[k] += v0 * f0[k] + v1 * f1[k] + v2 * f2[k] + v3 * f3[k]
            g0, g1, g2, g3 = w0 * f0[k], w1 * f1[k], w2 * f2[k], w3 * f3[k]
            for l in range(k + 1):  # noqa: E741
                gram[k, l] += g0 * f0[l] + g1 * f1[l] + g2 * f2[l] + g3 * f3[l]
    for q in range(fours, end):
        f = F[np.uint64(indices[q])]
        weight = np.float64(weights[q]) if weights.size else 1.0
        value = weight * np.float64(values[q])
        for k in range(r):
            linear[k] += value * f[k]
            factor = weight * f[k]
            for l in range(k + 1):  # noqa: E741
                gram[k, l] += factor * f[l]


@compiled(inner=True, reordered=True)
def _unit_diagonal(gram: Doubles, lengths: Doubles) -> None:
    """Scale to a unit diagonal, and fill the upper triangle; ``lengths`` are the square roots of the diagonal."""
    r = lengths.size
    for k in range(r):
        lengths[k] = math.sqrt(gram[k, k])
    for k in range(r):
        for l in range(k + 1):  # noqa: E741
            scale = lengths[k] * lengths[l]
            gram[k, l] = gram[k, l] / scale if scale > 0.0 else 0.0
            gram[l, k] = gram[k, l]
        if lengths[k] > 0.0:
            gram[k, k] = 1.0


@compiled(inner=True, reordered=True)
def _factorize(gram: Doubles) -> None:
    """Cholesky factor in the lower triangle, in place; a pivot that is only rounding becomes zero."""
    r = gram.shape[0]
    for k in range(r):
        diagonal = gram[k, k]
        for l in range(k + 1):  # noqa: E741
            entry = gram[k, l]
            for p in range(l):
                entry -= gram[k, p] * gram[l, p]
            if l == k:
                gram[k, k] = math.sqrt(entry) if entry > 1e-14 * diagonal else 0.0
            else:
                gram[k, l] = entry / gram[l, l] if gram[l, l] > 0.0 else 0.0


@compiled(inner=True, reordered=True)
def _forward(lower: Doubles, x: Doubles) -> None:
    """Solve L z = x in place."""
    for k in range(x.size):
        value = x[k]
        for p in range(k):
            value -= lower[k, p] * x[p]
        x[k] = value / lower[k, k] if lower[k, k] > 0.0 else 0.0


@compiled(inner=True, reordered=True)
def _backward(lower: Doubles, x: Doubles) -> None:
    """Solve L' z = x in place."""
    for k in range(x.size - 1, -1, -1):
        value = x[k]
        for p in range(k + 1, x.size):
            value -= lower[p, k] * x[p]
        x[k] = value / lower[k, k] if lower[k, k] > 0.0 else 0.0


@loop(reordered=True)
def _ridge_rows(entries: Entries, F: Doubles, ridge: float, X: Doubles, first: int, stride: int) -> None:
    r = X.shape[1]
    gram = np.empty((r, r))
    for i in range(first, X.shape[0], stride):
        if entries.indptr[i] == entries.indptr[i + 1]:
            continue
        accumulate(entries, i, F, gram, X[i])
        for k in range(r):
            gram[k, k] += ridge
        _factorize(gram)
        _forward(gram, X[i])
        _backward(gram, X[i])


@loop(reordered=True)
def _nonnegative_rows(
    entries: Entries,
    F: Doubles,
    shown: Doubles,
    X: Doubles,
    violations: Doubles,
    first: int,
    stride: int,
) -> None:
    r = X.shape[1]
    gram, lower, columns = np.empty((r, r)), np.empty((r, r)), np.empty((r, r))
    buffers, lengths, linear, target = np.empty((N_BUFFERS, r)), np.empty(r), np.empty(r), np.empty(r)
    positions = np.empty(r, dtype=np.int64)
    for i in range(first, X.shape[0], stride):
        x = X[i]
        accumulate(entries, i, F, gram, linear)
        for k in range(r):
            if gram[k, k] < shown[k]:
                for l in range(r):  # noqa: E741
                    gram[max(k, l), min(k, l)] = 0.0
        _unit_diagonal(gram, lengths)
        for k in range(r):
            linear[k] = linear[k] / lengths[k] if lengths[k] > 0.0 else 0.0
            x[k] = max(0.0, linear[k])
        if not _principal_pivoting(x, columns, gram, linear, True, False, lower, buffers, positions):
            for k in range(r):
                x[k], target[k] = 0.0, linear[k]
                for l in range(r):  # noqa: E741
                    columns[k, l] = gram[k, l]
            _factorize(columns)
            _forward(columns, target)
            size = int(np.int64(0))
            active_set(x, columns, gram, target, slope_threshold(target), False, lower, buffers, positions, size)
        for k in range(r):
            slope = -linear[k]
            for l in range(r):  # noqa: E741
                slope += gram[k, l] * x[l]
            violations[i] += min(x[k], slope) ** 2
        for k in range(r):
            x[k] = x[k] / lengths[k] if lengths[k] > 0.0 else 0.0


@loop(reordered=True)
def _simplex_rows(entries: Entries, F: Doubles, X: Doubles, with_sum: bool, first: int, stride: int) -> None:
    """As `gsnmf._kernels.sum_to_one`: a constant s added to the Gram matrix and the linear term keeps the minimiser."""
    r = X.shape[1]
    gram, columns, lower = np.empty((r, r)), np.empty((r, r)), np.empty((r, r))
    buffers, target, chosen = np.empty((N_BUFFERS, r)), np.empty(r), np.empty(r, dtype=np.int64)
    for i in range(first, X.shape[0], stride):
        accumulate(entries, i, F, gram, target)
        shift, largest = 0.0, 0.0
        for k in range(r):
            shift += gram[k, k] / r
            largest = max(largest, gram[k, k])
        if shift == 0.0:
            shift = 1.0
        for k in range(r):
            target[k] += shift
            for l in range(k + 1):  # noqa: E741
                gram[k, l] += shift
                gram[l, k] = gram[k, l]
                columns[k, l] = gram[k, l]
        _factorize(columns)
        _forward(columns, target)
        points = Points(columns, gram, math.sqrt(largest + shift))
        from_nearest(X[i], points, target, with_sum, lower, buffers, chosen)


@loop(reordered=True)
def _row_grams(entries: Entries, F: Doubles, grams: Doubles, lengths: Doubles, first: int, stride: int) -> None:
    linear = np.empty(F.shape[1])
    for i in range(first, lengths.shape[0], stride):
        accumulate(entries, i, F, grams[i], linear)
        _unit_diagonal(grams[i], lengths[i])


@loop(reordered=True)
def _sweep_rows(X: Doubles, slopes: Doubles, grams: Doubles, part: int, n_parts: int) -> None:
    for i in range(X.shape[0] * part // n_parts, X.shape[0] * (part + 1) // n_parts):
        for k in range(X.shape[1]):
            if grams[i, k, k] > 0.0:
                step = max(-slopes[i, k], -X[i, k])
                if step != 0.0:
                    X[i, k] += step
                    for l in range(X.shape[1]):  # noqa: E741
                        slopes[i, l] += step * grams[i, k, l]


@loop(reordered=True)
def _residuals(entries: Entries, A: Doubles, B: Doubles, left: Doubles, part: int, n_parts: int) -> None:
    indptr, indices, values, _ = entries
    for i in range(A.shape[0] * part // n_parts, A.shape[0] * (part + 1) // n_parts):
        for q in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[q])
            fitted = 0.0
            for k in range(A.shape[1]):
                fitted += A[i, k] * B[j, k]
            left[q] = np.float64(values[q]) - fitted


@loop(reordered=True)
def _row_slopes(
    entries: Entries,
    A: Doubles,
    B: Doubles,
    F: Doubles,
    with_values: bool,
    slopes: Doubles,
    part: int,
    n_parts: int,
) -> None:
    indptr, indices, values, weights = entries
    for i in range(slopes.shape[0] * part // n_parts, slopes.shape[0] * (part + 1) // n_parts):
        for q in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[q])
            fitted = -np.float64(values[q]) if with_values else 0.0
            for k in range(A.shape[1]):
                fitted += A[i, k] * B[j, k]
            if weights.size:
                fitted *= np.float64(weights[q])
            for k in range(F.shape[1]):
                slopes[i, k] += fitted * F[j, k]

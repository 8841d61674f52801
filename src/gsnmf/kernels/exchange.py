"""Compiled loops for exchanging columns and rows: scores of all exchanges at once, and short fits of trials.

Weights are held with one row per column (row) of the matrix, and their rows are independent problems with one Gram
matrix. A row keeps its slopes while it descends, so a coordinate that does not move costs one comparison. Sums are made
in a fixed number of chunks, in an order that does not depend on the number of threads: results are the same with one
thread and with many.
"""

from __future__ import annotations

import numba
import numpy as np

from gsnmf.kernels.compilation import compiled
from gsnmf.kernels.threads import N_CHUNKS, PARALLEL_WORK, loop
from gsnmf.support.arrays import Doubles

_CHUNKS = 32
_SETTLED = 1e-2
"""A row of weights is done when a sweep moves it, squared, by less than this fraction of its first sweep."""


def exchange_scores(slopes: Doubles, coefficients: Doubles, vectors: Doubles) -> Doubles:
    r"""Squared length of the positive part of slopes + coefficient * vector, for all slopes and all vectors.

    Parameters
    ----------
    slopes : array, shape (c, n)
        M_j'E for candidates j.
    coefficients : array, shape (c, r)
        M_j'W for the left vectors W of the factors.
    vectors : array, shape (r, n)
        The right vectors of the factors.

    Returns
    -------
    array, shape (c, r)
        :math:`\sum_l \max(0, M_j^T E + (M_j^T W_k) H_k)_l^2`: what candidate j explains, times its squared norm, after
        factor k is removed.
    """
    scores = np.empty((slopes.shape[0], vectors.shape[0]))
    coefficients = np.ascontiguousarray(coefficients)  # one order of memory is one compilation
    _score_all(slopes, coefficients, vectors, scores, work=slopes.size * vectors.shape[0])
    return scores


def coupled(A: Doubles, B: Doubles, *, threads: bool) -> Doubles:
    """A'B of two tall arrays."""
    parts = np.zeros((_CHUNKS, A.shape[1], B.shape[1]))
    _cross_chunks(A, B, parts, work=_work(threads, A.size * B.shape[1]))
    return np.asarray(parts.sum(axis=0))


def descend_rows(
    X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, *, threads: bool
) -> tuple[float, float, float, float]:
    """Improve X in place: two sweeps of coordinate descent on x'Gx / 2 + (linear + left right) x for its rows x >= 0.

    Parameters
    ----------
    X, linear : arrays, shape (n, r), in C order
    left, right : arrays, shape (n, q) and (q, r), in C order
        The low-rank part of the linear term; q may be 0.
    gram : array, shape (r, r)
        Its diagonal is not zero.
    threads : bool
        Whether rows may be shared among threads.

    Returns
    -------
    tuple
        The sums over all rows of x . linear, of x . (linear + left right) and of x . gradient, and the operations that
        were needed.
    """
    parts = np.zeros((_CHUNKS, 4))
    _descend_chunks(X, linear, left, right, gram, parts, work=_work(threads, X.size * X.shape[1]))
    sums = parts.sum(axis=0)
    return float(sums[0]), float(sums[1]), float(sums[2]), float(sums[3])


def _work(threads: bool, operations: float) -> float:
    """Operations to report to the thread policy; the caller has already decided, by the size of the whole search."""
    return max(float(PARALLEL_WORK), operations) if threads else 0.0


@compiled(reordered=True)
def _score_some(
    slopes: Doubles, coefficients: Doubles, vectors: Doubles, scores: Doubles, first: int, stride: int
) -> None:
    for j in range(first, slopes.shape[0], stride):
        row = slopes[j]
        for k in range(vectors.shape[0]):
            coefficient = coefficients[j, k]
            total = 0.0
            for i in range(row.size):
                value = max(0.0, row[i] + coefficient * vectors[k, i])
                total += value * value
            scores[j, k] = total


@loop(_score_some)
def _score_all(slopes: Doubles, coefficients: Doubles, vectors: Doubles, scores: Doubles) -> None:
    for chunk in numba.prange(min(slopes.shape[0], N_CHUNKS)):
        _score_some(slopes, coefficients, vectors, scores, int(np.int64(chunk)), int(np.int64(N_CHUNKS)))


@compiled(reordered=True)
def _descend_some(
    X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, parts: Doubles, first: int, stride: int
) -> None:
    """Two sweeps on the rows of some chunks; adds x . linear, x . (linear + coupling), x . gradient and operations."""
    n, r = X.shape
    buffers = np.empty((2, r))
    start, slopes = buffers[0], buffers[1]
    for chunk in range(first, _CHUNKS, stride):
        out = parts[chunk]
        for j in range(chunk * n // _CHUNKS, (chunk + 1) * n // _CHUNKS):
            x = X[j]
            for k in range(r):
                start[k] = linear[j, k]
            for i in range(left.shape[1]):
                factor = left[j, i]
                if factor != 0.0:
                    for k in range(r):
                        start[k] += factor * right[i, k]
            for k in range(r):
                slopes[k] = start[k]
            steps = left.shape[1]
            for i in range(r):
                value = x[i]
                if value != 0.0:
                    steps += 1
                    for k in range(r):
                        slopes[k] += value * gram[i, k]
            before = 0.0
            for sweep in range(2):
                moved = 0.0
                for i in range(r):
                    step = max(-x[i], -slopes[i] / gram[i, i])
                    if step != 0.0:
                        x[i] = max(0.0, x[i] + step)
                        steps += 1
                        for k in range(r):
                            slopes[k] += step * gram[i, k]
                        moved += step * step
                if sweep == 0:
                    before = moved
                if moved <= _SETTLED * before:
                    break
            for i in range(r):
                out[0] += x[i] * linear[j, i]
                out[1] += x[i] * start[i]
                out[2] += x[i] * slopes[i]
            out[3] += steps * (r + 8) + 2 * r + 50  # with the cost of a row and of a step besides multiplications


@loop(_descend_some)
def _descend_chunks(X: Doubles, linear: Doubles, left: Doubles, right: Doubles, gram: Doubles, parts: Doubles) -> None:
    for chunk in numba.prange(_CHUNKS):
        _descend_some(X, linear, left, right, gram, parts, int(np.int64(chunk)), int(np.int64(_CHUNKS)))


@compiled(reordered=True)
def _cross_some(A: Doubles, B: Doubles, parts: Doubles, first: int, stride: int) -> None:
    """Add to the parts of some chunks the product of the transpose of their rows of A with those of B."""
    n = A.shape[0]
    for chunk in range(first, _CHUNKS, stride):
        out = parts[chunk]
        for j in range(chunk * n // _CHUNKS, (chunk + 1) * n // _CHUNKS):
            for i in range(A.shape[1]):
                factor = A[j, i]
                if factor != 0.0:
                    for k in range(B.shape[1]):
                        out[i, k] += factor * B[j, k]


@loop(_cross_some)
def _cross_chunks(A: Doubles, B: Doubles, parts: Doubles) -> None:
    for chunk in numba.prange(_CHUNKS):
        _cross_some(A, B, parts, int(np.int64(chunk)), int(np.int64(_CHUNKS)))

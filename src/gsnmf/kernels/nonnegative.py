"""Compiled inner loops: arrays in, arrays out.

Each works on independent columns, one contiguous row of its arrays a column, in parallel where there is enough to do,
and makes no copy of anything larger than a rank x rank block.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.kernels.threads import threads_allowed
from gsnmf.support.arrays import Doubles, Flags

PARALLEL_WORK = 1 << 20
"""Operations below which threads cost more than they save, the more so where other work wants the cores."""


def _worth_threads(work: float) -> bool:
    """Whether so many operations are enough for a parallel kernel, and whether it may be one here."""
    return work >= PARALLEL_WORK and threads_allowed()


def coordinate_sweep(X: Doubles, linear: Doubles, gram: Doubles) -> None:
    """Improve X in place: one sweep of coordinate descent for each row x of X.

    Minimises x G x / 2 + x . linear over x >= 0 in one coordinate after the other. The diagonal of G is not zero.
    """
    kernel = _sweep_parallel if _worth_threads(X.size * X.shape[1]) else _sweep_serial
    kernel(X, linear, gram)


@numba.njit(cache=True, fastmath=True)
def _sweep_row(x: Doubles, linear: Doubles, gram: Doubles) -> None:
    for i in range(x.size):
        slope = linear[i]
        for k in range(x.size):
            slope += gram[i, k] * x[k]
        x[i] = max(0.0, x[i] - slope / gram[i, i])


@numba.njit(cache=True, nogil=True)
def _sweep_serial(X: Doubles, linear: Doubles, gram: Doubles) -> None:
    for j in range(X.shape[0]):
        _sweep_row(X[j], linear[j], gram)


@numba.njit(cache=True, parallel=True)
def _sweep_parallel(X: Doubles, linear: Doubles, gram: Doubles) -> None:
    for j in numba.prange(X.shape[0]):
        _sweep_row(X[j], linear[j], gram)


def nonnegative_least_squares(X: Doubles, triangle: Doubles, targets: Doubles) -> None:
    """Turn each row x of X in place into the minimiser of |R x - b| over x >= 0, b its row of ``targets``.

    R is upper triangular with columns of unit length. Block principal pivoting (Kim and Park 2011), started from the
    positive entries of x: solve on the passive set, exchange all indices of the wrong sign, or only the last one when
    that has stopped helping, which ends after finitely many steps. Where it meets columns that depend on each other to
    working precision, the active-set method of Lawson and Hanson takes over. Passive sets are solved by their Gram
    matrix and refined with R itself, which makes them as accurate as a QR decomposition would.

    References
    ----------
    J. Kim, H. Park, Fast nonnegative matrix factorization: an active-set-like method and comparisons, SIAM J. Sci.
    Comput. 33 (2011), doi:10.1137/110821172.
    """
    columns = np.ascontiguousarray(triangle.T)  # row i holds column i: i + 1 entries, then zeros
    gram = columns @ triangle
    kernel = _least_squares_parallel if _worth_threads(8 * X.size * X.shape[1]) else _least_squares_part
    kernel(X, columns, gram, targets)


@numba.njit(cache=True, nogil=True)
def _least_squares_part(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles) -> None:
    r = X.shape[1]
    lower, buffers, indices = np.empty((r, r)), np.empty((4, r)), np.empty(r, dtype=np.int64)
    for j in range(X.shape[0]):
        if not _principal_pivoting(X[j], columns, gram, targets[j], False, lower, buffers, indices):
            _active_set(X[j], columns, gram, targets[j], lower, buffers, indices)


@numba.njit(cache=True, parallel=True)
def _least_squares_parallel(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles) -> None:
    n = X.shape[0]
    n_chunks = min(n, 64)
    for chunk in numba.prange(n_chunks):
        first, last = chunk * n // n_chunks, (chunk + 1) * n // n_chunks
        _least_squares_part(X[first:last], columns, gram, targets[first:last])


def nonnegative_quadratic(X: Doubles, gram: Doubles, linear: Doubles) -> None:
    """Turn each row of X, which holds zeros, in place into the minimiser x of x G x / 2 - x . b over x >= 0.

    b is its row of ``linear``. G has a unit diagonal and is well conditioned; `nonnegative_least_squares` is for all
    others. Coordinate descent that passes over what stays zero guesses the positive entries, and block principal
    pivoting makes them right, so that the cost follows the number of those.
    """
    lower = np.asarray(np.linalg.cholesky(gram), dtype=np.float64)
    kernel = _quadratic_parallel if _worth_threads(8 * X.size * X.shape[1]) else _quadratic_part
    kernel(X, lower, gram, linear)


@numba.njit(cache=True, nogil=True)
def _quadratic_part(X: Doubles, columns: Doubles, gram: Doubles, linear: Doubles) -> None:
    r = X.shape[1]
    lower, buffers, indices = np.empty((r, r)), np.empty((4, r)), np.empty(r, dtype=np.int64)
    target = np.empty(r)
    for j in range(X.shape[0]):
        _guess(X[j], gram, linear[j], buffers)
        if not _principal_pivoting(X[j], columns, gram, linear[j], True, lower, buffers, indices):
            for i in range(r):
                target[i] = linear[j, i]
                for k in range(i):
                    target[i] -= columns[i, k] * target[k]
                target[i] /= columns[i, i]
            _active_set(X[j], columns, gram, target, lower, buffers, indices)


@numba.njit(cache=True, parallel=True)
def _quadratic_parallel(X: Doubles, columns: Doubles, gram: Doubles, linear: Doubles) -> None:
    n = X.shape[0]
    n_chunks = min(n, 64)
    for chunk in numba.prange(n_chunks):
        first, last = chunk * n // n_chunks, (chunk + 1) * n // n_chunks
        _quadratic_part(X[first:last], columns, gram, linear[first:last])


@numba.njit(cache=True, fastmath=True)
def _guess(x: Doubles, gram: Doubles, linear: Doubles, buffers: Doubles) -> None:
    """A few sweeps of coordinate descent from zero, at the cost of those entries that change."""
    slopes = buffers[0]
    for i in range(x.size):
        slopes[i] = linear[i]
    for _ in range(3):
        for i in range(x.size):
            step = max(slopes[i], -x[i])
            if step != 0.0:
                x[i] += step
                for k in range(x.size):
                    slopes[k] -= step * gram[i, k]


@numba.njit(cache=True, fastmath=True)
def _gram_solution(
    gram: Doubles, indices: NDArray[np.int64], size: int, linear: Doubles, lower: Doubles, buffers: Doubles
) -> None:
    """Solution z on the passive set, and the slopes that it leaves."""
    slopes, z = buffers[0], buffers[2]
    for a in range(size):
        z[a] = linear[indices[a]]
    _solve(lower, size, z)
    for k in range(linear.size):
        slopes[k] = linear[k]
    for a in range(size):
        for k in range(linear.size):
            slopes[k] -= z[a] * gram[indices[a], k]


@numba.njit(cache=True, fastmath=True)
def _principal_pivoting(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    right: Doubles,
    by_gram: bool,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> bool:
    """Block principal pivoting from the positive entries of x; False if it met dependent columns.

    ``right`` is the target, or, ``by_gram``, its products with the columns.
    """
    r = x.size
    slopes, residual, z = buffers[0], buffers[1], buffers[2]
    passive, wrong = x > 0.0, np.empty(r, dtype=np.bool_)
    threshold = _slope_threshold(right)
    fewest, chances = r + 1, 3
    for _ in range(20 * r + 20):
        size = _cholesky(gram, passive, lower, indices)
        if size < 0:
            return False
        if by_gram:
            _gram_solution(gram, indices, size, right, lower, buffers)
        else:
            _least_squares(columns, indices, size, right, lower, buffers)
            for i in range(r):
                if not passive[i]:
                    slopes[i] = _slope(columns, i, residual)
        x[:] = 0.0
        for a in range(size):
            x[indices[a]] = z[a]
        n_wrong = 0
        for i in range(r):
            wrong[i] = x[i] < 0.0 or (not passive[i] and slopes[i] > threshold)
            n_wrong += wrong[i]
        if n_wrong == 0:
            return True
        if n_wrong < fewest:
            fewest, chances = n_wrong, 3
        else:
            chances -= 1
        for i in range(r - 1, -1, -1):
            if wrong[i]:
                passive[i] = not passive[i]
                if chances < 0:
                    break
    return False


@numba.njit(cache=True, fastmath=True)
def _active_set(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    target: Doubles,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> None:
    """The method of Lawson and Hanson: slower than pivoting, but at home with dependent columns."""
    r = x.size
    residual, z = buffers[1], buffers[2]
    x[:] = 0.0
    for k in range(r):
        residual[k] = target[k]
    passive = np.zeros(r, dtype=np.bool_)
    blocked = np.zeros(r, dtype=np.bool_)
    threshold = _slope_threshold(target)
    for _ in range(10 * r + 10):
        entering, steepest = -1, threshold
        for i in range(r):
            if not passive[i] and not blocked[i]:
                slope = _slope(columns, i, residual)
                if slope > steepest:
                    entering, steepest = i, slope
        if entering < 0:
            return
        passive[entering] = True
        size = _cholesky(gram, passive, lower, indices)
        if size < 0:  # it depends on the others, so that only rounding made its slope
            passive[entering] = False
            blocked[entering] = True
            continue
        blocked[:] = False
        while True:
            _least_squares(columns, indices, size, target, lower, buffers)
            step, leaving = 1.0, -1
            for a in range(size):
                i = indices[a]
                if z[a] <= 0.0 and x[i] <= step * (x[i] - z[a]):
                    step, leaving = x[i] / (x[i] - z[a]), i
            for a in range(size):
                i = indices[a]
                x[i] += step * (z[a] - x[i])
                if i == leaving or x[i] <= 0.0:
                    x[i] = 0.0
                    passive[i] = False
            if leaving < 0:
                break
            if not passive[entering]:  # entered and left at once: rounding again
                blocked[entering] = True
            size = _cholesky(gram, passive, lower, indices)
        _subtract(columns, indices, size, target, z, residual)


@numba.njit(cache=True, fastmath=True)
def _least_squares(
    columns: Doubles,
    indices: NDArray[np.int64],
    size: int,
    target: Doubles,
    lower: Doubles,
    buffers: Doubles,
) -> None:
    """Solution z on the passive set and its residual, refined until the correction is rounding."""
    residual, z, correction = buffers[1], buffers[2], buffers[3]
    _project(columns, indices, size, target, z)
    _solve(lower, size, z)
    for _ in range(5):
        _subtract(columns, indices, size, target, z, residual)
        _project(columns, indices, size, residual, correction)
        _solve(lower, size, correction)
        largest, change = 0.0, 0.0
        for a in range(size):
            z[a] += correction[a]
            largest = max(largest, abs(z[a]))
            change = max(change, abs(correction[a]))
        if change <= 1e-12 * largest:
            break
    _subtract(columns, indices, size, target, z, residual)


@numba.njit(cache=True, fastmath=True)
def _slope(columns: Doubles, i: int, residual: Doubles) -> float:
    """How fast the residual shrinks along column i."""
    value = 0.0
    for k in range(i + 1):
        value += columns[i, k] * residual[k]
    return value


@numba.njit(cache=True, fastmath=True)
def _slope_threshold(target: Doubles) -> float:
    """Slopes below this are rounding."""
    squared = 0.0
    for k in range(target.size):
        squared += target[k] * target[k]
    return 1e-15 * target.size * math.sqrt(squared)


@numba.njit(cache=True, fastmath=True)
def _append(gram: Doubles, i: int, lower: Doubles, indices: NDArray[np.int64], size: int) -> bool:
    """Add column i to the Cholesky factor of ``size`` columns; False if it depends on them."""
    pivot = gram[i, i]
    for b in range(size):
        entry = gram[i, indices[b]]
        for k in range(b):
            entry -= lower[size, k] * lower[b, k]
        entry /= lower[b, b]
        lower[size, b] = entry
        pivot -= entry * entry
    if pivot <= 1e-14 * gram[i, i]:
        return False
    lower[size, size] = math.sqrt(pivot)
    indices[size] = i
    return True


@numba.njit(cache=True, fastmath=True)
def _cholesky(
    gram: Doubles,
    passive: Flags,
    lower: Doubles,
    indices: NDArray[np.int64],
) -> int:
    """Lower Cholesky factor of the passive Gram matrix, and its size; -1 if its columns are dependent."""
    size = 0
    for i in range(passive.size):
        if not passive[i]:
            continue
        if not _append(gram, i, lower, indices, size):
            return -1
        size += 1
    return size


@numba.njit(cache=True, fastmath=True)
def _solve(lower: Doubles, size: int, right: Doubles) -> None:
    """Solve L L^T z = right in place."""
    for a in range(size):
        value = right[a]
        for k in range(a):
            value -= lower[a, k] * right[k]
        right[a] = value / lower[a, a]
    for a in range(size - 1, -1, -1):
        right[a] /= lower[a, a]
        for k in range(a):
            right[k] -= right[a] * lower[a, k]


@numba.njit(cache=True, fastmath=True)
def _project(columns: Doubles, indices: NDArray[np.int64], size: int, vector: Doubles, out: Doubles) -> None:
    """Inner products of the passive columns with a vector."""
    for a in range(size):
        value = 0.0
        for k in range(indices[a] + 1):
            value += columns[indices[a], k] * vector[k]
        out[a] = value


@numba.njit(cache=True, fastmath=True)
def _subtract(
    columns: Doubles, indices: NDArray[np.int64], size: int, target: Doubles, z: Doubles, out: Doubles
) -> None:
    """Residual of the passive columns with coefficients z."""
    for k in range(target.size):  # a loop: assigning a whole array takes two seconds to compile
        out[k] = target[k]
    for a in range(size):
        for k in range(indices[a] + 1):
            out[k] -= z[a] * columns[indices[a], k]


@numba.njit(cache=True, nogil=True)
def passive_inverses(X: Doubles, gram: Doubles) -> Doubles:
    """Inverse of the Gram matrix of the positive entries of each row of X, with zeros around it, its upper triangle.

    Zero where those columns depend on each other.
    """
    r = X.shape[1]
    inverses = np.zeros((X.shape[0], r * (r + 1) // 2))
    lower, right, indices = np.empty((r, r)), np.empty(r), np.empty(r, dtype=np.int64)
    for j in range(X.shape[0]):
        size = _cholesky(gram, X[j] > 0.0, lower, indices)
        for a in range(size):
            for b in range(size):
                right[b] = 1.0 if a == b else 0.0
            _solve(lower, size, right)
            i = indices[a]
            for b in range(a, size):
                inverses[j, i * r - i * (i - 1) // 2 + indices[b] - i] = right[b]
    return inverses


def positive_squares(rows: Doubles) -> Doubles:
    """Sum of the squares of the positive entries of each row."""
    kernel = _squares_parallel if _worth_threads(8 * rows.size) else _squares_serial
    return np.asarray(kernel(rows))


@numba.njit(cache=True, fastmath=True)
def _squares_row(row: Doubles) -> float:
    total = 0.0
    for j in range(row.size):
        value = max(0.0, row[j])
        total += value * value
    return total


@numba.njit(cache=True)
def _squares_serial(rows: Doubles) -> Doubles:
    sums = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        sums[i] = _squares_row(rows[i])
    return sums


@numba.njit(cache=True, parallel=True)
def _squares_parallel(rows: Doubles) -> Doubles:
    sums = np.empty(rows.shape[0])
    for i in numba.prange(rows.shape[0]):
        sums[i] = _squares_row(rows[i])
    return sums


def sparse_gram_rows(chosen: sp.csc_array, matrix: sp.csr_array) -> Doubles:
    """The product of the transpose of a sparse matrix by columns with one by rows, as an array."""
    product = np.zeros((chosen.shape[1], matrix.shape[1]))
    work = chosen.nnz * (matrix.nnz / max(1, matrix.shape[0]))
    kernel = _scatter_parallel if _worth_threads(work) else _scatter_serial
    left = chosen.indptr, chosen.indices, chosen.data
    kernel(*left, matrix.indptr, matrix.indices, matrix.data, product)
    return product


@numba.njit(cache=True)
def _scatter_row(start: int, end: int, at: Any, by: Any, indptr: Any, indices: Any, data: Any, row: Doubles) -> None:
    for k in range(start, end):
        factor = float(by[k])
        for q in range(indptr[at[k]], indptr[at[k] + 1]):
            row[indices[q]] += factor * data[q]


@numba.njit(cache=True)
def _scatter_serial(starts: Any, at: Any, by: Any, indptr: Any, indices: Any, data: Any, product: Doubles) -> None:
    for i in range(product.shape[0]):
        _scatter_row(starts[i], starts[i + 1], at, by, indptr, indices, data, product[i])


@numba.njit(cache=True, parallel=True)
def _scatter_parallel(starts: Any, at: Any, by: Any, indptr: Any, indices: Any, data: Any, product: Doubles) -> None:
    for i in numba.prange(product.shape[0]):
        _scatter_row(starts[i], starts[i + 1], at, by, indptr, indices, data, product[i])

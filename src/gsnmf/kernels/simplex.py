r"""Compiled least squares on the unit simplex: nonnegative weights that sum to one.

.. math:: \min_x \tfrac12 \|R x - b\|^2 \quad\text{subject to}\quad x \ge 0,\; e^T x = 1

for many targets b and one matrix R. Every point of the simplex satisfies :math:`e^T x = 1`, so a row
:math:`\sqrt s\, e^T` below R and an entry :math:`\sqrt s` below b change neither the objective nor the minimiser. With
this row the columns are linearly independent as soon as they are *affinely* independent, which is all that the problem
needs: a zero column, or one column that is a multiple of another, is no special case.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from gsnmf.kernels.nonnegative import _cholesky, _least_squares, _slope, _solve, _worth_threads
from gsnmf.support.arrays import Doubles, Flags

_PRECISION = 1e-14
"""Slopes below this, relative to the target and the columns, are rounding."""


def simplex_least_squares(triangle: Doubles, targets: Doubles) -> Doubles:
    """Nonnegative weights that sum to one and fit each target best, exactly.

    Parameters
    ----------
    triangle : array, shape (k, r)
        R, the matrix of the least-squares problem; usually the triangle of a QR decomposition of a taller one.
    targets : array, shape (n, k)
        One target b per row, in the basis in which the triangle is written.

    Returns
    -------
    array, shape (n, r)
        The minimiser for each target. Rows are nonnegative and sum to one up to rounding. Where columns are affinely
        dependent the minimiser is not unique, and one of them is returned.

    Notes
    -----
    The method guesses the positive weights by leaving out negative ones of the equality-constrained solution until
    none is left, and then proceeds as the active-set method of Lawson and Hanson does, on the simplex instead of the
    cone: as long as a zero weight has a slope that lowers the error, that weight enters, and weights that would become
    negative leave. Every step lowers the error, so the method ends, at a point that satisfies the optimality
    conditions. The cost is O(r^3) operations per step and target, and no memory per target.

    References
    ----------
    D. C. Heinz, C.-I Chang, Fully constrained least squares linear spectral mixture analysis method for material
    quantification in hyperspectral imagery, IEEE Trans. Geosci. Remote Sens. 39 (2001), doi:10.1109/36.911111.

    Examples
    --------
    >>> import numpy as np
    >>> simplex_least_squares(np.eye(2), np.array([[0.75, 0.25], [3.0, 0.0], [1.0, 1.0]]))
    array([[0.75, 0.25],
           [1.  , 0.  ],
           [0.5 , 0.5 ]])
    """
    triangle, targets = np.asarray(triangle, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    k, r = triangle.shape
    size = math.sqrt(float(np.mean(np.einsum("ij,ij->j", triangle, triangle)))) or 1.0
    basis, upper = np.linalg.qr(np.vstack([triangle / size, np.ones((1, r))]))
    columns = np.zeros((r, r))
    columns[:, : len(upper)] = upper.T  # row i holds column i: i + 1 entries, then zeros
    right = np.zeros((len(targets), r))
    right[:, : len(upper)] = targets @ (basis[:k] / size) + basis[k]
    X = np.zeros((len(targets), r))
    kernel = _simplex_parallel if _worth_threads(8.0 * X.size * r) else _simplex_part
    kernel(X, columns, columns @ columns.T, right)
    return X


@numba.njit(cache=True, parallel=True)
def _simplex_parallel(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles) -> None:
    n = X.shape[0]
    n_chunks = min(n, 64)
    for chunk in numba.prange(n_chunks):
        first, last = chunk * n // n_chunks, (chunk + 1) * n // n_chunks
        _simplex_part(X[first:last], columns, gram, targets[first:last])


@numba.njit(cache=True, nogil=True)
def _simplex_part(X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles) -> None:
    r = X.shape[1]
    lower, buffers, indices = np.empty((r, r)), np.empty((6, r)), np.empty(r, dtype=np.int64)
    passive, blocked = np.empty(r, dtype=np.bool_), np.empty(r, dtype=np.bool_)
    for j in range(X.shape[0]):
        multiplier = _feasible_start(X[j], columns, gram, targets[j], lower, buffers, indices, passive)
        _simplex_active_set(X[j], columns, gram, targets[j], multiplier, lower, buffers, indices, passive, blocked)


@numba.njit(cache=True, fastmath=True)
def _face_solution(
    columns: Doubles, indices: NDArray[np.int64], size: int, target: Doubles, lower: Doubles, buffers: Doubles
) -> float:
    """Minimiser z over the affine hull of the passive columns, with its residual; returns the multiplier of the sum."""
    residual, z, direction = buffers[1], buffers[2], buffers[4]
    _least_squares(columns, indices, size, target, lower, buffers)
    for a in range(size):
        direction[a] = 1.0
    _solve(lower, size, direction)
    total, along = -1.0, 0.0
    for a in range(size):
        total += z[a]
        along += direction[a]
    multiplier = total / along
    for a in range(size):
        z[a] -= multiplier * direction[a]
        i = indices[a]
        for k in range(i + 1):
            residual[k] += multiplier * direction[a] * columns[i, k]
    return multiplier


@numba.njit(cache=True, fastmath=True)
def _rough_face_solution(
    linear: Doubles, indices: NDArray[np.int64], size: int, lower: Doubles, buffers: Doubles
) -> None:
    """The same z from the Gram matrix alone, not refined and without the residual."""
    z, direction = buffers[2], buffers[4]
    for a in range(size):
        z[a] = linear[indices[a]]
        direction[a] = 1.0
    _solve(lower, size, z)
    _solve(lower, size, direction)
    total, along = -1.0, 0.0
    for a in range(size):
        total += z[a]
        along += direction[a]
    for a in range(size):
        z[a] -= total / along * direction[a]


@numba.njit(cache=True, fastmath=True)
def _leave_out_negative(z: Doubles, indices: NDArray[np.int64], size: int, passive: Flags) -> bool:
    """Take negative weights out of the passive set; whether there were any."""
    found = False
    for a in range(size):
        if z[a] < 0.0:
            passive[indices[a]] = False
            found = True
    return found


@numba.njit(cache=True, fastmath=True)
def _feasible_start(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    target: Doubles,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
    passive: Flags,
) -> float:
    """A point that is best on its own face of the simplex; returns the multiplier of the sum there."""
    z, linear = buffers[2], buffers[5]
    for i in range(x.size):
        x[i] = 0.0
        passive[i] = True
        linear[i] = _slope(columns, i, target)
    size = _cholesky(gram, passive, lower, indices)
    while size > 0:
        _rough_face_solution(linear, indices, size, lower, buffers)
        if not _leave_out_negative(z, indices, size, passive):
            multiplier = _face_solution(columns, indices, size, target, lower, buffers)
            if not _leave_out_negative(z, indices, size, passive):
                for a in range(size):
                    x[indices[a]] = z[a]
                return multiplier
        size = _cholesky(gram, passive, lower, indices)
    # the columns are affinely dependent: begin at the nearest vertex
    nearest, least = 0, np.inf
    for i in range(x.size):
        value = 0.5 * gram[i, i] - _slope(columns, i, target)
        if value < least:
            nearest, least = i, value
    passive[:] = False
    passive[nearest] = True
    x[nearest] = 1.0
    size = _cholesky(gram, passive, lower, indices)
    return _face_solution(columns, indices, size, target, lower, buffers)


@numba.njit(cache=True, fastmath=True)
def _simplex_active_set(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    target: Doubles,
    multiplier: float,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
    passive: Flags,
    blocked: Flags,
) -> None:
    """Let weights enter and leave until the optimality conditions hold; x is best on its face, as the buffers say."""
    r = x.size
    residual, z = buffers[1], buffers[2]
    blocked[:] = False
    threshold = _rounding(gram, target)
    for _ in range(20 * r + 20):
        entering, steepest = -1, threshold
        for i in range(r):
            if not passive[i] and not blocked[i]:
                slope = _slope(columns, i, residual) - multiplier
                if slope > steepest:
                    entering, steepest = i, slope
        if entering < 0:
            return
        passive[entering] = True
        size = _cholesky(gram, passive, lower, indices)
        if size < 0:  # it depends affinely on the others, so that only rounding made its slope
            passive[entering] = False
            blocked[entering] = True
            continue
        blocked[:] = False
        while True:
            multiplier = _face_solution(columns, indices, size, target, lower, buffers)
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


@numba.njit(cache=True, fastmath=True)
def _rounding(gram: Doubles, target: Doubles) -> float:
    squared, longest = 0.0, 0.0
    for k in range(target.size):
        squared += target[k] * target[k]
        longest = max(longest, gram[k, k])
    return _PRECISION * target.size * math.sqrt(max(squared, longest) * longest)

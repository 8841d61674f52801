r"""Least squares on a set of columns, and the active-set method that finds the set. Compiled, for one target each.

Both nonnegative least squares and the nearest point in a convex hull are problems

.. math:: \min_x \|t - \sum_i x_i r_i\| \quad\text{over}\quad x \ge 0, \quad\text{and for the hull}\quad \sum_i x_i = 1.

Row i of ``columns`` holds the column r_i, whose entries after entry i are all zero. The inner products are in ``gram``.
``lower``, ``indices`` and a size hold the Cholesky factor of the columns that may be positive, in the order of
``indices``. The caller provides the working arrays and reuses them for many targets.

Two habits keep compilation short. Arrays are filled by loops, because Numba takes seconds to compile whole-array
assignments. Counters are passed as ``np.int64(0)``, because a plain 0 makes Numba compile the function twice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gsnmf._kernels.compilation import compiled
from gsnmf.support.arrays import Doubles

SLOPES, RESIDUAL, SOLUTION, CORRECTION, ONES, FLAGS = range(6)
"""Rows of the array ``buffers``, which has one column per unknown. Flags are zero or one."""
N_BUFFERS = 6

DEPENDENT = 1e-14
"""A column counts as dependent on others if they leave less than this fraction of its squared length."""

_N_REFINEMENTS = 6


class Points(NamedTuple):
    """Columns, one per row as above, their inner products, and the length of the longest."""

    columns: Doubles
    gram: Doubles
    longest: float


@compiled(inner=True, reordered=True)
def slope(columns: Doubles, i: int, residual: Doubles) -> float:
    """How fast the residual shrinks along column i."""
    value = 0.0
    for k in range(i + 1):
        value += columns[i, k] * residual[k]
    return value


@compiled(inner=True, reordered=True)
def slope_threshold(target: Doubles) -> float:
    """Slopes below this, along columns of unit length, are rounding."""
    squared = 0.0
    for k in range(target.size):
        squared += target[k] * target[k]
    return 1e-15 * target.size * math.sqrt(squared)


@compiled(inner=True, reordered=True)
def append(gram: Doubles, i: int, lower: Doubles, indices: NDArray[np.int64], size: int) -> bool:
    """Add column i to the Cholesky factor of ``size`` columns; False if it depends on them."""
    pivot = gram[i, i]
    for b in range(size):
        entry = gram[i, indices[b]]
        for k in range(b):
            entry -= lower[size, k] * lower[b, k]
        entry /= lower[b, b]
        lower[size, b] = entry
        pivot -= entry * entry
    if not pivot > DEPENDENT * gram[i, i]:
        return False
    lower[size, size] = math.sqrt(pivot)
    indices[size] = i
    return True


@compiled(inner=True, reordered=True)
def factor_positive(x: Doubles, gram: Doubles, lower: Doubles, indices: NDArray[np.int64]) -> int:
    """Cholesky factor of the columns where x is positive, and its size; -1 if they depend on each other."""
    size = int(np.int64(0))
    for i in range(x.size):
        if x[i] > 0.0:
            if not append(gram, i, lower, indices, size):
                return -1
            size += 1
    return size


@compiled(inner=True, reordered=True)
def solve(lower: Doubles, size: int, right: Doubles) -> None:
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


@compiled(inner=True, reordered=True)
def subtract(
    columns: Doubles, indices: NDArray[np.int64], size: int, target: Doubles, z: Doubles, residual: Doubles
) -> None:
    """The residual of the target after the columns in the set, with coefficients z."""
    for k in range(target.size):
        residual[k] = target[k]
    for a in range(size):
        for k in range(indices[a] + 1):
            residual[k] -= z[a] * columns[indices[a], k]


@compiled(inner=True, reordered=True)
def least_squares(
    columns: Doubles,
    indices: NDArray[np.int64],
    size: int,
    target: Doubles,
    with_sum: bool,
    lower: Doubles,
    buffers: Doubles,
) -> None:
    """Coefficients of the columns in the set, of any sign, and the residual; with ``with_sum`` they add up to one.

    The solution from the Gram matrix is refined with the columns themselves until the correction is mere rounding. It
    is then as accurate as one from a QR decomposition.
    """
    residual, z, correction, ones = buffers[RESIDUAL], buffers[SOLUTION], buffers[CORRECTION], buffers[ONES]
    for k in range(target.size):
        residual[k] = target[k]
    weight, total = 0.0, 0.0
    for a in range(size):
        z[a], ones[a] = 0.0, 1.0
    if with_sum:
        solve(lower, size, ones)
        for a in range(size):
            weight += ones[a]
    for _ in range(_N_REFINEMENTS):
        for a in range(size):
            correction[a] = slope(columns, indices[a], residual)
        solve(lower, size, correction)
        if with_sum:
            shift = 1.0 - total
            for a in range(size):
                shift -= correction[a]
            shift /= weight
            for a in range(size):
                correction[a] += shift * ones[a]
        total, largest, change = 0.0, 0.0, 0.0
        for a in range(size):
            z[a] += correction[a]
            total += z[a]
            largest, change = max(largest, abs(z[a])), max(change, abs(correction[a]))
        subtract(columns, indices, size, target, z, residual)
        if not change > 1e-12 * largest:
            break


@compiled(inner=True, reordered=True)
def active_set(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    target: Doubles,
    threshold: float,
    with_sum: bool,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
    size: int,
) -> float:
    """Turn x in place into the solution, and return the slope that all columns with positive weight share.

    The method of Lawson and Hanson or, with ``with_sum``, of Wolfe: the column with the steepest slope enters, the
    problem is solved on the set, and weights that become negative on the way leave. It ends when no slope exceeds the
    common one by more than ``threshold``, after finitely many steps.

    On entry x solves the problem on the ``size`` columns where it is positive, and ``lower`` holds their Cholesky
    factor. The residual is in ``buffers`` on return.
    """
    slopes, residual, z, blocked = buffers[SLOPES], buffers[RESIDUAL], buffers[SOLUTION], buffers[FLAGS]
    for i in range(x.size):
        blocked[i] = 0.0
    for a in range(size):
        z[a] = x[indices[a]]
    subtract(columns, indices, size, target, z, residual)
    level = 0.0
    for _ in range(10 * x.size + 10):
        level = 0.0
        for i in range(x.size):
            slopes[i] = slope(columns, i, residual)
            level += x[i] * slopes[i] if with_sum else 0.0
        entering, steepest = x.size, level + threshold
        for i in range(x.size):
            if slopes[i] > steepest and x[i] == 0.0 and blocked[i] == 0.0:
                entering, steepest = i, slopes[i]
        if entering == x.size:
            break
        if not append(gram, entering, lower, indices, size):  # dependent on the others: its slope is only rounding
            blocked[entering] = 1.0
            continue
        size += 1
        for i in range(x.size):
            blocked[i] = 0.0
        blocked[entering] = 1.0  # counts only where it leaves at once: its slope was rounding again
        while True:
            least_squares(columns, indices, size, target, with_sum, lower, buffers)
            if not move(x, z, indices, size):
                break
            size = without_zeros(x, gram, lower, indices, size)
    return level


@compiled(inner=True, reordered=True)
def move(x: Doubles, z: Doubles, indices: NDArray[np.int64], size: int) -> bool:
    """Go from x towards z until a weight would become negative; return whether one became zero on the way."""
    step, leaving = 1.0, size
    for a in range(size):
        i = indices[a]
        if z[a] <= 0.0 and x[i] <= step * (x[i] - z[a]):
            step, leaving = (x[i] / (x[i] - z[a]) if x[i] > 0.0 else 0.0), a
    for a in range(size):
        i = indices[a]
        x[i] = z[a] if leaving == size else max(0.0, x[i] + step * (z[a] - x[i]))
    if leaving < size:
        x[indices[leaving]] = 0.0
    return leaving < size


@compiled(inner=True, reordered=True)
def without_zeros(x: Doubles, gram: Doubles, lower: Doubles, indices: NDArray[np.int64], size: int) -> int:
    """Drop the columns without weight from the Cholesky factor; rows before the first dropped one stay as they are."""
    kept = int(np.int64(0))
    for a in range(size):
        i = indices[a]
        if x[i] > 0.0 and (a == kept or append(gram, i, lower, indices, kept)):
            kept += 1
        else:
            x[i] = 0.0
    return kept

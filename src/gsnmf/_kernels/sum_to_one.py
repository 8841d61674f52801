r"""Compiled least squares on the unit simplex: nonnegative weights that sum to one.

.. math:: \min_x \tfrac12 \|R x - b\|^2 \quad\text{subject to}\quad x \ge 0,\; e^T x = 1

for many targets b and one matrix R. Every point of the simplex satisfies :math:`e^T x = 1`, so a row
:math:`\sqrt s\, e^T` below R and an entry :math:`\sqrt s` below b change neither the objective nor the minimiser. With
this row the columns are linearly independent as soon as they are *affinely* independent, which is all that the problem
needs: a zero column, or a column that is a multiple of another, is no special case.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gsnmf._kernels.active_set import (
    N_BUFFERS,
    SOLUTION,
    Points,
    active_set,
    append,
    factor_positive,
    least_squares,
    slope,
    without_zeros,
)
from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import loop
from gsnmf.support.arrays import Doubles

_PRECISION = 1e-14
"""Slopes below this, relative to the target and the columns, are rounding."""

_PRECISE = 1e-12
_N_REFINEMENTS = 6
"""Weights are refined, at most so many times, until a correction is below the first number relative to them."""


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
        The minimiser for each target. Rows are nonnegative and sum to one up to rounding. If columns are affinely
        dependent, the minimiser is not unique, and one of the minimisers is returned.

    Notes
    -----
    First the sum alone is asked for, for all targets at once. Where all weights are positive they are the solution.
    Elsewhere columns with negative weights leave, all at once, until the weights of the others are positive. From there
    the active-set method of Wolfe (`gsnmf._kernels.active_set`) lets back in what left too early. It ends, after
    finitely many steps that each lower the error, at a point that satisfies the optimality conditions. Where columns
    are affinely dependent it starts at the nearest column instead. The cost is O(r^3) operations per step and target.

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
    gram = columns @ columns.T
    X = _with_sum_alone(columns, gram, right)
    others = np.flatnonzero(~(X > 0.0).all(axis=1))  # positive weights are the solution
    signs = (X[others] > 0.0).astype(np.float64)
    points = Points(columns, gram, math.sqrt(gram.diagonal().max()))
    _solve_rows(signs, points, right[others], True, work=8 * signs.size * r)
    X[others] = signs
    return X


def _with_sum_alone(columns: Doubles, gram: Doubles, targets: Doubles) -> Doubles:
    """Weights of any sign that sum to one, for all targets; zero if the columns depend on each other.

    As in `gsnmf._kernels.active_set.least_squares`, the solution from the Gram matrix is refined with the columns
    themselves until the correction is mere rounding.
    """
    weights = np.zeros_like(targets)
    try:
        factor = scipy.linalg.cho_factor(gram)
    except np.linalg.LinAlgError:
        return weights
    shift = scipy.linalg.cho_solve(factor, np.ones(len(gram)))
    shift /= shift.sum()
    residual = targets
    for _ in range(_N_REFINEMENTS):
        correction = scipy.linalg.cho_solve(factor, columns @ residual.T).T
        missing = 1.0 - weights.sum(axis=1) - correction.sum(axis=1)
        correction += missing[:, None] * shift
        weights += correction
        if np.all(np.abs(correction).max(axis=1) <= _PRECISE * np.abs(weights).max(axis=1)):
            return np.ascontiguousarray(weights)
        residual = targets - weights @ columns
    return np.zeros_like(targets)


@loop(reordered=True)
def _solve_rows(X: Doubles, points: Points, targets: Doubles, with_sum: bool, first: int, stride: int) -> None:
    n, r = X.shape
    lower, buffers, indices = np.empty((r, r)), np.empty((N_BUFFERS, r)), np.empty(r, dtype=np.int64)
    for j in range(first, n, stride):
        if not _from_guess(X[j], points, targets[j], with_sum, lower, buffers, indices):
            from_nearest(X[j], points, targets[j], with_sum, lower, buffers, indices)


@compiled(inner=True, reordered=True)
def _from_guess(
    x: Doubles,
    points: Points,
    target: Doubles,
    with_sum: bool,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> bool:
    """The active-set method from the positive entries of x; False, with x zero, if there are none or they depend.

    Columns without weight leave until all that are left have one: then x is the solution on its positive entries.
    """
    z, n_without = buffers[SOLUTION], int(np.int64(1))
    size = factor_positive(x, points.gram, lower, indices)
    while size > 0:
        least_squares(points.columns, indices, size, target, with_sum, lower, buffers)
        n_without = int(np.int64(0))
        for a in range(size):
            x[indices[a]] = z[a] if z[a] > 0.0 else 0.0
            n_without += not z[a] > 0.0
        if n_without == 0:
            threshold = _threshold(target, points.longest)
            active_set(x, points.columns, points.gram, target, threshold, with_sum, lower, buffers, indices, size)
            return True
        size = without_zeros(x, points.gram, lower, indices, size)
    for i in range(x.size):
        x[i] = 0.0
    return False


@compiled(inner=True, reordered=True)
def from_nearest(
    x: Doubles,
    points: Points,
    target: Doubles,
    with_sum: bool,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> None:
    """The active-set method for one target, from the nearest column. On entry x is zero and ``with_sum`` is True."""
    columns, gram, longest = points
    nearest, best = int(np.int64(0)), -np.inf
    for i in range(x.size):
        value = slope(columns, i, target) - 0.5 * gram[i, i]
        if value > best:
            nearest, best = i, value
    x[nearest] = 1.0  # a vertex is the solution on itself
    append(gram, nearest, lower, indices, int(np.int64(0)))
    threshold = _threshold(target, longest)
    active_set(x, columns, gram, target, threshold, with_sum, lower, buffers, indices, int(np.int64(1)))


@compiled(inner=True, reordered=True)
def _threshold(target: Doubles, longest: float) -> float:
    squared = 0.0
    for k in range(target.size):
        squared += target[k] * target[k]
    return _PRECISION * math.sqrt(squared) * longest

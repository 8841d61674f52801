"""Nearest points in a convex hull."""

from __future__ import annotations

import math

import numpy as np

from gsnmf._kernels.active_set import N_BUFFERS, RESIDUAL, Points, active_set, append, factor_positive
from gsnmf._kernels.loops import loop
from gsnmf.support.arrays import Doubles

_PER_ROW = 1500
"""Operations per target that come on top of those in proportion to the square of the number of points; measured with 3
to 51 points."""


def project_on_hull(X: Doubles, residuals: Doubles, multipliers: Doubles, columns: Doubles, targets: Doubles) -> None:
    r"""Turn each row x of X in place into weights of the point nearest to its target in a convex hull.

    Minimises :math:`\|t - \sum_i x_i r_i\|` over x >= 0 with sum one. Row i of ``columns`` is the point r_i, with zeros
    after entry i and in entry 0; so the first point is the origin, and there is at least one more. On entry each x must
    solve the problem for the points with positive weights; all weight on the origin always does. ``residuals`` receives
    t minus the nearest point, ``multipliers`` the multiplier of the sum.

    The active-set method of Wolfe (`gsnmf._kernels.active_set`). Affinely independent points become linearly
    independent once the same coordinate is appended to all of them, so a Cholesky factor of their inner products
    plus a constant is enough. The solutions are refined with the points themselves.

    References
    ----------
    P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976), doi:10.1007/BF01580381.

    Examples
    --------
    The point of the segment from the origin to (0, 2) that is nearest to (0, 1.5):

    >>> X, points, target = np.array([[1.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.5]])
    >>> project_on_hull(X, np.empty((1, 2)), np.empty(1), points, target)
    >>> X
    array([[0.25, 0.75]])
    """
    gram = columns @ columns.T
    squared_lengths = gram.diagonal()[1:]
    longest = math.sqrt(squared_lengths.max())
    gram += squared_lengths.min()
    points = Points(columns, gram, longest)
    _project_rows(X, residuals, multipliers, points, targets, True, work=X.shape[0] * (_PER_ROW + 8 * X.shape[1] ** 2))


@loop(reordered=True)
def _project_rows(
    X: Doubles,
    residuals: Doubles,
    multipliers: Doubles,
    points: Points,
    targets: Doubles,
    with_sum: bool,
    first: int,
    stride: int,
) -> None:
    columns, gram, longest = points
    n, r = X.shape
    lower, buffers, indices = np.empty((r, r)), np.empty((N_BUFFERS, r)), np.empty(r, dtype=np.int64)
    for j in range(first, n, stride):
        x, target = X[j], targets[j]
        size = factor_positive(x, gram, lower, indices)
        if size < 0:  # begin with the origin alone
            for i in range(r):
                x[i] = 1.0 if i == 0 else 0.0
            size = int(np.int64(0))
            size += append(gram, size, lower, indices, size)
        squared = 0.0
        for k in range(r):
            squared += target[k] * target[k]
        threshold = 1e-15 * r * math.sqrt(squared) * longest
        multipliers[j] = active_set(x, columns, gram, target, threshold, with_sum, lower, buffers, indices, size)
        for k in range(r):
            residuals[j, k] = buffers[RESIDUAL, k]

r"""Successive nonnegative projection, SNPA.

Like SPA, it chooses at each step the column with the largest residual, but it projects on the convex hull of the chosen
columns C and the origin instead of their span:

.. math:: \min_h \|M_j - C h\|_2 \quad\text{such that}\quad h \ge 0,\; \sum_i h_i \le 1 .

Projecting on the hull removes less than projecting on the span. That makes SNPA more robust to noise than SPA, and lets
it find more columns than the rank of the matrix: for M = W H, H with the identity among its columns and column sums at
most one, it is enough that no column of W is in the convex hull of the others and the origin.

The projections of all columns are kept from step to step. A new column changes only those that it brings closer, which
takes one comparison each to find out. These are solved again exactly, from where they were, by
`gsnmf.selection.cone_projection`, in the coordinates of a basis of C and without reading M.

References
----------
N. Gillis, Successive nonnegative projection algorithm for robust nonnegative blind source separation, SIAM J. Imaging
Sci. 7 (2014), doi:10.1137/130946782.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.simplex import project_on_hull
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Selection
from gsnmf.selection.cone_projection import ReducedColumns
from gsnmf.support.arrays import Axis


def successive_nonnegative_projection(
    matrix: Matrix, rank: int, *, axis: Axis, limits: Limits | None = None
) -> Selection:
    """SNPA: choose ``rank`` columns, or rows, each the farthest from the convex hull of those before it and the origin.

    There are fewer than ``rank`` if their hull contains all the others, up to rounding. The matrix is not scaled here;
    the method is meant for columns (rows) of equal sums. With ``limits``, included indices come first.

    Notes
    -----
    Each step costs one product with the matrix, one comparison per column, and O(s^3) operations for each column whose
    projection changes, with s the number of its positive weights: O(nnz r + n r s^3) at worst, and O((m + n) r) memory.
    Among equally far columns the longest is chosen, as in the publication, and the first of those.

    Examples
    --------
    The four corners of a square and its centre have only rank three:

    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> M = wrap(np.array([[1.0, 2, 1.5, 1, 2], [2, 2, 1.5, 1, 1], [2, 1, 2, 3, 2]]))
    >>> successive_nonnegative_projection(M, 4, axis="columns").columns
    array([3, 1, 0, 4])
    """
    side = matrix.along(axis)
    chosen = _Hull(side, min(rank, side.shape[1])).choose_columns(rank, axis, limits)
    return Selection.of(((axis, index) for index in chosen), f"snpa-{axis}", rank)


class _Hull(ReducedColumns):
    """The convex hull of the chosen columns and the origin, and the nearest point in it to every column.

    Weights are those of the origin, in the first place, and of the chosen columns; their sum is one.
    """

    def __init__(self, matrix: Matrix, capacity: int) -> None:
        super().__init__(matrix, capacity)
        n = matrix.shape[1]
        self._weights = np.zeros((n, capacity + 1))
        self._weights[:, 0] = 1.0
        self._multipliers = np.zeros(n)

    def choose(self, index: int) -> None:
        """Add a column, and project again the columns that it brings closer."""
        self.append(index)
        slopes = self.inside @ self.triangle[:, -1]
        closer = np.flatnonzero(self.open & (slopes > self._multipliers))
        size = self.size
        points = np.zeros((size + 1, size + 1))
        points[1:, 1:] = self.triangle.T
        targets = np.zeros((closer.size, size + 1))
        targets[:, 1:] = self.targets[closer]
        weights = self._weights[closer, : size + 1]
        residuals, multipliers = np.empty_like(targets), np.empty(closer.size)
        project_on_hull(weights, residuals, multipliers, points, targets)
        self._weights[closer, : size + 1] = weights
        self._multipliers[closer] = multipliers
        self.inside[closer] = residuals[:, 1:]

r"""XRAY: extreme rays of the cone that the columns of a matrix generate.

With chosen columns C, nonnegative weights H that solve :math:`\min_{H \ge 0} \|M - C H\|_F` and the residual
R = M - C H, every step looks from the cone of C in the direction of the residual of some column i outside it, and takes
the column that is farthest out in that direction,

.. math:: \arg\max_j \; \frac{R_i^T M_j}{p^T M_j}, \qquad p = (1, \dots, 1)^T,

which is an extreme ray of the cone of M whatever i is. (Any positive p will do; with ones the denominator is the
:math:`\ell_1` norm of the column.) The rules for the column i outside are

- "max": the largest residual, :math:`\arg\max_i \|R_i\|_2`,
- "dist": :math:`\arg\max_i \|\max(0, R_i^T M)\|_2`.

The third rule, "greedy", takes directly the column that alone reduces the error most,

.. math:: \arg\max_j \; \|\max(0, R^T M_j)\|_2^2 \,/\, \|M_j\|_2^2
          \;=\; \arg\max_j \max_{b \ge 0} \; \|R\|_F^2 - \|R - M_j b^T\|_F^2 ,

and fits noisy data best, but need not choose extreme rays even without noise.

The scores of "dist" and "greedy" are norms of rows and columns of the n x n matrix max(0, R'M), which is not formed.
When H changes, an entry of R'M grows by at most the decrease of the weights times C'M. This bounds all scores in O(n
r^2) operations. Only scores whose bound is above the best score are computed, in blocks, from rows of M'M.

References
----------
A. Kumar, V. Sindhwani, P. Kambadur, Fast conical hull algorithms for near-separable non-negative matrix factorization,
ICML 2013, doi:10.48550/arXiv.1210.1190.
"""

from __future__ import annotations

from typing import Literal, get_args
from weakref import proxy

import numpy as np

from gsnmf._kernels.least_squares import nonnegative_least_squares
from gsnmf.constraints import Limits
from gsnmf.matrix.projection import TIE
from gsnmf.matrix.protocol import BLOCK_BYTES, Matrix
from gsnmf.records import Selection
from gsnmf.selection.cone_projection import ReducedColumns, first_of_largest
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

Rule = Literal["max", "dist", "greedy"]


_FIRST_BLOCK = 32
"""How many scores are computed together at first; then twice as many each time, as far as memory allows."""

_GRAM_BYTES = 1 << 28
"""Memory for rows of M'M."""


def xray(matrix: Matrix, rank: int, *, rule: Rule = "max", axis: Axis, limits: Limits | None = None) -> Selection:
    """XRAY: choose ``rank`` columns, or rows, that are extreme rays of the cone of all of them.

    There are fewer than ``rank`` if their cone contains all the others, up to rounding. Rules other than "greedy"
    recover the columns K of any matrix M = M[:, K] H with H nonnegative, as long as none of these is in the cone of the
    others. Lengths of columns then change only the order of choice; dividing columns by their sums makes rare, noisy
    ones stand out. With ``limits``, included indices come first.

    Notes
    -----
    With "max", a step costs two products with the matrix and O(s^3) operations for each column whose weights change,
    with s the number of its positive weights: O(nnz r + n r s^3) at worst, and O((m + n) r) memory. The weights are
    exact and start from those of the step before.

    "dist" and "greedy" add, for each score that has to be computed, O(n r) operations and a row of M'M, which is a
    product with one column of the matrix. Up to 256 MB of such rows are kept. On word counts, few scores are computed;
    on dense mixtures, nearly all n in every step, which is O(m n^2 + n^2 r^2) as long as M'M is kept. The scores are
    accurate while R'M exceeds the rounding errors of M'M: residuals down to a millionth of the columns, or a hundredth
    in single precision, are safe.

    Among columns that are equally far out, the one with the largest ratio of l2 norm to l1 norm is chosen, and then the
    first. It is an extreme ray even if a whole face of the cone is equally far out.

    Examples
    --------
    The columns between the first and the last are in their cone:

    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> M = wrap(np.array([[1.0, 2, 3, 0], [0, 1, 9, 5]]))
    >>> xray(M, 2, axis="columns").columns
    array([3, 0])
    """
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be one of {', '.join(map(repr, get_args(Rule)))}; got {rule!r}.")
    side = matrix.along(axis)
    cone = _Cone(side, min(rank, side.shape[1]), rule)
    chosen = cone.choose_columns(rank, axis, limits)
    return Selection.of(((axis, index) for index in chosen), f"xray-{axis}", rank)


class _Cone(ReducedColumns):
    """The cone of the chosen columns, and the nearest point in it to every column.

    Weights are those of the chosen columns scaled to unit length.
    """

    def __init__(self, matrix: Matrix, capacity: int, rule: Rule) -> None:
        super().__init__(matrix, capacity)
        self._weights = np.zeros((matrix.shape[1], capacity))
        sums = matrix.column_sums
        self._spread = np.divide(self.lengths, sums, out=np.zeros_like(sums), where=sums > 0)
        self._scores = None if rule == "max" else _Scores(self, rule)

    def next_column(self) -> int | None:
        """Column to choose; None if all are in the cone."""
        outside = self.farthest()
        if outside is None:
            return None
        if self._scores is None:
            return self.extreme_ray(outside, self.residual(outside))
        while self.open.any():
            best = self._scores.best()
            if self._scores.rule == "greedy":
                return best
            residual = self.residual(best)
            if not self.is_zero(best, residual):
                return self.extreme_ray(best, residual)
        return None

    @property
    def weights(self) -> Doubles:
        """Weights of every column, one row per column, shape (n, k)."""
        return self._weights[:, : self.size]

    @property
    def unit_triangle(self) -> Doubles:
        """The chosen columns at unit length, in their basis."""
        triangle = self.triangle
        return np.asarray(triangle / np.linalg.norm(triangle, axis=0), order="C")

    def choose(self, index: int) -> None:
        """Take in a column, and project again those that it brings closer."""
        self.append(index)
        triangle = self.unit_triangle
        slopes = self.inside @ triangle[:, -1]
        closer = np.flatnonzero(self.open & (slopes > 0.0))
        targets, weights = self.targets[closer], self.weights[closer]
        weights[:, -1] = 1.0  # any positive number: the new column must take part
        nonnegative_least_squares(weights, triangle, targets)
        self.weights[closer] = weights
        self.inside[closer] = targets - weights @ triangle.T

    def residual(self, index: int) -> Floats:
        """Residual of one column."""
        return self.residuals(np.array([index]))[:, 0]

    def extreme_ray(self, outside: int, direction: Floats) -> int:
        """Column of the largest inner product with the residual of column ``outside``, all scaled to unit l1 norm.

        The inner product of a column with its own residual is the squared length of the residual, since the residual
        is orthogonal to the nearest point in the cone. That is how it is computed here: where a column is much longer
        than its residual, rounding could make the product negative, and no column would be left to choose.
        """
        heights = np.zeros(self.open.size)
        np.divide(self.matrix.T.dot(direction), self.matrix.column_sums, out=heights, where=self.open)
        squared_length = float(np.vdot(direction, direction))
        heights[outside] = max(heights[outside], squared_length / self.matrix.column_sums[outside])
        rounding = TIE * self._eps * float(np.linalg.norm(direction)) * self._spread
        highest = self.open & (heights + rounding >= np.max(heights, where=self.open, initial=0.0))
        return first_of_largest(self._spread, highest, self._eps)


class _Scores:
    """Norms of the rows ("dist") or columns ("greedy") of max(0, R'M), known exactly only where they may be largest.

    With x_i and y_i the weights of column i before and after a step, and b_j = C'M_j, the entry (i, j) of R'M changes
    by (x_i - y_i) b_j, and as b_j is nonnegative its positive part grows at most by max(0, x_i - y_i) b_j.
    """

    def __init__(self, cone: _Cone, rule: Rule) -> None:
        self.rule = rule
        self._cone = proxy(cone)  # the cone holds this object
        self._weights = cone.weights
        lengths = cone.lengths
        self._units = np.where(lengths > 0, lengths, 1.0) if rule == "greedy" else np.ones_like(lengths)
        # sum_i (M_i' M_j)^2 <= sum_i (M_i' M_j) |M_i| |M_j|
        image = cone.matrix.dot(lengths.astype(cone.matrix.dtype))
        self._bounds = np.sqrt(cone.matrix.T.dot(image) * lengths) / self._units
        n, dtype = cone.matrix.shape[1], cone.matrix.dtype
        self._gram = np.empty((min(n, _GRAM_BYTES // (n * dtype.itemsize)) + 1, n), dtype=dtype)
        self._slots = np.full(n, -1)  # slot of each row; -1 for rows that are not kept
        self._n_kept = 0

    def best(self) -> int:
        """First index of the largest score."""
        self._raise()
        open_columns, eps = self._cone.open, float(np.finfo(self._cone.matrix.dtype).eps)
        limit = max(1, BLOCK_BYTES // (max(self._cone.matrix.shape) * self._cone.matrix.dtype.itemsize))
        block, best = _FIRST_BLOCK, 0.0
        unknown = open_columns.copy()
        while (candidates := np.flatnonzero(unknown & (self._bounds >= (1.0 - TIE * eps) * best))).size:
            block = min(block, limit)
            if candidates.size > block:
                candidates = np.sort(candidates[np.argpartition(-self._bounds[candidates], block)[:block]])
            self._bounds[candidates] = self._exact(candidates)
            unknown[candidates] = False
            best = max(best, float(self._bounds[candidates].max()))
            block *= 2
        return first_of_largest(self._bounds, open_columns, eps)

    def _raise(self) -> None:
        """Raise the bounds by what the scores may have gained in the last step."""
        weights, k = self._cone.weights, self._weights.shape[1]
        lost = np.maximum(0.0, self._weights - weights[:, :k])
        inner = (self._cone.targets @ self._cone.unit_triangle)[:, :k]
        factor, rows = (lost, inner) if self.rule == "greedy" else (inner, lost)
        gained = np.einsum("jk,jk->j", rows @ (factor.T @ factor), rows)
        self._bounds += np.sqrt(np.maximum(0.0, gained)) / self._units
        self._weights = weights.copy()

    def _exact(self, indices: Indices) -> Doubles:
        """R'M = M'M - F T', with T the coordinates of the columns and F those of their approximations."""
        targets = self._cone.targets
        fitted = targets - self._cone.inside
        left, right = (targets, fitted) if self.rule == "greedy" else (fitted, targets)
        rows = self._gram_rows(indices)
        rows -= left[indices].astype(rows.dtype) @ right.T.astype(rows.dtype)
        np.maximum(rows, 0.0, out=rows)
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)) / self._units[indices])

    def _gram_rows(self, indices: Indices) -> Floats:
        """Rows of M'M, kept for later as long as there is room."""
        slots = self._slots[indices]
        rows = self._gram[slots]
        missing = slots < 0
        if missing.any():
            new = indices[missing]
            rows[missing] = self._cone.matrix.gram_rows(new)
            kept = new[: self._gram.shape[0] - 1 - self._n_kept]
            self._slots[kept] = np.arange(self._n_kept, self._n_kept + kept.size)
            self._gram[self._slots[kept]] = rows[missing][: kept.size]
            self._n_kept += kept.size
        return np.asarray(rows)

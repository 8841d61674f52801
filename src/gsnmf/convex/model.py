r"""The convex model of generalized separable NMF, on a working set of columns and rows.

.. math:: \min_{X, Y} \; \tfrac12 \|M - M X - Y M\|_F^2 + \lambda \left( \Phi(X) + \Phi(Y^T) \right)

with a penalty :math:`\Phi` of `gsnmf.convex.penalties` on the rows of X (n x n) and on the columns of Y (m x m);
without Y it is the model of separable NMF. Most rows of X are zero at the solution, so only those of a *working set*
are held: X is k x n and Y, kept transposed, k' x m.

For any residual E the scores :math:`s_i` of the columns and rows (`Penalty.scores` of :math:`M_i^T E`) give a lower
bound on the optimum (`Penalty.dual_bound`), and a row of X outside the working set can help only if its score exceeds
lambda. The bound of the current residual certifies a solution; the scores choose what enters the working set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from gsnmf.convex.penalties import TRACE, Penalty
from gsnmf.convex.projection import scaled_weights
from gsnmf.products import BLOCK_BYTES, Products, Residual
from gsnmf.validation import Floats, Indices

_Array = Floats

_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
"""Part of ||M||^2 by which products of a residual, which are differences of products of M, can be wrong."""


@dataclass(frozen=True)
class ConvexModel:
    """The problem: a matrix, lambda, a penalty, and whether rows may be chosen too."""

    matrix: Products
    strength: float
    penalty: Penalty = TRACE
    with_rows: bool = True

    def scores(self, residual: Residual, memory: int = BLOCK_BYTES) -> tuple[_Array, _Array]:
        """Scores of all columns and of all rows, in blocks within ``memory`` bytes; no rows if they are not chosen."""
        columns = self._side_scores(residual, memory)
        rows = self._side_scores(residual.T, memory) if self.with_rows else np.empty(0)
        return columns, rows

    def _side_scores(self, residual: Residual, memory: int) -> _Array:
        weights = scaled_weights(residual.matrix.column_sums, np.dtype(np.float64))
        scores = np.empty(residual.matrix.shape[1])
        for indices, block in residual.cross_blocks(memory):
            scores[indices] = self.penalty.scores(block.astype(np.float64, copy=False), indices, weights)
        return scores

    def dual_bound(self, residual: Residual, scores: tuple[_Array, _Array]) -> float:
        """Lower bound on the optimum, from any residual and its scores, less what rounding may have added."""
        everything = np.concatenate(scores)
        slack = _ROUNDING * self.matrix.squared_norm
        return self.penalty.dual_bound(everything, residual.inner - slack, residual.squared_norm + slack, self.strength)


class Side:
    """The working set of columns: their rows of X and the products that a step needs.

    The rows of the matrix are the side of its transpose. ``previous`` is X one step ago, for the momentum.
    """

    def __init__(self, matrix: Products) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.weights = scaled_weights(matrix.column_sums, np.dtype(np.float64))
        self.indices: Indices = np.empty(0, dtype=np.intp)
        self.X: _Array = np.empty((0, n))
        self.previous: _Array = self.X
        self.vectors: _Array = np.empty((0, m))
        """The columns of the working set, one a row."""
        self.products: _Array = np.empty((0, n))
        """Their products with all columns, M_K'M."""
        self._set_gram()

    def extend(self, indices: Indices, X: _Array | None = None) -> None:
        """Add columns, with their rows of X or with zeros."""
        if indices.size == 0:
            return
        vectors = np.ascontiguousarray(self.matrix.columns(indices).T, dtype=np.float64)
        products = self.matrix.gram_rows(indices)
        added = np.zeros((indices.size, self.matrix.shape[1])) if X is None else X
        self.indices = np.concatenate([self.indices, indices])
        self.X = np.vstack([self.X, added])
        self.previous = np.vstack([self.previous, added])
        self.vectors = np.vstack([self.vectors, vectors])
        self.products = np.vstack([self.products, products])
        self._set_gram()

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the other columns."""
        if mask.all():
            return
        self.indices = self.indices[mask]
        self.X, self.previous = self.X[mask], self.previous[mask]
        self.vectors, self.products = self.vectors[mask], self.products[mask]
        self._set_gram()

    def _set_gram(self) -> None:
        self.gram = np.ascontiguousarray(self.products[:, self.indices])
        self.squared_lengths = np.diag(self.gram).copy()
        lengths = np.sqrt(self.squared_lengths)
        correlation = self.gram / np.outer(lengths, lengths)
        self.spread = float(linalg.eigvalsh(correlation)[-1]) if lengths.size else 0.0
        """Largest eigenvalue of the Gram matrix of the columns at unit length."""

    def slopes(self, X: _Array, other: Side, other_X: _Array) -> _Array:
        """M_K'E for the residual E of X and of the other side's X."""
        slopes = self.gram @ X
        np.subtract(self.products, slopes, out=slopes)
        if other.indices.size:
            slopes -= (self.vectors @ other_X.T) @ other.vectors
        return slopes

r"""Successive projection from rows of M'M, for matrices that are too long to keep vectors as long as they are.

Choosing column p with residual norm :math:`\nu` takes :math:`g_j^2` from the squared residual norm of column j, with

.. math:: g = \frac1\nu \Bigl( M^T M e_p - \sum_k g_k\, g_k(p) \Bigr),

a step of the Cholesky factorization of M'M with pivots: one pass over the data, and vectors that are as long as M has
columns. It is what `ResidualSide` computes, with :math:`g_k = M^T u_k`, without u_k. The digits that M'M loses against
M matter only where residuals are small: there the orthonormal basis is computed after all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from gsnmf.products import Products
from gsnmf.selection.implicit_residual import CANCELLED, ResidualNorms, ResidualSide
from gsnmf.validation import Floats, Indices


class GramSide(ResidualNorms):
    """The columns of an m x n matrix, their residual norms, and the images g_k of those chosen."""

    state = ("image", "chosen")

    def __init__(self, matrix: Products, capacity: int) -> None:
        super().__init__(matrix, capacity)
        self._chosen = np.empty(self.capacity, dtype=np.intp)
        self._image = np.empty((matrix.shape[1], self.capacity), order="F")

    @property
    def image(self) -> NDArray[np.float64]:
        """g_k in column k, n x size."""
        return self._image[:, : self.size]

    @property
    def chosen(self) -> Indices:
        """The chosen columns."""
        return self._chosen[: self.size]

    def choose(self, index: int, other: ResidualSide | None = None) -> None:
        """Project on the orthogonal complement of the residual column ``index``."""
        if self.norms[index] < CANCELLED * self._initial[index] ** 2:
            image = self.matrix.T.dot(self._basis(np.append(self.chosen, index))[:, -1])
        else:
            image = self.matrix.gram_rows(np.array([index]))[0] - self.image @ self.image[index]
            image /= np.sqrt(image[index])
        self._image[:, self.size] = image
        self._chosen[self.size] = index
        self.reduce(np.square(image))
        self.norms[index] = 0.0
        self.size += 1

    def _basis(self, columns: Indices) -> Floats:
        """Orthonormal vectors of the residuals of these columns, each after those before it."""
        block = self.matrix.columns(columns).astype(np.float64)
        factors = linalg.qr(block / np.sqrt(self.matrix.squared_column_norms[columns]), mode="economic")
        return np.asarray(factors[0] * np.where(np.diag(factors[1]) < 0, -1.0, 1.0))

    def _recompute(self, indices: Indices, other: ResidualSide | None) -> None:
        basis = self._basis(self.chosen)
        self._image[:, : self.size] = self.matrix.T.dot(basis)
        self._set_norms(
            indices, self.matrix.residual_norms(indices, basis, self.image[indices].T), self._initial[indices]
        )

r"""Successive projection from rows of M'M, for matrices with too many rows to keep a vector of that length.

Choosing column p with residual norm :math:`\nu` takes :math:`g_j^2` from the squared residual norm of column j, with

.. math:: g = \frac1\nu \Bigl( M^T M e_p - \sum_k g_k\, g_k(p) \Bigr),

a step of the pivoted Cholesky factorization of M'M: one pass over the data, and vectors with one entry per column of M.
It computes what `ResidualSide` computes, with :math:`g_k = M^T u_k`, but without u_k. The digits that M'M loses
compared with M matter only where residuals are small: there the orthonormal basis is computed after all.

The same pass can compute the rows of M'M for a few more columns, those with the largest residuals, which may be chosen
next. If one of them is chosen, it needs no pass of its own. That changes no choice: all norms are known at every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gsnmf.matrix.projection import ResidualNorms
from gsnmf.support.arrays import Doubles, Indices

if TYPE_CHECKING:
    from gsnmf.matrix.dask.matrix import ChunkedMatrix

_MOST_AHEAD = 16
"""Largest number of rows of M'M per pass."""

_AHEAD_BYTES = 1 << 28

_CANCELLED = 1e-6
"""Below this fraction of the squared column, a squared residual is too small to compute from rows of M'M."""

_SLACK = 10.0
"""Bound on how much larger the errors of norms are from rows of M'M than from products."""


class GramSide(ResidualNorms):
    """The columns of an m x n matrix, their residual norms, and the images g_k of the chosen ones."""

    state = ("image", "chosen")
    matrix: ChunkedMatrix

    def __init__(self, matrix: ChunkedMatrix, capacity: int) -> None:
        super().__init__(matrix, capacity, _SLACK)
        self._chosen = np.empty(self.capacity, dtype=np.intp)
        self._image = np.empty((matrix.shape[1], self.capacity), order="F")
        self._rows: dict[int, Doubles] = {}
        self._n_spared = 0

    @property
    def image(self) -> Doubles:
        """g_k in column k, n x size."""
        return self._image[:, : self.size]

    @property
    def chosen(self) -> Indices:
        """The chosen columns."""
        return self._chosen[: self.size]

    def choose(self, index: int) -> None:
        """Project on the orthogonal complement of the residual column ``index``."""
        image = self._image_of(index)
        if image is not None:
            self._image[:, self.size] = image
            self._chosen[self.size] = index
            self._norms.reduce(np.square(image))
            self.size += 1
        self.norms[index] = 0.0

    def _image_of(self, index: int) -> Doubles | None:
        """M'u for the normalised residual column u; None if nothing is left of the column."""
        squared_length = self._norms.initial[index] ** 2
        if squared_length == 0:
            return None
        if self.norms[index] < _CANCELLED * squared_length:
            basis, triangle = self.matrix.orthonormal_columns(np.append(self.chosen, index))
            if triangle[-1, -1] <= self._zero:
                return None
            return np.asarray(self.matrix.T.dot(basis[:, -1]), dtype=np.float64)
        image = self._gram_row(index) - self.image @ self.image[index]
        return np.asarray(image / np.sqrt(image[index]))

    def _gram_row(self, index: int) -> Doubles:
        """A row of M'M. The more passes the last rows computed ahead have saved, the more are computed ahead next."""
        if index in self._rows:
            self._n_spared += 1
            return self._rows.pop(index)
        n = self.norms.size
        wanted = min(2 + 2 * self._n_spared, _MOST_AHEAD, self.capacity - self.size, 1 + _AHEAD_BYTES // (8 * n))
        self._n_spared = 0
        others = np.where(np.arange(n) == index, 0.0, self.norms)
        likely = np.argsort(-others, kind="stable")[: wanted - 1]
        indices = np.append(index, likely[others[likely] > 0])
        self._rows = dict(zip(indices.tolist(), self.matrix.gram_rows(indices), strict=True))
        return self._rows.pop(index)

    def _recompute(self, indices: Indices) -> None:
        basis, _ = self.matrix.orthonormal_columns(self.chosen)
        self._image[:, : self.size] = self.matrix.T.dot(basis)
        squared = self.matrix.residual_norms(indices, basis, self.image[indices].T)
        self._norms.set(indices, squared, self._zero * self._norms.initial[indices])

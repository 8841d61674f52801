r"""A residual after projections, known by its norms: R = (I - U U^T) M (I - V V^T), never formed.

U has one orthonormal vector for each chosen column, V one for each chosen row. Choosing a column with normalised
residual u, with :math:`g = R^T u` and :math:`h = R g`, takes :math:`g_j^2` from the squared norm of residual column j
and :math:`2 u_i h_i - u_i^2 \|g\|^2` from that of row i: two products with M, and O((m + n) r) memory.

For matrices in memory; `gsnmf.matrices.chunked.projection` does the same where every product reads all of the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.matrices.protocol import BLOCK_BYTES, Matrix
from gsnmf.matrices.residual_norms import ROUNDING, Norms, tie_factor
from gsnmf.support.arrays import Doubles, Floats, Indices

_OF_NORMS = ("squared", "error_bound", "unreliable_below")


def orthogonalised(block: Floats, basis: Floats) -> Floats:
    """(I - U U^T) block. Once leaves a part of U as large as the rounding of the block; twice is enough (Kahan)."""
    once = block - basis @ (basis.T @ block)
    once -= basis @ (basis.T @ once)
    return once


class ResidualNorms(ABC):
    """Squared residual norms of the columns of an m x n matrix.

    ``state`` names the arrays that have one entry, or column, for each chosen column of the matrix.
    """

    state: tuple[str, ...]

    def __init__(self, matrix: Matrix, capacity: int, slack: float = 1.0) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self.capacity = min(capacity, m)
        self._norms = Norms.of(matrix.squared_column_norms, matrix.dtype, slack)
        self._tie = tie_factor(matrix.dtype)
        self._zero = ROUNDING * self._norms.eps * np.sqrt(max(m, n))

    @abstractmethod
    def _recompute(self, indices: Indices, other: ResidualSide | None) -> None:
        """Compute residual norms from the residuals themselves."""

    @property
    def norms(self) -> Doubles:
        """Squared residual norms of the columns."""
        return self._norms.squared

    def norm(self, index: int) -> float:
        """Squared residual norm of a column."""
        return float(self.norms[index])

    def stored(self) -> dict[str, NDArray[Any]]:
        """All that has to be remembered to go on."""
        return {name: getattr(self, name) for name in self.state} | {
            name: getattr(self._norms, name) for name in _OF_NORMS
        }

    def restore(self, stored: dict[str, NDArray[Any]]) -> None:
        """Go on from what `stored` gave."""
        self.size = stored[self.state[0]].shape[-1]
        for name in self.state:
            getattr(self, name)[...] = stored[name]
        for name in _OF_NORMS:
            getattr(self._norms, name)[...] = stored[name]

    def rebuild(self, *_args: Any, **_kwargs: Any) -> None:  # noqa: B027, most sides store all that they need
        """Compute again, for the indices chosen so far, what is too long to be stored: nothing unless overridden."""

    def farthest(self, other: ResidualSide | None) -> int | None:
        """First index of the largest residual norm, certain to rounding; None if every residual is zero."""
        if self.size == self.capacity:
            return None
        while True:
            certain, possible = self._norms.largest()
            if possible < certain:
                return int(np.argmax(self.norms >= self._tie * certain)) if certain > 0 else None
            self._recompute(np.flatnonzero(self._norms.doubtful(certain)), other)


class ResidualSide(ResidualNorms):
    """The columns of an m x n matrix, their residual norms, and the basis of those chosen.

    The rows are the side of the transpose. ``basis`` is U, ``image`` is M^T U; the ``other`` side of a method
    holds V and M V.
    """

    state = ("basis", "image")

    def __init__(self, matrix: Matrix, capacity: int) -> None:
        super().__init__(matrix, capacity)
        (m, n), size, dtype = matrix.shape, self.capacity, matrix.dtype
        self._basis = np.empty((m, size), dtype=dtype, order="F")
        self._image = np.empty((n, size), dtype=dtype, order="F")

    @property
    def basis(self) -> Floats:
        """Orthonormal vectors of the chosen columns, m x size."""
        return self._basis[:, : self.size]

    @property
    def image(self) -> Floats:
        """M^T times the basis, n x size."""
        return self._image[:, : self.size]

    def gain(self, index: int, other: ResidualSide | None) -> float:
        """By how much choosing column ``index`` would lower the squared norm of the residual."""
        u = self._residual(np.array([index]), other)[:, 0]
        squared = float(np.dot(u, u))
        if squared <= (self._zero * self._norms.initial[index]) ** 2:
            return 0.0
        g = self.matrix.T.dot(u / np.sqrt(squared).astype(u.dtype))
        if other is not None:
            g = orthogonalised(g, other.basis)
        return float(np.dot(g, g))

    def choose(self, index: int, other: ResidualSide | None) -> None:
        """Project both sides on the orthogonal complement of the residual column ``index``."""
        u = self._residual(np.array([index]), other)[:, 0]
        u /= np.linalg.norm(u)
        image = g = self.matrix.T.dot(u)
        if other is not None:
            g = orthogonalised(image, other.basis)
            h = orthogonalised(self.matrix.dot(g), self.basis)
            other._norms.reduce(2.0 * u.astype(np.float64) * h - np.square(u, dtype=np.float64) * np.dot(g, g))
        self._basis[:, self.size] = u
        self._image[:, self.size] = image
        self._norms.reduce(np.square(g, dtype=np.float64))
        self.norms[index] = 0.0
        self.size += 1

    def _residual(self, indices: Indices, other: ResidualSide | None) -> Floats:
        """Residual columns, orthogonal to the basis to working precision."""
        block = self.matrix.columns(indices)
        if other is not None and other.size:
            block -= other.image @ other.basis[indices].T
        return orthogonalised(block, self.basis)

    def _recompute(self, indices: Indices, other: ResidualSide | None) -> None:
        step = max(1, BLOCK_BYTES // (self.matrix.shape[0] * self.matrix.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = indices[start : start + step]
            residual = self._residual(part, other)
            norms = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
            self._norms.set(part, norms, self._zero * self._magnitude(part, other))

    def _magnitude(self, indices: Indices, other: ResidualSide | None) -> Doubles:
        """Size of the terms whose difference a residual column is: its rounding error is eps times that."""
        magnitude = self._norms.initial[indices]
        if other is None or not other.size:
            return magnitude
        lengths = np.linalg.norm(other.image, axis=0)
        return np.asarray(magnitude + np.abs(other.basis[indices]) @ lengths)

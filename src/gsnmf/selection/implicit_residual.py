r"""A residual after projections, known by its norms: R = (I - U U^T) M (I - V V^T), never formed.

U has one orthonormal vector for each chosen column, V one for each chosen row. Choosing a column with normalised
residual u, with :math:`g = R^T u` and :math:`h = R g`, takes :math:`g_j^2` from the squared norm of residual column j
and :math:`2 u_i h_i - u_i^2 \|g\|^2` from that of row i: two products with M, and O((m + n) r) memory.

Norms that are only ever reduced lose their digits, so a norm far below the value it was last computed at is computed
again from the residual column itself before anything is decided by it, as LAPACK's pivoted QR does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gsnmf.products import BLOCK_BYTES, Products
from gsnmf.validation import Floats, Indices

ROUNDING = 10.0
"""A residual below this times eps times the root of the dimension is rounding, not data."""

TIE = 64.0
"""Norms closer than this times eps are equal, and the first index wins."""


def tie_factor(dtype: np.dtype[np.floating]) -> float:
    """Norms count as equal above this part of the largest."""
    return 1.0 - TIE * float(np.finfo(dtype).eps)


def orthogonalised(block: Floats, basis: Floats) -> Floats:
    """(I - U U^T) block. Once leaves a part of U as large as the rounding of the block; twice is enough (Kahan)."""
    once = block - basis @ (basis.T @ block)
    once -= basis @ (basis.T @ once)
    return once


class ResidualSide:
    """The columns of an m x n matrix, their residual norms, and the basis of those chosen.

    The rows are the side of the transpose. ``basis`` is U, ``image`` is M^T U; the ``other`` side of a method
    holds V and M V.
    """

    def __init__(self, matrix: Products, capacity: int) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self._basis = np.empty((m, min(capacity, m)), dtype=matrix.dtype, order="F")
        self._image = np.empty((n, min(capacity, m)), dtype=matrix.dtype, order="F")
        self.norms = matrix.squared_column_norms.copy()
        self._initial = np.sqrt(self.norms)
        self._eps = float(np.finfo(matrix.dtype).eps)
        self._tie = tie_factor(matrix.dtype)
        self._zero = ROUNDING * self._eps * np.sqrt(max(m, n))
        self._error_bound = np.empty(n)
        self._unreliable_below = np.empty(n)
        self._trust(np.arange(n))

    @property
    def basis(self) -> Floats:
        """Orthonormal vectors of the chosen columns, m x size."""
        return self._basis[:, : self.size]

    @property
    def image(self) -> Floats:
        """M^T times the basis, n x size."""
        return self._image[:, : self.size]

    def farthest(self, other: ResidualSide | None) -> int | None:
        """First index of the largest residual norm, certain to rounding; None if every residual is zero."""
        if self.size == self._basis.shape[1]:
            return None
        while True:
            suspect = (self.norms > 0) & (self.norms < self._unreliable_below)
            largest = float(np.max(self.norms, where=~suspect, initial=0.0))
            suspects = np.flatnonzero(suspect)
            if suspects.size:
                suspects = suspects[self.norms[suspects] + self._error_bound[suspects] >= largest]
            if suspects.size == 0:
                return int(np.argmax(self.norms >= self._tie * largest)) if largest > 0 else None
            self._recompute(suspects, other)

    def gain(self, index: int, other: ResidualSide | None) -> float:
        """By how much choosing column ``index`` would lower the squared norm of the residual."""
        u = self._residual(np.array([index]), other)[:, 0]
        squared = float(np.dot(u, u))
        if squared <= (self._zero * self._initial[index]) ** 2:
            return 0.0
        g = self.matrix.T.dot(u / np.sqrt(squared).astype(u.dtype))
        if other is not None:
            g = orthogonalised(g, other.basis)
        return float(np.dot(g, g))

    def choose(self, index: int, other: ResidualSide | None) -> None:
        """Project both sides on the orthogonal complement of the residual column ``index``."""
        u = self._residual(np.array([index]), other)[:, 0]
        u /= np.linalg.norm(u)
        image = self.matrix.T.dot(u)
        self._basis[:, self.size] = u
        self._image[:, self.size] = image
        g = image
        if other is not None:
            g = orthogonalised(image, other.basis)
            h = orthogonalised(self.matrix.dot(g), self.basis)
            other.reduce(2.0 * u.astype(np.float64) * h - np.square(u, dtype=np.float64) * np.dot(g, g))
        self.reduce(np.square(g, dtype=np.float64))
        self.norms[index] = 0.0
        self.size += 1

    def reduce(self, squares: NDArray[np.float64]) -> None:
        """Take ``squares`` from the norms. What falls to zero stays suspect, not zero, until it is recomputed."""
        alive = self.norms > 0
        tiny = np.finfo(np.float64).tiny
        np.subtract(self.norms, squares, out=self.norms, where=alive)
        np.maximum(self.norms, tiny, out=self.norms, where=alive)

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
            norms[norms <= np.square(self._zero * self._magnitude(part, other))] = 0.0
            self.norms[part] = norms
            self._trust(part)

    def _trust(self, indices: Indices) -> None:
        """Set how far norms just computed may be reduced before their rounding errors show.

        A reduction by g_j^2 is wrong by about g_j eps |M_j|, so all those since the norm was computed add up to
        eps |M_j| |R_j|, with R_j as it was then. It may reach the root of eps, or ten times the error that computing
        the norm anew would leave.
        """
        norms, initial = self.norms[indices], self._initial[indices]
        scale = initial * np.sqrt(norms)
        self._error_bound[indices] = 100.0 * self._eps * scale
        self._unreliable_below[indices] = np.minimum(0.01 * norms, np.sqrt(self._eps) * scale)

    def _magnitude(self, indices: Indices, other: ResidualSide | None) -> NDArray[np.float64]:
        """Size of the terms whose difference a residual column is: its rounding error is eps times that."""
        magnitude = self._initial[indices]
        if other is None or not other.size:
            return magnitude
        lengths = np.linalg.norm(other.image, axis=0)
        return np.asarray(magnitude + np.abs(other.basis[indices]) @ lengths)

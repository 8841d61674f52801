r"""A residual after projections, known by its norms: R = (I - U U^T) M (I - V V^T), never formed.

U has one orthonormal vector for each chosen column, V one for each chosen row. Choosing a column with normalised
residual u, with :math:`g = R^T u` and :math:`h = R g`, takes :math:`g_j^2` from the squared norm of residual column j
and :math:`2 u_i h_i - u_i^2 \|g\|^2` from that of row i: two products with M, and O((m + n) r) memory.

Norms that are only ever reduced lose their digits, so a norm far below the value it was last computed at is computed
again from the residual column itself before anything is decided by it, as LAPACK's pivoted QR does.

Where every request reads all of the data, column p comes with :math:`M^T M e_p` from one pass, and
:math:`M^T u` follows from that by linearity: with :math:`u = (M e_p - M V a - U b) / \nu`,

.. math:: M^T u = (M^T M e_p - M^T M V a - M^T U b) / \nu,

and :math:`M^T M V` from the products of earlier steps. That makes two passes for a step, as many as there are products.
The digits so lost are as many as :math:`\nu` is smaller than the column: below a tenth of it, the second pass computes
:math:`M^T u` once more, and below a thousandth it has a pass of its own. Norms that are computed again take three.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.products import BLOCK_BYTES, Products
from gsnmf.validation import Floats, Indices

ROUNDING = 10.0
"""A residual below this times eps times the root of the dimension is rounding, not data."""

TIE = 64.0
"""Norms closer than this times eps are equal, and the first index wins."""

CANCELLED = 1e-6
"""Below this part of its squared column, a squared residual is too small for products by linearity."""

_ROUGH = 1e-2
"""Below this part, such products are good enough for the norms, but not to build on."""

_LINEAR_SLACK = 10.0
"""How much larger than those of products are the errors of norms by linearity, at most."""


def tie_factor(dtype: np.dtype[np.floating]) -> float:
    """Norms count as equal above this part of the largest."""
    return 1.0 - TIE * float(np.finfo(dtype).eps)


def orthogonalised(block: Floats, basis: Floats) -> Floats:
    """(I - U U^T) block. Once leaves a part of U as large as the rounding of the block; twice is enough (Kahan)."""
    once = block - basis @ (basis.T @ block)
    once -= basis @ (basis.T @ once)
    return once


_OF_NORMS = ("norms", "_error_bound", "_unreliable_below")


class ResidualNorms(ABC):
    """Squared residual norms of the columns of an m x n matrix, and which of them can be trusted.

    ``state`` names the arrays that have one entry, or column, for each chosen column of the matrix.
    """

    state: tuple[str, ...]

    def __init__(self, matrix: Products, capacity: int) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self.capacity = min(capacity, m)
        self.norms = matrix.squared_column_norms.copy()
        self._initial = np.sqrt(self.norms)
        self._eps = float(np.finfo(matrix.dtype).eps)
        self._tie = tie_factor(matrix.dtype)
        self._zero = ROUNDING * self._eps * np.sqrt(max(m, n))
        self._error_bound = np.empty(n)
        self._unreliable_below = np.empty(n)
        self._trust(np.arange(n))

    @abstractmethod
    def _recompute(self, indices: Indices, other: ResidualSide | None) -> None:
        """Compute residual norms from the residuals themselves."""

    def stored(self) -> dict[str, NDArray[Any]]:
        """All that has to be remembered to go on."""
        vectors = {name: getattr(self, name) for name in self.state}
        return {**vectors, **{name: getattr(self, name) for name in _OF_NORMS}}

    def restore(self, stored: dict[str, NDArray[Any]]) -> None:
        """Go on from what `stored` gave."""
        self.size = stored[self.state[0]].shape[-1]
        for name in self.state:
            getattr(self, name)[...] = stored[name]
        for name in _OF_NORMS:
            getattr(self, name)[...] = stored[name]

    def farthest(self, other: ResidualSide | None) -> int | None:
        """First index of the largest residual norm, certain to rounding; None if every residual is zero."""
        if self.size == self.capacity:
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

    def reduce(self, squares: NDArray[np.float64]) -> None:
        """Take ``squares`` from the norms. What falls to zero stays suspect, not zero, until it is recomputed."""
        alive = self.norms > 0
        tiny = np.finfo(np.float64).tiny
        np.subtract(self.norms, squares, out=self.norms, where=alive)
        np.maximum(self.norms, tiny, out=self.norms, where=alive)

    def _set_norms(self, indices: Indices, norms: NDArray[np.float64], magnitude: NDArray[np.float64]) -> None:
        """Take norms that were computed from residuals of terms of that magnitude."""
        self.norms[indices] = np.where(norms <= np.square(self._zero * magnitude), 0.0, norms)
        self._trust(indices)

    def _trust(self, indices: Indices) -> None:
        """Set how far norms just computed may be reduced before their rounding errors show.

        A reduction by g_j^2 is wrong by about g_j eps |M_j|, so all those since the norm was computed add up to
        eps |M_j| |R_j|, with R_j as it was then. It may reach the root of eps, or ten times the error that computing
        the norm anew would leave.
        """
        norms, initial = self.norms[indices], self._initial[indices]
        scale = initial * np.sqrt(norms)
        slack = _LINEAR_SLACK if self.matrix.out_of_core else 1.0
        self._error_bound[indices] = 100.0 * slack * self._eps * scale
        self._unreliable_below[indices] = np.minimum(0.01 * norms, np.sqrt(self._eps) * scale)


class ResidualSide(ResidualNorms):
    """The columns of an m x n matrix, their residual norms, and the basis of those chosen.

    The rows are the side of the transpose. ``basis`` is U, ``image`` is M^T U; the ``other`` side of a method
    holds V and M V. Where passes over the matrix are dear, ``returned`` is M M^T U.
    """

    state = ("basis", "image", "returned")

    def __init__(self, matrix: Products, capacity: int) -> None:
        super().__init__(matrix, capacity)
        (m, n), size, dtype = matrix.shape, self.capacity, matrix.accumulator
        self._basis = np.empty((m, size), dtype=dtype, order="F")
        self._image = np.empty((n, size), dtype=dtype, order="F")
        self._returned = np.empty((m if matrix.out_of_core else 0, size), dtype=dtype, order="F")

    @property
    def basis(self) -> Floats:
        """Orthonormal vectors of the chosen columns, m x size."""
        return self._basis[:, : self.size]

    @property
    def image(self) -> Floats:
        """M^T times the basis, n x size."""
        return self._image[:, : self.size]

    @property
    def returned(self) -> Floats:
        """M times the image, m x size; without rows where it is not needed."""
        return self._returned[:, : self.size]

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
        u, image, rough = self._direction(index, other)
        g = image
        if other is not None:
            g = orthogonalised(image, other.basis)
            if rough:
                product, image = self.matrix.dot_both_ways(g, u)
            else:
                product = self.matrix.dot(g)
            if self.matrix.out_of_core:
                self._returned[:, self.size] = product + other.image @ (other.basis.T @ image)
            h = orthogonalised(product, self.basis)
            other.reduce(2.0 * u.astype(np.float64) * h - np.square(u, dtype=np.float64) * np.dot(g, g))
            if rough:
                g = orthogonalised(image, other.basis)
        self._basis[:, self.size] = u
        self._image[:, self.size] = image
        self.reduce(np.square(g, dtype=np.float64))
        self.norms[index] = 0.0
        self.size += 1

    def _direction(self, index: int, other: ResidualSide | None) -> tuple[Floats, Floats, bool]:
        """The normalised residual column u and M^T u, in one pass if the matrix can; whether that is rough."""
        if not self.matrix.out_of_core:
            u = self._residual(np.array([index]), other)[:, 0]
            u /= np.linalg.norm(u)
            return u, self.matrix.T.dot(u), False
        column, product = (block[:, 0].astype(np.float64) for block in self.matrix.with_products(np.array([index])))
        u = column.copy()
        if other is not None:
            u -= other.image @ other.basis[index]
            product = product - other.returned @ other.basis[index]
        for _ in range(2):
            inside = self.basis.T @ u
            u -= self.basis @ inside
            product = product - self.image @ inside
        length = np.linalg.norm(u)
        u /= length
        left = length**2 / np.dot(column, column)
        if left < CANCELLED:
            return u, self.matrix.T.dot(u), False
        return u, product / length, bool(left < _ROUGH)

    def _residual(self, indices: Indices, other: ResidualSide | None) -> Floats:
        """Residual columns, orthogonal to the basis to working precision."""
        block = self.matrix.columns(indices)
        if other is not None and other.size:
            block -= other.image @ other.basis[indices].T
        return orthogonalised(block, self.basis)

    def _recompute(self, indices: Indices, other: ResidualSide | None) -> None:
        if self.matrix.out_of_core:
            self._recompute_together(indices, other)
            return
        step = max(1, BLOCK_BYTES // (self.matrix.shape[0] * self.matrix.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = indices[start : start + step]
            residual = self._residual(part, other)
            norms = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
            self._set_norms(part, norms, self._magnitude(part, other))

    def _recompute_together(self, indices: Indices, other: ResidualSide | None) -> None:
        """All norms from one pass, after products of both bases that are as good as the matrix allows."""
        self._image[:, : self.size] = self.matrix.T.dot(self.basis)
        W, H = self.basis, self.image[indices].T
        if other is not None and other.size:
            other._image[:, : other.size] = self.matrix.dot(other.basis)
            coordinates = other.basis[indices].T
            W = np.hstack([other.image, self.basis])
            H = np.vstack([coordinates, H - (self.basis.T @ other.image) @ coordinates])
        self._set_norms(indices, self.matrix.residual_norms(indices, W, H), self._magnitude(indices, other))

    def _magnitude(self, indices: Indices, other: ResidualSide | None) -> NDArray[np.float64]:
        """Size of the terms whose difference a residual column is: its rounding error is eps times that."""
        magnitude = self._initial[indices]
        if other is None or not other.size:
            return magnitude
        lengths = np.linalg.norm(other.image, axis=0)
        return np.asarray(magnitude + np.abs(other.basis[indices]) @ lengths)

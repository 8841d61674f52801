r"""Successive projection: SPA, SPA* and the generalized successive projection algorithm, GSPA.

GSPA chooses at each step the column p or row q with the largest residual,

.. math:: n \|R(:, p)\|_2^2 \ge m \|R(q, :)\|_2^2 \quad\text{or not,}

and projects the columns (rows) of the residual R on the orthogonal complement of the chosen one. SPA is the case in
which only one axis may be chosen, SPA* runs SPA once on each axis.

The residual is never formed. After some steps it is

.. math:: R = (I - U U^T)\, M\, (I - V V^T)

with orthonormal U (one vector for each chosen column) and V (one for each chosen row), so that a step needs only its
column and row norms: choosing a column with normalised residual u, with :math:`g = R^T u` and :math:`h = R g`, takes
:math:`g_j^2` from the squared norm of column j and :math:`2 u_i h_i - u_i^2 \|g\|^2` from that of row i. A step is
two products with M (one for SPA) and the whole costs O(nnz(M) r + (m + n) r^2) with O((m + n) r) memory.

Norms that are only ever reduced lose their digits, so a norm far below the value it was last computed at is computed
again from the residual column itself before anything is decided by it, as LAPACK's pivoted QR does.

References
----------
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
M. Araujo et al., The successive projections algorithm for variable selection, Chemometrics and Intelligent
Laboratory Systems 57 (2001), doi:10.1016/S0169-7439(01)00119-8.
N. Gillis, S. Vavasis, Fast and robust recursive algorithms for separable NMF, IEEE TPAMI 36 (2014),
doi:10.1109/TPAMI.2013.226.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gsnmf.products import BLOCK_BYTES, Products
from gsnmf.results import Selection, StopReason
from gsnmf.validation import Floats, Indices

_ROUNDING = 10.0
"""A residual below this times eps times the root of the dimension is rounding, not data."""

_TIE = 64.0
"""Norms closer than this times eps are equal, and the first index wins."""


def successive_projection(matrix: Products, rank: int, *, axis: Literal["columns", "rows"]) -> Selection:
    """SPA: choose ``rank`` columns, or rows, each the farthest from the span of those before it.

    Recovers the columns K of any matrix M = M[:, K] H with M[:, K] of full rank, H nonnegative with the identity
    among its columns, and column sums of H at most one.
    """
    side = _Side(matrix if axis == "columns" else matrix.T, rank)
    chosen: list[int] = []
    while len(chosen) < rank and (best := side.farthest(None)) is not None:
        side.choose(best, None)
        chosen.append(best)
    indices, none = np.array(chosen, dtype=np.intp), np.empty(0, dtype=np.intp)
    if axis == "columns":
        return Selection(indices, none, "c" * indices.size, "spa-columns", _stop_reason(indices.size, rank))
    return Selection(none, indices, "r" * indices.size, "spa-rows", _stop_reason(indices.size, rank))


def successive_projection_both(matrix: Products, n_columns: int, n_rows: int) -> Selection:
    """SPA*: ``n_columns`` columns by SPA, and ``n_rows`` rows by SPA, independently of each other."""
    columns = successive_projection(matrix, n_columns, axis="columns").columns
    rows = successive_projection(matrix, n_rows, axis="rows").rows
    order = "c" * columns.size + "r" * rows.size
    return Selection(columns, rows, order, "spa-both", _stop_reason(len(order), n_columns + n_rows))


def generalized_successive_projection(matrix: Products, rank: int) -> Selection:
    """GSPA (Algorithm 3 of the paper): choose ``rank`` columns and rows together.

    A heuristic: unlike SPA it can miss even without noise (Example 1 of the paper). It is meant for matrices whose
    columns have equal sums and whose rows have equal sums; see `gsnmf.scaling.scale`.
    """
    m, n = matrix.shape
    columns, rows = _Side(matrix, rank), _Side(matrix.T, rank)
    chosen: dict[str, list[int]] = {"c": [], "r": []}
    order = ""
    tie = 1.0 - _TIE * float(np.finfo(matrix.dtype).eps)
    while len(order) < rank:
        p, q = columns.farthest(rows), rows.farthest(columns)
        if p is None or q is None:  # the residual is zero on both sides at once, up to rounding
            break
        if n * columns.norms[p] >= tie * m * rows.norms[q]:
            columns.choose(p, rows)
            chosen["c"].append(p)
            order += "c"
        else:
            rows.choose(q, columns)
            chosen["r"].append(q)
            order += "r"
    columns_chosen, rows_chosen = (np.array(chosen[letter], dtype=np.intp) for letter in "cr")
    return Selection(columns_chosen, rows_chosen, order, "gspa", _stop_reason(len(order), rank))


def _stop_reason(n_chosen: int, rank: int) -> StopReason:
    return "rank reached" if n_chosen == rank else "residual is zero"


def _orthogonalised(block: Floats, basis: Floats) -> Floats:
    """(I - U U^T) block. Once leaves a part of U as large as the rounding of the block; twice is enough (Kahan)."""
    once = block - basis @ (basis.T @ block)
    once -= basis @ (basis.T @ once)
    return once


class _Side:
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
        self._tie = 1.0 - _TIE * self._eps
        self._zero = _ROUNDING * self._eps * np.sqrt(max(m, n))
        self._error_bound = np.empty(n)
        self._unreliable_below = np.empty(n)
        self._trust(np.arange(n))

    @property
    def basis(self) -> Floats:
        return self._basis[:, : self.size]

    @property
    def image(self) -> Floats:
        return self._image[:, : self.size]

    def farthest(self, other: _Side | None) -> int | None:
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

    def choose(self, index: int, other: _Side | None) -> None:
        """Project both sides on the orthogonal complement of the residual column ``index``."""
        u = self._residual(np.array([index]), other)[:, 0]
        u /= np.linalg.norm(u)
        image = self.matrix.T.dot(u)
        self._basis[:, self.size] = u
        self._image[:, self.size] = image
        g = image
        if other is not None:
            g = _orthogonalised(image, other.basis)
            h = _orthogonalised(self.matrix.dot(g), self.basis)
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

    def _residual(self, indices: Indices, other: _Side | None) -> Floats:
        """Residual columns, orthogonal to the basis to working precision."""
        block = self.matrix.columns(indices)
        if other is not None and other.size:
            block -= other.image @ other.basis[indices].T
        return _orthogonalised(block, self.basis)

    def _recompute(self, indices: Indices, other: _Side | None) -> None:
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

    def _magnitude(self, indices: Indices, other: _Side | None) -> NDArray[np.float64]:
        """Size of the terms whose difference a residual column is: its rounding error is eps times that."""
        magnitude = self._initial[indices]
        if other is None or not other.size:
            return magnitude
        lengths = np.linalg.norm(other.image, axis=0)
        return np.asarray(magnitude + np.abs(other.basis[indices]) @ lengths)

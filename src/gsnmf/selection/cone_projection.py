r"""Residuals of all columns of a matrix with respect to the cone, or the convex hull, of the chosen columns.

The common part of SNPA (a hull) and XRAY (a cone).

With an orthonormal basis Q of the chosen columns, C = Q R, every column splits into :math:`M_j = Q t_j + o_j`, and

.. math:: \|M_j - C h\|^2 = \|t_j - R h\|^2 + \|o_j\|^2 .

A problem in h thus has the size of the number of chosen columns, whatever the number of rows. Choosing a column costs
one product with the matrix, which gives the new entry of every :math:`t_j`. The condition number of C is not squared,
as it would be with a Gram matrix, and residuals are formed only for the few columns whose norm is in doubt.
"""

from __future__ import annotations

import math

import numpy as np

from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.matrix.projection import ROUNDING, TIE, orthogonalised
from gsnmf.matrix.protocol import BLOCK_BYTES, Matrix
from gsnmf.support.arrays import Axis, Doubles, Flags, Floats, Indices


class ReducedColumns:
    """The columns of an m x n matrix in a basis of the chosen columns, and their residuals.

    A subclass projects the columns on the cone or hull again after each `append` (`choose`).

    Attributes
    ----------
    size : int
        Number k of chosen columns.
    lengths : array of length n
        Norms of the columns.
    outside : array of length n
        Squared norms of the o_j.
    open : bool array of length n
        Columns that are neither chosen nor reproduced, up to rounding.
    """

    def __init__(self, matrix: Matrix, capacity: int) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self._basis = np.zeros((m, capacity), dtype=matrix.dtype, order="F")
        self._targets = np.zeros((n, capacity))
        self._inside = np.zeros((n, capacity))
        self._triangle = np.zeros((capacity, capacity))
        self.outside = matrix.squared_column_norms.copy()
        self.lengths = np.sqrt(self.outside)
        self.open = self.outside > 0
        self._reference = self.outside.copy()  # ``outside`` when it was last computed rather than reduced
        self._eps = float(np.finfo(matrix.dtype).eps)
        self._zero = ROUNDING * self._eps * math.sqrt(max(m, n))

    @property
    def basis(self) -> Floats:
        """Q, shape (m, k); a column is zero where the chosen one depends on those before it."""
        return self._basis[:, : self.size]

    @property
    def targets(self) -> Doubles:
        """t_j in row j, shape (n, k)."""
        return self._targets[:, : self.size]

    @property
    def inside(self) -> Doubles:
        """t_j - R h_j in row j, shape (n, k); a view to be written to."""
        return self._inside[:, : self.size]

    @property
    def triangle(self) -> Doubles:
        """R, upper triangular, shape (k, k)."""
        return self._triangle[: self.size, : self.size]

    @property
    def squared_residuals(self) -> Doubles:
        """||M_j - C h_j||^2 of every column."""
        return np.asarray(self.outside + np.einsum("jk,jk->j", self.inside, self.inside))

    @property
    def rounding(self) -> Doubles:
        """Residuals that differ by less than this count as equal."""
        return np.asarray(TIE * self._eps * self.lengths)

    def choose_columns(self, rank: int, axis: Axis, limits: Limits | None) -> list[int]:
        """Choose the included columns, then others until there are ``rank`` or none is left; return their indices.

        ``axis`` says what ``limits`` are read for: the columns here may be the rows of another matrix.
        """
        chosen: list[int] = []
        with single_threaded_blas():
            if limits is not None:
                self.open &= ~limits.excluded(axis)
                chosen += limits.included(axis).tolist()
                for index in chosen:
                    self.choose(index)
            while len(chosen) < rank and (found := self.next_column()) is not None:
                self.choose(found)
                chosen.append(found)
        return chosen

    def choose(self, index: int) -> None:
        """Add a column, and project the others again."""
        raise NotImplementedError

    def next_column(self) -> int | None:
        """Column to choose next; None if all are reproduced."""
        return self.farthest()

    def append(self, index: int) -> None:
        """Extend the basis and the coordinates by a column, whose weight in the other columns is zero at first."""
        k = self.size
        self._triangle[:k, k] = self._targets[index, :k]
        residual = orthogonalised(self.matrix.columns(np.array([index]))[:, 0], self.basis)
        length = float(np.linalg.norm(residual))
        if length > self._zero * self.lengths[index]:
            residual = orthogonalised(residual / length, self.basis)  # a short residual is not orthogonal enough
            residual /= np.linalg.norm(residual)
            image = self.matrix.T.dot(residual).astype(np.float64, copy=False)
            self._basis[:, k] = residual
            self._triangle[k, k] = image[index]
            self._targets[:, k] = self._inside[:, k] = image
            self.outside -= np.square(image)
            np.maximum(self.outside, 0.0, out=self.outside)
        self.outside[index] = self._reference[index] = 0.0
        self._inside[index] = 0.0
        self.open[index] = False
        self.size += 1

    def farthest(self) -> int | None:
        """Index of the largest residual; None if every residual is zero, up to rounding.

        Among equal residuals the longest column wins, and among these the first: the longest column is a vertex even if
        a whole face of the hull is equally far away.
        """
        while True:
            squared = self.squared_residuals
            suspect = self.open & (self.outside < 0.01 * self._reference)
            suspect &= squared < math.sqrt(self._eps) * self.lengths * np.sqrt(self._reference)
            certain = self.open & ~suspect
            self.open[certain] = squared[certain] > np.square(self._zero * self.lengths[certain])
            largest = float(np.max(squared, where=self.open & ~suspect, initial=0.0))
            suspects = np.flatnonzero(suspect)
            bound = 100.0 * self._eps * self.lengths[suspects] * np.sqrt(self._reference[suspects])
            suspects = suspects[squared[suspects] + bound >= largest]
            if suspects.size:
                self._recompute(suspects)
            elif largest > 0:
                distances = np.sqrt(squared)
                tied = self.open & (distances + self.rounding >= math.sqrt(largest))
                return first_of_largest(self.lengths, tied, self._eps)
            else:
                return None

    def outer(self, indices: Indices) -> Floats:
        """The parts o_j of columns outside the span, a dense m x b block."""
        return orthogonalised(self.matrix.columns(indices), self.basis)

    def residuals(self, indices: Indices) -> Floats:
        """Explicit residual columns M_j - C h_j, a dense m x b block."""
        block = self.outer(indices)
        block += self.basis @ self.inside[indices].T.astype(block.dtype)
        return block

    def is_zero(self, index: int, residual: Floats) -> bool:
        """Whether a residual column is only rounding; if so, the column is closed."""
        if float(np.linalg.norm(residual)) <= self._zero * self.lengths[index]:
            self.open[index] = False
        return not self.open[index]

    def _recompute(self, indices: Indices) -> None:
        step = max(1, BLOCK_BYTES // (self.matrix.shape[0] * self.matrix.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = indices[start : start + step]
            block = self.outer(part)
            norms = np.einsum("ij,ij->j", block, block, dtype=np.float64)
            norms[norms <= np.square(self._zero * self.lengths[part])] = 0.0
            self.outside[part] = self._reference[part] = norms


def first_of_largest(values: Doubles, allowed: Flags, eps: float) -> int:
    """First index of the largest value, up to rounding, among a nonempty set of candidates."""
    largest = np.max(values, where=allowed, initial=0.0)
    return int(np.argmax(allowed & (values >= (1.0 - TIE * eps) * largest)))

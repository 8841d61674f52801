"""Dense matrices: NumPy arrays in any memory order, multiplied by BLAS without a copy."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import Residual, safe_exponent
from gsnmf.support.arrays import Doubles, Floats, Indices


class DenseMatrix(InMemoryMatrix):
    """A checked NumPy array; ``largest`` is its largest entry, if known."""

    def __init__(self, data: Floats, largest: float | None = None) -> None:
        self.shape = (data.shape[0], data.shape[1])
        self.dtype = data.dtype
        self._data = data
        top = float(data.max(initial=0.0)) if largest is None else largest
        self.exponent = safe_exponent(top, data.dtype)
        self._held = _blas_ready(np.ldexp(data, -self.exponent) if self.exponent else data)
        self._transpose: DenseMatrix | None = None

    @property
    def data(self) -> Floats:  # noqa: D102
        return self._data

    @property
    def T(self) -> DenseMatrix:  # noqa: D102
        if self._transpose is None:
            transpose = object.__new__(DenseMatrix)
            transpose.shape, transpose.dtype, transpose.exponent = self.shape[::-1], self.dtype, self.exponent
            transpose._data, transpose._held, transpose._transpose = self._data.T, self._held.T, self
            self._transpose = transpose
        return self._transpose

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.ndim == 1:
            return np.asarray(self._held @ block)
        if block.dtype == self.dtype:
            return np.asarray((block.T @ self._held.T).T)  # BLAS is up to twice as fast this way round
        product = np.empty((self.shape[0], block.shape[1]), dtype=block.dtype)
        for rows in self._row_blocks():
            product[rows] = self._held[rows].astype(block.dtype) @ block
        return product

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.asfortranarray(self._held[:, indices])

    def raw_columns(self, indices: Indices) -> Floats:  # noqa: D102
        return self._data[:, indices]

    def in_one_order(self) -> DenseMatrix:  # noqa: D102
        return self if self._held.flags.c_contiguous else DenseMatrix(np.ascontiguousarray(self._held))

    def submatrix(self, indices: Indices) -> Floats:  # noqa: D102
        return self._held if indices.size == self.shape[1] else self.columns(indices)

    @cached_property
    def squared_column_norms(self) -> Doubles:  # noqa: D102
        return np.asarray(np.einsum("ij,ij->j", self._held, self._held, dtype=np.float64))

    @cached_property
    def column_sums(self) -> Doubles:  # noqa: D102
        return np.asarray(self._held.sum(axis=0, dtype=np.float64))

    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2 from the residual itself, in blocks of rows."""
        return self._explicit_squared_residual(W, H)

    def _explicit_squared_residual(self, W: Floats, H: Floats) -> float:
        total = 0.0
        for rows in self._row_blocks():
            residual = self._held[rows] - W[rows] @ H
            total += float(np.vdot(residual, residual))
        return total

    def residual(self, W: Floats, H: Floats) -> ExplicitResidual:  # noqa: D102
        return ExplicitResidual(self, self._held - W @ H)


class ExplicitResidual(Residual):
    """A residual held as an array."""

    def __init__(self, matrix: DenseMatrix, array: Floats) -> None:
        self.matrix: DenseMatrix = matrix
        self.array = array

    @property
    def T(self) -> ExplicitResidual:  # noqa: D102
        return ExplicitResidual(self.matrix.T, self.array.T)

    def cross(self, indices: Indices) -> Floats:  # noqa: D102
        first = int(indices[0])
        contiguous = np.array_equal(indices, np.arange(first, first + indices.size))
        part = slice(first, first + indices.size) if contiguous else indices  # a view where possible
        return np.asarray(self.matrix._held[:, part].T @ self.array)

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return float(np.vdot(self.array, self.array))

    @cached_property
    def inner(self) -> float:  # noqa: D102
        return float(np.einsum("ij,ij->", self.array, self.matrix._held))


def _blas_ready(matrix: Floats) -> Floats:
    """The array itself, or a contiguous copy if BLAS would copy it at every product."""
    size = matrix.itemsize
    for inner, outer in (matrix.strides, matrix.strides[::-1]):
        if inner == size and outer >= size and outer % size == 0:
            return matrix
    return np.ascontiguousarray(matrix)

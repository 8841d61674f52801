"""The candidates of a search as vectors: an array, or a sparse array where most entries are zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Floats, Indices, Vectors

LONG = 1 << 17
"""With more rows or columns than this, selections of a sparse matrix stay sparse, and products keep its precision."""
_THIN = 0.1
"""Up to this fraction of nonzero entries, products with these alone are faster."""


class CandidateVectors(ABC):
    """Some columns of an m x n matrix, in the order in which they were added."""

    precision: np.dtype[Any] = np.dtype(np.float64)
    """The precision in which their products with the matrix are held."""

    @abstractmethod
    def extend(self, indices: Indices) -> Doubles:
        """Add columns; return their products with all columns of the matrix, shape (k, n)."""

    @abstractmethod
    def dot(self, block: Doubles, at: int | None = None) -> Doubles:
        """Products of all of them, or of one, with the columns of a block."""

    @abstractmethod
    def as_columns(self, positions: Indices) -> Doubles:
        """A new array of shape (m, k), in C order."""

    def of_unit_length(self, positions: Indices, lengths: Doubles) -> Vectors:
        """A new array of shape (m, k), in C order, or a sparse one; each column is divided by its length."""
        columns = self.as_columns(positions)
        columns /= lengths
        return columns


def candidate_vectors(matrix: Matrix) -> CandidateVectors:
    """An empty collection, in the form that suits the matrix."""
    m, n = matrix.shape
    if isinstance(matrix, InMemoryMatrix) and sp.issparse(matrix.submatrix(np.empty(0, dtype=np.intp))):
        long = max(m, n) >= LONG
        if long or matrix.n_stored <= _THIN * m * n:
            return _SparseVectors(matrix, long)
    return _DenseVectors(matrix)


class _DenseVectors(CandidateVectors):
    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._rows = GrowingRows(matrix.shape[0])

    def extend(self, indices: Indices) -> Doubles:
        vectors, images = self._matrix.with_products(indices)
        self._rows.append(vectors.T)
        return images.T

    def dot(self, block: Doubles, at: int | None = None) -> Doubles:
        return np.asarray((self._rows.array if at is None else self._rows.array[at]) @ block)

    def as_columns(self, positions: Indices) -> Doubles:
        return np.array(self._rows.array[positions].T, order="C")


class _SparseVectors(CandidateVectors):
    """Columns of which only the nonzero entries are held; selections of long ones stay sparse."""

    def __init__(self, matrix: InMemoryMatrix, long: bool) -> None:
        self._matrix, self._long = matrix, long
        self._rows: Any = sp.csr_array((0, matrix.shape[0]), dtype=np.float64)
        if long:
            self.precision = matrix.dtype

    def extend(self, indices: Indices) -> Doubles:
        new: Any = self._matrix.submatrix(indices).T.astype(np.float64)
        self._rows = sp.vstack([self._rows, new], format="csr")
        return self._matrix.gram_rows(indices)

    def dot(self, block: Doubles, at: int | None = None) -> Doubles:
        if at is None:
            return np.asarray(self._rows @ block)
        part = slice(self._rows.indptr[at], self._rows.indptr[at + 1])
        return np.asarray(self._rows.data[part] @ block[self._rows.indices[part]])

    def as_columns(self, positions: Indices) -> Doubles:
        return np.array(self._rows[positions].toarray().T, order="C")

    def of_unit_length(self, positions: Indices, lengths: Doubles) -> Vectors:
        if not self._long:
            return super().of_unit_length(positions, lengths)
        columns: sp.csr_array = self._rows[positions].T.tocsr()
        columns.data /= lengths[columns.indices]
        return columns


class GrowingRows:
    """An array to which rows are added in place, as long as there is room.

    Room that is not used yet takes no memory: operating systems hand out pages when they are first written to.

    Examples
    --------
    >>> rows = GrowingRows(2)
    >>> rows.append(np.ones((1, 2)))
    >>> rows.append(np.zeros((2, 2)))
    >>> rows.array
    array([[1., 1.],
           [0., 0.],
           [0., 0.]])
    """

    def __init__(self, width: int, dtype: Any = np.float64) -> None:
        self._buffer: Floats = np.empty((0, width), dtype=dtype)
        self._size = 0

    @property
    def array(self) -> Floats:
        """All rows so far, as a view."""
        return self._buffer[: self._size]

    def append(self, rows: Floats) -> None:
        """Add rows below the others."""
        needed = self._size + rows.shape[0]
        if needed > self._buffer.shape[0]:
            larger = np.empty((2 * needed, self._buffer.shape[1]), dtype=self._buffer.dtype)
            larger[: self._size] = self.array
            self._buffer = larger
        self._buffer[self._size : needed] = rows
        self._size = needed

"""What an algorithm may ask of a matrix.

An algorithm never looks at a matrix itself. It asks for products, norms, single columns and blocks of columns,
and of the transpose for the same of the rows, so that every algorithm is written once for columns and holds for
rows, and dense and sparse matrices differ in this package and nowhere else.

Squared quantities must not overflow or vanish, so a matrix whose largest entry is extreme is held in another
unit (a power of two, hence without rounding). All that the library returns, indices, weights and relative
errors, is the same in every unit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.kernels.nonnegative import sparse_gram_rows
from gsnmf.matrices.checks import is_dask
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix, Sparse

BLOCK_BYTES = 1 << 25
"""Working memory for the explicit blocks of a residual."""

_CANCELLED = 1e-10
"""Below this part of what they are the difference of, Gram products have lost too many digits."""

_SPARSE_BLOCK = 0.1
"""A dense block of which at most this part is not zero is multiplied with a sparse matrix as a sparse one."""

_SAFE_EXPONENT = {np.dtype(np.float32): 40, np.dtype(np.float64): 400}


def wrap(matrix: RawMatrix) -> Matrix:
    """Wrap a validated matrix, in a unit in which squares neither overflow nor vanish.

    The entries of a Dask array are checked here, in the pass that also finds its norms.

    Examples
    --------
    >>> import numpy as np
    >>> M = wrap(np.array([[3.0, 0.0], [4.0, 2.0]]))
    >>> M.squared_column_norms, M.T.squared_column_norms
    (array([25.,  4.]), array([ 9., 20.]))
    """
    if is_dask(matrix):
        from gsnmf.matrices.chunked.matrix import ChunkedMatrix

        return ChunkedMatrix(matrix)
    exponent = _unit(matrix)
    if isinstance(matrix, np.ndarray):
        held: Matrix = DenseMatrix(np.ldexp(matrix, -exponent) if exponent else matrix)
    elif exponent:
        data = np.ldexp(matrix.data, -exponent)
        held = SparseMatrix(type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape))
    else:
        held = SparseMatrix(matrix)
    held.exponent = exponent
    return held


class Matrix(ABC):
    """Matrix, norms and blocks of an m x n matrix; ``.T`` gives the same for its transpose."""

    shape: tuple[int, int]
    dtype: np.dtype[np.floating]
    exponent: int = 0
    """The matrix is held in units of two to this power."""
    out_of_core: bool = False
    """Whether every request, also for a single column, reads all of the data: better one more product than one more."""

    @property
    @abstractmethod
    def T(self) -> Matrix:
        """The transpose, sharing all memory."""

    @abstractmethod
    def dot(self, block: Floats) -> Floats:
        """Product with a dense vector of length n or a dense n x k block, in the precision of the block."""

    @abstractmethod
    def columns(self, indices: Indices) -> Floats:
        """The columns at ``indices`` as a dense m x k block, in Fortran order."""

    def submatrix(self, indices: Indices) -> Floats | sp.csc_array:
        """The columns at increasing ``indices``, sparse if the matrix is; all of a dense matrix are not copied."""
        return self.columns(indices)

    @cached_property
    @abstractmethod
    def squared_column_norms(self) -> Doubles:
        """Squared Euclidean norm of every column, accumulated in double precision."""

    @cached_property
    @abstractmethod
    def column_sums(self) -> Doubles:
        """Sum (l1 norm) of every column."""

    @abstractmethod
    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2 for dense factors of shape (m, k) and (k, n)."""

    @abstractmethod
    def gram_rows(self, indices: Indices) -> Doubles:
        """The rows ``indices`` of M'M, a dense k x n block in double precision."""

    def with_products(self, indices: Indices) -> tuple[Floats, Doubles]:
        """The columns C at ``indices`` as `columns` gives them, and M'C, n x k in double precision, in one pass."""
        return self.columns(indices), self.gram_rows(indices).T

    def dot_both_ways(self, right: Floats, left: Floats) -> tuple[Floats, Floats]:
        """M right and M' left, in one pass."""
        return self.dot(right), self.T.dot(left)

    def gram(self, indices: Indices) -> Doubles:
        """C'C for the columns C at increasing ``indices``, k x k in double precision."""
        chosen = self.submatrix(indices).astype(np.float64, copy=False)
        return dense(chosen.T @ chosen)

    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> Doubles:
        """Squared norms of the columns of M[:, indices] - W H, for dense factors of shape (m, k) and (k, size)."""
        norms = np.empty(indices.size)
        step = max(1, BLOCK_BYTES // (self.shape[0] * self.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = slice(start, start + step)
            residual = self.columns(indices[part]) - W @ H[:, part]
            norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
        return norms

    @abstractmethod
    def residual(self, W: Floats, H: Floats) -> Residual:
        """E = M - W H, explicit where M is dense and implicit where it is sparse."""

    def block_residuals(self, W: Floats, H: Floats, row_blocks: Indices, column_blocks: Indices) -> Doubles:
        """||M - W H||_F^2 within every block of rows and columns, which sum to `squared_residual`.

        ``row_blocks`` and ``column_blocks`` say for each row and column in which block it is, from 0 on.
        """
        of_rows, of_columns = membership(row_blocks), membership(column_blocks)
        total = np.zeros((of_rows.shape[1], of_columns.shape[1]))
        for rows in self._row_blocks():
            part = np.arange(*rows.indices(self.shape[0]))
            squares = np.square(self.T.columns(part).T - W[part] @ H, dtype=np.float64)
            total += of_rows[part].T @ (squares @ of_columns)
        return total

    def column(self, index: int) -> Floats:
        """One column as a dense vector."""
        return self.columns(np.array([index]))[:, 0]

    @property
    def accumulator(self) -> np.dtype[np.floating]:
        """Type in which vectors are kept for products with the matrix."""
        return self.dtype

    @cached_property
    def squared_norm(self) -> float:
        """||M||_F^2."""
        return float(self.squared_column_norms.sum())

    def inner(self, W: Floats, H: Floats) -> float:
        """<M, W H> for dense factors of shape (m, k) and (k, n), without forming their product."""
        if W.shape[1] == 0:
            return 0.0
        return float(np.einsum("ik,ik->", self.dot(H.T), W, dtype=np.float64))

    def _row_blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK_BYTES // (self.shape[1] * self.dtype.itemsize))
        return (slice(start, start + step) for start in range(0, self.shape[0], step))


class Residual(ABC):
    """E = M - W H, asked for its products with the columns of M; ``.T`` gives the same for the transposes."""

    matrix: Matrix

    @property
    @abstractmethod
    def T(self) -> Residual:
        """The transpose."""

    @abstractmethod
    def cross(self, indices: Indices) -> Floats:
        """The rows ``indices`` of M'E, a dense k x n block."""

    @cached_property
    @abstractmethod
    def squared_norm(self) -> float:
        """||E||_F^2."""

    @cached_property
    @abstractmethod
    def inner(self) -> float:
        """<E, M>."""

    def cross_blocks(
        self, memory: int = BLOCK_BYTES, indices: Indices | None = None
    ) -> Iterator[tuple[Indices, Floats]]:
        """The rows ``indices`` of M'E, or all, as pairs of indices and rows, each block within ``memory`` bytes."""
        n = self.matrix.shape[1]
        chosen = np.arange(n) if indices is None else indices
        step = max(1, memory // (8 * n))
        for start in range(0, chosen.size, step):
            block = chosen[start : start + step]
            yield block, self.cross(block)


class DenseMatrix(Matrix):
    """Matrix of a NumPy array of any memory order that BLAS takes without a copy."""

    def __init__(self, matrix: Floats, transpose: DenseMatrix | None = None) -> None:
        self.matrix = matrix if transpose is not None else _blas_ready(matrix)
        self.shape = (matrix.shape[0], matrix.shape[1])
        self.dtype = matrix.dtype
        self._transpose = transpose

    @property
    def T(self) -> DenseMatrix:  # noqa: D102
        if self._transpose is None:
            self._transpose = DenseMatrix(self.matrix.T, self)
        return self._transpose

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.ndim == 1:
            return np.asarray(self.matrix @ block)
        if block.dtype == self.dtype:
            return np.asarray((block.T @ self.matrix.T).T)  # BLAS is up to twice as fast this way round
        product = np.empty((self.shape[0], block.shape[1]), dtype=block.dtype)
        for rows in self._row_blocks():
            product[rows] = self.matrix[rows].astype(block.dtype) @ block
        return product

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.asfortranarray(self.matrix[:, indices])

    def submatrix(self, indices: Indices) -> Floats:  # noqa: D102
        return self.matrix if indices.size == self.shape[1] else self.columns(indices)

    @cached_property
    def squared_column_norms(self) -> Doubles:  # noqa: D102
        return np.asarray(np.einsum("ij,ij->j", self.matrix, self.matrix, dtype=np.float64))

    @cached_property
    def column_sums(self) -> Doubles:  # noqa: D102
        return np.asarray(self.matrix.sum(axis=0, dtype=np.float64))

    def squared_residual(self, W: Floats, H: Floats) -> float:  # noqa: D102
        total = 0.0
        for rows in self._row_blocks():
            residual = self.matrix[rows] - W[rows] @ H
            total += float(np.vdot(residual, residual))
        return total

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self.columns(indices).astype(np.float64, copy=False)
        return np.ascontiguousarray(self.T.dot(chosen).T, dtype=np.float64)

    def residual(self, W: Floats, H: Floats) -> DenseResidual:  # noqa: D102
        return DenseResidual(self, self.matrix - W @ H)


class DenseResidual(Residual):
    """A residual held as an array."""

    def __init__(self, matrix: DenseMatrix, array: Floats) -> None:
        self.matrix: DenseMatrix = matrix
        self.array = array

    @property
    def T(self) -> DenseResidual:  # noqa: D102
        return DenseResidual(self.matrix.T, self.array.T)

    def cross(self, indices: Indices) -> Floats:  # noqa: D102
        first = int(indices[0])
        contiguous = np.array_equal(indices, np.arange(first, first + indices.size))
        part = slice(first, first + indices.size) if contiguous else indices  # a view where possible
        return np.asarray(self.matrix.matrix[:, part].T @ self.array)

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return float(np.vdot(self.array, self.array))

    @cached_property
    def inner(self) -> float:  # noqa: D102
        return float(np.einsum("ij,ij->", self.array, self.matrix.matrix))


class SparseMatrix(Matrix):
    """Matrix of a sparse matrix held by rows and by columns, so that each of its products only gathers.

    Each of the two is made when it is first asked for, and shared with the transpose.
    """

    def __init__(self, matrix: Sparse, transpose: SparseMatrix | None = None) -> None:
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype
        self._matrix = matrix
        self._origin = transpose
        self._transpose = transpose

    @property
    def T(self) -> SparseMatrix:  # noqa: D102
        if self._transpose is None:
            self._transpose = SparseMatrix(self._matrix.T, self)
        return self._transpose

    @cached_property
    def _by_rows(self) -> sp.csr_array:
        return self._matrix.tocsr() if self._origin is None else self._origin._by_columns.T

    @cached_property
    def _by_columns(self) -> sp.csc_array:
        return self._matrix.tocsc() if self._origin is None else self._origin._by_rows.T

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.ndim == 2 and block.dtype == np.float64 and np.count_nonzero(block) <= _SPARSE_BLOCK * block.size:
            return sparse_gram_rows(self._by_rows.T, sp.csr_array(block))
        return np.asarray(self._by_rows @ np.ascontiguousarray(block))

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.asarray(self.submatrix(indices).toarray(order="F"))

    def submatrix(self, indices: Indices) -> sp.csc_array:  # noqa: D102
        return self._by_columns[:, indices]

    @cached_property
    def squared_column_norms(self) -> Doubles:  # noqa: D102
        return self._column_totals(np.square(self._by_columns.data, dtype=np.float64))

    @cached_property
    def column_sums(self) -> Doubles:  # noqa: D102
        return self._column_totals(self._by_columns.data.astype(np.float64))

    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2, at a cost that does not depend on the zeros of M.

        By Gram products; where these cancel, W H is close to M and so nearly as sparse, and is formed in sparse blocks.
        """
        W, H = W.astype(np.float64, copy=False), H.astype(np.float64, copy=False)
        explained = float(np.vdot(W.T @ W, H @ H.T)) if W.shape[1] else 0.0
        squared = self.squared_norm - 2.0 * self.inner(W, H) + explained
        if squared > _CANCELLED * max(self.squared_norm, explained):
            return squared
        right = sp.csr_array(H)
        blocks = (sp.csr_array(W[rows]) @ right - self._by_rows[rows] for rows in self._row_blocks())
        return sum(float(np.vdot(block.data, block.data)) for block in blocks)

    def block_residuals(self, W: Floats, H: Floats, row_blocks: Indices, column_blocks: Indices) -> Doubles:
        """As in `Matrix`, by the Gram products of each block: the zeros of M cost nothing."""
        of_rows, of_columns = membership(row_blocks), membership(column_blocks)
        entries = self._by_rows.tocoo()
        squares, inner = np.empty(entries.nnz), np.empty(entries.nnz)
        step = max(1, BLOCK_BYTES // (16 * max(1, W.shape[1])))
        for start in range(0, entries.nnz, step):
            part = slice(start, start + step)
            values = entries.data[part].astype(np.float64)
            squares[part] = values**2
            inner[part] = values * np.einsum("ik,ki->i", W[entries.row[part]], H[:, entries.col[part]])
        pattern = self._by_rows
        known = sp.csr_array((squares - 2.0 * inner, pattern.indices, pattern.indptr), shape=self.shape)
        return np.asarray(
            (of_rows.T @ known @ of_columns).toarray()
            + _block_grams(W, row_blocks) @ _block_grams(H.T, column_blocks).T
        )

    def residual(self, W: Floats, H: Floats) -> SparseResidual:  # noqa: D102
        return SparseResidual(self, W, H)

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        return sparse_gram_rows(self._by_columns[:, indices], self._by_rows)

    def _column_totals(self, data: Doubles) -> Doubles:
        by_columns = self._by_columns
        pattern = sp.csr_array((data, by_columns.indices, by_columns.indptr), shape=self.shape[::-1])
        return np.asarray(pattern @ np.ones(self.shape[0]))


class SparseResidual(Residual):
    """A residual held as the sparse matrix and the two factors."""

    def __init__(self, matrix: SparseMatrix, W: Floats, H: Floats) -> None:
        self.matrix: SparseMatrix = matrix
        self.W = W
        self.H = H

    @property
    def T(self) -> SparseResidual:  # noqa: D102
        return SparseResidual(self.matrix.T, self.H.T, self.W.T)

    @cached_property
    def _image(self) -> Floats:
        """M'W."""
        return self.matrix.T.dot(self.W)

    def cross(self, indices: Indices) -> Floats:  # noqa: D102
        block = self.matrix.gram_rows(indices)
        if self.W.shape[1]:
            block -= self._image[indices] @ self.H
        return block

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return self.matrix.squared_residual(self.W, self.H)

    @cached_property
    def inner(self) -> float:  # noqa: D102
        return self.matrix.squared_norm - self.matrix.inner(self.W, self.H)


def membership(blocks: Indices) -> sp.csr_array:
    """Sparse array of ones, one a row, in the column that ``blocks`` says."""
    length = blocks.size
    return sp.csr_array(
        (np.ones(length), blocks, np.arange(length + 1)), shape=(length, int(blocks.max(initial=-1)) + 1)
    )


def _block_grams(factor: Floats, blocks: Indices) -> Doubles:
    """Gram matrix of the rows of a factor in each block, flattened, one block a row."""
    order = np.argsort(blocks, kind="stable")
    ends = np.cumsum(np.bincount(blocks))
    parts = np.split(factor[order].astype(np.float64), ends[:-1])
    return np.array([(part.T @ part).ravel() for part in parts])


def dense_columns(matrix: RawMatrix, indices: Indices, *, across: bool = False) -> Floats:
    """Columns of a validated matrix, or, ``across``, rows as columns, as a dense block in the unit of the matrix."""
    if is_dask(matrix):
        from gsnmf.matrices.chunked.arrays import gather

        return gather(matrix, indices, across=across)
    return dense(matrix[indices].T if across else matrix[:, indices])


def dense(part: Any) -> NDArray[Any]:
    """A dense or sparse part of a matrix as a dense array; a dense one is not copied."""
    return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())


def _unit(matrix: RawMatrix) -> int:
    """Exponent of the power of two in which the matrix is held: 0 unless its largest entry is extreme."""
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    return safe_exponent(float(entries.max(initial=0.0)), matrix.dtype)


def safe_exponent(largest: float, dtype: np.dtype[Any]) -> int:
    """Exponent of the power of two in which entries up to ``largest`` have safe squares; 0 unless it is extreme."""
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > _SAFE_EXPONENT[dtype] else 0


def _blas_ready(matrix: Floats) -> Floats:
    """The array itself, or a contiguous copy if BLAS would copy it at every product."""
    size = matrix.itemsize
    for inner, outer in (matrix.strides, matrix.strides[::-1]):
        if inner == size and outer >= size and outer % size == 0:
            return matrix
    return np.ascontiguousarray(matrix)

"""Matrices in memory: NumPy arrays, multiplied by BLAS without a copy, and SciPy sparse arrays.

`hold` wraps a validated array as one of them. A further kind in memory, such as `gsnmf.matrix.low_rank_sum`, derives
from `InMemoryMatrix`, which builds the whole protocol on a few products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf._kernels.sparse_products import sparse_column_sums, sparse_dot, sparse_gram_rows
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.projection import ResidualProjection, ResidualSide
from gsnmf.matrix.protocol import (
    BLOCK_BYTES,
    Matrix,
    Residual,
    WithTranspose,
    dense,
    largest_of,
    membership,
    safe_exponent,
    sketch_vectors,
)
from gsnmf.matrix.validation import check_with_largest
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices, RawMatrix, Sparse

_CANCELLED = 1e-10
"""A difference of Gram products below this fraction of its terms has lost too many digits."""


class InMemoryMatrix(WithTranspose, Matrix):
    """A matrix in memory; a subclass provides shape, dtype, data, T, dot, columns, norms and sums.

    Everything else follows from these. Dense and sparse matrices override what they can do faster.
    """

    in_memory = True
    exponent = 0

    if TYPE_CHECKING:

        @property
        def T(self) -> Self:
            """The transpose, sharing all memory."""

    def raw_columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.ldexp(self.columns(indices), self.exponent)

    def in_one_order(self) -> InMemoryMatrix:
        """The same matrix, so that products round alike however the entries were given; a copy if need be."""
        return self

    def submatrix(self, indices: Indices) -> Floats | sp.csc_array:
        """The columns at increasing ``indices``, sparse if the matrix is. All columns of a dense one are not copied."""
        return self.columns(indices)

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self.columns(indices).astype(np.float64, copy=False)
        return np.ascontiguousarray(self.T.dot(chosen).T, dtype=np.float64)

    def gram(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self.submatrix(indices).astype(np.float64, copy=False)
        return np.asarray(dense(chosen.T @ chosen), dtype=np.float64)

    def with_products(self, indices: Indices) -> tuple[Floats, Doubles]:  # noqa: D102
        return self.columns(indices), self.gram_rows(indices).T

    def reduced(self, indices: Indices) -> tuple[Doubles, Doubles]:  # noqa: D102
        lengths = np.sqrt(self.squared_column_norms[indices])
        block = np.divide(self.columns(indices), lengths, dtype=np.float64)
        orthogonal, triangle = orthogonal_factors(block, overwrite=True)
        return triangle, np.ascontiguousarray(self.T.dot(orthogonal), dtype=np.float64)

    def sketch(self) -> Doubles:  # noqa: D102
        m, n = self.shape
        products = self.dot(sketch_vectors(np.arange(n), "columns"))
        return np.asarray(np.einsum("ik,ik->k", sketch_vectors(np.arange(m), "rows"), products))

    def residual(self, W: Floats, H: Floats) -> Residual:
        """E = M - W H for dense factors of shape (m, k) and (k, n)."""
        return ImplicitResidual(self, W, H)

    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2 by Gram products or, if these cancel, from the residual itself, in blocks of rows."""
        W, H = W.astype(np.float64, copy=False), H.astype(np.float64, copy=False)
        explained = float(np.vdot(W.T @ W, H @ H.T)) if W.shape[1] else 0.0
        squared = self.squared_norm - 2.0 * self.inner(W, H) + explained
        if squared > _CANCELLED * max(self.squared_norm, explained):
            return squared
        return self._explicit_squared_residual(W, H)

    def _explicit_squared_residual(self, W: Floats, H: Floats) -> float:
        total = 0.0
        for rows in self._row_blocks():
            residual = self.T.columns(np.arange(*rows.indices(self.shape[0]))).T - W[rows] @ H
            total += float(np.vdot(residual, residual))
        return total

    def squared_distance(self, W: Floats, H: Floats) -> float:  # noqa: D102
        shift = np.frexp(np.abs(W).max(axis=0, initial=0.0))[1]  # columns of W of size one: their squares are safe
        return self.squared_residual(np.ldexp(W, -shift), np.ldexp(H, (shift - self.exponent)[:, None]))

    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> Doubles:  # noqa: D102
        norms = np.empty(indices.size)
        step = max(1, BLOCK_BYTES // (self.shape[0] * self.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = slice(start, start + step)
            residual = self.columns(indices[part]) - W @ H[:, part]
            norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
        return norms

    def projection(self, capacity: int, axes: Sequence[Axis]) -> ResidualProjection:  # noqa: D102
        return ResidualProjection({axis: ResidualSide(self.along(axis), capacity) for axis in axes})

    def row_product(self, block: Floats) -> Any:  # noqa: D102
        return np.ascontiguousarray(self.dot(block.astype(np.float64, copy=False)))

    def map_rows(self, function: Callable[..., Floats], width: int, *, shared: tuple[Floats, ...] = ()) -> Any:  # noqa: D102
        return function(self, *shared)

    def sum_over_rows(self, function: Callable[..., Doubles], *arrays: Any, shape: tuple[int, ...]) -> Doubles:  # noqa: D102
        return function(*arrays)

    def products_and_sums(self, block: Any, other: Any) -> tuple[Floats, Doubles]:  # noqa: D102
        return self.T.dot(block), other.sum(axis=0, dtype=np.float64)

    def chosen(self, columns: Indices, rows: Indices) -> tuple[Any, Doubles, Floats]:  # noqa: D102
        return *self.with_products(columns), self.T.columns(rows)

    def left_factor(self, columns: Indices, row_weights: Any) -> Any:  # noqa: D102
        return np.hstack([self.raw_columns(columns), row_weights])

    def strongest_rows(self, W: Any, count: int) -> list[tuple[Indices, Floats]]:  # noqa: D102
        found = [(largest_of(column, count), column) for column in W.T]
        return [(positions, column[positions]) for positions, column in found]


class ImplicitResidual(Residual):
    """A residual held as the matrix and the two factors."""

    def __init__(self, matrix: InMemoryMatrix, W: Floats, H: Floats) -> None:
        self.matrix: InMemoryMatrix = matrix
        self.W = W
        self.H = H

    @property
    def T(self) -> ImplicitResidual:  # noqa: D102
        return ImplicitResidual(self.matrix.T, self.H.T, self.W.T)

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


class DenseMatrix(InMemoryMatrix):
    """A checked NumPy array; ``largest`` is its largest entry, if known."""

    def __init__(self, data: Floats, largest: float | None = None) -> None:
        self.shape = (data.shape[0], data.shape[1])
        self.dtype = data.dtype
        self._data = data
        top = float(data.max(initial=0.0)) if largest is None else largest
        self.exponent = safe_exponent(top, data.dtype)
        self._held = _blas_ready(np.ldexp(data, -self.exponent) if self.exponent else data)

    @property
    def data(self) -> Floats:  # noqa: D102
        return self._data

    def _transposed(self) -> DenseMatrix:
        transpose = object.__new__(DenseMatrix)
        transpose.shape, transpose.dtype, transpose.exponent = self.shape[::-1], self.dtype, self.exponent
        transpose._data, transpose._held = self._data.T, self._held.T
        return transpose

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


_SPARSE_BLOCK = 0.1
"""A dense block with at most this share of nonzeros is multiplied with a sparse matrix as a sparse one."""


class _Orders:
    """A sparse array by rows and by columns, each made when it is first asked for."""

    def __init__(self, data: Sparse) -> None:
        self._data = data

    @cached_property
    def by_rows(self) -> sp.csr_array:
        return self._data.tocsr()

    @cached_property
    def by_columns(self) -> sp.csc_array:
        return self._data.tocsc()


class SparseMatrix(InMemoryMatrix):
    """A checked compressed sparse array; ``largest`` is its largest entry, if known.

    Each of the two orders is made when it is first asked for, and shared with the transpose.
    """

    def __init__(self, data: Sparse, largest: float | None = None) -> None:
        self.shape = (int(data.shape[0]), int(data.shape[1]))
        self.dtype = data.dtype
        self._data = data
        top = float(data.data.max(initial=0.0)) if largest is None else largest
        self.exponent = safe_exponent(top, data.dtype)
        self._held = data
        if self.exponent:
            parts = np.ldexp(data.data, -self.exponent), data.indices, data.indptr
            self._held = type(data)(parts, shape=data.shape)
        self._orders = _Orders(self._held)
        self._is_turned = False

    @property
    def data(self) -> Sparse:  # noqa: D102
        return self._data

    @property
    def n_stored(self) -> int:  # noqa: D102
        return int(self._data.nnz)

    def _transposed(self) -> SparseMatrix:
        transpose = object.__new__(SparseMatrix)
        transpose.shape, transpose.dtype, transpose.exponent = self.shape[::-1], self.dtype, self.exponent
        transpose._data, transpose._held = self._data.T, self._held.T
        transpose._orders, transpose._is_turned = self._orders, not self._is_turned
        return transpose

    @cached_property
    def _by_rows(self) -> sp.csr_array:
        return self._orders.by_columns.T if self._is_turned else self._orders.by_rows

    @cached_property
    def _by_columns(self) -> sp.csc_array:
        return self._orders.by_rows.T if self._is_turned else self._orders.by_columns

    def many_products(self) -> AbstractContextManager[None]:  # noqa: D102
        return single_threaded_blas()

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.ndim == 2 and block.dtype == np.float64 and np.count_nonzero(block) <= _SPARSE_BLOCK * block.size:
            return sparse_gram_rows(self._by_rows.T, sp.csr_array(block))
        return sparse_dot(self._by_rows, block)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.asarray(self.submatrix(indices).toarray(order="F"))

    def raw_columns(self, indices: Indices) -> Floats:  # noqa: D102
        return dense(self._data[:, indices]) if self.exponent else self.columns(indices)

    def submatrix(self, indices: Indices) -> sp.csc_array:  # noqa: D102
        return self._by_columns[:, indices]

    @cached_property
    def squared_column_norms(self) -> Doubles:  # noqa: D102
        return sparse_column_sums(self._held, squared=True)

    @cached_property
    def column_sums(self) -> Doubles:  # noqa: D102
        return sparse_column_sums(self._held)

    def _explicit_squared_residual(self, W: Floats, H: Floats) -> float:
        """The residual in sparse blocks: W H is close to M here, and so nearly as sparse."""
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

    def gram(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self._by_columns[:, indices]
        return sparse_gram_rows(chosen, chosen.tocsr())

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        return sparse_gram_rows(self._by_columns[:, indices], self._by_rows)


def _block_grams(factor: Floats, blocks: Indices) -> Doubles:
    """Gram matrix of the rows of a factor in each block, flattened, one block per row."""
    order = np.argsort(blocks, kind="stable")
    ends = np.cumsum(np.bincount(blocks))
    parts = np.split(factor[order].astype(np.float64), ends[:-1])
    return np.array([(part.T @ part).ravel() for part in parts])


def hold(matrix: RawMatrix, largest: float | None = None) -> InMemoryMatrix:
    """Hold a matrix that is known to be right; ``largest`` is its largest entry, if known."""
    return DenseMatrix(matrix, largest) if isinstance(matrix, np.ndarray) else SparseMatrix(matrix, largest)


def scaled_matrix(matrix: Matrix, rows: Doubles | None, columns: Doubles) -> InMemoryMatrix:
    """The matrix with its rows and columns multiplied by numbers."""
    data: Any = matrix.data
    is_sparse = bool(sp.issparse(data))
    if is_sparse:
        scaled = data.multiply(columns) if rows is None else data.multiply(columns).multiply(rows[:, None])
    else:
        scaled = data * columns if rows is None else data * columns * rows[:, None]
    return hold(*check_with_largest(scaled.astype(matrix.dtype, copy=False)))

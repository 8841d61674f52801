"""Sparse matrices, held by rows and by columns so that every product only gathers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.sparse_products import sparse_column_sums, sparse_dot, sparse_gram_rows
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import BLOCK_BYTES, dense, membership, safe_exponent
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse

_SPARSE_BLOCK = 0.1
"""A dense block with at most this share of nonzeros is multiplied with a sparse matrix as a sparse one."""


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
        self._origin: SparseMatrix | None = None
        self._transpose: SparseMatrix | None = None

    @property
    def data(self) -> Sparse:  # noqa: D102
        return self._data

    @property
    def n_stored(self) -> int:  # noqa: D102
        return int(self._data.nnz)

    @property
    def T(self) -> SparseMatrix:  # noqa: D102
        if self._transpose is None:
            transpose = object.__new__(SparseMatrix)
            transpose.shape, transpose.dtype, transpose.exponent = self.shape[::-1], self.dtype, self.exponent
            transpose._data, transpose._held = self._data.T, self._held.T
            transpose._origin = transpose._transpose = self
            self._transpose = transpose
        return self._transpose

    @cached_property
    def _by_rows(self) -> sp.csr_array:
        return self._held.tocsr() if self._origin is None else self._origin._by_columns.T

    @cached_property
    def _by_columns(self) -> sp.csc_array:
        return self._held.tocsc() if self._origin is None else self._origin._by_rows.T

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

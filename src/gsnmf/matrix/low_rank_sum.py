"""A sparse matrix plus a low-rank matrix, never formed, behind the matrix protocol.

A matrix with holes that a low-rank matrix fills is of this kind: the observed entries are the low-rank matrix plus a
sparse correction, and everywhere else the low-rank matrix stands by itself.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.in_memory import InMemoryMatrix, SparseMatrix
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse


class LowRankSum(InMemoryMatrix):
    """S + L R' for a sparse S and thin factors L and R.

    Parameters
    ----------
    sparse : csr_array or csc_array, shape (m, n)
        S, of any sign.
    left, right : arrays, shape (m, k) and (n, k)
        L and R, of any sign.

    Notes
    -----
    A product with a block costs O((nnz + (m + n) k) width); k' rows of the Gram matrix cost O(k' n k) beside the Gram
    rows of S; the norms of all columns cost O(nnz + (m + n) k^2). The memory is that of S in both orders and of the
    factors.

    *Sign.* The protocol speaks of nonnegative matrices. Here single entries may be slightly negative, as in any
    low-rank approximation of nonnegative data, and setting them to zero would mean forming all of them. Selection and
    search use products, norms and column sums of the matrix as it is, which are consistent with each other. What users
    get, `raw_columns` and the left factor, is cut off at zero, and weights fitted to observed entries use these
    nonnegative columns.

    Examples
    --------
    >>> M = LowRankSum(sp.csr_array([[0.0, 1.0], [0.0, 0.0]]), np.ones((2, 1)), np.array([[1.0], [2.0]]))
    >>> M.columns(np.array([1])).ravel(), M.squared_column_norms
    (array([3., 2.]), array([ 2., 13.]))
    """

    def __init__(self, sparse: Sparse, left: Doubles, right: Doubles) -> None:
        self.shape = (int(sparse.shape[0]), int(sparse.shape[1]))
        self.dtype = np.dtype(np.float64)
        self.left = np.ascontiguousarray(left, dtype=np.float64)
        self.right = np.ascontiguousarray(right, dtype=np.float64)
        self._sparse = SparseMatrix(sparse)

    @property
    def data(self) -> LowRankSum:
        """The matrix itself: it was not made from an array."""
        return self

    @property
    def n_stored(self) -> int:
        """Entries that a product reads: those of S and of the factors."""
        return self._sparse.n_stored + self.left.size + self.right.size

    def _transposed(self) -> LowRankSum:
        transpose = object.__new__(LowRankSum)
        transpose.shape, transpose.dtype = self.shape[::-1], self.dtype
        transpose.left, transpose.right, transpose._sparse = self.right, self.left, self._sparse.T
        return transpose

    def many_products(self) -> AbstractContextManager[None]:  # noqa: D102
        return single_threaded_blas()

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        product = self._sparse.dot(block) + self.left @ (self.right.T @ block)
        return product.astype(block.dtype, copy=False)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        block = np.asfortranarray(self.left @ self.right[indices].T)
        block += self._sparse.columns(indices)
        return block

    def raw_columns(self, indices: Indices) -> Floats:
        """The columns at ``indices``, cut off at zero."""
        return np.maximum(self.columns(indices), 0.0)

    def with_columns(self, indices: Indices, block: Floats) -> LowRankSum:
        """The same matrix with other columns at ``indices``."""
        if indices.size == 0:
            return self
        change = block - self.columns(indices)
        rows, places = np.nonzero(change)
        added = sp.coo_array((change[rows, places], (rows, indices[places])), shape=self.shape)
        return LowRankSum(sp.csr_array(self._sparse.data + added), self.left, self.right)

    @cached_property
    def _products_of_left(self) -> tuple[Doubles, Doubles]:
        """S'L, n x k, and L'L."""
        return np.asarray(self._sparse.T.dot(self.left), dtype=np.float64), self.left.T @ self.left

    def gram_rows(self, indices: Indices) -> Doubles:
        """Rows of (S + LR')'(S + LR') = S'S + (S'L) R' + R (S'L + R L'L)', from products with L alone."""
        images, gram = self._products_of_left
        rows = self._sparse.gram_rows(indices)
        rows += images[indices] @ self.right.T
        rows += self.right[indices] @ (images + self.right @ gram).T
        return rows

    def gram(self, indices: Indices) -> Doubles:  # noqa: D102
        return np.ascontiguousarray(self.gram_rows(indices)[:, indices])

    @cached_property
    def squared_column_norms(self) -> Doubles:
        """|s_j|^2 + 2 r_j'L's_j + r_j'L'L r_j, or zero if rounding makes it negative."""
        images, gram = self._products_of_left
        mixed = np.einsum("jk,jk->j", self.right, 2.0 * images + self.right @ gram)
        squares = self._sparse.squared_column_norms
        norms = squares + mixed
        return np.where(norms > 1e-14 * (squares + np.abs(mixed)), norms, 0.0)

    @cached_property
    def column_sums(self) -> Doubles:
        """Sums of the columns, not below zero."""
        return np.asarray(np.maximum(self._sparse.column_sums + self.right @ self.left.sum(axis=0), 0.0))


def filled_sum(values: sp.csr_array, corrections: Doubles, left: Doubles, right: Doubles) -> LowRankSum:
    """The low-rank matrix L R' plus ``corrections`` at the stored entries of ``values``."""
    return LowRankSum(sp.csr_array((corrections, values.indices, values.indptr), shape=values.shape), left, right)

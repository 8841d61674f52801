"""Products and sums of sparse matrices on all cores, accumulated in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles, Floats

_sparse_dot_rows, _sparse_gram_rows = Loop(native.sparse_dot_rows), Loop(native.sparse_gram_rows)
_column_sums = Loop(native.column_sums)


def sparse_dot(matrix: sp.csr_array, block: Floats) -> Floats:
    """Product of an m x n sparse matrix by rows with a dense vector or an n x k block, in the precision of the block.

    Each entry of the product is summed in double precision, in the order in which the entries of a row are stored, so
    neither the number of threads nor the memory order of the block changes the result. A block in Fortran order is
    copied.

    Examples
    --------
    >>> sparse_dot(sp.csr_array([[1.0, 0.0], [2.0, 3.0]]), np.array([1.0, 2.0]))
    array([1., 8.])
    """
    width = 1 if block.ndim == 1 else block.shape[1]
    product = np.empty((matrix.shape[0], width), dtype=block.dtype)
    right = np.ascontiguousarray(block.reshape(-1, width))
    if len(right) != matrix.shape[1]:  # the kernel trusts the column indices of the matrix
        raise ValueError(f"a matrix of shape {matrix.shape} cannot be multiplied with one of shape {block.shape}.")
    _sparse_dot_rows(*_arrays(matrix), right, product, work=2 * matrix.nnz * width)
    return product[:, 0] if block.ndim == 1 else product


def sparse_gram_rows(chosen: sp.csc_array, matrix: sp.csr_array) -> Doubles:
    """The product A'B of sparse matrices, A held by columns and B by rows, as a dense array."""
    if chosen.shape[0] != matrix.shape[0]:
        raise ValueError(f"matrices must have the same number of rows; got shapes {chosen.shape} and {matrix.shape}.")
    product = np.zeros((chosen.shape[1], matrix.shape[1]))
    work = 2 * chosen.nnz * (matrix.nnz / max(1, matrix.shape[0]))
    _sparse_gram_rows(*_arrays(chosen, matrix), *_arrays(matrix, chosen), product, work=work)
    return product


def sparse_column_sums(matrix: sp.csr_array | sp.csc_array, *, squared: bool = False) -> Doubles:
    """Sum of the entries, or of their squares, in every column, whether the matrix is held by rows or by columns.

    Examples
    --------
    >>> M = sp.csr_array([[3.0, 0.0], [4.0, 2.0]])
    >>> sparse_column_sums(M), sparse_column_sums(M.tocsc(), squared=True)
    (array([7., 2.]), array([25.,  4.]))
    """
    sums = np.zeros(matrix.shape[1])
    indptr, indices, data = _arrays(matrix)
    if matrix.format == "csr":
        native.add_entries(indices, data, squared, sums)
    else:
        _column_sums(indptr, indices, data, squared, sums, work=matrix.nnz)
    return sums


def _arrays(matrix: sp.csr_array | sp.csc_array, *others: sp.csr_array | sp.csc_array) -> tuple[NDArray[Any], ...]:
    """Pointers, indices and data in the types of the kernels, which are those that suit the other matrices too."""
    index, value = np.dtype(np.int32), np.dtype(np.float32)
    for one in (matrix, *others):
        index = np.promote_types(index, np.promote_types(one.indptr.dtype, one.indices.dtype))
        value = np.promote_types(value, one.data.dtype)
    pointers = (np.ascontiguousarray(array, dtype=index) for array in (matrix.indptr, matrix.indices))
    return (*pointers, np.ascontiguousarray(matrix.data, dtype=value))

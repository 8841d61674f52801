"""Products of sparse matrices on all cores, accumulated in double precision.

Index arrays may be of 32 or 64 bits. Compiled loops read them as unsigned numbers. Otherwise Numba would check each
index for a negative sign, which takes longer than the multiplication.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import loop
from gsnmf._parallel import is_small
from gsnmf.support.arrays import Doubles, Floats

_NARROW = 8
"""A block with fewer columns than this is summed four columns at a time, or one: shorter vectors do not pay off."""


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
    work = 2 * matrix.nnz * width
    if is_small(work):  # too little work to compile anything for
        exact = matrix.astype(np.float64, copy=False) @ block.astype(np.float64, copy=False)
        return np.asarray(exact, dtype=block.dtype)
    product = np.empty((matrix.shape[0], width), dtype=block.dtype)
    right = np.ascontiguousarray(block.reshape(-1, width))
    _dot_rows(matrix.indptr, matrix.indices, matrix.data, right, product, work=work)
    return product[:, 0] if block.ndim == 1 else product


def sparse_gram_rows(chosen: sp.csc_array, matrix: sp.csr_array) -> Doubles:
    """The product A'B of sparse matrices, A held by columns and B by rows, as a dense array."""
    product = np.zeros((chosen.shape[1], matrix.shape[1]))
    work = 2 * chosen.nnz * (matrix.nnz / max(1, matrix.shape[0]))
    left = chosen.indptr, chosen.indices, chosen.data
    _scatter_rows(*left, matrix.indptr, matrix.indices, matrix.data, product, work=work)
    return product


def sparse_column_sums(matrix: sp.csr_array | sp.csc_array, *, squared: bool = False) -> Doubles:
    """Sum of the entries, or of their squares, in every column, whether the matrix is held by rows or by columns.

    Examples
    --------
    >>> M = sp.csr_array([[3.0, 0.0], [4.0, 2.0]])
    >>> sparse_column_sums(M), sparse_column_sums(M.tocsc(), squared=True)
    (array([7., 2.]), array([25.,  4.]))
    """
    if is_small(matrix.nnz):  # too little work to compile anything for
        entries = np.square(matrix.data, dtype=np.float64) if squared else matrix.data.astype(np.float64)
        weighted = type(matrix)((entries, matrix.indices, matrix.indptr), shape=matrix.shape)
        return np.asarray(np.ones(matrix.shape[0]) @ weighted)
    sums = np.zeros(matrix.shape[1])
    if matrix.format == "csr":
        _add_entries(matrix.indices, matrix.data, squared, sums)
    else:
        _sum_columns(matrix.indptr, matrix.data, squared, sums, work=matrix.nnz)
    return sums


@compiled()
def _add_entries(indices: Any, data: Any, squared: bool, sums: Doubles) -> None:
    for q in range(data.size):
        entry = np.float64(data[q])
        sums[np.uint64(indices[q])] += entry * entry if squared else entry


@loop()
def _sum_columns(indptr: Any, data: Any, squared: bool, sums: Doubles, part: int, n_parts: int) -> None:
    for j in range(sums.size * part // n_parts, sums.size * (part + 1) // n_parts):
        total = 0.0
        for q in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            entry = np.float64(data[q])
            total += entry * entry if squared else entry
        sums[j] = total


@compiled(inner=True)
def _first_row(indptr: Any, part: int, n_parts: int) -> int:
    """The row at which a part begins, if all parts are to have about the same number of stored entries."""
    goal = indptr[indptr.size - 1] * part // n_parts
    low, high = 0, indptr.size - 1
    while low < high:
        middle = (low + high) // 2
        if indptr[middle] < goal:
            low = middle + 1
        else:
            high = middle
    return low if part < n_parts else indptr.size - 1


@compiled(inner=True)
def _dot_four(start: Any, end: Any, indices: Any, data: Any, block: Floats, product: Floats) -> None:
    """One row of a product with four columns, whose sums stay in registers."""
    first = second = third = fourth = 0.0
    for q in range(start, end):
        factor, j = np.float64(data[q]), np.uint64(indices[q])
        first += factor * np.float64(block[j, 0])
        second += factor * np.float64(block[j, 1])
        third += factor * np.float64(block[j, 2])
        fourth += factor * np.float64(block[j, 3])
    product[0], product[1], product[2], product[3] = first, second, third, fourth


@loop()
def _dot_rows(indptr: Any, indices: Any, data: Any, block: Floats, product: Floats, part: int, n_parts: int) -> None:
    width = block.shape[1]
    sums = np.empty(width)
    for i in range(_first_row(indptr, part, n_parts), _first_row(indptr, part + 1, n_parts)):
        start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        if 4 <= width < _NARROW:  # the two groups overlap, and agree where they do
            _dot_four(start, end, indices, data, block[:, :4], product[i, :4])
            if width > 4:
                _dot_four(start, end, indices, data, block[:, width - 4 :], product[i, width - 4 :])
            continue
        if width < _NARROW:
            for k in range(width):
                total = 0.0
                for q in range(start, end):
                    total += np.float64(data[q]) * np.float64(block[np.uint64(indices[q]), k])
                product[i, k] = total
            continue
        for k in range(width):
            sums[k] = 0.0
        for q in range(start, end):
            factor, row = np.float64(data[q]), block[np.uint64(indices[q])]
            for k in range(width):
                sums[k] += factor * np.float64(row[k])
        for k in range(width):
            product[i, k] = sums[k]


@loop()
def _scatter_rows(
    starts: Any,
    targets: Any,
    factors: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    product: Doubles,
    first: int,
    stride: int,
) -> None:
    for row in range(first, product.shape[0], stride):
        out = product[row]
        for k in range(np.uint64(starts[row]), np.uint64(starts[row + 1])):
            factor, i = np.float64(factors[k]), np.uint64(targets[k])
            for q in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                out[np.uint64(indices[q])] += factor * np.float64(data[q])

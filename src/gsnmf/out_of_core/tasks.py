"""What the tasks of a pass do with a chunk of a Dask array and the parts of vectors that belong to it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gsnmf.out_of_core.arrays import extracted
from gsnmf.out_of_core.passes import only
from gsnmf.products import BLOCK_BYTES, DenseProducts, SparseProducts, dense
from gsnmf.validation import Floats, Indices, Matrix, Sparse, check_matrix


def orthonormal(block: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Q and R of a QR factorization, both as wide as the block, whose R has no negative number on its diagonal."""
    factor, triangle = np.linalg.qr(block)
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    missing = block.shape[1] - signs.size  # more columns than they have entries
    return np.pad(factor * signs, ((0, 0), (0, missing))), np.pad(triangle * signs[:, None], ((0, missing), (0, 0)))


def scaled_columns(block: Floats, *, order: Indices, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns in their own order and unit length."""
    return np.asarray(block[:, order] / lengths, dtype=np.float64)


def chunk_triangle(block: Any) -> NDArray[np.float64]:
    """R of a QR factorization of a chunk."""
    return orthonormal(only(block))[1][None]


def chunk_basis(block: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of Q, of a QR factorization of all chunks, that belongs to one, from the part of its triangle."""
    return np.asarray(orthonormal(block)[0] @ factor)


def product(block: Matrix, vectors: Floats, *, across: bool) -> NDArray[np.float64]:
    """A chunk, or its transpose, times the part of a block of vectors that belongs to it."""
    product = (block.T if across else block) @ vectors.astype(np.float64, copy=False)
    return np.expand_dims(np.asarray(product, dtype=np.float64), 0 if across else 1)


def there_and_back(block: Matrix, vector: Any, basis: Any, *, coefficients: Floats) -> tuple[Floats, Floats]:
    """X = M y - U c and M'x, for a chunk with all columns."""
    x = less(product(block, only(vector), across=False)[:, 0], only(basis), coefficients=coefficients)
    return x, product(block, x, across=True)


def less(block: Floats, basis: Floats, *, coefficients: Floats, length: float = 1.0) -> Floats:
    """A column less its part in a basis, over its length."""
    return np.asarray((block - (basis @ coefficients)[:, None]) / length)


def extracted_with_product(block: Matrix, *, indices: Indices, across: bool) -> tuple[Floats, NDArray[np.float64]]:
    """Columns, or rows, of a chunk, as dense columns, and their products with all."""
    chosen = extracted(block, indices=indices, across=across)
    return chosen, product(block, chosen, across=not across)


def residual_norms(block: Matrix, indices: Indices, W: Floats, H: Floats, *, across: bool) -> NDArray[np.float64]:
    """A chunk's part of the squared norms of columns, or rows, of M - W H."""
    side = block.T if across else block
    side = side if isinstance(side, np.ndarray) else side.tocsc()
    norms = np.zeros(indices.size)
    step = max(1, BLOCK_BYTES // (8 * max(1, side.shape[0])))
    for start in range(0, indices.size, step):
        part = slice(start, start + step)
        residual = dense(side[:, indices[part]]) - W @ H[part].T
        norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
    return norms[:, None] if across else norms[None]


def row_residual_norms(block: Matrix, rows: NDArray[np.bool_], W: Floats, H: Floats) -> NDArray[np.float64]:
    """A chunk's part of the squared norms of some rows of M - W H; zero for the others."""
    norms = np.zeros((rows.size, 1))
    if rows.any():
        wanted = np.flatnonzero(rows)
        norms[wanted] = residual_norms(block, wanted, H, W[wanted], across=True)
    return norms


def squared_residual(block: Matrix, W: Floats, H: Floats) -> NDArray[np.float64]:
    """A chunk's part of the squared norm of M - W H."""
    if min(block.shape) == 0:
        return np.zeros((1, 1))
    if isinstance(block, np.ndarray):
        return np.full((1, 1), DenseProducts(block).squared_residual(W, H.T))
    return np.full((1, 1), SparseProducts(cast("Sparse", check_matrix(block))).squared_residual(W, H.T))


def square(block: Floats, *_: Any) -> NDArray[np.float64]:
    """A chunk's part of a Gram matrix."""
    double = block.astype(np.float64, copy=False)
    return np.asarray((double.T @ double)[None])

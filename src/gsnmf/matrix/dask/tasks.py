"""What the tasks of a pass do with a chunk of a Dask array and the parts of vectors that belong to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gsnmf.matrix.dask.arrays import extracted
from gsnmf.matrix.dask.passes import single_chunk
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.protocol import BLOCK_BYTES, dense, sketch_vectors
from gsnmf.matrix.validation import canonical
from gsnmf.support.arrays import Axis, Doubles, Flags, Floats, Indices, RawMatrix


def orthonormal(block: Doubles) -> tuple[Doubles, Doubles]:
    """Q and R of a QR factorization, both as wide as the block, whose R has no negative number on its diagonal."""
    factor, triangle = np.linalg.qr(block)
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    missing = block.shape[1] - signs.size  # more columns than rows
    return np.pad(factor * signs, ((0, 0), (0, missing))), np.pad(triangle * signs[:, None], ((0, missing), (0, 0)))


def scaled_columns(block: Floats, *, order: Indices, lengths: Doubles) -> Doubles:
    """Columns in their original order, at unit length."""
    return np.asarray(block[:, order] / lengths, dtype=np.float64)


def chunk_triangle(block: Any) -> Doubles:
    """R of a QR factorization of a chunk."""
    return orthonormal(single_chunk(block))[1][None]


def chunk_basis(block: Doubles, factor: Doubles) -> Doubles:
    """The part of Q, of a QR factorization of all chunks, that belongs to one, from the part of its triangle."""
    return np.asarray(orthonormal(block)[0] @ factor)


def sketch(products: Doubles, positions: Indices, *, axis: Axis) -> Doubles:
    """The part of x'My that belongs to some rows, from their part of M y."""
    return np.asarray(np.einsum("ik,ik->k", sketch_vectors(positions, axis), products))


def product(block: RawMatrix, vectors: Floats, *, transposed: bool) -> Doubles:
    """A chunk, or its transpose, times the part of a block of vectors that belongs to it."""
    product = (block.T if transposed else block) @ vectors.astype(np.float64, copy=False)
    return np.expand_dims(np.asarray(product, dtype=np.float64), 0 if transposed else 1)


def there_and_back(block: RawMatrix, vector: Any, basis: Any, *, coefficients: Floats) -> tuple[Floats, Floats]:
    """X = M y - U c and M'x, for a chunk with all columns."""
    x = without_basis(
        product(block, single_chunk(vector), transposed=False)[:, 0], single_chunk(basis), coefficients=coefficients
    )
    return x, product(block, x, transposed=True)


def without_basis(block: Floats, basis: Floats, *, coefficients: Floats, length: float = 1.0) -> Floats:
    """A column minus its part in a basis, divided by its length."""
    return np.asarray((block - (basis @ coefficients)[:, None]) / length)


def extracted_with_product(block: RawMatrix, *, indices: Indices, transposed: bool) -> tuple[Floats, Doubles]:
    """Columns (or rows) of a chunk as dense columns, and their products with all columns (rows)."""
    chosen = extracted(block, indices=indices, transposed=transposed)
    return chosen, product(block, chosen, transposed=not transposed)


def residual_norms(block: RawMatrix, indices: Indices, W: Floats, H: Floats, *, transposed: bool) -> Doubles:
    """A chunk's part of the squared norms of columns, or rows, of M - W H."""
    side = block.T if transposed else block
    side = side if isinstance(side, np.ndarray) else side.tocsc()
    norms = np.zeros(indices.size)
    step = max(1, BLOCK_BYTES // (8 * max(1, side.shape[0])))
    for start in range(0, indices.size, step):
        part = slice(start, start + step)
        residual = dense(side[:, indices[part]]) - W @ H[part].T
        norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
    return norms[:, None] if transposed else norms[None]


def row_residual_norms(block: RawMatrix, rows: Flags, W: Floats, H: Floats) -> Doubles:
    """A chunk's part of the squared norms of some rows of M - W H; zero for the others."""
    norms = np.zeros((rows.size, 1))
    if rows.any():
        wanted = np.flatnonzero(rows)
        norms[wanted] = residual_norms(block, wanted, H, W[wanted], transposed=True)
    return norms


def squared_residual(block: RawMatrix, W: Floats, H: Floats) -> Doubles:
    """A chunk's part of the squared norm of M - W H."""
    if min(block.shape) == 0:
        return np.zeros((1, 1))
    checked = block if isinstance(block, np.ndarray) else canonical(block)
    return np.full((1, 1), hold(checked, largest=1.0).squared_residual(W, H.T))  # chunks are in a safe unit already


def square(block: Floats, *_: Any) -> Doubles:
    """A chunk's part of a Gram matrix."""
    double = block.astype(np.float64, copy=False)
    return np.asarray((double.T @ double)[None])

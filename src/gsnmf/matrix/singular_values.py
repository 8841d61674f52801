"""Leading singular values and vectors of a matrix in memory."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, svds

from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.support.arrays import Floats

_WHOLE = 300
"""If the smaller dimension is at most this, the full decomposition is as fast as a leading part."""

_MANY = 0.3
"""From this fraction of the smaller dimension on, the full decomposition is faster."""

_MAX_BYTES = 1 << 31
"""Largest dense copy of a sparse matrix that is made without an explicit request, in bytes."""


def singular_triplets(matrix: InMemoryMatrix, rank: int) -> tuple[Floats, Floats, Floats]:
    """Leading left singular vectors (m x r), singular values in decreasing order, right vectors (n x r)."""
    m, n = matrix.shape
    if matrix.squared_norm == 0:
        kind = matrix.dtype
        return np.eye(m, rank, dtype=kind), np.zeros(rank, dtype=kind), np.eye(n, rank, dtype=kind)
    if min(m, n) <= _WHOLE or rank > _MANY * min(m, n):
        whole = linalg.svd(dense_copy(matrix), full_matrices=False, overwrite_a=True, check_finite=False)
        return whole[0][:, :rank], whole[1][:rank], whole[2][:rank].T
    operator = LinearOperator(
        matrix.shape,
        matvec=lambda x: matrix.dot(x.ravel()),
        rmatvec=lambda x: matrix.T.dot(x.ravel()),
        matmat=matrix.dot,
        rmatmat=matrix.T.dot,
        dtype=matrix.dtype,
    )
    start = np.random.default_rng(0).random(min(m, n)).astype(matrix.dtype)
    triplets: tuple[Floats, Floats, Floats] = svds(operator, k=rank, v0=start)
    U, values, Vt = triplets
    order = np.argsort(values)[::-1]
    return U[:, order], values[order], Vt[order].T


def dense_copy(matrix: InMemoryMatrix, max_bytes: float = _MAX_BYTES) -> Floats:
    """All of the matrix as a dense array, or an error that says how large it would be."""
    n_bytes = matrix.shape[0] * matrix.shape[1] * matrix.dtype.itemsize
    if n_bytes > max_bytes:
        raise ValueError(
            f"The whole decomposition of a matrix of shape {matrix.shape} needs a dense copy of "
            f"{n_bytes / 2**30:.1f} GiB, above the limit of {max_bytes / 2**30:.1f} GiB; ask for a smaller rank."
        )
    return matrix.columns(np.arange(matrix.shape[1]))

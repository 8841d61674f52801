r"""Approximations of low rank without signs: truncated SVD, CUR, pseudo-skeleton.

The truncated singular value decomposition is the best approximation of its rank, and so a bound on the quality of
every factorization of that rank. CUR and the pseudo-skeleton approximate a matrix from its own columns
C = M(:, columns) and rows R = M(rows, :), as generalized separable factorization does, but by a product with a matrix
of any sign between them,

.. math:: M \approx C\, U\, R,

where CUR takes the U with the smallest error, :math:`U = C^+ M R^+`, and the skeleton the inverse of the block in
which the columns and rows meet, :math:`U = M(\mathrm{rows}, \mathrm{columns})^{-1}`, which needs no other entry of
M. Both are exact when columns and rows span those of M.

References
----------
M. W. Mahoney, P. Drineas, CUR matrix decompositions for improved data analysis, PNAS 106 (2009),
doi:10.1073/pnas.0803205106.
S. A. Goreinov, E. E. Tyrtyshnikov, N. L. Zamarashkin, A theory of pseudoskeleton approximations, Linear Algebra and
its Applications 261 (1997), doi:10.1016/S0024-3795(96)00301-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, svds

from gsnmf.matrices.checks import check_count, check_indices, check_matrix
from gsnmf.matrices.protocol import Matrix, wrap
from gsnmf.nmf.results import CURResult, SVDResult
from gsnmf.support.arrays import Floats, Indices

_WHOLE = 300
"""Up to this smaller dimension the whole decomposition is as fast as the leading part of it."""

_MANY = 0.3
"""From this part of the smaller dimension on, the whole decomposition is faster."""

_MAX_BYTES = 1 << 31
"""Largest dense copy of a sparse matrix that is made without being asked for."""


def truncated_svd(matrix: Any, rank: Any) -> SVDResult:
    r"""The best approximation of a given rank: the leading singular values and vectors.

    .. math:: \min_{\mathrm{rank}(A) \le r} \|M - A\|_F, \qquad A = U \Sigma V^T = W H

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32.
    rank : int
        In [1, min(m, n)].

    Returns
    -------
    SVDResult
        With W = U diag(singular_values) and H = V'.

    Notes
    -----
    The leading part is found by a Lanczos method (ARPACK) from products with M alone. Where the smaller dimension is at
    most 300, or the rank more than 0.3 times it, the whole decomposition is computed instead; a sparse matrix is made
    dense for that, but refused beyond 2 GiB.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import truncated_svd
    >>> result = truncated_svd(np.diag([3.0, 2.0, 1.0]), 2)
    >>> result.singular_values
    array([3., 2.])
    >>> round(result.relative_error**2, 6) == round(1 / 14, 6)
    True
    """
    checked = check_matrix(matrix)
    limit = min(checked.shape)
    rank = check_count(rank, "rank")
    if rank > limit:
        raise ValueError(f"rank must be in [1, {limit}] for the SVD of a matrix of shape {checked.shape}; got {rank}.")
    held = wrap(checked)
    U, values, V = singular_triplets(held, rank)
    W = U * values
    explained = float(np.vdot(values.astype(np.float64), values.astype(np.float64)))
    return SVDResult(
        W=np.ldexp(W, held.exponent),
        H=V.T,
        relative_error=_relative_error(held, explained, W, V.T),
        n_iterations=1,
        converged=True,
        singular_values=np.ldexp(values, held.exponent),
    )


def cur(
    matrix: Any,
    columns: Any = None,
    rows: Any = None,
    *,
    rank: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> CURResult:
    r"""CUR decomposition: chosen columns and rows, and the matrix between them with the smallest error.

    .. math:: \min_U \|M - C U R\|_F, \qquad U = C^+ M R^+

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense.
    columns, rows : sequences of int, optional
        Which ones to take, for example those of a `gsnmf.Selection`. Those left out are drawn without replacement, with
        probabilities proportional to their leverage scores: the squared row norms of the leading ``rank`` right (left)
        singular vectors.
    rank : int, optional
        How many to draw; needed if ``columns`` or ``rows`` is left out.
    random_state : int, numpy.random.Generator or None
        Seed of the draw.

    Returns
    -------
    CURResult
        With W = C U and H = R.

    Notes
    -----
    C and R may be rank deficient. The error is that of the projection on the columns of C and the rows of R, which
    C U R reaches up to the rounding that a nearly singular C or R brings.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import cur
    >>> matrix = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]])
    >>> cur(matrix, columns=[0, 1], rows=[0, 1]).relative_error < 1e-12
    True
    """
    checked = check_matrix(matrix)
    held = wrap(checked)
    m, n = checked.shape
    if columns is None or rows is None:
        if rank is None:
            raise ValueError("rank must be given if columns or rows are left out: it says how many to draw.")
        limit = min(m, n)
        rank = check_count(rank, "rank")
        if rank > limit:
            raise ValueError(f"rank must be in [1, {limit}] to draw from a matrix of shape {(m, n)}; got {rank}.")
        rng = np.random.default_rng(random_state)
        U, _, V = singular_triplets(held, rank)
        columns = _draw(V, rank, rng) if columns is None else columns
        rows = _draw(U, rank, rng) if rows is None else rows
    columns, rows = check_indices(columns, n, "columns"), check_indices(rows, m, "rows")
    left, left_inverse = _basis_and_inverse(held.columns(columns))
    right, right_inverse = _basis_and_inverse(held.T.columns(rows))
    core = left.T @ held.dot(right)
    explained = float(np.vdot(core.astype(np.float64), core.astype(np.float64)))
    return CURResult(
        W=left @ (core @ right_inverse.T),
        H=np.ldexp(held.T.columns(rows).T, held.exponent),
        relative_error=_relative_error(held, explained, left @ core, right.T),
        n_iterations=1,
        converged=True,
        columns=columns,
        rows=rows,
        U=np.ldexp(left_inverse @ core @ right_inverse.T, -held.exponent),
    )


def skeleton(matrix: Any, columns: Any, rows: Any) -> CURResult:
    r"""Pseudo-skeleton approximation: chosen columns and rows and the inverse of the block in which they meet.

    .. math:: M \approx C\, M(\mathrm{rows}, \mathrm{columns})^{-1} R

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense.
    columns, rows : sequences of int
        Which ones to take, at least one each. If their numbers differ, or the block is singular to working precision,
        its pseudo-inverse takes the place of the inverse.

    Returns
    -------
    CURResult
        With W = C U and H = R. The error can be larger than that of zero if the block is nearly singular.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import skeleton
    >>> matrix = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]])
    >>> skeleton(matrix, columns=[0, 1], rows=[1, 2]).relative_error < 1e-12
    True
    """
    checked = check_matrix(matrix)
    m, n = checked.shape
    columns, rows = check_indices(columns, n, "columns"), check_indices(rows, m, "rows")
    if not columns.size or not rows.size:
        raise ValueError(f"columns and rows must have at least one index each; got {columns.size} and {rows.size}.")
    held = wrap(checked)
    C, R = held.columns(columns), held.T.columns(rows).T
    U = np.asarray(linalg.pinv(C[rows]), dtype=held.dtype)
    W = C @ U
    squared_error = held.squared_residual(W, R)
    return CURResult(
        W=W,
        H=np.ldexp(R, held.exponent),
        relative_error=_root_ratio(squared_error, held.squared_norm),
        n_iterations=1,
        converged=True,
        columns=columns,
        rows=rows,
        U=np.ldexp(U, -held.exponent),
    )


def singular_triplets(matrix: Matrix, rank: int) -> tuple[Floats, Floats, Floats]:
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


def dense_copy(matrix: Matrix, max_bytes: float = _MAX_BYTES) -> Floats:
    """All of the matrix as a dense array, or an error that says how large it would be."""
    n_bytes = matrix.shape[0] * matrix.shape[1] * matrix.dtype.itemsize
    if n_bytes > max_bytes:
        raise ValueError(
            f"The whole decomposition of a matrix of shape {matrix.shape} needs a dense copy of "
            f"{n_bytes / 2**30:.1f} GiB, above the limit of {max_bytes / 2**30:.1f} GiB; ask for a smaller rank."
        )
    return matrix.columns(np.arange(matrix.shape[1]))


def _draw(vectors: Floats, count: int, rng: np.random.Generator) -> Indices:
    """Positions drawn by leverage, fewer than ``count`` if not so many have any."""
    scores = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    size = min(count, int(np.count_nonzero(scores)))
    return rng.choice(scores.size, size=size, replace=False, p=scores / scores.sum())


def _basis_and_inverse(block: Floats) -> tuple[Floats, Floats]:
    """Orthonormal Q with the range of the block, and B with pinv(block) = B Q'."""
    if block.shape[1] == 0:
        return block, np.zeros((0, 0), dtype=block.dtype)
    U, values, Vt = linalg.svd(block, full_matrices=False, check_finite=False)
    kept = values > values[0] * max(block.shape) * np.finfo(block.dtype).eps
    return U[:, kept], Vt[kept].T / values[kept]


def _relative_error(matrix: Matrix, explained: float, W: Floats, H: Floats) -> float:
    """Of a projection W H of the matrix with the squared norm ``explained``."""
    squared_error = matrix.squared_norm - explained
    if squared_error < np.sqrt(np.finfo(matrix.dtype).eps) * matrix.squared_norm:  # the difference has lost its digits
        squared_error = matrix.squared_residual(W, H)
    return _root_ratio(squared_error, matrix.squared_norm)


def _root_ratio(squared: float, scale: float) -> float:
    return float(np.sqrt(squared / scale)) if scale > 0 else 0.0

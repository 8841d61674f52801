r"""Low-rank approximations of any sign: truncated SVD, CUR, pseudo-skeleton.

The truncated singular value decomposition is the best approximation of its rank, and so a bound on the quality of
every factorization of that rank. CUR and the pseudo-skeleton approximate a matrix from its own columns
C = M(:, columns) and rows R = M(rows, :), as generalized separable factorization does, but with a matrix of any sign
between them,

.. math:: M \approx C\, U\, R,

where CUR takes the U with the smallest error, :math:`U = C^+ M R^+`, and the skeleton the inverse of the block where
the columns and rows cross, :math:`U = M(\mathrm{rows}, \mathrm{columns})^{-1}`, which needs no other entry of M. Both
are exact when columns and rows span those of M.

References
----------
M. W. Mahoney, P. Drineas, CUR matrix decompositions for improved data analysis, PNAS 106 (2009),
doi:10.1073/pnas.0803205106.
S. A. Goreinov, E. E. Tyrtyshnikov, N. L. Zamarashkin, A theory of pseudoskeleton approximations, Linear Algebra and
its Applications 261 (1997), doi:10.1016/S0024-3795(96)00301-1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import linalg

from gsnmf.io import load_record, save_record
from gsnmf.matrix import InMemoryMatrix, wrap_in_memory
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.singular_values import singular_triplets
from gsnmf.matrix.validation import check_count, check_indices
from gsnmf.records import Record
from gsnmf.support.arrays import Floats, Indices
from gsnmf.support.formatting import ShownAsTable, Table

_N_STRONGEST = 8
"""Columns and rows of each factor that a table shows."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LowRankResult(ShownAsTable, Record):
    """A matrix approximated by a product, M ~ W H.

    Attributes
    ----------
    W : array, shape (m, r)
    H : array, shape (r, n)
    relative_error : float
        ||M - W H||_F / ||M||_F; zero for a zero matrix.
    n_iterations : int
    converged : bool
        Whether the optimality conditions hold to the tolerance.

    Examples
    --------
    >>> from gsnmf.nmf import truncated_svd
    >>> result = truncated_svd([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result
    SVDResult: 3 x 3 by 2 factors, quality 90.42 %
    >>> result.W.shape, result.H.shape
    ((3, 2), (2, 3))
    """

    W: Floats
    H: Floats
    relative_error: float
    n_iterations: int = 1
    converged: bool = True

    @property
    def quality(self) -> float:
        """One minus the relative error."""
        return 1.0 - self.relative_error

    @property
    def table(self) -> Table:
        """One row per factor: its part of the sum of all norms, and the columns and rows in which it is strongest."""
        sizes = np.linalg.norm(self.W, axis=0) * np.linalg.norm(self.H, axis=1)
        shares = sizes / (sizes.sum() or 1.0)
        columns, rows = (np.argsort(-np.abs(side), kind="stable")[:, :_N_STRONGEST] for side in (self.H, self.W.T))
        parts = zip(shares, columns, rows, strict=True)
        lines = tuple(
            (k, float(share), tuple(js.tolist()), tuple(i.tolist())) for k, (share, js, i) in enumerate(parts)
        )
        return Table(("factor", "share", "columns", "rows"), lines, repr(self))

    @classmethod
    def saved_format(cls) -> str:
        """What a file says that it holds."""
        return f"gsnmf {cls.__name__}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to an ``.npz`` file, without pickle; `load` and `gsnmf.load` read it."""
        save_record(self, path, format=self.saved_format())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a result that `save` wrote."""
        return load_record(cls, path, format=cls.saved_format(), kind=f"a result of the kind {cls.__name__}")

    def check(self) -> None:
        """Raise a ValueError if the factors do not fit together, as they may in a forged file."""
        if self.W.ndim != 2 or self.H.ndim != 2 or self.W.shape[1] != self.H.shape[0]:
            raise ValueError(f"W and H must be (m, r) and (r, n); got shapes {self.W.shape} and {self.H.shape}")

    def __repr__(self) -> str:
        (m, r), n = self.W.shape, self.H.shape[1]
        ended = "" if self.converged else f", not converged after {self.n_iterations} iterations"
        return f"{type(self).__name__}: {m} x {n} by {r} factors, quality {100 * self.quality:.4g} %{ended}"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SVDResult(LowRankResult):
    """A truncated singular value decomposition, W = U diag(singular_values) and H = V'.

    Attributes
    ----------
    singular_values : array, shape (r,)
        In decreasing order.

    Examples
    --------
    >>> from gsnmf.nmf import truncated_svd
    >>> truncated_svd([[3.0, 0.0], [0.0, 4.0]], 1).singular_values
    array([4.])
    """

    singular_values: Floats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CURResult(LowRankResult):
    """A matrix approximated from its own columns and rows, M ~ C U R: W = C U and H = R.

    Attributes
    ----------
    columns, rows : int arrays
        C = M[:, columns] and R = M[rows, :].
    U : array, shape (number of columns, number of rows)

    Examples
    --------
    >>> from gsnmf.nmf import cur
    >>> result = cur([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result.columns.size, result.rows.size, result.U.shape
    (2, 2, (2, 2))
    """

    columns: Indices
    rows: Indices
    U: Floats


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
    The leading part is found by a Lanczos method (ARPACK) from products with M alone. If the smaller dimension is at
    most 300, or the rank more than 0.3 times it, the full decomposition is computed instead; for that a sparse matrix
    is made dense, up to 2 GiB.

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
    held = wrap_in_memory(matrix)
    U, values, V = singular_triplets(held, _check_rank(rank, held, "for the SVD of"))
    W = U * values
    explained = float(np.vdot(values.astype(np.float64), values.astype(np.float64)))
    return SVDResult(
        W=np.ldexp(W, held.exponent),
        H=V.T,
        relative_error=_relative_error(held, explained, W, V.T),
        singular_values=np.ldexp(values, held.exponent),
    )


def cur(
    matrix: Any,
    rank: Any = None,
    *,
    columns: Any = None,
    rows: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> CURResult:
    r"""CUR decomposition: chosen columns and rows, and the matrix between them with the smallest error.

    .. math:: \min_U \|M - C U R\|_F, \qquad U = C^+ M R^+

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense.
    rank : int, optional
        How many columns and how many rows to draw; needed unless both are given.
    columns, rows : sequences of int, optional
        Which ones to take, for example those of a `gsnmf.Selection`. Those left out are drawn without replacement, with
        probabilities proportional to their leverage scores: the squared row norms of the leading ``rank`` right (left)
        singular vectors.
    random_state : int, numpy.random.Generator or None
        Seed of the draw.

    Returns
    -------
    CURResult
        With W = C U and H = R.

    Notes
    -----
    C and R may be rank deficient. The reported error is that of the projection on the columns of C and the rows of R. C
    U R reaches it up to the rounding caused by a nearly singular C or R.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.nmf import cur
    >>> matrix = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]])
    >>> cur(matrix, columns=[0, 1], rows=[0, 1]).relative_error < 1e-12
    True
    """
    held = wrap_in_memory(matrix)
    columns, rows = _chosen(held, rank, columns, rows, partial(_drawn, rng=np.random.default_rng(random_state)))
    left, left_inverse = _basis_and_inverse(held.columns(columns))
    right, right_inverse = _basis_and_inverse(held.T.columns(rows))
    core = left.T @ held.dot(right)
    explained = float(np.vdot(core.astype(np.float64), core.astype(np.float64)))
    return CURResult(
        W=left @ (core @ right_inverse.T),
        H=np.ldexp(held.T.columns(rows).T, held.exponent),
        relative_error=_relative_error(held, explained, left @ core, right.T),
        columns=columns,
        rows=rows,
        U=np.ldexp(left_inverse @ core @ right_inverse.T, -held.exponent),
    )


def skeleton(matrix: Any, rank: Any = None, *, columns: Any = None, rows: Any = None) -> CURResult:
    r"""Pseudo-skeleton approximation: chosen columns and rows and the inverse of the block where they cross.

    .. math:: M \approx C\, M(\mathrm{rows}, \mathrm{columns})^{-1} R

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse is never made dense.
    rank : int, optional
        How many columns and how many rows to choose; needed unless both are given.
    columns, rows : sequences of int, optional
        Which ones to take, at least one each. If their numbers differ, or the block is singular to working precision,
        its pseudo-inverse takes the place of the inverse. Those left out are the pivots of a QR factorization of the
        leading ``rank`` right (left) singular vectors, which keep the block far from singular.

    Returns
    -------
    CURResult
        With W = C U and H = R. The error can be larger than that of zero if the block is nearly singular.

    Examples
    --------
    >>> from gsnmf.nmf import skeleton
    >>> skeleton([[1, 0, 1], [0, 1, 1], [1, 1, 2]], columns=[0, 1], rows=[1, 2]).relative_error < 1e-12
    True
    """
    held = wrap_in_memory(matrix)
    columns, rows = _chosen(held, rank, columns, rows, _pivots)
    if not columns.size or not rows.size:
        raise ValueError(f"columns and rows must have at least one index each; got {columns.size} and {rows.size}.")
    C, R = held.columns(columns), held.T.columns(rows).T
    U = np.asarray(linalg.pinv(C[rows]), dtype=held.dtype)
    W = C @ U
    return CURResult(
        W=W,
        H=np.ldexp(R, held.exponent),
        relative_error=_root_ratio(held.squared_residual(W, R), held.squared_norm),
        columns=columns,
        rows=rows,
        U=np.ldexp(U, -held.exponent),
    )


def _check_rank(rank: Any, matrix: Matrix, purpose: str) -> int:
    """A rank of at most the smaller dimension."""
    limit, size = min(matrix.shape), check_count(rank, "rank")
    if size > limit:
        raise ValueError(f"rank must be in [1, {limit}] {purpose} a matrix of shape {matrix.shape}; got {size}.")
    return size


def _chosen(
    matrix: InMemoryMatrix, rank: Any, columns: Any, rows: Any, choose: Callable[[Floats], Indices]
) -> tuple[Indices, Indices]:
    """The given columns and rows, checked; those left out are chosen by the leading singular vectors."""
    if columns is None or rows is None:
        if rank is None:
            raise ValueError("rank must be given if columns or rows are left out: it says how many to choose.")
        U, _, V = singular_triplets(matrix, _check_rank(rank, matrix, "to choose from"))
        columns = choose(V) if columns is None else columns
        rows = choose(U) if rows is None else rows
    return check_indices(columns, matrix.shape[1], "columns"), check_indices(rows, matrix.shape[0], "rows")


def _pivots(vectors: Floats) -> Indices:
    """One position per vector, chosen greedily so that the vectors are as independent there as possible."""
    pivots = linalg.qr(vectors.T, mode="r", pivoting=True, check_finite=False)[1]
    return np.asarray(pivots[: vectors.shape[1]], dtype=np.intp)


def _drawn(vectors: Floats, rng: np.random.Generator) -> Indices:
    """One position per vector, drawn by leverage; fewer if fewer have any."""
    scores = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    size = min(vectors.shape[1], int(np.count_nonzero(scores)))
    return np.asarray(rng.choice(scores.size, size=size, replace=False, p=scores / scores.sum()), dtype=np.intp)


def _basis_and_inverse(block: Floats) -> tuple[Floats, Floats]:
    """Orthonormal Q with the range of the block, and B with pinv(block) = B Q'."""
    if block.shape[1] == 0:
        return block, np.zeros((0, 0), dtype=block.dtype)
    U, values, Vt = linalg.svd(block, full_matrices=False, check_finite=False)
    kept = values > values[0] * max(block.shape) * np.finfo(block.dtype).eps
    return U[:, kept], Vt[kept].T / values[kept]


def _relative_error(matrix: Matrix, explained: float, W: Floats, H: Floats) -> float:
    """Relative error of a projection W H of the matrix with the squared norm ``explained``."""
    squared_error = matrix.squared_norm - explained
    if squared_error < np.sqrt(np.finfo(matrix.dtype).eps) * matrix.squared_norm:  # the difference has lost its digits
        squared_error = matrix.squared_residual(W, H)
    return _root_ratio(squared_error, matrix.squared_norm)


def _root_ratio(squared: float, scale: float) -> float:
    return math.sqrt(squared / scale) if scale > 0 else 0.0

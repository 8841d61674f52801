r"""Fill the holes of a matrix by one of low rank, whose rank grows step by step.

.. math:: \min_{L, R} \; \tfrac12 \sum_{(i,j) \text{ observed}} w_{ij} (m_{ij} - l_i^T r_j)^2
    + \tfrac{\lambda}{2} (\|L\|_F^2 + \|R\|_F^2)

A low-rank fit from scratch ends in one of many poor local minima. Growing helps: the best fit of rank k plus the
leading singular pair of what it leaves is a good start for rank k + 1. At each rank, L and R are solved for in turn,
each exactly, one small least-squares problem per row and per column. For a matrix with equal weights that reaches what
truncated singular value decompositions of the filled matrix reach, in far fewer steps where much is missing. After
every round the factors are turned to those of a singular value decomposition, so that the penalty is that of the sum of
the singular values.

References
----------
T. Hastie, R. Mazumder, J. Lee, R. Zadeh, Matrix completion and low-rank SVD via fast alternating least squares, J.
Mach. Learn. Res. 16 (2015), https://jmlr.org/papers/v16/hastie15a.html.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gsnmf.kernels.observed_entries import residuals, ridge_rows
from gsnmf.kernels.sparse_products import sparse_dot
from gsnmf.kernels.threads import single_threaded_blas
from gsnmf.matrices.holding import hold
from gsnmf.matrices.in_memory import InMemoryMatrix
from gsnmf.matrices.low_rank_sum import filled_sum
from gsnmf.matrices.observed import Observed
from gsnmf.support.arrays import Doubles, Floats

_RIDGE = 1e-3
"""The penalty, as a part of the observed share of the largest singular value."""

_GROWING_ROUNDS = 5
"""Rounds of alternating at each rank but the last."""

_MAX_ROUNDS = 100
_SETTLED = 1e-4
"""The last rank is done when a round lowers the error on observed entries by less than this part."""

_POWER_STEPS = 8


@dataclass(frozen=True)
class Completion:
    """A low-rank matrix L R' fitted to the observed entries of another.

    Attributes
    ----------
    left, right : arrays, shape (m, k) and (n, k)
        L = U S^1/2 and R = V S^1/2 of a singular value decomposition U S V'.
    relative_error : float
        Weighted error on the observed entries, relative to their weighted norm.
    n_rounds : int
        Rounds of alternating at all ranks together.
    converged : bool
        Whether the last rank settled before the limit on rounds.
    """

    left: Doubles
    right: Doubles
    relative_error: float
    n_rounds: int
    converged: bool


def complete(observed: Observed, rank: int) -> Completion:
    """Fit a matrix of low rank to observed entries, the rank growing from one to ``rank``.

    Parameters
    ----------
    observed : Observed
    rank : int
        Ranks above the smaller dimension of the matrix are that dimension.

    Returns
    -------
    Completion
        Rows and columns without an observed entry are zero.

    Notes
    -----
    A round costs O(e r^2) operations for e observed entries. The result does not depend on random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrices.observed import observe
    >>> M = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 4.0])
    >>> M[0, 3] = np.nan
    >>> fitted = complete(observe(M, missing_values=np.nan), 1)
    >>> round(float(fitted.left[0] @ fitted.right[3]), 1)
    4.0
    """
    m, n = observed.shape
    left, right = np.zeros((m, 0)), np.zeros((n, 0))
    wanted, n_rounds, settled = min(rank, m, n), 0, True
    error = math.sqrt(observed.squared_norm)
    for k in range(1, wanted + 1):
        grown = _grown(observed, left, right)
        if grown is None:  # nothing is left to be fitted
            break
        left, right = grown
        most = _MAX_ROUNDS if k == wanted else _GROWING_ROUNDS
        settled = False
        for _ in range(most):
            left, right, reached = _round(observed, left, right)
            n_rounds += 1
            settled = reached >= (1.0 - _SETTLED) * error
            error = reached
            if settled:
                break
    norm = math.sqrt(observed.squared_norm)
    return Completion(left, right, error / norm if norm > 0 else 0.0, n_rounds, settled)


def filled(observed: Observed, completion: Completion) -> InMemoryMatrix:
    """The observed matrix with its holes filled, dense or as a `LowRankSum`, as the data was dense or sparse.

    An entry with weight w is w times itself plus (1 - w) times its completion, where the largest weight is one: that
    of a matrix with holes is itself, and that of a hole is the completion, which a dense matrix cuts off at zero.
    """
    left, right = completion.left, completion.right
    corrections = observed.relative_weights * residuals(observed.entries, left, right)
    if not observed.from_dense:
        return filled_sum(observed.values, corrections, left, right)
    dense = np.maximum(left @ right.T, 0.0)
    rows = np.repeat(np.arange(observed.shape[0]), np.diff(observed.values.indptr))
    places = rows, observed.values.indices
    weights = observed.relative_weights
    dense[places] = weights * observed.values.data + (1.0 - weights) * dense[places]
    return hold(dense.astype(observed.dtype, copy=False))


def _round(observed: Observed, left: Doubles, right: Doubles) -> tuple[Doubles, Doubles, float]:
    """L for given R, R for the new L, both balanced, and the error on the observed entries."""
    ridge = _RIDGE * observed.share * float(np.square(right).sum(axis=0).max()) * _mean_weight(observed)
    left = ridge_rows(observed.entries, right, ridge)
    right = ridge_rows(observed.T.entries, left, ridge)
    left, right = _balanced(left, right)
    return left, right, math.sqrt(observed.weighted_squares(residuals(observed.entries, left, right)))


def _mean_weight(observed: Observed) -> float:
    return 1.0 if observed.weights is None else float(observed.weights.mean(dtype=np.float64))


def _balanced(left: Doubles, right: Doubles) -> tuple[Doubles, Doubles]:
    """The same product, from factors U S^1/2 and V S^1/2 of its singular value decomposition."""
    with single_threaded_blas():
        (Q1, T1), (Q2, T2) = np.linalg.qr(left), np.linalg.qr(right)
        U, values, Vt = np.linalg.svd(T1 @ T2.T)
        scale = np.sqrt(values)
        return np.ascontiguousarray(Q1 @ (U * scale)), np.ascontiguousarray(Q2 @ (Vt.T * scale))


def _grown(observed: Observed, left: Doubles, right: Doubles) -> tuple[Doubles, Doubles] | None:
    """The factors with one more column each: the leading singular pair of what they leave at observed entries."""
    rest = observed.relative_weights * residuals(observed.entries, left, right)
    by_rows = sp.csr_array((rest, observed.values.indices, observed.values.indptr), shape=observed.shape)
    by_columns = by_rows.tocsc().T
    v: Floats = np.random.default_rng(0).random(observed.shape[1])
    for _ in range(_POWER_STEPS):
        u = sparse_dot(by_rows, v)
        length = float(np.linalg.norm(u))
        if not length > 0.0:
            return None
        v = sparse_dot(by_columns, u / length)
    value = float(np.linalg.norm(v))
    if not value > 0.0:
        return None
    scale = math.sqrt(value)
    return np.column_stack([left, u / length * scale]), np.column_stack([right, v / value * scale])

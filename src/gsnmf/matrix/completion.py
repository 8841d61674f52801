r"""Fill the holes of a matrix by one of low rank, whose rank grows step by step.

.. math:: \min_{L, R} \; \tfrac12 \sum_{(i,j) \text{ observed}} w_{ij} (m_{ij} - l_i^T r_j)^2
    + \tfrac{\lambda}{2} (\|L\|_F^2 + \|R\|_F^2)

A low-rank fit from scratch ends in one of many poor local minima. Growing helps: the best fit of rank k plus the
leading singular pair of what it leaves is a good start for rank k + 1. At each rank, L and R are solved for in turn,
each exactly, by one small least-squares problem per row and per column. With equal weights this reaches the same fit as
repeated truncated singular value decompositions of the filled matrix, in far fewer steps if much is missing. After
every round the factors are rotated to those of a singular value decomposition, so the penalty is the sum of the
singular values.

How strong the penalty has to be depends on the noise and on how few entries a row or column has. So a tenth of the
observed entries is set aside, and the penalty grows from almost zero as long as the error on them falls. With this
penalty the factors are then fitted to all observed entries.

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

from gsnmf._kernels.observed_entries import residuals, ridge_rows
from gsnmf._kernels.sparse_products import sparse_dot
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.in_memory import InMemoryMatrix, hold
from gsnmf.matrix.low_rank_sum import LowRankSum, filled_sum
from gsnmf.matrix.observed import Observed
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices

_PENALTIES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
"""Penalties to try, as fractions of the observed share of the largest singular value."""

_SET_ASIDE = 0.1
"""Share of the observed entries on which a penalty is judged."""

_GROWING_ROUNDS = 2
"""Alternating rounds at each rank but the last."""

_MAX_ROUNDS = 60
"""Limit on alternating rounds at the last rank, for each penalty."""

_SETTLED = 1e-4
_FINALLY_SETTLED = 1e-5
"""Factors are done when a round changes the error on observed entries by less than the first fraction, or, for the
last fit, by less than the second. Holes that few entries determine settle later than the error does."""

_POWER_STEPS = 8

_Factors = tuple[Doubles, Doubles]


@dataclass(frozen=True)
class Completion:
    """A low-rank matrix L R' fitted to the observed entries of another."""

    left: Doubles
    right: Doubles
    """L = U S^1/2 and R = V S^1/2 of a singular value decomposition U S V', of shapes (m, k) and (n, k)."""
    relative_error: float
    """Weighted error on the observed entries, relative to their weighted norm."""
    penalty: float
    """The chosen penalty, as a fraction of the observed share of the largest singular value."""
    n_rounds: int
    """Total number of alternating rounds."""
    converged: bool
    """Whether the last fit settled before the limit on rounds."""


def complete(observed: Observed, rank: int) -> Completion:
    """Fit a matrix of low rank to observed entries, the rank growing from one to ``rank``.

    Parameters
    ----------
    observed : Observed
    rank : int
        Reduced to the smaller dimension of the matrix if it is larger.

    Returns
    -------
    Completion
        Rows and columns without an observed entry are zero.

    Notes
    -----
    A round costs O(e r^2) operations for e observed entries. A fixed seed chooses the entries that are set aside, so
    the result is the same every time.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix.input import observe
    >>> M = np.outer(np.arange(1.0, 9.0), np.arange(2.0, 7.0))
    >>> M[0, 3] = np.nan
    >>> fitted = complete(observe(M, missing_values=np.nan), 1)
    >>> round(float(fitted.left[0] @ fitted.right[3]), 1)
    5.0
    """
    is_judge = _set_aside(observed)
    training, judge = observed.part(~is_judge), observed.part(is_judge)
    left, right, n_rounds = _grown_to(training, min(rank, *observed.shape))
    best: tuple[float, float, _Factors] = (math.inf, _PENALTIES[0], (left, right))
    for penalty in _PENALTIES if left.shape[1] else ():
        left, right, _, spent = _settled(training, left, right, penalty)
        n_rounds += spent
        error = judge.weighted_squares(residuals(judge.entries, left, right))
        if error >= best[0]:
            break
        best = error, penalty, (left, right)
    _, penalty, (left, right) = best
    left, right, error, spent = _settled(observed, left, right, penalty, tolerance=_FINALLY_SETTLED)
    left[observed.empty_rows] = 0.0  # rotating the factors has left rounding there
    right[observed.T.empty_rows] = 0.0
    norm = math.sqrt(observed.squared_norm)
    return Completion(left, right, error / norm if norm > 0 else 0.0, penalty, n_rounds + spent, spent < _MAX_ROUNDS)


def filled(observed: Observed, completion: Completion) -> InMemoryMatrix:
    """The observed matrix with its holes filled, dense or as a `LowRankSum`, as the data was dense or sparse.

    With weights scaled to a maximum of one, an entry with weight w becomes w times itself plus (1 - w) times its
    completion. So without weights an observed entry stays as it is, and a hole becomes the completion, which a dense
    matrix cuts off at zero.
    """
    left, right = completion.left, completion.right
    weights = observed.relative_weights
    if not observed.from_dense:
        corrections = weights * residuals(observed.entries, left, right)
        return filled_sum(observed.values, corrections, left, right)
    dense = np.maximum(left @ right.T, 0.0)
    rows = np.repeat(np.arange(observed.shape[0]), np.diff(observed.values.indptr))
    places = rows, observed.values.indices
    dense[places] = weights * observed.values.data + (1.0 - weights) * dense[places]
    return hold(dense.astype(observed.dtype, copy=False))


def with_anchors(source: InMemoryMatrix, columns: Indices, rows: Indices, C: Floats, R: Floats) -> InMemoryMatrix:
    """The result of `filled` with other columns and rows at some indices; a dense matrix is changed in place."""
    if isinstance(source, LowRankSum):
        return source.with_columns(columns, C).T.with_columns(rows, R.T).T
    data = source.data
    data[:, columns] = C
    data[rows] = R
    return hold(data)


def _set_aside(observed: Observed) -> Flags:
    """Which stored entries a penalty is judged on: the same ones for the transpose, and about as many in each row.

    With a random number in [0, 1) for each row and each column, these are the entries whose two numbers have a sum with
    a small fractional part.
    """
    of_rows, of_columns = (np.random.default_rng(0).random(length) for length in observed.shape)
    sums = np.repeat(of_rows, np.diff(observed.values.indptr)) + of_columns[observed.values.indices]
    return np.asarray(sums % 1.0 < _SET_ASIDE)


def _grown_to(observed: Observed, rank: int) -> tuple[Doubles, Doubles, int]:
    """Factors grown one by one to rank ``rank``, or until nothing is left to fit, and the rounds spent."""
    left, right = (np.zeros((length, 0)) for length in observed.shape)
    n_rounds = 0
    for _ in range(rank):
        grown = _with_leading_pair(observed, left, right)
        if grown is None:
            break
        left, right, _, spent = _settled(observed, *grown, _PENALTIES[0], _GROWING_ROUNDS)
        n_rounds += spent
    return left, right, n_rounds


def _settled(
    observed: Observed,
    left: Doubles,
    right: Doubles,
    penalty: float,
    max_rounds: int = _MAX_ROUNDS,
    tolerance: float = _SETTLED,
) -> tuple[Doubles, Doubles, float, int]:
    """Alternate until the error on observed entries stops falling; return the factors, this error, and the rounds."""
    error, n_rounds = math.sqrt(observed.weighted_squares(residuals(observed.entries, left, right))), 0
    if left.shape[1] == 0:
        return left, right, error, 0
    while n_rounds < max_rounds:
        left, right, reached = _round(observed, left, right, penalty)
        n_rounds += 1
        done = abs(error - reached) <= tolerance * error
        error = reached
        if done:
            break
    return left, right, error, n_rounds


def _round(observed: Observed, left: Doubles, right: Doubles, penalty: float) -> tuple[Doubles, Doubles, float]:
    """L for given R, R for the new L, both balanced, and the error on the observed entries."""
    ridge = penalty * observed.share * float(np.square(right).sum(axis=0).max()) * observed.mean_weight
    left = ridge_rows(observed.entries, right, ridge)
    right = ridge_rows(observed.T.entries, left, ridge)
    left, right = _balanced(left, right)
    return left, right, math.sqrt(observed.weighted_squares(residuals(observed.entries, left, right)))


def _balanced(left: Doubles, right: Doubles) -> tuple[Doubles, Doubles]:
    """The same product, from factors U S^1/2 and V S^1/2 of its singular value decomposition."""
    with single_threaded_blas():
        (Q1, T1), (Q2, T2) = np.linalg.qr(left), np.linalg.qr(right)
        U, values, Vt = np.linalg.svd(T1 @ T2.T)
        scale = np.sqrt(values)
        return np.ascontiguousarray(Q1 @ (U * scale)), np.ascontiguousarray(Q2 @ (Vt.T * scale))


def _with_leading_pair(observed: Observed, left: Doubles, right: Doubles) -> _Factors | None:
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

"""Predict left-out entries by a low-rank matrix, whose rank grows as long as the prediction improves.

This matrix is also the data with most of its noise removed: it is fitted to all entries that are not left out, with far
fewer parameters than there are entries.

Few entries are missing. So the following settles in a few steps: fill them, take a truncated singular value
decomposition of the filled matrix, fill them again from it, and so on. A step is two products of the filled matrix with
the current singular vectors, and a sparse matrix stays sparse. In a matrix that has holes anyway much is missing, and
`gsnmf.matrix.completion` fits the low-rank matrix to what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.completion import Completion, complete
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.low_rank_sum import LowRankSum
from gsnmf.model_selection.left_out import Replaced, Withheld
from gsnmf.support.arrays import Doubles, Floats

_MAX_STEPS = 30
"""Largest number of steps at each rank."""
_SETTLED = 1e-3
"""A rank is done when a step changes the predictions by less than this fraction."""
_FIRST_STEPS = 6
"""Steps for a newly added pair of singular vectors alone, before all are updated."""
_PATIENCE = 3
"""Ranks in a row that may predict worse than the best."""


@dataclass(frozen=True)
class Denoised:
    """A low-rank matrix that predicts left-out entries."""

    matrix: InMemoryMatrix
    """Cut off at zero if the data is dense; otherwise its two factors stand for it, and it is never formed."""
    rank: int
    squared_error: float
    """Weighted squared error of its predictions."""


def denoised(left_out: Replaced, max_rank: int) -> Denoised:
    """The matrix of rank at most ``max_rank`` that predicts left-out entries best, fitted to all others.

    Its rank is the only thing that it has learned from the left-out entries. A dense array of ``left_out`` is
    overwritten by it.
    """
    m, n = left_out.shape
    left, right = np.zeros((m, 0)), np.zeros((n, 0))
    best: tuple[float, Doubles, Doubles] = (np.inf, left, right)
    with single_threaded_blas():
        for rank in range(1, min(max_rank, m, n) + 1):
            left, right = _grown(left_out, left, right)
            left, right, predictions = _settled(left_out, right)
            error = left_out.weighted_squares(left_out.values.data - predictions)
            if error < best[0]:
                best = error, left, right
            if rank - best[1].shape[1] == _PATIENCE:
                break
        error, left, right = best
        dense = left_out.filled if isinstance(left_out.filled, np.ndarray) else None
        return Denoised(_product(left, right, dense), left.shape[1], error)


def denoised_observed(withheld: Withheld, max_rank: int) -> Denoised:
    """`denoised` for a matrix with holes."""
    best: tuple[float, int, Completion | None] = (np.inf, 0, None)
    for rank in range(1, min(max_rank, *withheld.shape) + 1):
        completion = complete(withheld.rest, rank)
        error = withheld.weighted_squares(withheld.errors(completion.left, completion.right))
        if error < best[0]:
            best = error, rank, completion
        if rank - best[1] == _PATIENCE:
            break
    error, rank, found = best
    assert found is not None
    dense = np.empty(withheld.shape, dtype=withheld.rest.dtype) if withheld.rest.from_dense else None
    return Denoised(_product(found.left, found.right, dense), rank, error)


def _product(left: Doubles, right: Doubles, dense: Floats | None) -> InMemoryMatrix:
    """The matrix with these factors, written to ``dense`` if given."""
    if dense is None:
        return LowRankSum(sp.csr_array((left.shape[0], right.shape[0])), left, right)
    return hold(np.maximum(left @ right.T, 0.0, out=dense, casting="same_kind"))


def _settled(left_out: Replaced, right: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Fill and decompose in turn until the predictions settle.

    Predictions start from zero at every rank. Otherwise one that was too large at a smaller rank might become a factor
    of its own, which no other entry contradicts.
    """
    predictions = np.zeros(left_out.values.nnz)
    left_out.fill(predictions)
    for _ in range(_MAX_STEPS):
        left, right = _step(left_out, right)
        before = predictions
        predictions = np.maximum(left_out.values.data - left_out.errors(left, right), 0.0)
        left_out.fill(predictions)
        if np.linalg.norm(predictions - before) <= _SETTLED * np.linalg.norm(predictions):
            break
    return left, right, predictions


def _step(left_out: Replaced, right: Doubles) -> tuple[Doubles, Doubles]:
    """U S and V of a singular value decomposition, one step of simultaneous iteration from the right vectors."""
    Q = np.linalg.qr(_dot(left_out, right))[0]
    V, values, Wt = np.linalg.svd(_dot(left_out, Q, transposed=True), full_matrices=False)
    return np.ascontiguousarray((Q @ Wt.T) * values), np.ascontiguousarray(V)


def _grown(left_out: Replaced, left: Doubles, right: Doubles) -> tuple[Doubles, Doubles]:
    """One more pair: the leading one of the residual of the filled matrix."""
    v: Doubles = np.random.default_rng(right.shape[1]).random((right.shape[0],))
    u: Doubles = np.zeros(left.shape[0])
    for _ in range(_FIRST_STEPS):
        v -= np.asarray(right @ (right.T @ v))
        v /= np.linalg.norm(v) or 1.0
        u = _dot(left_out, v[:, None])[:, 0] - left @ (right.T @ v)
        v = _dot(left_out, u[:, None], transposed=True)[:, 0] - right @ (left.T @ u)
    scale = float(np.linalg.norm(v)) or 1.0
    return np.column_stack([left, u]), np.column_stack([right, v / scale])


def _dot(left_out: Replaced, block: Doubles, *, transposed: bool = False) -> Doubles:
    matrix = left_out.filled.T if transposed else left_out.filled
    return np.asarray(matrix @ block.astype(matrix.dtype, copy=False), dtype=np.float64)

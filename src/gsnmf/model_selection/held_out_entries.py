r"""Leave out single entries of a matrix and predict them from all others by a matrix of low rank.

In a dense matrix, any entry may be left out. In a sparse one most entries are zeros, which teach little, and leaving
out a tenth of them would make it dense. So a tenth of the stored entries is left out, and about as many zeros: half of
them drawn uniformly, half with probabilities proportional to

.. math:: (\text{sum of row } i) (\text{sum of column } j) ,

which are large where a prediction is likely to be wrong; no probability exceeds a tenth. An entry left out with
probability p stands for 1 / p entries, so the weighted sum of squared errors is an unbiased estimate of the sum over
all entries. In a matrix with holes, observed entries are left out.

The rank of the matrix that predicts them grows as long as the prediction improves. This matrix is also the data with
most of its noise removed: it is fitted to all other entries, with far fewer parameters than there are entries. It is
found by filling the left-out entries, taking a truncated singular value decomposition of the filled matrix, filling
them again from it, and so on, which settles in a few steps because few entries are left out. A step is two products of
the filled matrix with the current singular vectors, and a sparse matrix stays sparse. A matrix that has holes anyway
is completed by `gsnmf.matrix.completion`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.observed_entries import Entries, residuals
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.completion import complete
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.low_rank_sum import LowRankSum
from gsnmf.matrix.observed import Observed
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix

_MOST = 400_000
"""Largest number of entries left out at a time: more do not improve the estimate."""
_DRAWS = 3
"""Zeros drawn for each stored entry that is left out; many draws repeat or are rejected."""
_MAX_STEPS = 30
"""Largest number of steps at each rank."""
_SETTLED = 1e-3
"""A rank is done when a step changes the predictions by less than this fraction."""
_FIRST_STEPS = 6
"""Steps for a newly added pair of singular vectors alone, before all are updated."""
_PATIENCE = 3
"""Ranks in a row that may predict worse than the best."""


@dataclass(frozen=True)
class LeftOut:
    """Entries that are left out of a matrix."""

    values: sp.csr_array
    """The entries that are left out. A stored zero is a zero that is left out."""
    weights: Doubles
    """How many entries of the matrix each of them stands for."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    def errors(self, left: Doubles, right: Doubles) -> Doubles:
        """Residual of every left-out entry for the product ``left @ right.T``."""
        parts = self.values.indptr, self.values.indices, self.values.data
        return residuals(Entries(*parts, np.empty(0, dtype=self.values.dtype)), left, right)

    @property
    def squared_norm(self) -> float:
        """Weighted sum of the squares of the entries."""
        return self.weighted_squares(self.values.data)

    def weighted_squares(self, numbers: Floats) -> float:
        """Weighted sum of the squares of one number per entry."""
        doubles = numbers.astype(np.float64, copy=False)
        return float(np.vdot(self.weights, doubles * doubles))

    def sums(self, errors: Doubles) -> tuple[Doubles, Doubles]:
        """Weighted sums of squared errors, one per row and one per column."""
        squares = self.weights * errors * errors
        m, n = self.shape
        rows = np.repeat(np.arange(m), np.diff(self.values.indptr))
        by_row, by_column = np.bincount(rows, squares, m), np.bincount(self.values.indices, squares, n)
        return by_row.astype(np.float64), by_column.astype(np.float64)


@dataclass(frozen=True)
class Replaced(LeftOut):
    """Entries that are left out of a matrix, and the matrix with other values in their place."""

    filled: RawMatrix
    """The matrix, in which `fill` writes."""
    places: Indices
    """Where the entries are in the data of ``filled``."""

    def fill(self, predictions: Floats) -> None:
        """Put predictions, cut off at zero, in place of the entries."""
        data = self.filled.reshape(-1) if isinstance(self.filled, np.ndarray) else self.filled.data
        data[self.places] = np.maximum(predictions, 0.0)


@dataclass(frozen=True)
class Withheld(LeftOut):
    """Observed entries that are left out of a matrix with holes, and those that remain."""

    rest: Observed
    """The observed entries without those that are left out."""


@dataclass(frozen=True)
class Denoised:
    """A low-rank matrix, left @ right.T, that predicts left-out entries."""

    left: Doubles
    right: Doubles
    rank: int
    squared_error: float
    """Weighted squared error of its predictions."""
    dense: bool
    """Whether the data is dense. Otherwise the two factors stand for the matrix, which is never formed."""
    dtype: np.dtype[Any]

    def matrix(self) -> InMemoryMatrix:
        """The matrix, cut off at zero if it is dense."""
        if not self.dense:
            return LowRankSum(sp.csr_array((self.left.shape[0], self.right.shape[0])), self.left, self.right)
        product = self.left @ self.right.T
        return hold(np.maximum(product, 0.0, out=product).astype(self.dtype, copy=False))


def leave_out(
    matrix: InMemoryMatrix | Observed, share: float, n_repeats: int, rng: np.random.Generator
) -> Iterator[Replaced | Withheld]:
    """Leave out a share of the entries, ``n_repeats`` times, different entries each time.

    The share is that of all entries, or of the stored entries of a sparse matrix, or of the observed entries of one
    with holes; ``share * n_repeats`` is at most one. What is left out is zero at first.

    Examples
    --------
    >>> from gsnmf.matrix.input import observe
    >>> seen = observe([[1.0, float("nan")], [3.0, 2.0]], missing_values=float("nan"))
    >>> [(part.values.nnz, part.rest.values.nnz) for part in leave_out(seen, 0.4, 2, np.random.default_rng(0))]
    [(1, 2), (1, 2)]
    """
    if isinstance(matrix, Observed):
        return _of_observed(matrix, share, n_repeats, rng)
    if isinstance(matrix.data, np.ndarray):
        return _of_dense(matrix, share, n_repeats, rng)
    raw = sp.csr_array(matrix.data)
    raw.sort_indices()
    parts = np.ldexp(raw.data, -matrix.exponent), raw.indices, raw.indptr
    return _of_sparse(sp.csr_array(parts, shape=raw.shape), share, n_repeats, rng)


def denoised(part: Replaced | Withheld, max_rank: int) -> Denoised:
    """The matrix of rank at most ``max_rank`` that predicts left-out entries best, fitted to all others.

    Its rank is the only thing that it has learned from the left-out entries.
    """
    if isinstance(part, Withheld):
        found, dense, dtype = _completed(part), part.rest.from_dense, part.rest.dtype
    else:
        found, dense, dtype = _decomposed(part), isinstance(part.filled, np.ndarray), part.filled.dtype
    best: Denoised | None = None
    with single_threaded_blas():
        for rank, (left, right, error) in zip(range(1, min(max_rank, *part.shape) + 1), found, strict=False):
            if best is None or error < best.squared_error:
                best = Denoised(left, right, rank, error, dense, dtype)
            if rank - best.rank == _PATIENCE:
                break
    assert best is not None
    return best


def _of_observed(observed: Observed, share: float, n_repeats: int, rng: np.random.Generator) -> Iterator[Withheld]:
    size = observed.values.nnz
    n_out = _count(size, share)
    for places in np.split(rng.choice(size, n_repeats * n_out, replace=False), n_repeats):
        out = np.zeros(size, dtype=bool)
        out[places] = True
        part = observed.part(out)
        weights = np.ones(n_out) if part.weights is None else part.weights.astype(np.float64)
        yield Withheld(part.values, weights * (size / n_out), observed.part(~out))


def _of_dense(matrix: InMemoryMatrix, share: float, n_repeats: int, rng: np.random.Generator) -> Iterator[Replaced]:
    size = matrix.data.size
    n_out = _count(size, share)
    for keys in np.split(rng.choice(size, n_repeats * n_out, replace=False), n_repeats):
        places = np.sort(keys)
        filled = np.ldexp(matrix.data, -matrix.exponent, order="C")
        entries = filled.reshape(-1)
        values = _by_rows(places, entries[places], filled.shape)
        entries[places] = 0.0
        yield Replaced(values, np.broadcast_to(size / n_out, n_out), filled, places)
        del filled, entries  # before the next copy is made


def _of_sparse(data: sp.csr_array, share: float, n_repeats: int, rng: np.random.Generator) -> Iterator[Replaced]:
    m, n = data.shape
    stored = np.repeat(np.arange(m, dtype=np.int64), np.diff(data.indptr)) * n + data.indices
    n_out = _count(data.nnz, share)
    for chosen in np.split(rng.choice(data.nnz, n_repeats * n_out, replace=False), n_repeats):
        zeros, weights_of_zeros = _drawn_zeros(data, stored, share, _DRAWS * n_out, rng)
        keys = np.concatenate([stored[chosen], zeros])
        values = np.concatenate([data.data[chosen], np.zeros(zeros.size, dtype=data.dtype)])
        weights = np.concatenate([np.full(n_out, data.nnz / n_out), weights_of_zeros])
        order = np.argsort(keys)
        everything = np.sort(np.concatenate([stored, zeros]))
        places = np.searchsorted(everything, keys[order])
        filled = _by_rows(everything, np.zeros(everything.size, dtype=data.dtype), (m, n))
        filled.data[np.searchsorted(everything, stored)] = data.data
        filled.data[places] = 0.0
        yield Replaced(_by_rows(keys[order], values[order], (m, n)), weights[order], filled, places)
        del filled  # before the next copy is made


def _drawn_zeros(
    data: sp.csr_array, stored: Indices, share: float, count: int, rng: np.random.Generator
) -> tuple[Indices, Doubles]:
    """Positions of about ``count`` zeros at most, and how many zeros each stands for."""
    of_rows, of_columns = (np.asarray(data.sum(axis=axis, dtype=np.float64)).ravel() for axis in (1, 0))
    chances = [sums / sums.sum() for sums in (of_rows, of_columns)]
    drawn = [rng.choice(chance.size, count // 2, p=chance) for chance in chances]
    uniform = [rng.integers(chance.size, size=count - count // 2) for chance in chances]
    rows, columns = (np.concatenate(both) for both in zip(drawn, uniform, strict=True))
    keys = np.unique(rows.astype(np.int64) * data.shape[1] + columns)
    at = np.minimum(np.searchsorted(stored, keys), stored.size - 1)
    keys = keys[stored[at] != keys]
    rows, columns = np.divmod(keys, data.shape[1])
    expected = 0.5 * count * (chances[0][rows] * chances[1][columns] + 1.0 / (data.shape[0] * data.shape[1]))
    chance = -np.expm1(-expected)
    kept = rng.random(keys.size) * chance < share
    return keys[kept], 1.0 / np.minimum(share, chance[kept])


def _by_rows(keys: Indices, values: Floats, shape: tuple[int, int]) -> sp.csr_array:
    """Entries as a sparse array that stores all of them, zeros included; keys are places in order of rows, sorted."""
    rows, columns = np.divmod(keys, shape[1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return sp.csr_array((values, columns.astype(np.int32), indptr), shape=shape)


def _count(size: int, share: float) -> int:
    return max(1, min(int(share * size), _MOST))


def _completed(part: Withheld) -> Iterator[tuple[Doubles, Doubles, float]]:
    """Factors of rank 1, 2, ... of a matrix with holes, and the errors of their predictions."""
    for rank in count(1):
        completion = complete(part.rest, rank)
        errors = part.errors(completion.left, completion.right)
        yield completion.left, completion.right, part.weighted_squares(errors)


def _decomposed(part: Replaced) -> Iterator[tuple[Doubles, Doubles, float]]:
    """Factors of rank 1, 2, ... of a matrix with replaced entries, and the errors of their predictions."""
    left, right = np.zeros((part.shape[0], 0)), np.zeros((part.shape[1], 0))
    while True:
        left, right = _grown(part, left, right)
        left, right, predictions = _settled(part, right)
        yield left, right, part.weighted_squares(part.values.data - predictions)


def _settled(part: Replaced, right: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Fill and decompose in turn until the predictions settle.

    Predictions start from zero at every rank. Otherwise one that was too large at a smaller rank might become a factor
    of its own, which no other entry contradicts.
    """
    predictions = np.zeros(part.values.nnz)
    part.fill(predictions)
    for _ in range(_MAX_STEPS):
        left, right = _step(part, right)
        before = predictions
        predictions = np.maximum(part.values.data - part.errors(left, right), 0.0)
        part.fill(predictions)
        if np.linalg.norm(predictions - before) <= _SETTLED * np.linalg.norm(predictions):
            break
    return left, right, predictions


def _step(part: Replaced, right: Doubles) -> tuple[Doubles, Doubles]:
    """U S and V of a singular value decomposition, one step of simultaneous iteration from the right vectors."""
    Q = np.linalg.qr(_dot(part, right))[0]
    V, values, Wt = np.linalg.svd(_dot(part, Q, transposed=True), full_matrices=False)
    return np.ascontiguousarray((Q @ Wt.T) * values), np.ascontiguousarray(V)


def _grown(part: Replaced, left: Doubles, right: Doubles) -> tuple[Doubles, Doubles]:
    """One more pair: the leading one of the residual of the filled matrix."""
    v: Doubles = np.random.default_rng(right.shape[1]).random((right.shape[0],))
    u: Doubles = np.zeros(left.shape[0])
    for _ in range(_FIRST_STEPS):
        v -= np.asarray(right @ (right.T @ v))
        v /= np.linalg.norm(v) or 1.0
        u = _dot(part, v[:, None])[:, 0] - left @ (right.T @ v)
        v = _dot(part, u[:, None], transposed=True)[:, 0] - right @ (left.T @ u)
    scale = float(np.linalg.norm(v)) or 1.0
    return np.column_stack([left, u]), np.column_stack([right, v / scale])


def _dot(part: Replaced, block: Doubles, *, transposed: bool = False) -> Doubles:
    matrix = part.filled.T if transposed else part.filled
    return np.asarray(matrix @ block.astype(matrix.dtype, copy=False), dtype=np.float64)

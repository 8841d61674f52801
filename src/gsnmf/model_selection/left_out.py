r"""Leave out single entries of a matrix, to be predicted from all others.

In a dense matrix, any entry may be left out. In a sparse one most entries are zeros, which teach little, and leaving
out a tenth of them would make it dense. So a tenth of the stored entries is left out, and about as many zeros: half of
them drawn uniformly, half with probabilities proportional to

.. math:: (\text{sum of row } i) (\text{sum of column } j) ,

which are large where a prediction is likely to be wrong; no probability exceeds a tenth. An entry left out with
probability p stands for 1 / p entries, so the weighted sum of squared errors is an unbiased estimate of the sum over
all entries. In a matrix with holes, observed entries are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.observed_entries import Entries, residuals
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.support.arrays import Doubles, Floats, Indices, RawMatrix

_MOST = 400_000
"""Largest number of entries left out at a time: more do not improve the estimate."""
_DRAWS = 3
"""Zeros drawn for each stored entry that is left out; many draws repeat or are rejected."""


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
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.values.indptr))
        columns = self.values.indices.astype(np.intp)
        return _summed(rows, squares, self.shape[0]), _summed(columns, squares, self.shape[1])


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


def leave_out(matrix: InMemoryMatrix, share: float, n_repeats: int, rng: np.random.Generator) -> list[Replaced]:
    """Leave out a share of the entries, ``n_repeats`` times, different entries each time.

    Parameters
    ----------
    matrix : InMemoryMatrix
    share : float
        Share of the entries or, if sparse, of the stored entries; ``share * n_repeats`` is at most one.
    n_repeats : int
    rng : numpy.random.Generator

    Returns
    -------
    list of Replaced
        The left-out entries are zero at first.
    """
    if isinstance(matrix.data, np.ndarray):
        return _of_dense(np.ldexp(matrix.data, -matrix.exponent), share, n_repeats, rng)
    raw = sp.csr_array(matrix.data)
    raw.sort_indices()
    parts = np.ldexp(raw.data, -matrix.exponent), raw.indices, raw.indptr
    return _of_sparse(sp.csr_array(parts, shape=raw.shape), share, n_repeats, rng)


def leave_out_observed(observed: Observed, share: float, n_repeats: int, rng: np.random.Generator) -> list[Withheld]:
    """Leave out a share of the observed entries, ``n_repeats`` times, different entries each time.

    Examples
    --------
    >>> from gsnmf.matrix.input import observe
    >>> seen = observe([[1.0, float("nan")], [3.0, 2.0]], missing_values=float("nan"))
    >>> [(part.values.nnz, part.rest.values.nnz) for part in leave_out_observed(seen, 0.4, 2, np.random.default_rng(0))]
    [(1, 2), (1, 2)]
    """
    size = observed.values.nnz
    count = _count(size, share)
    drawn = rng.choice(size, n_repeats * count, replace=False)
    repeats = []
    for places in np.split(drawn, n_repeats):
        out = np.zeros(size, dtype=bool)
        out[places] = True
        part = observed.part(out)
        weights = np.ones(count) if part.weights is None else part.weights.astype(np.float64)
        repeats.append(Withheld(part.values, weights * (size / count), observed.part(~out)))
    return repeats


def _of_dense(data: Floats, share: float, n_repeats: int, rng: np.random.Generator) -> list[Replaced]:
    array = np.ascontiguousarray(data)
    count = _count(array.size, share)
    drawn = rng.choice(array.size, n_repeats * count, replace=False)
    repeats = []
    for keys in np.split(drawn, n_repeats):
        places = np.sort(keys)
        values = _by_rows(places, array.reshape(-1)[places], array.shape)
        filled = array.copy()
        filled.reshape(-1)[places] = 0.0
        repeats.append(Replaced(values, np.full(count, array.size / count), filled, places))
    return repeats


def _of_sparse(data: sp.csr_array, share: float, n_repeats: int, rng: np.random.Generator) -> list[Replaced]:
    m, n = data.shape
    stored = np.repeat(np.arange(m, dtype=np.int64), np.diff(data.indptr)) * n + data.indices
    count = _count(data.nnz, share)
    drawn = rng.choice(data.nnz, n_repeats * count, replace=False)
    repeats = []
    for chosen in np.split(drawn, n_repeats):
        zeros, weights_of_zeros = _drawn_zeros(data, stored, share, _DRAWS * count, rng)
        keys = np.concatenate([stored[chosen], zeros])
        values = np.concatenate([data.data[chosen], np.zeros(zeros.size, dtype=data.dtype)])
        weights = np.concatenate([np.full(count, data.nnz / count), weights_of_zeros])
        order = np.argsort(keys)
        everything = np.sort(np.concatenate([stored, zeros]))
        places = np.searchsorted(everything, keys[order])
        filled = _by_rows(everything, np.zeros(everything.size, dtype=data.dtype), (m, n))
        filled.data[np.searchsorted(everything, stored)] = data.data
        filled.data[places] = 0.0
        repeats.append(Replaced(_by_rows(keys[order], values[order], (m, n)), weights[order], filled, places))
    return repeats


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


def _summed(places: Indices, numbers: Doubles, length: int) -> Doubles:
    sums = np.zeros(length)
    np.add.at(sums, places, numbers)
    return sums


def _by_rows(keys: Indices, values: Floats, shape: tuple[int, int]) -> sp.csr_array:
    """Entries as a sparse array that stores all of them, zeros included; keys are places in order of rows, sorted."""
    rows, columns = np.divmod(keys, shape[1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return sp.csr_array((values, columns.astype(np.int32), indptr), shape=shape)


def _count(size: int, share: float) -> int:
    return max(1, min(int(share * size), _MOST))

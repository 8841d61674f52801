r"""Columns and rows among which the search chooses, with the products that every trial shares.

With the weights of a selection fitted and residual E, adding column j as a new rank-one factor lowers the squared error
by at least

.. math:: \sum_l \max(0, M_j^T E_l)^2 / \|M_j\|^2

(take :math:`\max(0, M_j^T E_l) / \|M_j\|^2` as its weights). The products of all candidates with the matrix are
computed once; trying a selection, or scoring all candidates against it, then never touches the matrix again.

The slopes of candidate columns are M_j'E = M_j'M - (M_j'W) H for a factorization W H. They are formed block by block: a
block stays in the processor's cache from the product to the sum, so the only large array that is read is M_j'M. The
blocks do not depend on the number of threads, and neither do the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gsnmf._kernels.exchange import positive_squares
from gsnmf._parallel import ThreadBudget
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix, dense
from gsnmf.search.candidate_vectors import GrowingRows, candidate_vectors
from gsnmf.search.state import Chosen, State
from gsnmf.selection.successive_projection import largest_and_farthest
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Doubles, Floats, Indices, Vectors
from gsnmf.weights.joint import Side

_MEMORY = 1 << 30
"""Bytes that the products of all candidates may take."""
_MOST_MEMORY = 1 << 36
"""The hard limit for a matrix that is not in memory itself."""
MOST = 3000
"""Largest number of candidates per side."""
_FEWEST = 50
"""Smallest number of candidates per side, whatever memory they take."""
_TRANSPOSED = 1 << 12
"""Products of each candidate that are transposed at a time, in the processor's cache."""
_WIDTH = 1 << 13
"""Slopes of one candidate that are formed at a time."""
_BLOCK = 1 << 16
"""Slopes of several candidates that are formed at a time: half a megabyte."""
_GROUP = 64
"""Candidates that one thread takes at a time."""

Reduction = Callable[[Doubles, Doubles, Doubles], Doubles]
"""Sums over slopes, shape (c, n), given the coefficients, shape (c, r), and the right factors, shape (r, n)."""


def candidate_pool(matrix: Matrix, limit: int = MOST, limits: Limits | None = None) -> Candidates:
    """At most ``limit`` candidates per side: all of them, those of `largest_and_farthest`, or none.

    With ``limits``, excluded indices are never candidates, included ones always are, and a side from which nothing may
    be chosen has none.
    """
    return Candidates(matrix, *(candidate_indices(matrix, axis, limits, limit) for axis in COLUMNS_AND_ROWS))


def candidate_indices(matrix: Matrix, axis: Axis, limits: Limits | None = None, limit: int = MOST) -> Indices:
    """The candidates of one side of `candidate_pool`; the longest vectors replace excluded ones."""
    none = np.empty(0, dtype=np.intp)
    if limit == 0:
        return none
    least = 16 * _FEWEST * sum(matrix.shape)
    if least > _MOST_MEMORY and not matrix.in_memory:
        raise ValueError(
            f"method must be one of 'gspa', 'spa-columns', 'spa-rows', 'spa-both' for a Dask array of shape "
            f"{matrix.shape}: the products of candidates, which others keep in memory, would take {least / 1e9:.0f} GB."
        )
    limit = min(limit, max(_FEWEST, _MEMORY // (16 * sum(matrix.shape))))
    if limits is None:
        return largest_and_farthest(matrix, limit, axis=axis)
    if limits.most(axis) == 0:
        return none
    excluded = limits.excluded(axis)
    best = largest_and_farthest(matrix, limit, axis=axis)
    allowed = best[~excluded[best]]
    if allowed.size < best.size:
        norms = np.where(excluded, 0.0, matrix.along(axis).squared_column_norms)
        norms[allowed] = 0.0
        longest = np.argsort(-norms, kind="stable")[: best.size - allowed.size]
        allowed = np.concatenate([allowed, longest[norms[longest] > 0]])
    return np.union1d(allowed, limits.included(axis))


class CandidateSide:
    """Candidate columns of a matrix; the candidate rows are the side of its transpose."""

    def __init__(self, matrix: Matrix, indices: Indices) -> None:
        self.matrix = matrix
        self.indices: Indices = np.empty(0, dtype=np.intp)
        self.vectors = candidate_vectors(matrix)
        self._products = GrowingRows(matrix.shape[1], self.vectors.precision)
        self.lengths: Doubles = np.empty(0)
        self._position = np.full(matrix.shape[1], -1)
        self.extend(indices)

    @property
    def products(self) -> Floats:
        """Products of the candidates with all columns, one candidate per row."""
        return self._products.array

    def extend(self, indices: Indices) -> None:
        """Add new candidates; zero columns are ignored."""
        new = np.unique(indices[(self._position[indices] < 0) & (self.matrix.squared_column_norms[indices] > 0)])
        if new.size == 0:
            return
        self._products.append(self.vectors.extend(new))
        self._position[new] = np.arange(self.indices.size, self.indices.size + new.size)
        self.indices = np.concatenate([self.indices, new])
        self.lengths = np.sqrt(self.matrix.squared_column_norms[self.indices])

    def positions(self, indices: Indices) -> Indices:
        """Where these columns are among the candidates."""
        return self._position[indices]

    def coefficients(self, own: Chosen, others: Chosen, at: int | None = None) -> tuple[Doubles, Doubles]:
        """Products of all candidates, or of one, with their own chosen columns and with the weights of the rows."""
        products = self.products[:, own.indices] if at is None else self.products[at, own.indices]
        return products.astype(np.float64, copy=False) / own.side.lengths, self.vectors.dot(others.weights, at)

    def chosen(self, indices: Indices, weights: Doubles) -> Chosen:
        """Chosen candidates with these weights and all their products."""
        positions = self.positions(indices)
        lengths = self.lengths[positions]
        vectors = self.vectors.of_unit_length(positions, lengths)
        gram = self.products[np.ix_(positions, indices)] / np.outer(lengths, lengths)
        linear = np.empty((self.products.shape[1], positions.size))
        for start in range(0, linear.shape[0], _TRANSPOSED):
            block = slice(start, start + _TRANSPOSED)
            np.divide(self.products[positions, block].T, -lengths, out=linear[block])
        return Chosen(indices, weights, Side(vectors, gram, linear, lengths))

    def exchanged(self, chosen: Chosen, at: int, place: int, weights: Doubles) -> Chosen:
        """Chosen candidates of which the one at ``at`` is replaced by the candidate at ``place``."""
        side = chosen.side
        indices, lengths, all_weights = chosen.indices.copy(), side.lengths.copy(), chosen.weights.copy()
        gram, linear = side.gram.copy(), side.linear.copy()
        length, products = self.lengths[place], self.products[place]
        indices[at], lengths[at], all_weights[:, at] = self.indices[place], length, weights
        linear[:, at] = -products / length
        gram[at] = gram[:, at] = products[indices] / (lengths * length)
        vectors: Vectors
        if isinstance(side.vectors, np.ndarray):
            vectors = side.vectors.copy()
            vectors[:, at] = self.vectors.as_columns(np.array([place]))[:, 0] / length
        else:
            vectors = self.vectors.of_unit_length(self.positions(indices), lengths)
        return Chosen(indices, all_weights, Side(vectors, gram, linear, lengths))


class Candidates:
    """Candidate columns and rows, and the fitting and scoring of selections among them."""

    def __init__(self, matrix: Matrix, columns: Indices, rows: Indices) -> None:
        self.matrix = matrix
        self.columns = CandidateSide(matrix, columns)
        self.rows = CandidateSide(matrix.T, rows)
        self.threads = ThreadBudget()
        """Threads that share the scoring."""

    def on(self, axis: Axis) -> CandidateSide:
        """The candidate columns, or the candidate rows."""
        return self.columns if axis == "columns" else self.rows

    def include(self, columns: Indices, rows: Indices) -> None:
        """Make sure that a selection is among the candidates."""
        self.columns.extend(columns)
        self.rows.extend(rows)

    def candidate(self, place: int) -> tuple[Axis, int]:
        """The axis of a candidate and its position among those of this axis, where columns are counted first."""
        n_columns = self.columns.indices.size
        return ("columns", place) if place < n_columns else ("rows", place - n_columns)

    def state(
        self, columns: Indices, rows: Indices, P: Doubles | None = None, Q: Doubles | None = None,
        squared_error: float = math.inf,
    ) -> State:  # fmt: skip
        """A selection of candidates with given weights, or with weights of zero; nothing is fitted."""
        m, n = self.matrix.shape
        P = np.zeros((n, columns.size)) if P is None else P
        Q = np.zeros((m, rows.size)) if Q is None else Q
        own = self.columns.chosen(columns, P), self.rows.chosen(rows, Q)
        return State(*own, squared_error, self.matrix.squared_norm)

    def empty(self) -> State:
        """The empty selection."""
        none = np.empty(0, dtype=np.intp)
        return self.state(none, none, squared_error=self.matrix.squared_norm)

    def without(self, state: State, positions: Sequence[int] | Indices) -> State:
        """The selection without some indices (columns first, then rows); the other weights are kept, not fitted."""
        kept = np.ones(state.size, dtype=np.bool_)
        kept[positions] = False
        r1 = state.columns.size
        for axis, keep in zip(COLUMNS_AND_ROWS, (kept[:r1], kept[r1:]), strict=True):
            if not keep.all():
                own = state.on(axis)
                smaller = self.on(axis).chosen(own.indices[keep], own.weights[:, keep])
                state = state.replaced(axis, smaller)
        return state

    def extended(self, state: State, axis: Axis, index: int) -> State:
        """The selection with one more index, whose weights give the guaranteed decrease; nothing is fitted."""
        side = self.on(axis)
        at = int(side.positions(np.array([index]))[0])
        return self.grown(state, axis, at, self.best_weights(state, axis, at))

    def grown(self, state: State, axis: Axis, at: int, weights: Doubles, squared_error: float = math.inf) -> State:
        """The selection with one more candidate and these weights of it."""
        side, own = self.on(axis), state.on(axis)
        larger = side.chosen(np.append(own.indices, side.indices[at]), np.column_stack([own.weights, weights]))
        return state.replaced(axis, larger, squared_error)

    def best_weights(self, state: State, axis: Axis, at: int, without: int | None = None) -> Doubles:
        """Best weights of one more candidate while all others stay: max(0, M_j'E) / |M_j|.

        With ``without``, that factor is taken out of the selection.
        """
        side = self.on(axis)
        coefficients = self._coefficients(state, axis, at)
        if without is not None:
            coefficients[without] = 0.0
        slopes = side.products[at].astype(np.float64)
        for part, factors in zip(np.split(coefficients, [state.columns.size]), state.across(axis), strict=True):
            slopes -= factors @ part
        return np.asarray(np.maximum(slopes, 0.0) / side.lengths[at])

    def best(self, state: State, count: int = 1, axes: Axes = COLUMNS_AND_ROWS) -> list[tuple[Axis, int]]:
        """The candidates with the largest guaranteed decrease of the squared error, as pairs of axis and index."""
        decreases = [
            self.decreases(state, axis) if axis in axes else np.zeros(self.on(axis).indices.size)
            for axis in COLUMNS_AND_ROWS
        ]
        everything = np.concatenate(decreases)
        order = np.argsort(-everything, kind="stable")[:count]
        found = [self.candidate(int(place)) for place in order if everything[place] > 0]
        return [(axis, int(self.on(axis).indices[at])) for axis, at in found]

    def decreases(self, state: State, axis: Axis) -> Doubles:
        """Guaranteed decrease of the squared error by each candidate; minus infinity for those already chosen."""
        decreases = self.sums_over_slopes(state, axis, _positive_squares)
        decreases[self.on(axis).positions(state.on(axis).indices)] = -np.inf
        return decreases

    def sums_over_slopes(self, state: State, axis: Axis, reduction: Reduction) -> Doubles:
        """Reduce the slopes M_j'E of every candidate, and divide by its squared length."""
        side = self.on(axis)
        coefficients = self._coefficients(state, axis)
        sums = sums_over_slopes(side.products, coefficients, state.across(axis), reduction, self.threads)
        squares = side.lengths**2
        return sums / (squares if sums.ndim == 1 else squares[:, None])

    def _coefficients(self, state: State, axis: Axis, at: int | None = None) -> Doubles:
        """Products of all candidates, or of one, with the left vectors of all factors, column factors first."""
        if axis == "columns":
            return np.concatenate(self.columns.coefficients(state.columns, state.rows, at), axis=-1)
        return np.concatenate(self.rows.coefficients(state.rows, state.columns, at)[::-1], axis=-1)


def sums_over_slopes(
    products: Floats, coefficients: Doubles, factors: Sequence[Vectors], reduction: Reduction, threads: ThreadBudget
) -> Doubles:
    """Reduce the slopes ``products - coefficients @ H`` of every candidate.

    Parameters
    ----------
    products : array, shape (c, n)
        M_j'M for candidates j.
    coefficients : array, shape (c, r)
        M_j'W.
    factors : sequence of arrays, each with n rows
        Side by side, they are the transpose of H.
    reduction : callable
        Applied to every block; blocks of the same candidates are added.
    threads : ThreadBudget

    Returns
    -------
    array
        One row (or number) per candidate.
    """
    n_candidates, length = products.shape
    if products.size == 0:
        return reduction(np.zeros(products.shape), coefficients, np.zeros((coefficients.shape[1], length)))
    groups = [slice(start, min(start + _GROUP, n_candidates)) for start in range(0, n_candidates, _GROUP)]
    pieces = [
        (group, slice(start, min(start + _WIDTH, length))) for group in groups for start in range(0, length, _WIDTH)
    ]

    def reduced(piece: tuple[slice, slice]) -> Doubles:
        group, across = piece
        H = np.ascontiguousarray(np.hstack([dense(factor[across]) for factor in factors]).T, dtype=np.float64)
        step = max(1, _BLOCK // H.shape[1])
        buffer = np.empty(min(step, group.stop - group.start) * H.shape[1])
        found = []
        for start in range(group.start, group.stop, step):
            part = slice(start, min(start + step, group.stop))
            slopes = buffer[: (part.stop - part.start) * H.shape[1]].reshape(-1, H.shape[1])
            np.matmul(coefficients[part], H, out=slopes)
            np.subtract(products[part, across], slopes, out=slopes)
            found.append(reduction(slopes, coefficients[part], H))
        return np.concatenate(found)

    results = threads.map(reduced, pieces)
    n_across = len(pieces) // len(groups)
    return np.concatenate([sum(results[i : i + n_across]) for i in range(0, len(pieces), n_across)])


def _positive_squares(slopes: Doubles, _coefficients: Doubles, _factors: Doubles) -> Doubles:
    return positive_squares(slopes)

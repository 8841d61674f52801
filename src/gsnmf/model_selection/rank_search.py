"""Good selections of many ranks, of a whole matrix and of low-rank matrices that predict left-out entries.

`nested_fits` finds each selection from its neighbour. On the way up, a selection grows by the candidates with the
largest guaranteed decrease of the error and is improved by exchanges. On the way down it loses the index that explains
least and is improved again. The better of the two selections of each rank is kept. The way down finds what the way up
misses: indices that only help together with others. Selections that are known from elsewhere, such as from a similar
matrix, may be tried on the way up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gsnmf._kernels.observed_entries import residuals
from gsnmf.constraints import Constraints
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.observed import Observed
from gsnmf.model_selection.held_out_entries import Denoised, LeftOut
from gsnmf.model_selection.stability import agreement
from gsnmf.search.automatic import automatic_search
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.effort import Effort, Work
from gsnmf.search.exchange import grow, improve
from gsnmf.search.state import State, by_error
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.progress import log_progress, muted

_WORK: dict[Effort, float] = {"fast": 1.0, "balanced": 6.0, "best": 50.0}
"""Nominal seconds of the exchanges of all ranks together, for each matrix."""
_CANDIDATES: dict[Effort, int] = {"fast": 100, "balanced": 100, "best": 300}
"""Number of candidate columns, and of candidate rows."""
_ENOUGH = 1e-3
"""Part of the squared error on left-out entries that does not matter as squared error on the low-rank matrix."""
SMALLEST_ERROR = 0.01
"""Smaller relative errors count as this one: weights are not more exact."""
_BETTER = 0.99
"""A thorough search counts if its squared error is below this fraction of the one of the nested selection."""
_ROUNDS = 12
"""Rounds of coordinate descent after an index was dropped."""
_SETTLING_ROUNDS = 20
"""Rounds of coordinate descent where a small error is enough."""
_SETTLED = 1e-3
"""They end earlier when a round lowers the squared error by less than this fraction."""
_FAILURES = 24
"""Exchanges in a row that may fail."""


class _Prediction(NamedTuple):
    """Squared errors on left-out entries, summed by rows and by columns, and the factors that predict them."""

    by_row: Doubles
    by_column: Doubles
    left: Floats
    right: Floats
    seconds: float


@dataclass(frozen=True)
class Repeat:
    """Entries that were left out, the low-rank matrix that predicts them, and the predictions of each rank."""

    part: LeftOut
    low_rank: Denoised
    found: dict[int, _Prediction] = field(default_factory=dict)

    def search(self, nested: Callable[..., dict[int, NestedFit]], known: dict[int, NestedFit]) -> None:
        """Find factorizations of the low-rank matrix, and keep how well they predict what was left out."""
        matrix = self.low_rank.matrix()
        enough = max(_ENOUGH * self.low_rank.squared_error, SMALLEST_ERROR**3 * matrix.squared_norm)
        for rank, (state, seconds) in nested(matrix, known=known, enough=enough).items():
            left, right = state.left, np.ascontiguousarray(state.right.T)
            sums = self.part.sums(self.part.errors(left, right))
            self.found[rank] = _Prediction(*sums, left.astype(np.float32), right.astype(np.float32), seconds)


class RankSearch:
    """Factorizations of all ranks, of the whole matrix and of the low-rank matrices that predict left-out entries."""

    def __init__(
        self,
        held: InMemoryMatrix | Observed,
        source: InMemoryMatrix,
        ranks: list[int],
        repeats: list[Repeat],
        effort: Effort,
        constraints: Constraints | None,
    ) -> None:
        self.held, self.source, self.ranks, self.repeats = held, source, ranks, repeats
        self.effort, self.constraints = effort, constraints
        self.whole: dict[int, NestedFit] = {}
        self.norm = sum(repeat.part.squared_norm for repeat in repeats)
        if self.norm == 0.0:
            raise ValueError(
                "all entries that were left out are zero, so no rank predicts them better than another; raise left_out "
                "or n_repeats, or choose the rank by hand for so small a matrix."
            )

    def every_rank(self) -> None:
        """Search nested selections of all ranks."""
        n_searches, quality = 1 + len(self.repeats), 0.0

        def tell(stage: str, begun: int, share: float) -> None:
            log_progress(stage, begun + share, float(n_searches), quality)

        self.whole = self._nested(self.ranks, partial(tell, "whole matrix", 0))(self.source)
        quality = self.quality(self.ranks[-1])
        for number, repeat in enumerate(self.repeats, 1):
            stage = partial(tell, f"entries left out, {number} of {len(self.repeats)}", number)
            repeat.search(self._nested(self.ranks, stage), self.whole)

    def around_the_bend(self, recommended: Callable[[Doubles], int]) -> None:
        """Search thoroughly at the recommended rank and the one below it, until neither is new.

        ``recommended`` is the position of the recommended rank, given the errors of all ranks.

        Nested selections can miss an index. Then the right rank looks too poor, and one more is recommended.
        """
        searched: set[int] = set()
        while True:
            best = recommended(self.errors())
            near = set(self.ranks[max(0, best - 1) : best + 1]) - searched
            if not near:
                return
            searched |= near
            better = []
            for rank in sorted(near):
                began = time.perf_counter()
                with muted():
                    found = automatic_search(self.source, rank, "fast", constraints=self.constraints)
                known = self.whole[rank]
                if found.state.squared_error < _BETTER * known.state.squared_error:
                    self.whole[rank] = NestedFit(found.state, known.seconds + time.perf_counter() - began)
                    better.append(rank)
            if better:
                for repeat in self.repeats:
                    repeat.search(self._nested(better), self.whole)

    def quality(self, rank: int) -> float:
        """One minus the relative error on the whole matrix, or on its observed entries."""
        state = self.whole[rank].state
        squared_error = state.squared_error
        if isinstance(self.held, Observed):
            right = np.ascontiguousarray(state.right.T)
            squared_error = self.held.weighted_squares(residuals(self.held.entries, state.left, right))
        return 1.0 - float(np.sqrt(max(0.0, squared_error) / self.held.squared_norm))

    def seconds(self, rank: int) -> float:
        """Seconds spent on a rank."""
        return self.whole[rank].seconds + sum(repeat.found[rank].seconds for repeat in self.repeats)

    def sums(self, rank: int) -> tuple[Doubles, Doubles]:
        """Squared errors on left-out entries of all repeats, summed by rows and by columns."""
        found = [repeat.found[rank] for repeat in self.repeats]
        return np.sum([one.by_row for one in found], axis=0), np.sum([one.by_column for one in found], axis=0)

    def errors(self) -> Doubles:
        """Relative error on left-out entries of every rank."""
        return np.sqrt([self.sums(rank)[0].sum() / self.norm for rank in self.ranks])

    def stability(self, rank: int) -> float:
        """Mean agreement of factors over all pairs of searches."""
        state = self.whole[rank].state
        fits = [(state.left, state.right.T), *((one.found[rank].left, one.found[rank].right) for one in self.repeats)]
        return float(np.mean([agreement(*a, *b) for a, b in combinations(fits, 2)]))

    def _nested(
        self, ranks: list[int], progress: Callable[[float], None] | None = None
    ) -> Callable[..., dict[int, NestedFit]]:
        return partial(
            nested_fits,
            ranks=ranks,
            work=_WORK[self.effort] * sum(ranks) / sum(self.ranks),
            n_candidates=_CANDIDATES[self.effort],
            constraints=self.constraints,
            progress=progress,
        )


class NestedFit(NamedTuple):
    """A selection with its weights, and the seconds that it took from the one before it."""

    state: State
    seconds: float


def nested_fits(
    matrix: Matrix,
    ranks: Iterable[int],
    *,
    work: float,
    n_candidates: int,
    constraints: Constraints | None = None,
    known: Mapping[int, NestedFit] | None = None,
    enough: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> dict[int, NestedFit]:
    """Selections of all ranks, with their weights.

    Parameters
    ----------
    matrix : Matrix
    ranks : ints
    work : float
        Nominal seconds that all exchanges together may take: see `gsnmf.search.effort`.
    n_candidates : int
        Candidates per side.
    constraints : Constraints, optional
    known : mapping, optional
        Maps ranks to fits of another matrix, whose selections are tried too.
    enough : float
        Squared error below which a selection is not improved further. If it is zero, all weights are nearly optimal;
        otherwise they are good.
    progress : callable, optional
        Called with the share of the ranks that is done.

    Returns
    -------
    dict
        Maps each rank to its selection, which has fewer indices if these explain everything.
    """
    ordered = sorted(set(ranks))
    limits = {rank: (constraints or Constraints()).resolve(matrix.shape, rank) for rank in ordered}
    last = limits[ordered[-1]]
    trials = Trials(candidate_pool(matrix, max(n_candidates, ordered[-1]), last), last, Work(float("inf")))
    for one in (known or {}).values():
        trials.candidates.include(one.state.columns.indices, one.state.rows.indices)
    shares = {rank: 0.5 * work * rank / sum(ordered) for rank in ordered}
    found: dict[int, NestedFit] = {}
    steps = [(rank, True) for rank in ordered] + [(rank, False) for rank in reversed(ordered[:-1])]
    with trials.running():
        state, _ = trials.candidates.state(last.included_columns, last.included_rows).solved()
        for number, (rank, upwards) in enumerate(steps, 1):
            began = time.perf_counter()
            trials.limits = limits[rank]
            state = grow(trials, state) if upwards else _shrink(trials, state)
            if upwards and known and rank in known:
                state = min(state, _same_indices(trials, known[rank].state), key=by_error)
            state = _settle(trials, state, enough)
            if state.squared_error > enough:
                until = trials.work.spent + shares[rank]
                state = _settle(trials, improve(trials, state, until, _FAILURES)[0], enough)
            seconds = time.perf_counter() - began
            if not upwards:
                other = found[rank]
                state = min(state, other.state, key=by_error)
                seconds += other.seconds
            found[rank] = NestedFit(state, seconds)
            if progress is not None:
                progress(number / len(steps))
    return found


def _settle(trials: Trials, state: State, enough: float) -> State:
    """The selection with nearly optimal weights, or with good ones if a small error is enough.

    On a matrix that the selection explains almost exactly, optimal weights take long to find and gain little.
    """
    if enough == 0.0:
        return trials.polish(state)
    return trials.descend(state, _SETTLING_ROUNDS, tolerance=_SETTLED)


def _same_indices(trials: Trials, known: State) -> State:
    """The selection of a state of another matrix, with its weights fitted to this one."""
    columns, rows = known.columns, known.rows
    state = trials.candidates.state(columns.indices, rows.indices, columns.weights, rows.weights)
    return trials.descend(state, _SETTLING_ROUNDS)


def _shrink(trials: Trials, state: State) -> State:
    """The selection without the indices that explain least, down to the size of the limits."""
    limits = trials.limits
    while state.size > limits.size:
        worths = trials.worths(state)
        is_column = np.arange(state.size) < state.columns.size
        worths[trials.fixed(state)] = np.inf
        if state.columns.size <= limits.least_columns:
            worths[is_column] = np.inf
        if state.rows.size <= limits.least_rows:
            worths[~is_column] = np.inf
        dropped = int(np.argmin(worths))
        state = trials.descend(trials.candidates.without(state, [dropped]), _ROUNDS)
    return state

"""Automatic search: several starts, exchanges from all of them, perturbations, and the best by the true error.

An effort is a sequence of stages: ``"balanced"`` does what ``"fast"`` does and then goes on with more starts and
candidates; ``"best"`` does what ``"balanced"`` does and goes on. So more effort is never worse. In every stage each
start gets a few exchanges before the best are favoured, because the start with the smallest error is often not the one
closest to the best selection. The best selection with as many columns as allowed, and the best one with as many rows as
allowed, also get exchanges that keep these numbers: free exchanges soon bring a row into a selection of columns, and
then rarely lead back to columns alone, even if these are better in the end. When no exchange helps, the search perturbs
the best selection and goes on until the work of the stage is spent. Work is counted, not timed (`gsnmf.search.effort`),
so the answer is the same on every machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import EndReason, SearchRecord, Selection
from gsnmf.search.candidates import Candidates
from gsnmf.search.effort import STAGES, Clock, Effort, Stage, Work, check_effort, check_time_limit
from gsnmf.search.exchange import PROGRESS, batches, improve, improve_thoroughly, perturb, try_every_exchange
from gsnmf.search.starts import AFFORDABLE, Starts, prepare, start_from
from gsnmf.search.state import State, by_error
from gsnmf.search.trials import Incumbent, Trials
from gsnmf.support.arrays import COLUMNS_AND_ROWS

_BETTER = 1e-7
"""A perturbation must lower the squared error by this fraction to count."""
_STARTING = 0.2
"""Fraction of a stage's work for the first exchanges of all starts together."""
_STARTING_AT_MOST = 0.5
"""The same where even a few exchanges of each start take more; starts with the largest errors then get none."""
_REFINING = 0.3
"""Fraction of a stage's work for going on from the best of them until no exchange helps."""
_PERTURBED = 2
"""Perturbations of the same selection that go on side by side; with more, each would know less of the others."""

Chain = Callable[[Trials], State]
"""A search that goes on independently of others."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    selection: Selection
    state: State
    """The selection with its weights, from which a final solve can start."""
    record: SearchRecord
    """What the search did and why it ended."""


def automatic_search(
    matrix: Matrix,
    rank: int | tuple[int, int],
    effort: Effort = "balanced",
    *,
    constraints: Constraints | None = None,
    limits: Limits | None = None,
    time_limit: float | None = None,
) -> SearchResult:
    """Search for the columns and rows with the smallest error, within the given effort.

    Parameters
    ----------
    matrix : Matrix
    rank : int or pair
        How many columns and rows in all, or how many of each.
    effort : {"fast", "balanced", "best"}
        About a second, ten seconds or two minutes on two cores; less if nothing better is found nearby.
    constraints : Constraints, optional
    limits : Limits, optional
        The constraints, if already resolved.
    time_limit : float, optional
        Seconds after which the best so far is returned. The answer then depends on the machine.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If no selection can obey the constraints, or if an included column or row is zero.
    KeyboardInterrupt
        The user's own interrupt, with the best result so far (or None) as its attribute ``best_so_far``.

    Notes
    -----
    The answer satisfies the constraints, and is never worse than any start in the record or than the answer with less
    effort. Progress is logged (`gsnmf.support.progress`).

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> M = wrap(np.array([[1.0, 0, 2], [0, 1, 2], [0, 0, 1]]))
    >>> found = automatic_search(M, 3, "fast")
    >>> found.record.end
    'error is zero'
    """
    limits = limits or (constraints or Constraints()).resolve(matrix.shape, rank)
    search = _Search(matrix, limits, effort, time_limit=time_limit)
    try:
        return search.run()
    except KeyboardInterrupt as interrupt:
        cast("Any", interrupt).best_so_far = search.result() if search.best.known else None
        raise


class _Search:
    """A search that can be asked for the best so far at any time: see `automatic_search`."""

    def __init__(
        self,
        matrix: Matrix,
        limits: Limits,
        effort: Effort = "balanced",
        *,
        time_limit: float | None = None,
    ) -> None:
        self.effort = check_effort(effort)
        self.limits = limits
        check_included(matrix, self.limits)
        self._stages = STAGES[: [stage.name for stage in STAGES].index(self.effort) + 1]
        self.matrix = matrix
        none = np.empty(0, dtype=np.intp)
        work = Work(self._stages[-1].work, Clock(time.monotonic() + check_time_limit(time_limit)))
        self._trials = Trials(Candidates(matrix, none, none), self.limits, work)
        self.best = Incumbent(self._trials, self._stages[-1].work)
        self._starts = Starts(self.best)
        self._perturbations = self._perturbations_kept = 0
        self._settled: State | None = None
        """The best selection, if it was improved thoroughly."""
        self._optimal = False
        self._ended_nearby = False

    def run(self) -> SearchResult:
        """Go through all stages."""
        with self._trials.running():
            for stage in self._stages:
                self._trials.work.limit = stage.work
                self._run(stage)
                if self.best.exact or self._trials.work.out_of_time:
                    break
            if not self.best.exact and not self._trials.work.out_of_time:
                self.best.offer(self._trials.polish(self.best.state, 1e-4, 100), self._stages[-1])
        return self.result()

    def result(self) -> SearchResult:
        """The best so far."""
        state, trials = self.best.state, self._trials
        candidates = trials.candidates
        record = SearchRecord(
            effort=self.effort,
            starts=tuple(self._starts.records.values()),
            n_candidates=(candidates.columns.indices.size, candidates.rows.indices.size),
            exchanges_tried=trials.tried,
            exchanges_kept=trials.kept,
            perturbations=self._perturbations,
            perturbations_kept=self._perturbations_kept,
            optimal_under_exchanges=self._optimal,
            end=self._end,
            work=trials.work.spent,
        )
        selection = Selection.of_indices(state.columns.indices, state.rows.indices, "auto", self.limits.size)
        return SearchResult(selection, state, record)

    @property
    def _end(self) -> EndReason:
        if self.best.exact:
            return "error is zero"
        if self._trials.work.out_of_time:
            return "time limit"
        return "nothing better nearby" if self._ended_nearby else "work spent"

    def _run(self, stage: Stage) -> None:
        self._starts.add_candidates(stage)
        self._starts.make_starts(stage)
        if self.best.exact or not self._trials.work.left():
            return
        self._optimal = self._ended_nearby = False
        self._settled = None  # there are more candidates now
        self._refine(stage, self._first_exchanges(stage))
        self._perturb(stage)

    def _first_exchanges(self, stage: Stage) -> list[State]:
        """The new starts and the best so far, each after a few exchanges, best first."""
        work = self._trials.work
        starts = self._starts.distinct(stage)
        extremes = self.best.promising_extremes() if stage.patience else []
        left = max(0.0, stage.work - work.spent)
        share, until = _STARTING * left / (len(starts) + len(extremes)), work.spent + _STARTING_AT_MOST * left
        found = starts[:1]
        affordable = share >= self._trials.seconds_of_gains(self.limits.size)  # otherwise, all work is for the best
        chains: list[Chain] = [partial(_improve_for_a_share, state=state, share=share) for state in starts]
        chains += [self._improve_extreme(n_columns, share) for n_columns in extremes]
        for batch in batches(chains if affordable else [], self._trials.n_chains()):
            if work.left(until):
                found += self._run_and_offer(batch, stage)
        unique = {frozenset(state.factors()): state for state in sorted(found, key=by_error, reverse=True)}
        return sorted(unique.values(), key=by_error)

    def _improve_extreme(self, n_columns: int, share: float) -> Chain:
        """Exchanges from the best selection with this number of columns that keep the number."""
        _, columns, rows = self.best.extremes[n_columns]
        limits = self.limits.with_columns(n_columns)

        def improve_within(trials: Trials) -> State:
            with trials.within(limits):
                state = trials.polish(start_from(trials, *prepare(trials, columns, rows)))
                return _improve_for_a_share(trials, state, share)

        return improve_within

    def _run_and_offer(self, chains: Sequence[Chain], stage: Stage) -> list[State]:
        """The results of independent chains, each offered as the best."""
        found = self._trials.run_chains(chains)
        for state in found:
            self.best.offer(state, stage)
        return found

    def _refine(self, stage: Stage, states: list[State]) -> None:
        """Go on from the best of these until no exchange helps."""
        work = self._trials.work
        if stage.patience == 0:
            for state in states[: stage.n_refined]:
                better, self._ended_nearby = improve_thoroughly(self._trials, state)
                self.best.offer(better, stage)
            return
        share = _REFINING * max(0.0, stage.work - work.spent) / stage.n_refined
        settled: list[State] = []

        def refine(trials: Trials, state: State) -> State:
            better, done = improve_thoroughly(trials, state, trials.work.spent + share)
            if done:
                settled.append(better)
            return better

        for batch in batches(states[: stage.n_refined], self._trials.n_chains()):
            self._run_and_offer([partial(refine, state=state) for state in batch], stage)
        self._settled = next((state for state in settled if state is self.best.state), None)
        self._settle(stage)

    def _settle(self, stage: Stage) -> bool:
        """Improve the best selection thoroughly, unless that was done; return whether nothing better was found."""
        before = self.best.state
        if before is not self._settled:
            better, done = improve_thoroughly(self._trials, before)
            self.best.offer(better, stage)
            self._settled = self.best.state if done else None
        return self.best.state.squared_error >= (1.0 - PROGRESS) * before.squared_error

    def _perturb(self, stage: Stage) -> None:
        """Perturb the best selection and exchange from there, until the work is spent or nothing better turns up."""
        trials = self._trials
        stale = 0
        while stage.patience and trials.work.left() and not self.best.exact:
            if stale >= stage.patience:
                if self._certified(stage):
                    return
                stale = 0
            found = self._perturbations_of_best(stage)
            trial = min(found, key=by_error)
            stale += len(found)
            if trial.squared_error < (1.0 - _BETTER) * self.best.state.squared_error:
                self._perturbations_kept += 1
                stale = 0
                self.best.offer(trials.polish(trial), stage)
            self.best.report(stage)

    def _perturbations_of_best(self, stage: Stage) -> list[State]:
        """Several perturbations of the best selection, each after exchanges."""
        n_chains = min(_PERTURBED, self._trials.n_chains())
        share = max(0.0, stage.work - self._trials.work.spent) / n_chains
        best = self.best.state

        def perturb_and_improve(trials: Trials, number: int) -> State:
            until = trials.work.spent + share
            trial = perturb(trials, best, number, np.random.default_rng(number))
            return improve(trials, trial, until, stage.limit)[0]

        numbers = range(self._perturbations + 1, self._perturbations + n_chains + 1)
        self._perturbations += n_chains
        return self._trials.run_chains([partial(perturb_and_improve, number=number) for number in numbers])

    def _certified(self, stage: Stage) -> bool:
        """Whether the best selection survives giving up each index and, if they are few, trying all exchanges."""
        if not self._settle(stage):
            return False
        if self._seconds_of_every_exchange() > AFFORDABLE * stage.work:
            self._ended_nearby = self._trials.work.left()
            return True
        better, self._optimal = try_every_exchange(self._trials, self.best.state, math.inf)
        self.best.offer(better, stage)
        self._ended_nearby = self._optimal
        return self._optimal

    def _seconds_of_every_exchange(self) -> float:
        """Approximate nominal seconds to try every exchange, from the cost of the trials so far."""
        candidates = self._trials.candidates
        n_exchanges = (candidates.columns.indices.size + candidates.rows.indices.size) * self.limits.size
        return n_exchanges * self._trials.work.spent / max(1, self._trials.tried)


def _improve_for_a_share(trials: Trials, state: State, share: float) -> State:
    """Exchanges until none helps or a share of the work is spent, but at least a few."""
    return improve(trials, state, trials.work.spent + share, once=True)[0]


def check_included(matrix: Matrix, limits: Limits) -> None:
    """Refuse to include a zero column or row: it has no direction and explains nothing."""
    for axis in COLUMNS_AND_ROWS:
        included = limits.included(axis)
        zero = included[matrix.along(axis).squared_column_norms[included] == 0] if included.size else included
        if zero.size:
            raise ValueError(
                f"include_{axis} must not be zero in the matrix; got {zero.tolist()}, which explain nothing."
            )

"""Automatic search: several starts, exchanges from all of them, perturbations, and the best by the true error.

An effort is a sequence of stages: ``"balanced"`` does what ``"fast"`` does and then goes on with more starts and
candidates; ``"best"`` does what ``"balanced"`` does and goes on. So more effort is never worse. In every stage each
start gets a few exchanges before the best are favoured, because the start with the smallest error is often not the one
closest to the best selection. The best selection with as many columns as allowed, and the best one with as many rows as
allowed, also get exchanges that keep these numbers: free exchanges soon bring a row into a selection of columns, and
then rarely lead back to columns alone, even if these are better in the end. When no exchange helps, the search perturbs
the best selection and goes on until the work of the stage is spent. Work is counted, not timed (`gsnmf.search.work`),
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

from gsnmf.matrices.protocol import Matrix
from gsnmf.results import Selection
from gsnmf.results.search import EndReason, SearchRecord, Start
from gsnmf.search.alternating import alternated, matched_factors, short_nmf
from gsnmf.search.candidates import Candidates, Fit, candidate_indices
from gsnmf.search.effort import STAGES, Effort, Progress, Stage, check_effort, check_time_limit
from gsnmf.search.exchange import PROGRESS, batches, every_exchange, improved, thoroughly_improved
from gsnmf.search.fitted import Fitted, by_error
from gsnmf.search.perturbation import perturbed
from gsnmf.search.starts import StartMethod, prepared, start_methods, started
from gsnmf.search.trials import Trials
from gsnmf.search.work import Clock, Work
from gsnmf.selection.constraints import Constraints, Limits
from gsnmf.support.arrays import Axis, Indices
from gsnmf.support.progress import log_progress

_EXACT = 1e-12
"""Relative squared error below which the fit counts as exact."""
_THOROUGHLY = 1e-6, 200
"""Tolerance and iterations with which the weights of a nearly exact selection tell whether it is exact."""
_BETTER = 1e-7
"""A perturbation must lower the squared error by this fraction to count."""


_AFFORDABLE = 0.1
"""Fraction of a stage's work that a single start may take."""
_STARTING = 0.2
"""Fraction of a stage's work for the first exchanges of all starts together."""
_STARTING_AT_MOST = 0.5
"""The same where even a few exchanges of each start take more; starts with the largest errors then get none."""
_REFINING = 0.3
"""Fraction of a stage's work for going on from the best of them until no exchange helps."""
_CLOSE = 1.2
"""Starts with a squared error of at most this many times the best are fitted well before their first exchanges."""
_PROMISING = 1.05
"""Columns alone, or rows alone, get exchanges if their squared error is at most this many times the best."""
_MEMORY_OF_STARTS = 1 << 28
"""Bytes that starts may take while they wait for their first exchanges."""
_FEW_ENTRIES = 1 << 22
"""Methods run at the same time only on matrices of at most this many entries, because each takes memory of its own."""
_PERTURBED = 2
"""Perturbations of the same selection that go on side by side; with more, each would know less of the others."""
_UNEVEN = 4.0
"""The shorter side of a matrix may have up to this many times its even share of candidates."""
_SCANS = 60.0
"""The number of candidates is such that all exchanges can be scored this often in a stage."""


Task = Callable[[Trials], Fitted]
"""An independent part of a search."""


@dataclass(frozen=True)
class _Extreme:
    """A selection with as few or as many columns as allowed; its weights would take much memory."""

    squared_error: float
    columns: Indices
    rows: Indices


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    selection: Selection
    fit: Fit
    """The selection with its weights, from which a final solve can start: `gsnmf.search.candidates.Fit`."""
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
    progress: Progress | None = None,
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
    progress : callable, optional
        Called with the stage, the work done, the total work and the best quality so far.

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
    effort.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrices import wrap
    >>> M = wrap(np.array([[1.0, 0, 2], [0, 1, 2], [0, 0, 1]]))
    >>> found = automatic_search(M, 3, "fast")
    >>> found.record.end
    'error is zero'
    """
    limits = limits or (constraints or Constraints()).resolve(matrix.shape, rank)
    search = Search(matrix, limits, effort, time_limit=time_limit, progress=progress)
    try:
        return search.run()
    except KeyboardInterrupt as interrupt:
        cast("Any", interrupt).best_so_far = search.result() if search.started else None
        raise


class Search:
    """A search that can be asked for the best so far at any time: see `automatic_search`."""

    def __init__(
        self,
        matrix: Matrix,
        limits: Limits,
        effort: Effort = "balanced",
        *,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.effort = check_effort(effort)
        self.limits = limits
        check_included(matrix, self.limits)
        self._stages = STAGES[: [stage.name for stage in STAGES].index(self.effort) + 1]
        self.matrix = matrix
        none = np.empty(0, dtype=np.intp)
        work = Work(self._stages[-1].work, Clock(time.monotonic() + check_time_limit(time_limit)))
        self._trials = Trials(Candidates(matrix, none, none), self.limits, work)
        self._progress = progress or log_progress
        self._entries = float(matrix.n_stored)
        self._best: Fitted | None = None
        self._starts: dict[str, Start] = {}
        self._waiting: dict[str, Fitted] = {}
        """Starts that have not had their first exchanges."""
        self._extremes: dict[int, _Extreme] = {}
        """The best selection with as few, and with as many columns as allowed, by their number."""
        self._perturbations = self._perturbations_kept = 0
        self._optimal = False
        self._ended_nearby = False

    @property
    def started(self) -> bool:
        """Whether there is a best selection yet."""
        return self._best is not None

    def run(self) -> SearchResult:
        """Go through all stages."""
        with self._trials.running():
            for stage in self._stages:
                self._trials.work.limit = stage.work
                self._run(stage)
                if self._exact or self._trials.work.out_of_time:
                    break
            assert self._best is not None
            if not self._exact and not self._trials.work.out_of_time:
                self._best = self._trials.polished(self._best, 1e-4, 100)
        return self.result()

    def result(self) -> SearchResult:
        """The best so far."""
        assert self._best is not None
        fit, trials = self._best.fit, self._trials
        candidates = trials.candidates
        record = SearchRecord(
            effort=self.effort,
            starts=tuple(self._starts.values()),
            n_candidates=(candidates.columns.indices.size, candidates.rows.indices.size),
            exchanges_tried=trials.tried,
            exchanges_kept=trials.kept,
            perturbations=self._perturbations,
            perturbations_kept=self._perturbations_kept,
            optimal_under_exchanges=self._optimal,
            end=self._end,
            work=trials.work.spent,
        )
        selection = Selection.of_indices(fit.columns, fit.rows, "auto", self.limits.size)
        return SearchResult(selection, fit, record)

    @property
    def _exact(self) -> bool:
        return self._best is not None and self._best.squared_error <= _EXACT * self.matrix.squared_norm

    @property
    def _end(self) -> EndReason:
        if self._exact:
            return "error is zero"
        if self._trials.work.out_of_time:
            return "time limit"
        return "nothing better nearby" if self._ended_nearby else "work spent"

    def _run(self, stage: Stage) -> None:
        self._add_candidates(stage)
        self._make_starts(stage)
        if self._exact or not self._trials.work.left():
            return
        self._optimal = self._ended_nearby = False
        self._refine(stage, self._first_exchanges(stage))
        self._perturb(stage)

    def _offer(self, fitted: Fitted, stage: Stage) -> bool:
        """Keep a selection if it is the best so far; return whether it is."""
        better = self._best is None or fitted.squared_error < self._best.squared_error
        if better:
            nearly_exact = self._trials.nearly_exact(fitted)
            self._best = self._trials.polished(fitted, *_THOROUGHLY) if nearly_exact else fitted
        self._remember_extreme(fitted)
        self._report(stage)
        return better

    def _remember_extreme(self, fitted: Fitted) -> None:
        limits, n_columns = self.limits, fitted.fit.columns.size
        if fitted.size < limits.size or limits.least_columns == limits.most_columns:
            return
        if n_columns in (limits.least_columns, limits.most_columns):
            known = self._extremes.get(n_columns)
            if known is None or fitted.squared_error < known.squared_error:
                self._extremes[n_columns] = _Extreme(fitted.squared_error, fitted.fit.columns, fitted.fit.rows)

    def _report(self, stage: Stage) -> None:
        if self._best is not None:
            norm = self.matrix.squared_norm
            quality = 1.0 - math.sqrt(self._best.squared_error / norm) if norm > 0 else 1.0
            total = self._stages[-1].work
            self._progress(stage.name, min(self._trials.work.spent, total), total, quality)

    def _add_candidates(self, stage: Stage) -> None:
        """Add the candidates of this stage to the existing ones."""
        n_columns, n_rows = self._n_candidates(stage)
        self._trials.candidates.include(
            candidate_indices(self.matrix, "columns", self.limits, n_columns),
            candidate_indices(self.matrix, "rows", self.limits, n_rows),
        )
        self._trials.work.products(
            2.0 * self._entries * max(n_columns, n_rows) * (0.2 if self.matrix.in_memory else 0.0)
        )

    def _n_candidates(self, stage: Stage) -> tuple[int, int]:
        """How many candidate columns and rows the stage can afford; more on the side where they cost less."""
        m, n = self.matrix.shape
        size = self.limits.size
        affordable = stage.work / _SCANS / (5e-10 * size)
        if stage.name == "fast" and not self.matrix.in_memory and affordable < size * (m + n):
            return 0, 0  # saves one pass over the data
        of_each = affordable / (m + n)
        columns, rows = (max(of_each, min(_UNEVEN * of_each, affordable / (2 * length))) for length in (n, m))
        return max(size, min(stage.candidates, int(columns))), max(size, min(stage.candidates, int(rows)))

    def _make_starts(self, stage: Stage) -> None:
        methods = list(start_methods(self.matrix, self.limits, self._entries, stage.convex_entries))
        for always in (True, False):
            wanted = [method for method in methods if method.always == always and method.name not in self._starts]
            for batch in batches(wanted, self._n_starts_at_a_time()):
                self._run_methods(stage, batch)
            if always:
                self._wish(stage)
        if self._pursuit_seconds() <= _AFFORDABLE * stage.work and self._trials.work.left() and not self._exact:
            none = np.empty(0, dtype=np.intp)
            self._start(stage, {f"pursuit ({stage.name})": (none, none)})

    def _n_starts_at_a_time(self) -> int:
        """Several if the memory that each takes is small."""
        return self._trials.n_chains() if self.matrix.in_memory and self._entries <= _FEW_ENTRIES else 1

    def _run_methods(self, stage: Stage, methods: Sequence[StartMethod]) -> None:
        """Run those methods that the stage can afford, at the same time where there are threads."""
        work = self._trials.work
        limit = _AFFORDABLE * stage.work
        runs = [method for method in methods if method.always or (method.seconds <= limit and work.left())]
        if self._exact:
            return
        work.spent += sum(method.seconds for method in runs)
        choices = self._trials.candidates.team.map(lambda method: method.choose(self.matrix, self.limits), runs)
        self._start(stage, dict(zip([method.name for method in runs], choices, strict=True)))

    def _pursuit_seconds(self) -> float:
        """Approximate nominal seconds of a pursuit among the candidates."""
        m, n = self.matrix.shape
        candidates, rank = self._trials.candidates, self.limits.size
        scores = 1.5e-10 * (candidates.columns.indices.size * n + candidates.rows.indices.size * m) * rank**2
        return scores + 2e-9 * (m + n) * rank**3

    def _start(self, stage: Stage, choices: dict[str, tuple[Indices, Indices]]) -> Fitted | None:
        """Fit the selections of starts and keep them; return the last one."""
        ready = [prepared(self._trials, *choice) for choice in choices.values()]
        tasks = [partial(started, columns=columns, rows=rows) for columns, rows in ready]
        fitted = None
        norm = self.matrix.squared_norm
        for name, fitted in zip(choices, self._trials.chains(tasks), strict=True):
            error = math.sqrt(fitted.squared_error / norm) if norm > 0 else 0.0
            self._starts[name] = Start(name, error, fitted.fit.columns.size, fitted.fit.rows.size)
            self._wait(name, fitted, stage)
        return fitted

    def _wait(self, name: str, fitted: Fitted, stage: Stage) -> None:
        """Keep a start for its first exchanges; if all take too much memory, drop the worst."""
        self._waiting[name] = fitted
        self._offer(fitted, stage)
        total = 0
        for other, held in sorted(self._waiting.items(), key=lambda item: item[1].squared_error):
            total += held.n_bytes
            if total > _MEMORY_OF_STARTS:
                del self._waiting[other]

    def _first_exchanges(self, stage: Stage) -> list[Fitted]:
        """The new starts and the best so far, each after a few exchanges, best first."""
        work = self._trials.work
        starts = self._distinct_starts(stage)
        extremes = self._promising_extremes() if stage.patience else []
        left = max(0.0, stage.work - work.spent)
        share, until = _STARTING * left / (len(starts) + len(extremes)), work.spent + _STARTING_AT_MOST * left
        found = starts[:1]
        affordable = share >= self._trials.seconds_of_gains(self.limits.size)  # otherwise, all work is for the best
        tasks: list[Task] = [partial(_for_a_share, fitted=fitted, share=share) for fitted in starts]
        tasks += [self._extreme(n_columns, share) for n_columns in extremes]
        for batch in batches(tasks if affordable else [], self._trials.n_chains()):
            if work.left(until):
                found += self._offered(batch, stage)
        unique = {frozenset(fitted.identities()): fitted for fitted in sorted(found, key=by_error, reverse=True)}
        return sorted(unique.values(), key=by_error)

    def _distinct_starts(self, stage: Stage) -> list[Fitted]:
        """The best so far and the starts that wait, best first; those close to the best are fitted well."""
        assert self._best is not None
        fits = {frozenset(fitted.identities()): fitted for fitted in (self._best, *self._waiting.values())}
        self._waiting.clear()
        for identities, fitted in fits.items():
            if fitted.squared_error <= _CLOSE * self._best.squared_error:
                fits[identities] = self._trials.polished(fitted)
                self._offer(fits[identities], stage)
        return sorted(fits.values(), key=by_error)

    def _promising_extremes(self) -> list[int]:
        """The numbers of columns of extreme selections that exchanges may make the best."""
        assert self._best is not None
        enough = _PROMISING * self._best.squared_error
        return sorted(number for number, known in self._extremes.items() if known.squared_error <= enough)

    def _extreme(self, n_columns: int, share: float) -> Task:
        """Exchanges from the best selection with this number of columns that keep the number."""
        known, limits = self._extremes[n_columns], self.limits.with_columns(n_columns)

        def improve(trials: Trials) -> Fitted:
            with trials.within(limits):
                fitted = trials.polished(started(trials, *prepared(trials, known.columns, known.rows)))
                return _for_a_share(trials, fitted, share)

        return improve

    def _offered(self, tasks: Sequence[Task], stage: Stage) -> list[Fitted]:
        """The results of independent tasks, each offered as the best."""
        found = self._trials.chains(tasks)
        for fitted in found:
            self._offer(fitted, stage)
        return found

    def _refine(self, stage: Stage, fits: list[Fitted]) -> None:
        """Go on from the best of these until no exchange helps."""
        work = self._trials.work
        if stage.patience == 0:
            for fitted in fits[: stage.n_refined]:
                better, self._ended_nearby = thoroughly_improved(self._trials, fitted)
                self._offer(better, stage)
            return
        share = _REFINING * max(0.0, stage.work - work.spent) / stage.n_refined
        tasks = [partial(_for_a_share, fitted=fitted, share=share, once=False) for fitted in fits[: stage.n_refined]]
        for batch in batches(tasks, self._trials.n_chains()):
            self._offered(batch, stage)

    def _wish(self, stage: Stage) -> None:
        """Starts from the ideal vectors of the best selection, and from the factors of a short NMF started there."""
        seconds = 4.0 * stage.nmf_iterations * 1.5e-10 * self._entries * self.limits.size
        if not self.matrix.in_memory or self._exact or not self._trials.work.left():
            return
        if seconds > 3 * _AFFORDABLE * stage.work:
            return
        assert self._best is not None
        self._trials.work.spent += seconds
        W, H = short_nmf(self.matrix, self._best.left, self._best.right, stage.nmf_iterations)
        name = f"nmf ({stage.name})"
        fitted = self._start(stage, {name: matched_factors(self.matrix, W, H, self.limits)})
        assert fitted is not None
        self._wait(name, alternated(self._trials, fitted, self._entries), stage)

    def _perturb(self, stage: Stage) -> None:
        """Perturb the best selection and exchange from there, until the work is spent or nothing better turns up."""
        trials = self._trials
        stale = 0
        while stage.patience and trials.work.left() and not self._exact:
            assert self._best is not None
            if stale >= stage.patience:
                if self._certified(stage):
                    return
                stale = 0
            found = self._perturbed(stage)
            trial = min(found, key=by_error)
            stale += len(found)
            if trial.squared_error < (1.0 - _BETTER) * self._best.squared_error:
                self._perturbations_kept += 1
                stale = 0
                self._offer(trials.polished(trial), stage)
            self._report(stage)

    def _perturbed(self, stage: Stage) -> list[Fitted]:
        """Several perturbations of the best selection, each after exchanges."""
        assert self._best is not None
        n_tasks = min(_PERTURBED, self._trials.n_chains())
        share = max(0.0, stage.work - self._trials.work.spent) / n_tasks

        def task(trials: Trials, fitted: Fitted, number: int) -> Fitted:
            until = trials.work.spent + share
            trial = perturbed(trials, fitted, number, np.random.default_rng(number))
            return improved(trials, trial, until, limit=stage.limit)[0]

        numbers = range(self._perturbations + 1, self._perturbations + n_tasks + 1)
        self._perturbations += n_tasks
        return self._trials.chains([partial(task, fitted=self._best, number=number) for number in numbers])

    def _certified(self, stage: Stage) -> bool:
        """Whether the best selection survives giving up each index and, if they are few, trying all exchanges."""
        assert self._best is not None
        before = self._best
        better, _ = thoroughly_improved(self._trials, before)
        self._offer(better, stage)
        if better.squared_error < (1.0 - PROGRESS) * before.squared_error:
            return False
        if self._seconds_of_every_exchange() > _AFFORDABLE * stage.work:
            self._ended_nearby = self._trials.work.left()
            return True
        better, self._optimal = every_exchange(self._trials, self._best, math.inf)
        self._offer(better, stage)
        self._ended_nearby = self._optimal
        return self._optimal

    def _seconds_of_every_exchange(self) -> float:
        """Approximate nominal seconds to try every exchange, from the cost of the trials so far."""
        candidates = self._trials.candidates
        n_exchanges = (candidates.columns.indices.size + candidates.rows.indices.size) * self.limits.size
        return n_exchanges * self._trials.work.spent / max(1, self._trials.tried)


def _for_a_share(trials: Trials, fitted: Fitted, share: float, once: bool = True) -> Fitted:
    """Exchanges until none helps or a share of the work is spent."""
    return improved(trials, fitted, trials.work.spent + share, once=once)[0]


def check_included(matrix: Matrix, limits: Limits) -> None:
    """Refuse to include a zero column or row: it has no direction and explains nothing."""
    sides: tuple[tuple[Axis, Matrix], ...] = (("columns", matrix), ("rows", matrix.T))
    for axis, side in sides:
        included = limits.included(axis)
        zero = included[side.squared_column_norms[included] == 0] if included.size else included
        if zero.size:
            raise ValueError(
                f"include_{axis} must not be zero in the matrix; got {zero.tolist()}, which explain nothing."
            )

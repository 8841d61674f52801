"""The starts of a search: candidates, all methods that a stage can afford, and a short NMF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gsnmf.records import Start
from gsnmf.search.alternating import alternated, matched_factors, short_nmf
from gsnmf.search.best_so_far import BestSoFar
from gsnmf.search.candidates import candidate_indices
from gsnmf.search.effort import Stage
from gsnmf.search.exchange import batches
from gsnmf.search.fitted import Fitted, by_error
from gsnmf.search.start_methods import StartMethod, prepared, start_methods, started
from gsnmf.search.work import nominal_seconds, seconds_of_blocks
from gsnmf.support.arrays import Indices

AFFORDABLE = 0.1
"""Fraction of a stage's work that a single start may take."""
_CLOSE = 1.2
"""Starts with a squared error of at most this many times the best are fitted well before their first exchanges."""
_MEMORY_OF_STARTS = 1 << 28
"""Bytes that starts may take while they wait for their first exchanges."""
_FEW_ENTRIES = 1 << 22
"""Methods run at the same time only on matrices of at most this many entries, because each takes memory of its own."""
_UNEVEN = 4.0
"""The shorter side of a matrix may have up to this many times its even share of candidates."""
_SCANS = 60.0
"""The number of candidates is such that all exchanges can be scored this often in a stage."""


class Starts:
    """Makes the starts of every stage and keeps them until they have had their first exchanges."""

    def __init__(self, best: BestSoFar) -> None:
        self.best = best
        self.trials = best.trials
        self.matrix = best.trials.candidates.matrix
        self.limits = best.trials.limits
        self.records: dict[str, Start] = {}
        self._entries = float(self.matrix.n_stored)
        self._waiting: dict[str, Fitted] = {}
        """Starts that have not had their first exchanges."""

    def add_candidates(self, stage: Stage) -> None:
        """Add the candidates of this stage to the existing ones."""
        n_columns, n_rows = self._n_candidates(stage)
        self.trials.candidates.include(
            candidate_indices(self.matrix, "columns", self.limits, n_columns),
            candidate_indices(self.matrix, "rows", self.limits, n_rows),
        )
        self.trials.work.products(
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

    def make_starts(self, stage: Stage) -> None:
        """Run all methods that the stage can afford, and keep their selections."""
        methods = list(start_methods(self.matrix, self.limits, self._entries, stage.convex_entries))
        for always in (True, False):
            wanted = [method for method in methods if method.always == always and method.name not in self.records]
            for batch in batches(wanted, self._n_starts_at_a_time()):
                self._run_methods(stage, batch)
            if always:
                self._wish(stage)
        if self._pursuit_seconds() <= AFFORDABLE * stage.work and self.trials.work.left() and not self.best.exact:
            none = np.empty(0, dtype=np.intp)
            self._start(stage, {f"pursuit ({stage.name})": (none, none)})

    def _n_starts_at_a_time(self) -> int:
        """Several if the memory that each takes is small."""
        return self.trials.n_chains() if self.matrix.in_memory and self._entries <= _FEW_ENTRIES else 1

    def _run_methods(self, stage: Stage, methods: Sequence[StartMethod]) -> None:
        """Run those methods that the stage can afford, at the same time where there are threads."""
        work = self.trials.work
        limit = AFFORDABLE * stage.work
        runs = [method for method in methods if method.always or (method.seconds <= limit and work.left())]
        if self.best.exact:
            return
        work.spent += sum(method.seconds for method in runs)
        choices = self.trials.candidates.threads.map(lambda method: method.choose(self.matrix, self.limits), runs)
        self._start(stage, dict(zip([method.name for method in runs], choices, strict=True)))

    def _pursuit_seconds(self) -> float:
        """Approximate nominal seconds of a pursuit among the candidates."""
        m, n = self.matrix.shape
        candidates, rank = self.trials.candidates, self.limits.size
        scores = float(candidates.columns.indices.size * n + candidates.rows.indices.size * m) * rank**2
        return nominal_seconds(products=scores) + 2e-9 * (m + n) * rank**3

    def _start(self, stage: Stage, choices: dict[str, tuple[Indices, Indices]]) -> Fitted | None:
        """Fit the selections of starts and keep them; return the last one."""
        ready = [prepared(self.trials, *choice) for choice in choices.values()]
        tasks = [partial(started, columns=columns, rows=rows) for columns, rows in ready]
        fitted = None
        norm = self.matrix.squared_norm
        for name, fitted in zip(choices, self.trials.chains(tasks), strict=True):
            error = math.sqrt(fitted.squared_error / norm) if norm > 0 else 0.0
            self.records[name] = Start(name, error, fitted.fit.columns.size, fitted.fit.rows.size)
            self._wait(name, fitted, stage)
        return fitted

    def _wait(self, name: str, fitted: Fitted, stage: Stage) -> None:
        """Keep a start for its first exchanges; if all take too much memory, drop the worst."""
        self._waiting[name] = fitted
        self.best.offer(fitted, stage)
        total = 0
        for other, held in sorted(self._waiting.items(), key=lambda item: item[1].squared_error):
            total += held.n_bytes
            if total > _MEMORY_OF_STARTS:
                del self._waiting[other]

    def _wish(self, stage: Stage) -> None:
        """Starts from the ideal vectors of the best selection, and from the factors of a short NMF started there."""
        size = self.limits.size
        seconds = seconds_of_blocks(self.matrix, 4.0 * stage.nmf_iterations * self._entries * size, size)
        if not self.matrix.in_memory or self.best.exact or not self.trials.work.left():
            return
        if seconds > 3 * AFFORDABLE * stage.work:
            return
        self.trials.work.spent += seconds
        W, H = short_nmf(self.matrix, self.best.fitted.left, self.best.fitted.right, stage.nmf_iterations)
        name = f"nmf ({stage.name})"
        fitted = self._start(stage, {name: matched_factors(self.matrix, W, H, self.limits)})
        assert fitted is not None
        self._wait(name, alternated(self.trials, fitted, self._entries), stage)

    def distinct(self, stage: Stage) -> list[Fitted]:
        """The best so far and the starts that wait, best first; those close to the best are fitted well."""
        fits = {frozenset(fitted.identities()): fitted for fitted in (self.best.fitted, *self._waiting.values())}
        self._waiting.clear()
        for identities, fitted in fits.items():
            if fitted.squared_error <= _CLOSE * self.best.fitted.squared_error:
                fits[identities] = self.trials.polished(fitted)
                self.best.offer(fits[identities], stage)
        return sorted(fits.values(), key=by_error)

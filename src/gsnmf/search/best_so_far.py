"""The best selection of a search so far, and who is told about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gsnmf.search.effort import Progress, Stage
from gsnmf.search.fitted import Fitted
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import Indices

_EXACT = 1e-12
"""Relative squared error below which the fit counts as exact."""
_THOROUGHLY = 1e-6, 200
"""Tolerance and iterations with which the weights of a nearly exact selection tell whether it is exact."""
_PROMISING = 1.05
"""Columns alone, or rows alone, get exchanges if their squared error is at most this many times the best."""


@dataclass(frozen=True)
class Extreme:
    """A selection with as few or as many columns as allowed; its weights would take much memory."""

    squared_error: float
    columns: Indices
    rows: Indices


class BestSoFar:
    """Keeps the best of the selections that it is offered."""

    def __init__(self, trials: Trials, progress: Progress, total: float) -> None:
        self.trials = trials
        self._limits = trials.limits
        self._progress = progress
        self._total = total
        self._fitted: Fitted | None = None
        self.extremes: dict[int, Extreme] = {}
        """The best selection with as few, and with as many columns as allowed, by their number."""

    @property
    def known(self) -> bool:
        """Whether there is one yet."""
        return self._fitted is not None

    @property
    def fitted(self) -> Fitted:
        """The selection with its weights."""
        assert self._fitted is not None
        return self._fitted

    @property
    def exact(self) -> bool:
        """Whether it explains the whole matrix."""
        norm = self.trials.candidates.matrix.squared_norm
        return self._fitted is not None and self._fitted.squared_error <= _EXACT * norm

    def offer(self, fitted: Fitted, stage: Stage) -> bool:
        """Keep a selection if it is the best so far; return whether it is."""
        better = self._fitted is None or fitted.squared_error < self._fitted.squared_error
        if better:
            nearly_exact = self.trials.nearly_exact(fitted)
            self._fitted = self.trials.polished(fitted, *_THOROUGHLY) if nearly_exact else fitted
        self._remember_extreme(fitted)
        self.report(stage)
        return better

    def _remember_extreme(self, fitted: Fitted) -> None:
        limits, n_columns = self._limits, fitted.fit.columns.size
        if fitted.size < limits.size or limits.least_columns == limits.most_columns:
            return
        if n_columns in (limits.least_columns, limits.most_columns):
            known = self.extremes.get(n_columns)
            if known is None or fitted.squared_error < known.squared_error:
                self.extremes[n_columns] = Extreme(fitted.squared_error, fitted.fit.columns, fitted.fit.rows)

    def report(self, stage: Stage) -> None:
        """Tell the progress."""
        if self._fitted is not None:
            norm = self.trials.candidates.matrix.squared_norm
            quality = 1.0 - math.sqrt(self._fitted.squared_error / norm) if norm > 0 else 1.0
            total = self._total
            self._progress(stage.name, min(self.trials.work.spent, total), total, quality)

    def promising_extremes(self) -> list[int]:
        """The numbers of columns of extreme selections that exchanges may make the best."""
        enough = _PROMISING * self.fitted.squared_error
        return sorted(number for number, known in self.extremes.items() if known.squared_error <= enough)

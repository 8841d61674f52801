"""Exchange: improve a selection by giving up one index for another, as long as that lowers the true error.

One index is dropped, the weights of the others fitted again, the candidates scored by the decrease that they guarantee
(`gsnmf.search.candidates`), the most promising tried with all weights fitted, and the exchange kept if the error
fell. Indices that explain least are tried first. When no single exchange helps, two indices are exchanged at a time.
What comes back is never worse than what was given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from gsnmf.kernels.threads import single_threaded_blas
from gsnmf.search.candidates import Candidates, Fit
from gsnmf.search.pursuit import pursuit_path

_TRIALS = 3
"""Candidates tried for each dropped index."""
_PROGRESS = 1e-6
"""An exchange must lower the squared error by this part to count."""
_MAX_PAIRS = 100


class _Budget:
    """Counts exchanges and seconds."""

    def __init__(self, exchanges: float, seconds: float) -> None:
        self.exchanges = exchanges
        self.deadline = time.monotonic() + seconds

    def spend(self) -> bool:
        """Whether one more exchange may be tried."""
        self.exchanges -= 1
        return self.exchanges >= 0 and time.monotonic() <= self.deadline


def refine(
    candidates: Candidates,
    fit: Fit,
    *,
    max_exchanges: float = math.inf,
    seconds: float = math.inf,
    pairs: bool = True,
) -> Fit:
    """Exchange until nothing helps, or until the budget is spent.

    Parameters
    ----------
    candidates : Candidates
        Holding the selection.
    fit : Fit
        The selection to start from.
    max_exchanges : float
        Limit on the exchanges that are tried. The result is then the same on every machine.
    seconds : float
        Limit on the time. The exchange in hand is finished.
    pairs : bool
        Whether to exchange two at a time where single exchanges are stuck.
    """
    budget = _Budget(max_exchanges, seconds)
    with single_threaded_blas():
        while True:
            better = _first_improvement(candidates, fit, _single_drops(fit), budget)
            if better is None and pairs:
                better = _first_improvement(candidates, fit, _pair_drops(fit), budget)
            if better is None:
                return fit
            fit = better


def _first_improvement(
    candidates: Candidates, fit: Fit, drops: Iterator[tuple[int, ...]], budget: _Budget
) -> Fit | None:
    for positions in drops:
        if not budget.spend():
            return None
        better = _exchange(candidates, fit, positions)
        if better is not None:
            return better
    return None


def _exchange(candidates: Candidates, fit: Fit, positions: tuple[int, ...]) -> Fit | None:
    """Drop these positions and choose as many again; None unless the error falls."""
    smaller = fit
    for position in sorted(positions, reverse=True):
        smaller = candidates.without(smaller, position)
    smaller = candidates.fit(smaller.columns, smaller.rows, smaller.P, smaller.Q)
    goal = (1.0 - _PROGRESS) * fit.squared_error
    dropped = _identities(fit) - _identities(smaller)
    for axis, index in candidates.best(smaller, _TRIALS):
        if len(positions) == 1 and (axis, index) in dropped:
            continue
        grown = candidates.extended(smaller, axis, index)
        first = candidates.fit(grown.columns, grown.rows, grown.P, grown.Q)
        trial = [first, *pursuit_path(candidates, fit.columns.size + fit.rows.size, first)][-1]
        if trial.squared_error < goal:
            return trial
    return None


def _identities(fit: Fit) -> set[tuple[str, int]]:
    return {("c", int(j)) for j in fit.columns} | {("r", int(i)) for i in fit.rows}


def _contributions(fit: Fit) -> list[float]:
    """What each index explains, by the length of its weights."""
    return [*np.linalg.norm(fit.P, axis=0), *np.linalg.norm(fit.Q, axis=0)]


def _single_drops(fit: Fit) -> Iterator[tuple[int, ...]]:
    return ((int(position),) for position in np.argsort(_contributions(fit)))


def _pair_drops(fit: Fit) -> Iterator[tuple[int, ...]]:
    contributions = _contributions(fit)
    pairs = combinations(range(len(contributions)), 2)
    return iter(sorted(pairs, key=lambda pair: contributions[pair[0]] + contributions[pair[1]])[:_MAX_PAIRS])

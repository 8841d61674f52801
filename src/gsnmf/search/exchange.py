"""Exchange: improve a selection by giving up one index for another, as long as that lowers the true error.

All exchanges of one index for one candidate are scored at once by what they gain while all other weights stay fixed
(`gsnmf.search.trials`), and the most promising are fitted, a few at a time. If none of these helps, every index is
given up in turn, starting with those that explain least: the weights of the others are fitted again, and the best
candidates for the remaining residual are tried. The result is never worse than the start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from gsnmf.search.fitted import Fitted, by_error
from gsnmf.search.trials import BATCH, Exchange, Trials
from gsnmf.support.arrays import Axes, Axis

_Item = TypeVar("_Item")

PROGRESS = 1e-6
"""An exchange must lower the squared error by this fraction to count."""

_PER_INDEX = 3
"""How many candidates are tried for each index."""
_ROUNDS = 12
"""Rounds of coordinate descent for a trial."""
_KEPT_ROUNDS = 20
"""Further rounds for a trial that is kept."""
_GROWN_ROUNDS = 6
"""Rounds for each candidate that completes a selection."""
_REST = 10
"""A failed exchange is tried again after this many exchanges were kept."""


def thoroughly_improved(trials: Trials, fitted: Fitted, until: float = math.inf) -> tuple[Fitted, bool]:
    """Exchange until neither `improved` nor giving up each index helps; also return whether it ended that way."""
    tried: Fitted | None = None
    while True:
        fitted, done = improved(trials, fitted, until)
        if not done or fitted is tried:
            return fitted, done
        polished = trials.polished(fitted)
        fitted, done = chosen_again(trials, polished, until)
        if not done or fitted is polished:
            return fitted, done
        tried = fitted


def improved(
    trials: Trials, fitted: Fitted, until: float = math.inf, limit: int | None = None, *, once: bool = False
) -> tuple[Fitted, bool]:
    """Keep making the best exchanges, scored while all other weights stay fixed, as long as any helps.

    Parameters
    ----------
    trials : Trials
    fitted : Fitted
    until : float
        Work at which to end.
    limit : int, optional
        Trials in a row that may fail.
    once : bool
        Whether the first few trials are made in any case, even if they take more work than ``until`` allows.

    Returns
    -------
    tuple
        The best selection found, and whether all its exchanges were tried before the work was spent.
    """
    failed: dict[tuple[tuple[Axis, int], int], int] = {}
    until, later = (math.inf, until) if once else (until, until)
    for n_kept in range(1 << 62):
        if not trials.work.left(until):
            return fitted, False
        queue = _queue(trials, fitted, failed, n_kept)[:limit]
        better = None
        for batch in batches(queue, trials.batch_size(fitted)):
            if not trials.work.left(until):
                return fitted, False
            better = _best_of(trials, fitted, [trials.exchange(fitted, *entry) for entry in batch])
            until = later
            if better is not None:
                break
            failed.update({(fitted.identity(position), place): n_kept for place, position, _ in batch})
        if better is None:
            return fitted, True
        trials.kept += 1
        fitted = better
    raise AssertionError


def every_exchange(trials: Trials, fitted: Fitted, until: float) -> tuple[Fitted, bool]:
    """Try every allowed exchange until one helps; return whether all were tried and none did."""
    gains = trials.gains(fitted)
    order = np.argsort(-gains, axis=None, kind="stable")[: np.count_nonzero(np.isfinite(gains))]
    for batch in batches(order.tolist(), trials.batch_size(fitted)):
        if not trials.work.left(until):
            return fitted, False
        places = [divmod(entry, gains.shape[1]) for entry in batch]
        better = _best_of(
            trials,
            fitted,
            [trials.exchange(fitted, place, position, float(gains[place, position])) for place, position in places],
        )
        if better is not None:
            trials.kept += 1
            return better, False
    return fitted, True


def completed(
    trials: Trials, fitted: Fitted, n_choices: int = 1, rng: np.random.Generator | None = None, *, well: bool = False
) -> Fitted:
    """Add candidates, each the one with the largest guaranteed decrease, up to the size, within the limits.

    With a generator, each is drawn from the ``n_choices`` best. If ``well``, the weights before each choice are good
    ones where these are cheap.
    """
    fit = trials.well_fitted if well else trials.refitted
    candidates, limits = trials.candidates, trials.limits
    while fitted.size < limits.size:
        axes = allowed_axes(trials, fitted)
        best = candidates.best(fitted.fit, n_choices, axes) if axes else []
        count_scores(trials, fitted)
        if not best:
            break
        choice = best[int(rng.integers(len(best)))] if rng is not None else best[0]
        grown = candidates.extended(fitted.fit, *choice)
        del fitted  # free its memory
        fitted = fit(trials.of(grown), _GROWN_ROUNDS)
    return fitted


def allowed_axes(trials: Trials, fitted: Fitted) -> Axes:
    """Axes along which one more index leaves room for what the limits still require."""
    return trials.limits.open_axes(fitted.fit.columns.size, fitted.fit.rows.size)


def count_scores(trials: Trials, fitted: Fitted) -> None:
    """Count the work of scoring all candidates."""
    m, n = trials.candidates.matrix.shape
    of_columns, of_rows = trials.candidates.columns.indices.size, trials.candidates.rows.indices.size
    trials.work.products((of_columns * n + of_rows * m) * (fitted.size + 20.0))
    trials.work.calls()


def _queue(
    trials: Trials, fitted: Fitted, failed: dict[tuple[tuple[Axis, int], int], int], n_kept: int
) -> list[tuple[int, int, float]]:
    """Exchanges to try as (place, position, gain): the best for each index, by gain, recent failures last."""
    gains = trials.gains(fitted)
    per_index = min(_PER_INDEX, gains.shape[0])
    if per_index == 0:
        return []
    top = np.argpartition(-gains, per_index - 1, axis=0)[:per_index]
    entries = [
        (int(place), position, float(gains[place, position]))
        for position in range(gains.shape[1])
        for place in top[:, position]
        if np.isfinite(gains[place, position])
    ]
    entries.sort(key=lambda entry: (-entry[2], entry[0], entry[1]))
    last = [failed.get((fitted.identity(position), place), -_REST - 1) for place, position, _ in entries]
    fresh = [entry for entry, last_try in zip(entries, last, strict=True) if last_try < n_kept - _REST]
    return fresh + [entry for entry, last_try in zip(entries, last, strict=True) if n_kept - _REST <= last_try < n_kept]


def _best_of(trials: Trials, fitted: Fitted, exchanges: list[Exchange]) -> Fitted | None:
    """The best of these exchanges, its weights fitted further; None unless the error falls."""
    goal = (1.0 - PROGRESS) * fitted.squared_error
    found = trials.all([trials.exchanged(fitted, exchange) for exchange in exchanges], _ROUNDS, goal)
    best = min(found, key=by_error)
    if best.squared_error >= goal and trials.nearly_exact(fitted):
        best = min(map(trials.polished, found), key=by_error)
    return trials.refitted(best, _KEPT_ROUNDS) if best.squared_error < goal else None


def chosen_again(trials: Trials, fitted: Fitted, until: float = math.inf) -> tuple[Fitted, bool]:
    """Give up one index after the other, fit the others and choose again, as long as that helps.

    Those come first whose last failure is longest ago, then those that explain least. It ends when all have failed
    since the last success, or when the work is spent; also return whether it ended with nothing left to try.
    """
    last_try: dict[tuple[Axis, int], int] = {}
    for n_kept in range(1 << 62):
        free = np.flatnonzero(~trials.fixed(fitted))
        worths = trials.worths(fitted)
        waited = {int(position): last_try.get(fitted.identity(int(position)), -1) for position in free}
        order = sorted(waited, key=lambda position: (waited[position], worths[position], position))
        better = None
        for batch in batches(order, trials.n_chains()):
            if not trials.work.left(until):
                return fitted, False
            found = trials.chains([partial(_with_another, fitted=fitted, position=position) for position in batch])
            goal = (1.0 - PROGRESS) * fitted.squared_error
            failed = [position for position, one in zip(batch, found, strict=True) if one.squared_error >= goal]
            last_try.update({fitted.identity(position): n_kept for position in failed})
            if len(failed) < len(batch):
                better = min(found, key=by_error)
                break
        if better is None:
            return fitted, True
        trials.kept += 1
        last_try.update(dict.fromkeys(set(better.identities()) - set(fitted.identities()), n_kept))
        fitted = trials.refitted(better, _KEPT_ROUNDS)
    raise AssertionError


def _with_another(trials: Trials, fitted: Fitted, position: int) -> Fitted:
    """The best selection with another index in place of one, chosen after the others are fitted without it."""
    smaller = trials.refitted(trials.of(trials.candidates.without(fitted.fit, position)), _ROUNDS)
    best = trials.candidates.best(smaller.fit, _PER_INDEX + 1, allowed_axes(trials, smaller))
    count_scores(trials, smaller)
    dropped = fitted.identity(position)
    grown = [trials.candidates.extended(smaller.fit, *choice) for choice in best if choice != dropped]
    goal = (1.0 - PROGRESS) * fitted.squared_error
    found = trials.all([trials.of(fit) for fit in grown[:BATCH]], _ROUNDS, goal)
    return min(found, key=by_error, default=fitted)


def batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Consecutive parts of a sequence, all but the last with ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))

"""Exchange: improve a selection by giving up one index for another, as long as that lowers the true error.

All exchanges of one index for one candidate are scored at once by what they gain while all other weights stay fixed
(`gsnmf.search.trials`), and the most promising are fitted, a few at a time. If none of these helps, every index is
given up in turn, starting with those that explain least: the weights of the others are fitted again, and the best
candidates for the remaining residual are tried. The result is never worse than the start.

Perturbation leaves a selection that no exchange improves, so that exchanges can go on from somewhere else; the result
is kept only if it is better (iterated local search). Two ways alternate: exchange a few random indices for good
candidates, or give up a few random indices and choose again among the best candidates for the residual.

References
----------
H. R. Lourenco, O. C. Martin, T. Stuetzle, Iterated local search, Handbook of Metaheuristics (2003),
doi:10.1007/0-306-48056-5_11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import TypeVar

import numpy as np

from gsnmf.search.state import State, by_error
from gsnmf.search.trials import BATCH, Trials
from gsnmf.support.arrays import Axis

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

_FEWEST_PERTURBED, _STRENGTHS = 2, 3
"""Two, three and four indices are perturbed in turn: a single one would be an exchange."""
_GOOD = 10
"""A random exchange draws from this many candidates."""
_DRAWN_FROM = 3
"""Each index that is chosen again is drawn from this many candidates."""
_PERTURBED_ROUNDS = 4
"""Rounds of coordinate descent between the steps of a perturbation; exchanges follow anyway."""


def improve_thoroughly(trials: Trials, state: State, until: float = math.inf) -> tuple[State, bool]:
    """Exchange until neither `improve` nor giving up each index helps; also return whether it ended that way."""
    tried: State | None = None
    while True:
        state, done = improve(trials, state, until)
        if not done or state is tried:
            return state, done
        polished = trials.polish(state)
        state, done = rechoose(trials, polished, until)
        if not done or state is polished:
            return state, done
        tried = state


def improve(
    trials: Trials, state: State, until: float = math.inf, max_failures: int | None = None, *, once: bool = False
) -> tuple[State, bool]:
    """Keep making the best exchanges, scored while all other weights stay fixed, as long as any helps.

    Parameters
    ----------
    trials : Trials
    state : State
    until : float
        Work at which to end.
    max_failures : int, optional
        Trials in a row that may fail.
    once : bool
        Whether the first few trials are made in any case, even if they take more work than ``until`` allows.

    Returns
    -------
    tuple
        The best state found, and whether all its exchanges were tried before the work was spent.
    """
    failed: dict[tuple[tuple[Axis, int], int], int] = {}
    until, later = (math.inf, until) if once else (until, until)
    for n_kept in count():
        if not trials.work.left(until):
            return state, False
        better = None
        for batch in batches(_queue(trials, state, failed, n_kept)[:max_failures], trials.batch_size(state)):
            if not trials.work.left(until):
                return state, False
            better = _best_of(trials, state, batch)
            until = later
            if better is not None:
                break
            failed.update({(state.factor(position), place): n_kept for place, position, _ in batch})
        if better is None:
            return state, True
        trials.kept += 1
        state = better
    raise AssertionError


def try_every_exchange(trials: Trials, state: State, until: float) -> tuple[State, bool]:
    """Try every allowed exchange until one helps; return whether all were tried and none did."""
    gains = trials.gains(state)
    order = np.argsort(-gains, axis=None, kind="stable")[: np.count_nonzero(np.isfinite(gains))]
    for batch in batches(order.tolist(), trials.batch_size(state)):
        if not trials.work.left(until):
            return state, False
        places = [divmod(entry, gains.shape[1]) for entry in batch]
        better = _best_of(trials, state, [(place, k, float(gains[place, k])) for place, k in places])
        if better is not None:
            trials.kept += 1
            return better, False
    return state, True


def grow(
    trials: Trials, state: State, n_best: int = 1, rng: np.random.Generator | None = None, *, well: bool = False
) -> State:
    """Add candidates, each the one with the largest guaranteed decrease, up to the size, within the limits.

    With a generator, each is drawn from the ``n_best`` best. If ``well``, the weights before each choice are good ones
    where these are cheap.
    """
    fit = trials.polish_or_descend if well else trials.descend
    while state.size < trials.limits.size:
        best = trials.best_candidates(state, n_best)
        if not best:
            break
        axis, index = best[int(rng.integers(len(best)))] if rng is not None else best[0]
        state = fit(trials.candidates.extended(state, axis, index), _GROWN_ROUNDS)
    return state


def _queue(
    trials: Trials, state: State, failed: dict[tuple[tuple[Axis, int], int], int], n_kept: int
) -> list[tuple[int, int, float]]:
    """Exchanges to try as (place, position, gain): the best for each index, by gain, recent failures last."""
    gains = trials.gains(state)
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
    last = [failed.get((state.factor(position), place), -_REST - 1) for place, position, _ in entries]
    fresh = [entry for entry, last_try in zip(entries, last, strict=True) if last_try < n_kept - _REST]
    return fresh + [entry for entry, last_try in zip(entries, last, strict=True) if n_kept - _REST <= last_try < n_kept]


def _best_of(trials: Trials, state: State, exchanges: Sequence[tuple[int, int, float]]) -> State | None:
    """The best of these exchanges, its weights fitted further; None unless the error falls."""
    goal = (1.0 - PROGRESS) * state.squared_error
    found = trials.try_all([trials.exchange(state, *exchange) for exchange in exchanges], _ROUNDS, goal)
    best = min(found, key=by_error)
    if best.squared_error >= goal and trials.nearly_exact(state):
        best = min(map(trials.polish, found), key=by_error)
    return trials.descend(best, _KEPT_ROUNDS) if best.squared_error < goal else None


def rechoose(trials: Trials, state: State, until: float = math.inf) -> tuple[State, bool]:
    """Give up one index after the other, fit the others and choose again, as long as that helps.

    The first to go are those whose last failure is longest ago, then those that explain least. It ends when all have
    failed since the last success, or when the work is spent; also return whether it ended with nothing left to try.
    """
    last_try: dict[tuple[Axis, int], int] = {}
    for n_kept in count():
        free = np.flatnonzero(~trials.fixed(state))
        worths = trials.worths(state)
        waited = {int(position): last_try.get(state.factor(int(position)), -1) for position in free}
        order = sorted(waited, key=lambda position: (waited[position], worths[position], position))
        better = None
        for batch in batches(order, trials.n_chains()):
            if not trials.work.left(until):
                return state, False
            found = trials.run_chains([partial(_with_another, state=state, position=position) for position in batch])
            goal = (1.0 - PROGRESS) * state.squared_error
            failed = [position for position, one in zip(batch, found, strict=True) if one.squared_error >= goal]
            last_try.update({state.factor(position): n_kept for position in failed})
            if len(failed) < len(batch):
                better = min(found, key=by_error)
                break
        if better is None:
            return state, True
        trials.kept += 1
        last_try.update(dict.fromkeys(set(better.factors()) - set(state.factors()), n_kept))
        state = trials.descend(better, _KEPT_ROUNDS)
    raise AssertionError


def _with_another(trials: Trials, state: State, position: int) -> State:
    """The best selection with another index in place of one, chosen after the others are fitted without it."""
    smaller = trials.descend(trials.candidates.without(state, [position]), _ROUNDS)
    best = trials.best_candidates(smaller, _PER_INDEX + 1)
    dropped = state.factor(position)
    others = [candidate for candidate in best if candidate != dropped][:BATCH]
    goal = (1.0 - PROGRESS) * state.squared_error
    found = trials.try_all([trials.candidates.extended(smaller, *candidate) for candidate in others], _ROUNDS, goal)
    return min(found, key=by_error, default=state)


def perturb(trials: Trials, state: State, number: int, rng: np.random.Generator) -> State:
    """Another selection near this one; ``number`` counts the perturbations, whose kind and strength change in turn."""
    free = np.flatnonzero(~trials.fixed(state))
    strength = min(_FEWEST_PERTURBED + number // 2 % _STRENGTHS, free.size)
    if strength == 0:
        return state
    if number % 2 == 0:
        return _exchange_at_random(trials, state, strength, rng)
    smaller = trials.candidates.without(state, rng.choice(free, size=strength, replace=False))
    return grow(trials, trials.descend(smaller, _PERTURBED_ROUNDS), _DRAWN_FROM, rng)


def _exchange_at_random(trials: Trials, state: State, strength: int, rng: np.random.Generator) -> State:
    for _ in range(strength):
        gains = trials.gains(state)
        position = int(rng.choice(np.flatnonzero(~trials.fixed(state))))
        order = np.argsort(-gains[:, position], kind="stable")[:_GOOD]
        order = order[np.isfinite(gains[order, position])]
        if order.size:
            place = int(rng.choice(order))
            exchanged = trials.exchange(state, place, position, float(gains[place, position]))
            state = trials.descend(exchanged, _PERTURBED_ROUNDS)
    return state


def batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Consecutive parts of a sequence, all but the last with ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))

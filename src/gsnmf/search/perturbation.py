"""Perturbation: leave a selection that no exchange improves, so that exchanges can go on from somewhere else.

Two ways alternate. One exchanges a few random indices for good candidates, scored while all other weights stay fixed.
The other gives up a few random indices, fits the others, and chooses again among the best candidates for the residual.
Exchanges follow, and the result is kept only if it is better (iterated local search).

References
----------
H. R. Lourenco, O. C. Martin, T. Stuetzle, Iterated local search, Handbook of Metaheuristics (2003),
doi:10.1007/0-306-48056-5_11.
"""

from __future__ import annotations

import numpy as np

from gsnmf.search.exchange import completed
from gsnmf.search.fitted import Fitted
from gsnmf.search.trials import Trials

_FEWEST = 2
_STRENGTHS = 3
"""Two, three and four indices are perturbed in turn."""
_GOOD = 10
"""A random exchange draws from this many candidates."""
_CHOICES = 3
"""Each index that is chosen again is drawn from this many candidates."""
_ROUNDS = 4


def perturbed(trials: Trials, fitted: Fitted, number: int, rng: np.random.Generator) -> Fitted:
    """Another selection near this one; ``number`` counts the perturbations, whose kind and strength change in turn."""
    free = np.flatnonzero(~trials.fixed(fitted))
    strength = min(_FEWEST + number // 2 % _STRENGTHS, free.size)
    if strength == 0:
        return fitted
    if number % 2 == 0:
        return _exchanged(trials, fitted, strength, rng)
    return _chosen_again(trials, fitted, rng.choice(free, size=strength, replace=False), rng)


def _exchanged(trials: Trials, fitted: Fitted, strength: int, rng: np.random.Generator) -> Fitted:
    for _ in range(strength):
        gains = trials.gains(fitted)
        position = int(rng.choice(np.flatnonzero(~trials.fixed(fitted))))
        order = np.argsort(-gains[:, position], kind="stable")[:_GOOD]
        order = order[np.isfinite(gains[order, position])]
        if order.size == 0:
            continue
        place = int(rng.choice(order))
        exchange = trials.exchange(fitted, place, position, float(gains[place, position]))
        fitted = trials.refitted(trials.exchanged(fitted, exchange), _ROUNDS)
    return fitted


def _chosen_again(trials: Trials, fitted: Fitted, positions: np.ndarray, rng: np.random.Generator) -> Fitted:
    smaller = fitted.fit
    for position in sorted(positions.tolist(), reverse=True):
        smaller = trials.candidates.without(smaller, position)
    return completed(trials, trials.refitted(trials.of(smaller), _ROUNDS), _CHOICES, rng)

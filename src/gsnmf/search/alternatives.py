"""Alternatives: what else could have been chosen instead of each column and row, and at what price.

For single columns and rows, candidates are ranked by what they gain while all other weights stay fixed
(`gsnmf.search.trials`), and the best are fitted. For mixtures, and for a quick answer, each factor has a target as long
as the weights are fixed (`gsnmf.search.mixed_model`): four block products with the matrix score all columns and rows as
substitutes for one member, and only the best are fitted. With holes, substitutes are found on the filled matrix and
compared on the observed entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from gsnmf._parallel import blas_threads
from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.records import Alternative
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.effort import Work
from gsnmf.search.mixed_model import MixedModel, MixedSide, Mixture, Space
from gsnmf.search.state import State, descend_jointly
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Doubles
from gsnmf.weights.joint import JointProblem, Side, solve_joint
from gsnmf.weights.observed import solve_anchored, solve_observed_weights

if TYPE_CHECKING:
    from gsnmf.result import Factorization

_CANDIDATES = 500
"""Candidates per side."""
_ROUNDS = 20
"""Rounds of coordinate descent on all weights."""
_TRIED = 3
"""How many substitutes are fitted for each requested one."""
_POLISH = 1e-3, 30
"""Tolerance and iterations of the weight solver on the substitutes that are kept."""
_TRIED_ON_OBSERVED = 2
"""How many substitutes are fitted to the observed entries for each requested one."""
_QUICK_ITERATIONS = 3


def substitutes(
    result: Factorization,
    *,
    count: int,
    quick: bool,
    constraints: Constraints | None = None,
    observed: Observed | None = None,
) -> list[Alternative]:
    """The best substitutes for every factor of a result, for `Factorization.alternatives`.

    Parameters
    ----------
    result : Factorization
    count : int
        Largest number of substitutes per factor; of a mixture, whichever member they replace.
    quick : bool
        Fit each substitute for one round only.
    constraints : Constraints, optional
        Excluded indices are never substitutes, and included ones are never given up.
    observed : Observed, optional
        The entries that the result was fitted to, if its ``source`` is a matrix whose holes are filled.

    Returns
    -------
    list of Alternative
        Factors in their order, each with its substitutes by increasing error. Weights are close to optimal, so errors
        are slightly too large.

    Examples
    --------
    >>> import gsnmf
    >>> result = gsnmf.factorize([[4.0, 3.9, 0, 1], [0, 0.1, 2, 0], [0, 0, 0, 1]], (2, 0))
    >>> found = substitutes(result, count=1, quick=False)
    >>> [(one.chosen, one.index) for one in found]
    [(0, 1), (2, 3)]
    """
    matrix = result.source
    limits = (constraints or Constraints()).resolve(matrix.shape, (result.columns.size, result.rows.size))
    wanted = _TRIED_ON_OBSERVED * count if observed is not None and not quick else count
    if result.mixtures is not None or (quick and matrix.in_memory):
        found = _of_members(result, limits, wanted, _QUICK if quick else _THOROUGH)
    else:
        found = _of_single_indices(result, limits, wanted)
    if observed is None:
        return found
    fitted = [_on_observed(result, one, observed, quick) for one in found]
    by_factor = (list(group) for _, group in groupby(fitted, key=lambda one: one.factor))
    return [one for group in by_factor for one in sorted(group, key=lambda one: one.relative_error)[:count]]


def _of_single_indices(result: Factorization, limits: Limits, count: int) -> list[Alternative]:
    """Substitutes for single columns and rows, at O((m + n) r^2) operations for each that is fitted."""
    matrix, columns, rows = result.source, result.columns, result.rows
    for axis, indices in zip(COLUMNS_AND_ROWS, (columns, rows), strict=True):
        if not (matrix.along(axis).squared_column_norms[indices] > 0).all():
            raise ValueError("columns and rows must not be zero; zero ones explain nothing and have no substitutes.")
    pool = candidate_pool(matrix, max(_CANDIDATES, columns.size + rows.size), limits)
    pool.include(columns, rows)
    trials = Trials(pool, limits, Work(math.inf))
    with trials.running():
        state = trials.polish(trials.descend(pool.state(columns, rows), _ROUNDS))
        gains = trials.gains(state)
        return [one for position in range(state.size) for one in _of_one_index(trials, state, gains, position, count)]


def _of_one_index(trials: Trials, state: State, gains: Doubles, position: int, count: int) -> list[Alternative]:
    axis, chosen = state.factor(position)
    order = np.argsort(-gains[:, position], kind="stable")[: _TRIED * count]
    places = [int(place) for place in order if np.isfinite(gains[place, position])]
    starts = [trials.exchange(state, place, position, float(gains[place, position])) for place in places]
    tried = sorted(zip(trials.try_all(starts, _ROUNDS), places, strict=True), key=lambda pair: pair[0].squared_error)
    found = []
    for trial, place in tried[:count]:
        of_axis, at = trials.candidates.candidate(place)
        error = math.sqrt(trials.polish(trial).squared_error / state.squared_norm)
        found.append(Alternative(position, axis, chosen, int(trials.candidates.on(of_axis).indices[at]), error))
    return found


@dataclass(frozen=True)
class _Care:
    """How much to spend on each substitute of a member: see the constants above."""

    tried: int
    rounds: int
    polish: tuple[float, int] | None


_QUICK = _Care(tried=1, rounds=1, polish=None)
_THOROUGH = _Care(tried=_TRIED, rounds=_ROUNDS, polish=_POLISH)


def _of_members(result: Factorization, limits: Limits, count: int, care: _Care) -> list[Alternative]:
    """For each factor, the best exchanges of one member for a column (row) that is a member of no factor.

    Fixed factors and those without weight have none.
    """
    matrix = result.source
    assert isinstance(matrix, InMemoryMatrix)  # mixtures exist only in memory
    model, used = MixedModel.of_result(result.members, result.weights, Space.of(matrix, limits, Work(math.inf)))
    numbers = np.flatnonzero(used)  # numbers of the nonzero factors
    problem = model.problem()
    found: list[Alternative] = []
    attractions = [model.attraction(side, other) for side, other in model.sides]
    with blas_threads(float(matrix.n_stored) * model.size):
        for axis, (side, _), attraction in zip(COLUMNS_AND_ROWS, model.sides, attractions, strict=True):
            first = 0 if axis == "columns" else model.columns.size
            for k, exchanges in _best_exchanges(side, attraction, count * care.tried).items():
                trials = [_fit_member(model, problem, axis, k, mixture, care) for _, _, mixture in exchanges]
                for place in sorted(range(len(trials)), key=lambda place: trials[place][0])[:count]:
                    error, changed, P, Q = trials[place]
                    if care.polish is not None:
                        error = min(error, float(solve_joint(changed, P, Q, *care.polish)[0]))
                    given_up, index, _ = exchanges[place]
                    relative_error = math.sqrt(error / problem.squared_norm)
                    found.append(Alternative(int(numbers[first + k]), axis, given_up, index, relative_error))
    return sorted(found, key=lambda one: (one.factor, one.relative_error))


def _best_exchanges(side: MixedSide, attraction: Doubles, count: int) -> dict[int, list[tuple[int, int, Mixture]]]:
    """For each factor of a side, the best exchanges of one member for one that is a member of no factor."""
    allowed = side.pool.allowed.copy()
    for mixture in side.mixtures:
        allowed[mixture.members] = False
    pool = replace(side.pool, allowed=allowed)
    return {k: pool.exchanges(side.mixtures[k], linear, count) for k, linear in side.targets(attraction)}


def _fit_member(
    model: MixedModel, problem: JointProblem, axis: Axis, k: int, mixture: Mixture, care: _Care
) -> tuple[float, JointProblem, Doubles, Doubles]:
    """Squared error, problem and weights after replacing the mixture of factor k of a side."""
    mixed, others, own, other = model.columns, model.rows, problem.columns, problem.rows
    if axis == "rows":
        mixed, others, own, other = others, mixed, other, own
    vector, image = mixed.of_unit_length(mixture)
    vectors, linear = own.vectors.copy(), own.linear.copy()
    vectors[:, k], linear[:, k] = vector, -image
    own = Side(vectors, np.asarray(vectors.T @ vectors), linear, own.lengths)
    changed = replace(problem, columns=own) if axis == "columns" else replace(problem, rows=own)
    weights, other_weights = mixed.weights.copy(), others.weights.copy()
    from_others = other.vectors @ (other_weights.T @ vector)
    from_own = weights @ own.gram[:, k] - weights[:, k] * own.gram[k, k]
    weights[:, k] = np.maximum(-linear[:, k] - from_own - from_others, 0.0)
    P, Q = (weights, other_weights) if axis == "columns" else (other_weights, weights)
    error, _ = descend_jointly(changed, P, Q, max_rounds=care.rounds, tolerance=1e-6)
    return error, changed, P, Q


def _on_observed(result: Factorization, one: Alternative, observed: Observed, quick: bool) -> Alternative:
    """The alternative with its error on the observed entries."""
    source = result.source
    assert isinstance(source, InMemoryMatrix)  # data with holes is in memory
    columns, rows = result.columns.copy(), result.rows.copy()
    P, Q = result.column_weights.copy(), result.row_weights.copy()
    if one.axis == "columns":
        columns[one.factor], P[one.factor] = one.index, 0.0
    else:
        place = one.factor - columns.size
        rows[place], Q[:, place] = one.index, 0.0
    if quick:  # the holes of chosen columns and rows stay as they are filled
        C, R = source.raw_columns(columns), source.T.raw_columns(rows).T
        weights = solve_observed_weights(
            observed, C, R, tolerance=_POLISH[0], max_iterations=_QUICK_ITERATIONS, start=(P, Q)
        )
    else:
        weights = solve_anchored(observed, source, columns, rows, tolerance=_POLISH[0], start=(P, Q)).weights
    return replace(one, relative_error=weights.relative_error)

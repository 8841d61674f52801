"""Substitutes for single members of factors, for mixtures and for single columns and rows alike.

With the weights fixed, each factor has a target, and a column (row) that replaces a member comes more or less close to
it (`gsnmf.search.member_fits`). Four block products with the matrix score all columns and rows for all factors; only
the best are then fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gsnmf._parallel import blas_threads
from gsnmf.records import Alternative
from gsnmf.search.descent import descend_jointly
from gsnmf.search.member_fits import MixedSide, Mixture
from gsnmf.search.member_model import MixedModel
from gsnmf.support.arrays import Axis, Doubles
from gsnmf.weights.joint import JointProblem, solve_joint


@dataclass(frozen=True)
class Care:
    """How much to spend on each substitute.

    Attributes
    ----------
    tried : int
        How many substitutes are fitted for each requested one.
    rounds : int
        Rounds of coordinate descent on all weights.
    polish : int
        Iterations of the weight solver afterwards, on the substitutes that are kept.
    """

    tried: int
    rounds: int
    polish: int


QUICK = Care(tried=1, rounds=1, polish=0)
THOROUGH = Care(tried=3, rounds=20, polish=30)
_POLISHED = 1e-3
"""Sufficient optimality of the weights."""


def member_alternatives(model: MixedModel, count: int, care: Care) -> list[Alternative]:
    """For each factor, the best exchanges of one member for a column (row) that is a member of no factor.

    Parameters
    ----------
    model : MixedModel
        With its weights.
    count : int
        Largest number of alternatives per factor, whichever member they replace.
    care : Care

    Returns
    -------
    list of Alternative
        Factors in their order, each with its alternatives by increasing error. Fixed factors and those without weight
        have none.
    """
    sides: tuple[tuple[Axis, MixedSide, Doubles, Doubles], ...] = (
        ("columns", model.left, model.P, model.attraction_of_columns()),
        ("rows", model.right, model.Q, model.attraction_of_rows()),
    )
    problem = model.problem()
    found: list[Alternative] = []
    with blas_threads(float(model.space.matrix.n_stored) * model.size):
        for axis, side, weights, attraction in sides:
            first = 0 if axis == "columns" else len(model.left.mixtures)
            for k, exchanges in _exchanges(side, weights, attraction, count * care.tried).items():
                trials = [_fitted(problem, model, axis, k, side, mixture, care) for _, _, mixture in exchanges]
                order = sorted(range(len(trials)), key=lambda place: trials[place][0])[:count]
                for place in order:
                    given_up, index, _ = exchanges[place]
                    error = math.sqrt(_polished(*trials[place], care) / problem.squared_norm)
                    found.append(Alternative(first + k, axis, given_up, index, error))
    return sorted(found, key=lambda one: (one.factor, one.relative_error))


def _exchanges(
    side: MixedSide, weights: Doubles, attraction: Doubles, count: int
) -> dict[int, list[tuple[int, int, Mixture]]]:
    """For each factor of a side, the best exchanges of one member for one that is a member of no factor."""
    allowed = side.pool.allowed.copy()
    for mixture in side.mixtures:
        allowed[mixture.members] = False
    pool = replace(side.pool, allowed=allowed)
    return {k: pool.exchanges(side.mixtures[k], linear, count) for k, linear in side.targets(weights, attraction)}


def _fitted(
    problem: JointProblem, model: MixedModel, axis: Axis, k: int, side: MixedSide, mixture: Mixture, care: Care
) -> tuple[float, JointProblem, Doubles, Doubles]:
    """Squared error, problem and weights after replacing the mixture of factor k of a side."""
    vector, image = side.of_unit_length(mixture)
    changed = _replaced(problem, axis, k, vector, image)
    P, Q = model.P.copy(), model.Q.copy()
    if axis == "columns":
        P[:, k] = _best_weights(changed.linear_P, P, changed.gram_C, changed.R @ (Q.T @ vector), k)
    else:
        Q[:, k] = _best_weights(changed.linear_Q, Q, changed.gram_R, changed.C @ (P.T @ vector), k)
    error, _ = descend_jointly(
        changed, P, Q, squared_error=math.inf, goal=math.inf, max_rounds=care.rounds, tolerance=1e-6, threads=False
    )
    return error, changed, P, Q


def _best_weights(linear: Doubles, weights: Doubles, gram: Doubles, coupling: Doubles, k: int) -> Doubles:
    """The best weights of factor k while all others stay."""
    others = weights @ gram[:, k] - weights[:, k] * gram[k, k]
    return np.asarray(np.maximum(-linear[:, k] - others - coupling, 0.0))


def _polished(error: float, problem: JointProblem, P: Doubles, Q: Doubles, care: Care) -> float:
    if care.polish == 0:
        return error
    return min(error, float(solve_joint(problem, P, Q, _POLISHED, care.polish)[0]))


def _replaced(problem: JointProblem, axis: Axis, k: int, vector: Doubles, image: Doubles) -> JointProblem:
    """The problem with another vector of unit length as factor k of a side."""
    vectors, linear = (problem.C, problem.linear_P) if axis == "columns" else (problem.R, problem.linear_Q)
    vectors, linear = vectors.copy(), linear.copy()
    vectors[:, k], linear[:, k] = vector, -image
    gram = np.asarray(vectors.T @ vectors)
    if axis == "columns":
        return replace(problem, C=vectors, linear_P=linear, gram_C=gram)
    return replace(problem, R=vectors, linear_Q=linear, gram_R=gram)

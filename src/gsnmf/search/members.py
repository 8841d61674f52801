r"""Factors of a few members each, M ~ (M A) P1 + P2 (B M), from factors of one member each.

The search goes from one number of members to the next. Each stage starts from the result of the stage before and takes
only steps that lower the error, so more members are never worse than fewer:

1. Rounds: every mixture comes as close as its number of members allows to what its weights ask for
   (`gsnmf.search.member_fits`), then the weights follow.
2. Other starts, compared by the true error: the mixtures closest to a short NMF, those closest to an NMF from random
   factors, and at the first stage those with one factor replaced (`gsnmf.search.member_starts`).
3. The weights are solved for to the tolerance, and rounds go on until the addition or exchange of a single member no
   longer helps.

References
----------
C. Ding, T. Li, M. Jordan, Convex and semi-nonnegative matrix factorizations, IEEE Trans. Pattern Anal. Mach. Intell. 32
(2010), doi:10.1109/TPAMI.2008.277, for mixtures of columns with any number of members.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gsnmf._parallel import blas_threads
from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count
from gsnmf.records import NO_GAIN, Choice, Mixtures, Weights
from gsnmf.result import Factorization
from gsnmf.search.effort import Effort, Progress
from gsnmf.search.member_fits import MixedSide
from gsnmf.search.member_model import MixedModel, Space, model_of
from gsnmf.search.member_starts import Factors, closest_model, random_start, replaced, restarts
from gsnmf.search.work import Clock, Work
from gsnmf.support.arrays import Doubles, Indices, axes_of
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE
from gsnmf.weights.optimality import CANCELLED, ratio

_SLOW = 1e-5
"""Rounds end when one lowers the squared error by less than this fraction."""
_DESCENTS = 8
"""Limit on the rounds of coordinate descent on the weights in a round."""
_ROUGH = 1e-5
"""They end when one lowers the squared error by less than this fraction."""
_LEAST_ROUNDS = 2
"""Rounds of a stage that are made whatever the limit on work."""
_SETTLING = 20
"""Rounds at the end of a stage until no change of one member helps."""


@dataclass(frozen=True)
class _Plan:
    """How much to spend on one stage."""

    rounds: int
    restarts: tuple[int, ...]
    """Iterations of NMF after which its factors are a start."""
    replacements: int
    """Factors replaced at the first stage."""
    independent: int
    """NMFs from random factors, whose best is a start at every stage."""
    work: float
    """Nominal seconds after which no further NMF is begun, and those of the first stage after which no further start is
    tried."""
    later_work: float
    """The same for each further stage, which has a good start already."""


_PLANS: dict[Effort, _Plan] = {
    "fast": _Plan(rounds=15, restarts=(5,), replacements=0, independent=0, work=0.3, later_work=0.15),
    "balanced": _Plan(rounds=30, restarts=(5, 20), replacements=8, independent=8, work=2.0, later_work=0.5),
    "best": _Plan(100, (5, 20, 50, 200), replacements=100, independent=100, work=40.0, later_work=10.0),
}
_REPLACED_ITERATIONS = 20


def check_members(members: Any, matrix: Matrix) -> int:
    """Return ``members`` if factors of the matrix may have that many, or say what is allowed."""
    count = check_count(members, "members")
    if count > min(matrix.shape):
        raise ValueError(
            f"members must be in [1, {min(matrix.shape)}] for a matrix of shape {matrix.shape}; got {count}."
        )
    if count > 1 and not matrix.in_memory:
        raise ValueError(
            f"members must be 1 for a Dask array; got {count}. The search for members reads single columns and rows: "
            "factorize an array in memory instead."
        )
    return count


def refine_members(
    start: Factorization,
    members: int,
    *,
    effort: Effort = "balanced",
    limits: Limits | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    time_limit: float = np.inf,
    progress: Progress | None = None,
) -> Factorization:
    r"""Turn single columns and rows into mixtures of a few members each, which explain more.

    .. math:: \min \; \|M - (M A) P_1 - P_2 (B M)\|_F \quad\text{over}\quad A, B, P_1, P_2 \ge 0,

    with at most ``members`` nonzeros per column of A and per row of B.

    Parameters
    ----------
    start : Factorization
        A factorization of a matrix in memory, with one member per factor.
    members : int
        The largest number of members of a factor.
    effort : {"fast", "balanced", "best"}
        How many other starts to compare.
    limits : Limits, optional
        Which columns and rows are never members, and how many factors may be mixtures of columns. An included column or
        row stays a factor of its own. Without limits there are as many mixtures of columns, and of rows, as ``start``
        has columns and rows.
    tolerance, max_iterations : float and int
        For the weights.
    time_limit : float
        Seconds after which no new rounds or starts begin.
    progress : callable, optional
        Called after each stage with its name (``"2 members"``, ``"3 members"`` and so on), the number of stages done,
        the total number of stages, and the quality.

    Returns
    -------
    Factorization
        With `Factorization.mixtures`; its ``columns`` and ``rows`` are the leading members.

    Notes
    -----
    The error is never larger than that of ``start`` or, without a time limit, than with fewer members. One round reads
    the matrix through four block products, one column per factor of a side, and through the rows of M'M and MM' at new
    members. The result is the same on every run.

    Examples
    --------
    >>> import gsnmf
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> M = rng.random((20, 15))
    >>> start = gsnmf.factorize(M, 3)
    >>> result = refine_members(start, 3)
    >>> result.relative_error < start.relative_error, result.mixtures
    (True, Mixtures: 2 of columns and 1 of rows, of at most 3 members each)
    """
    matrix = start.source
    members = check_members(members, matrix)
    if not isinstance(matrix, InMemoryMatrix):  # a Dask array, with one member per factor
        return start
    if start.mixtures is not None:
        raise ValueError("start must have one member per factor; got a factorization with mixtures.")
    shape = start.columns.size, start.rows.size
    if limits is None:
        limits = Constraints().resolve(matrix.shape, shape)
    space = Space.of(matrix, limits, Work(np.inf, Clock(time.monotonic() + time_limit)))
    with blas_threads(float(matrix.n_stored) * sum(shape)):
        model, used = model_of(start, space)
        unused = start.columns[~used[: shape[0]]], start.rows[~used[shape[0] :]]
        if model.size == 0 or start.relative_error**2 <= CANCELLED:
            single = Mixtures.single(start.columns, start.rows, matrix.shape, matrix.dtype)
            return replace(start, mixtures=replace(single, most=members, gain=0.0))
        model.solve(tolerance, max_iterations)
        gain = model.largest_gain(1) if members == 1 else 0.0
        plan = _PLANS[effort]
        space.work.limit = space.work.spent + plan.work
        other = random_start(model, plan.independent) if members > 1 else None
        for most in range(2, members + 1):
            if model.squared_error <= CANCELLED * matrix.squared_norm:  # only rounding is left
                break
            model = _stage(model, most, plan, other)
            gain = _settle(model, most, tolerance, max_iterations)
            if progress is not None:
                quality = 1.0 - ratio(np.sqrt(model.squared_error), np.sqrt(matrix.squared_norm))
                progress(f"{most} members", most - 1, members - 1, quality)
        return _result(start, model, unused, members, gain, tolerance)


def fitted_mixtures(matrix: Matrix, choice: Choice, tolerance: float, max_iterations: int) -> Factorization:
    """Solve for the weights of fixed mixtures."""
    assert isinstance(matrix, InMemoryMatrix)
    assert choice.mixtures is not None
    (m, n), r1, r2 = matrix.shape, choice.selection.columns.size, choice.selection.rows.size
    nothing = Weights(np.zeros((r1, n)), np.zeros((m, r2)), 1.0, np.inf, 0, False)
    start = Factorization(choice.selection, nothing, matrix, choice.search, None, choice.mixtures)
    limits = Constraints().resolve(matrix.shape, (r1, r2))
    with blas_threads(float(matrix.n_stored) * (r1 + r2)):
        model, used = model_of(start, Space.of(matrix, limits, Work(np.inf)))
        model.solve(tolerance, max_iterations)
    P, Q = np.zeros((n, r1)), np.zeros((m, r2))
    P[:, used[:r1]], Q[:, used[r1:]] = model.P * _sums(model.left), model.Q * _sums(model.right)
    return replace(start, weights=_weights(model, P, Q, tolerance))


def _stage(model: MixedModel, most: int, plan: _Plan, other: Factors | None) -> MixedModel:
    """The best model found with at most ``most`` members, from one with fewer and from the factors of an NMF."""
    work = model.space.work
    work.limit = work.spent + (plan.work if most == 2 else plan.later_work)
    _rounds(model, most, plan.rounds)
    for start in restarts(model, most, plan.restarts):
        model = _better(model, start, most, plan.rounds)
    if other is not None:
        model = _better(model, closest_model(model, *other, most), most, plan.rounds)
    return _with_replacements(model, plan) if most == 2 else model


def _rounds(model: MixedModel, most: int, max_rounds: int) -> None:
    """Improve a model in place until a round lowers the squared error by little."""
    for n_rounds in range(max_rounds):
        if n_rounds >= _LEAST_ROUNDS and not model.space.work.left():
            break
        before = model.squared_error
        model.improve(most)
        model.descend(_DESCENTS, _ROUGH)
        if before - model.squared_error <= _SLOW * before:
            break


def _better(model: MixedModel, other: MixedModel | None, most: int, max_rounds: int) -> MixedModel:
    """The better of a model and another start, after rounds on the latter."""
    if other is None:
        return model
    other.descend(_DESCENTS, _ROUGH)
    _rounds(other, most, max_rounds)
    return other if other.squared_error < model.squared_error else model


def _with_replacements(model: MixedModel, plan: _Plan) -> MixedModel:
    """The best of the models with two members each in which one factor was replaced, weakest factors first."""
    queue = _weakest_first(model)
    for _ in range(plan.replacements):
        if not queue or not model.space.work.left():
            break
        found = _better(model, replaced(model, queue.pop(0), 2, _REPLACED_ITERATIONS), 2, plan.rounds)
        if found.squared_error < (1.0 - _SLOW) * model.squared_error:
            queue = _weakest_first(found)
        model = found
    return model


def _weakest_first(model: MixedModel) -> list[int]:
    """Positions of the factors that may be replaced, by the length of their weights."""
    lengths = np.concatenate([np.linalg.norm(weights, axis=0) for weights in (model.P, model.Q)])
    return [int(k) for k in np.argsort(lengths, kind="stable") if not model.fixed[k]]


def _settle(model: MixedModel, most: int, tolerance: float, max_iterations: int) -> float:
    """Solve for the weights, and improve in place until no change of one member helps; return its gain."""
    for _ in range(_SETTLING):
        model.solve(tolerance, max_iterations)
        gain = model.largest_gain(most)
        if gain <= NO_GAIN or model.space.work.out_of_time:
            return gain
        model.improve(most)
    model.solve(tolerance, max_iterations)
    return model.largest_gain(most)


def _result(
    start: Factorization,
    model: MixedModel,
    unused: tuple[Indices, Indices],
    members: int,
    gain: float,
    tolerance: float,
) -> Factorization:
    """The model in the terms of the library: shares that sum to one, and weights in the precision of the matrix."""
    matrix = model.space.matrix
    columns, P = _with_unused(model.left, model.P, unused[0])
    rows, Q = _with_unused(model.right, model.Q, unused[1])
    mixtures = Mixtures.of(columns, rows, matrix.shape, members, gain, matrix.dtype)
    weights = _weights(model, P, Q, tolerance)
    same_sides = P.shape[1] == start.columns.size and not any(indices.size for indices in unused)
    selection = replace(
        start.selection,
        columns=mixtures.leading_columns,
        rows=mixtures.leading_rows,
        order=start.selection.order if same_sides else axes_of(P.shape[1], Q.shape[1]),
    )
    return replace(start, selection=selection, weights=weights, mixtures=mixtures)


def _weights(model: MixedModel, P: Doubles, Q: Doubles, tolerance: float) -> Weights:
    """The record of weights that a model has found, for shares that sum to one."""
    matrix, squared_error = model.space.matrix, model.squared_error
    if squared_error < CANCELLED * matrix.squared_norm:
        squared_error = matrix.squared_residual(*model.factors())
    return Weights(
        column_weights=P.T.astype(matrix.dtype),
        row_weights=Q.astype(matrix.dtype),
        relative_error=ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm)),
        optimality=model.optimality,
        n_iterations=model.n_iterations,
        converged=model.optimality <= tolerance,
    )


def _with_unused(side: MixedSide, weights: Doubles, unused: Indices) -> tuple[list[tuple[Indices, Doubles]], Doubles]:
    """Members and weights of all mixtures of a side, unused ones last, and P for shares that sum to one."""
    pairs = [(mixture.members, mixture.weights) for mixture in side.mixtures]
    pairs += [(np.array([index]), np.ones(1)) for index in unused]
    return pairs, np.hstack([weights * _sums(side), np.zeros((weights.shape[0], unused.size))])


def _sums(side: MixedSide) -> Doubles:
    """Sums of the weights of the members of each mixture."""
    return np.array([mixture.weights.sum() for mixture in side.mixtures])

r"""Factors of a few members each, M ~ (M A) P1 + P2 (B M), from factors of one member each.

The search goes from one number of members to the next. Each stage starts from the result of the stage before and takes
only steps that lower the error, so more members are never worse than fewer:

1. Rounds: every mixture comes as close as its number of members allows to what its weights ask for
   (`gsnmf.search.mixed_model`), then the weights follow.
2. Other starts, compared by the true error. A few iterations of NMF leave the valley into which single members have
   led; the mixtures closest to its factors restart the search, each on the side where it is closer. If a factor is
   first replaced by the strongest nonnegative rank-one term of the residual without it, the NMF itself reaches another
   valley. With many members the best valley may be far away: there the best of several NMFs from random factors is a
   start as well.
3. The weights are solved for to the tolerance, and rounds go on until the addition or exchange of a single member no
   longer helps.

References
----------
C. Ding, T. Li, M. Jordan, Convex and semi-nonnegative matrix factorizations, IEEE Trans. Pattern Anal. Mach. Intell. 32
(2010), doi:10.1109/TPAMI.2008.277, for mixtures of columns with any number of members.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf._parallel import blas_threads
from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count
from gsnmf.records import NO_GAIN, Choice, Mixtures, Weights
from gsnmf.search.alternating import short_nmf
from gsnmf.search.effort import Clock, Effort, Work, nominal_seconds
from gsnmf.search.mixed_model import MixedModel, MixedSide, Mixture, Pool, Space
from gsnmf.support.arrays import Doubles, Indices, axes_of
from gsnmf.support.progress import log_progress
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE
from gsnmf.weights.optimality import CANCELLED, ratio

if TYPE_CHECKING:
    from gsnmf.result import Factorization

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
_POWER_STEPS = 15
_NMF_BEFORE = 3
"""Iterations of NMF for the other factors to settle before one is replaced."""
_NMF_FROM_RANDOM = 50
"""Iterations after which NMFs from random factors are compared, or fewer when no work is left."""
_AT_A_TIME = 10
"""Iterations of them between two checks of the work that is left."""

Factors = tuple[Doubles, Doubles]
"""W and H."""


def check_members(members: Any, matrix: Matrix | Observed) -> int:
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
        model, used = MixedModel.of_result(start.members, start.weights, space)
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
            quality = 1.0 - ratio(np.sqrt(model.squared_error), np.sqrt(matrix.squared_norm))
            log_progress(f"{most} members", most - 1, members - 1, quality)
        return _result(start, model, unused, members, gain, tolerance)


def solve_mixture_weights(matrix: Matrix, choice: Choice, tolerance: float, max_iterations: int) -> Weights:
    """Solve for the weights of fixed mixtures."""
    assert isinstance(matrix, InMemoryMatrix)
    assert choice.mixtures is not None
    (m, n), r1, r2 = matrix.shape, choice.selection.columns.size, choice.selection.rows.size
    nothing = Weights(np.zeros((r1, n)), np.zeros((m, r2)), 1.0, np.inf, 0, False)
    limits = Constraints().resolve(matrix.shape, (r1, r2))
    with blas_threads(float(matrix.n_stored) * (r1 + r2)):
        space = Space.of(matrix, limits, Work(np.inf))
        model, used = MixedModel.of_result(choice.mixtures.members(), nothing, space)
        model.solve(tolerance, max_iterations)
    P, Q = np.zeros((n, r1)), np.zeros((m, r2))
    P[:, used[:r1]] = model.columns.weights * model.columns.sums
    Q[:, used[r1:]] = model.rows.weights * model.rows.sums
    return _weights(model, P, Q, tolerance)


def _stage(model: MixedModel, most: int, plan: _Plan, other: Factors | None) -> MixedModel:
    """The best model found with at most ``most`` members, from one with fewer and from the factors of an NMF."""
    work = model.space.work
    work.limit = work.spent + (plan.work if most == 2 else plan.later_work)
    _rounds(model, most, plan.rounds)
    for start in _restarts(model, most, plan.restarts):
        model = _better(model, start, most, plan.rounds)
    if other is not None:
        model = _better(model, _closest_model(model, *other, most), most, plan.rounds)
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
        found = _better(model, _with_replaced(model, queue.pop(0), 2, _REPLACED_ITERATIONS), 2, plan.rounds)
        if found.squared_error < (1.0 - _SLOW) * model.squared_error:
            queue = _weakest_first(found)
        model = found
    return model


def _weakest_first(model: MixedModel) -> list[int]:
    """Positions of the factors that may be replaced, by the length of their weights."""
    lengths = np.concatenate([np.linalg.norm(side.weights, axis=0) for side in (model.columns, model.rows)])
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
    columns, P = _with_unused(model.columns, unused[0])
    rows, Q = _with_unused(model.rows, unused[1])
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


def _with_unused(side: MixedSide, unused: Indices) -> tuple[list[tuple[Indices, Doubles]], Doubles]:
    """Members and weights of all mixtures of a side, unused ones last, and P for shares that sum to one."""
    pairs = [(mixture.members, mixture.weights) for mixture in side.mixtures]
    pairs += [(np.array([index]), np.ones(1)) for index in unused]
    return pairs, np.hstack([side.weights * side.sums, np.zeros((side.weights.shape[0], unused.size))])


def _restarts(model: MixedModel, most: int, iterations: Sequence[int]) -> Iterator[MixedModel | None]:
    """The mixtures closest to the factors of an NMF that starts from these, after each number of its iterations.

    None if a factor of the NMF is zero. It ends early when no work is left.
    """
    W, H = model.factors()
    done = 0
    for n_iterations in iterations:
        if not model.space.work.left():
            return
        W, H = _after_nmf(model.space, W, H, n_iterations - done)
        done = n_iterations
        yield _closest_model(model, W, H, most)


def _with_replaced(model: MixedModel, position: int, most: int, n_iterations: int) -> MixedModel | None:
    """A restart after the factor at ``position``, columns first, was replaced; None if nothing is left to explain."""
    kept = np.delete(np.arange(model.size), position)
    W, H = model.factors()
    W, H = _after_nmf(model.space, W[:, kept], H[kept], _NMF_BEFORE)
    u, v = _strongest_term(model.space, W, H)
    model.space.count_products(2 * _POWER_STEPS)
    W, H = np.insert(W, position, u, axis=1), np.insert(H, position, v, axis=0)
    return _closest_model(model, *_after_nmf(model.space, W, H, n_iterations), most)


def random_start(model: MixedModel, n_starts: int) -> Factors | None:
    """The factors of the best of ``n_starts`` NMFs from random factors, or of fewer when no work is left.

    None without any, and with fixed factors, of which these NMFs know nothing.
    """
    space = model.space
    best: tuple[float, Factors] | None = None
    for seed in range(0 if model.fixed.any() else n_starts):
        if not space.work.left():
            break
        factors = _random_factors(space, model.size, seed)
        for _ in range(_NMF_FROM_RANDOM // _AT_A_TIME):
            if space.work.left():
                factors = _after_nmf(space, *factors, _AT_A_TIME)
        squared_error = space.matrix.squared_residual(*factors)
        if best is None or squared_error < best[0]:
            best = squared_error, factors
    return None if best is None else best[1]


def _random_factors(space: Space, size: int, seed: int) -> Factors:
    """Uniformly random factors whose product has the mean of the matrix."""
    (m, n), rng = space.matrix.shape, np.random.default_rng(seed)
    mean = float(space.matrix.column_sums.sum()) / (m * n)
    scale = 2.0 * np.sqrt(mean / size)
    return scale * rng.random((m, size)), scale * rng.random((size, n))


def _strongest_term(space: Space, W: Doubles, H: Doubles) -> Factors:
    """Nonnegative u and v with u v' close to M - W H, by power steps from the worst explained column."""
    matrix = space.matrix
    image = np.asarray(matrix.T.dot(np.ascontiguousarray(W)), dtype=np.float64)
    left = matrix.squared_column_norms - np.einsum("jk,kj->j", 2.0 * image - H.T @ (W.T @ W), H)
    v = np.zeros(matrix.shape[1])
    v[np.argmax(left)] = 1.0
    tiny = np.finfo(np.float64).tiny
    for _ in range(_POWER_STEPS):
        u = np.maximum(matrix.dot(v) - W @ (H @ v), 0.0)
        u /= max(float(np.linalg.norm(u)), tiny)
        v = np.maximum(matrix.T.dot(u) - H.T @ (W.T @ u), 0.0)
        length = float(np.linalg.norm(v))
        v /= max(length, tiny)
    return u * length, v


def _after_nmf(space: Space, W: Doubles, H: Doubles, n_iterations: int) -> Factors:
    space.count_products(2 * W.shape[1] * n_iterations)
    operations = 2.0 * n_iterations * sum(space.matrix.shape) * W.shape[1] ** 2
    space.work.spent += nominal_seconds(sweeps=operations)
    return short_nmf(space.matrix, W, H, n_iterations)


def _closest_model(model: MixedModel, W: Doubles, H: Doubles, most: int) -> MixedModel | None:
    """Mixtures closest to the factors W and H, which belong to those of the model; fixed ones stay what they are."""
    space = model.space
    space.count_products(2 * W.shape[1])
    lengths = np.linalg.norm(W, axis=0), np.linalg.norm(H, axis=1)
    if not (lengths[0] * lengths[1] > 0).all():
        return None
    by_column, column_closeness = _closest_mixtures(space.columns, W / lengths[0], most)
    by_row, row_closeness = _closest_mixtures(space.rows, (H / lengths[1][:, None]).T, most)
    space.count_scores(most * model.size)
    r1 = model.columns.size
    for k in np.flatnonzero(model.fixed):
        is_column = k < r1
        column_closeness[k], row_closeness[k] = (np.inf, 0.0) if is_column else (0.0, np.inf)
        kept = model.columns.mixtures[k] if is_column else model.rows.mixtures[k - r1]
        (by_column if is_column else by_row)[k] = kept
    as_columns, as_rows = _sides(column_closeness - row_closeness, model)
    columns, rows = [by_column[k] for k in as_columns], [by_row[k] for k in as_rows]
    if not all(mixture.members.size for mixture in columns + rows):
        return None
    fixed = model.fixed[np.concatenate([as_columns, as_rows])]
    P, Q = (H[as_columns] * lengths[0][as_columns, None]).T, W[:, as_rows] * lengths[1][as_rows]
    return MixedModel.of(space, columns, rows, fixed, P, Q)


def _closest_mixtures(pool: Pool, vectors: Doubles, most: int) -> tuple[list[Mixture], Doubles]:
    """For each vector of unit length the mixture found closest to it, and the squared cosine of their angle."""
    products = np.asarray(pool.matrix.T.dot(np.ascontiguousarray(vectors)), dtype=np.float64)
    mixtures = [pool.closest(Mixture.empty(), np.ascontiguousarray(linear), most) for linear in products.T]
    closeness = [pool.explained(mixture, linear) for mixture, linear in zip(mixtures, products.T, strict=True)]
    return mixtures, np.array(closeness)


def _sides(preference: Doubles, model: MixedModel) -> tuple[Indices, Indices]:
    """Factors that become columns, and those that become rows, within the limits, each in increasing order."""
    limits = model.space.limits
    wanted = int(np.count_nonzero(preference >= 0))
    least, most = limits.least_columns, limits.most_columns
    n_columns = min(max(wanted, least), most, preference.size)
    order = np.argsort(-preference, kind="stable")
    return np.sort(order[:n_columns]), np.sort(order[n_columns:])

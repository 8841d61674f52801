"""The one path from a problem to its answer: complete, choose, fit, mix. All public calls take it.

`Task` and the refusals come first, so that what cannot be done is refused before any work.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from gsnmf.checkpoint import Checkpoint
from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix.in_memory import InMemoryMatrix, hold
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.scaling import scaling_of
from gsnmf.objectives import EveryEntry, Objective, objective_of
from gsnmf.problem import Problem
from gsnmf.records import Choice
from gsnmf.registry import Method, Plan, Rank, Ranks, Task, find_method
from gsnmf.result import Factorization
from gsnmf.search.automatic import check_included
from gsnmf.search.members import check_members, refine_members, solve_mixture_weights
from gsnmf.support.arrays import COLUMNS_ALONE
from gsnmf.weights.observed import solve_observed_weights


def solve(problem: Problem, plan: Plan) -> Factorization:
    """Choose columns and rows, and fit their weights.

    Parameters
    ----------
    problem : Problem
    plan : Plan

    Returns
    -------
    Factorization

    Raises
    ------
    ValueError
        Before any work, if the plan cannot answer the problem.
    KeyboardInterrupt
        The user's own interrupt. Its attribute ``best_so_far`` is the best Factorization so far, or None.
    """
    began = time.monotonic()
    task = task_of(problem, plan)
    objective = objective_of(problem, _size(task.rank))
    try:
        choice = _choose(objective.source, task, plan)
    except KeyboardInterrupt as interrupt:
        found: Any = getattr(interrupt, "best_so_far", None)
        if found is not None:
            start = found.state.plain_weights
            best = None if plan.scale else _fit(problem, plan, objective, Choice(found.selection, start, found.record))
            interrupt.best_so_far = best  # type: ignore[attr-defined]
        raise
    if problem.members == 1 and choice.mixtures is None:
        return _fit(problem, plan, objective, choice)
    try:
        return _mix(problem, plan, objective, choice, task, began)
    except KeyboardInterrupt as interrupt:
        single = replace(choice, mixtures=None)
        interrupt.best_so_far = _fit(replace(problem, members=1), plan, objective, single)  # type: ignore[attr-defined]
        raise


def choose(problem: Problem, plan: Plan) -> Choice:
    """Choose columns and rows, without final weights."""
    task = task_of(problem, plan)
    return _choose(objective_of(problem, _size(task.rank)).source, task, plan)


def task_of(problem: Problem, plan: Plan) -> Task:
    """What the method is asked for, after refusing what the plan cannot do for this problem."""
    method, matrix = find_method(plan.method), problem.matrix
    if problem.constraints is not None:
        method.check_constrained()
    method.check_place(matrix.in_memory)
    if plan.scale and not matrix.in_memory:
        raise ValueError("scale must be False for a Dask array: scaling reads the data hundreds of times.")
    if isinstance(matrix, Observed):
        if plan.checkpoint is not None:
            raise ValueError("checkpoint must be None with missing entries or weights of entries.")
        if plan.scale and not matrix.from_dense:
            raise ValueError(
                "scale must be False for a sparse array with missing entries or weights of entries: scaling needs "
                "every entry of the filled matrix. Pass a dense array with NaN if it fits in memory."
            )
    check_members(problem.members, matrix)
    rank = method.checked_rank(
        _rank_of_rows(method, problem.rank) if problem.sum_to_one else problem.rank, matrix.shape
    )
    limits = None if problem.constraints is None else _limits(problem.constraints, matrix.shape, method, rank)
    return Task(rank, plan.effort, None, limits, plan.time_limit, problem.members)


def _rank_of_rows(method: Method, rank: Any) -> Any:
    """The rank that asks for rows alone, or an error that says how to ask for them."""
    if method.axes == ("rows",):
        return rank
    if method.axes == ("columns",) or method.ranks == Ranks.NUMBER:
        raise ValueError(
            f"sum_to_one=True needs a method that can choose samples alone, such as 'auto' or 'spa-rows'; got "
            f"{method.name!r}."
        )
    if not isinstance(rank, tuple):
        return (0, rank)
    if rank[0]:
        raise ValueError(f"sum_to_one=True chooses samples alone: n_components must be a number or (0, k); got {rank}.")
    return rank


def _limits(constraints: Constraints, shape: tuple[int, int], method: Method, rank: Rank) -> Limits:
    """The constraints resolved; a method that chooses from one axis gets a limit of zero on the other."""
    if isinstance(rank, int) and len(method.axes) == 1:
        rank = (rank, 0) if method.axes == COLUMNS_ALONE else (0, rank)
    return constraints.resolve(shape, rank)


def _choose(matrix: Matrix, task: Task, plan: Plan) -> Choice:
    """Choose columns and rows, and return them with any weights that the method found on the way."""
    if task.limits is not None:
        check_included(matrix, task.limits)
    if plan.scale:
        assert isinstance(matrix, InMemoryMatrix)
        matrix = hold(scaling_of(matrix).matrix)
    if plan.checkpoint is not None:
        task = replace(
            task, checkpoint=Checkpoint(plan.checkpoint, matrix, find_method(plan.method).name, task.rank, task.limits)
        )
    with matrix.many_products():
        choice = find_method(plan.method).choose(matrix, task)
    return replace(choice, start=None) if plan.scale else choice  # weights of the scaled matrix are useless here


def _fit(problem: Problem, plan: Plan, objective: Objective, choice: Choice) -> Factorization:
    """Fit the weights of single columns and rows, in the set in which the problem wants them."""
    selection = choice.selection
    if problem.sum_to_one:
        fitted = objective.summing_to_one(selection.rows, plan.tolerance)
    else:
        fitted = objective.nonnegative(
            selection.columns, selection.rows, choice.start, plan.tolerance, plan.max_iterations
        )
    return Factorization(
        problem,
        selection,
        fitted.weights,
        plan.repeatable,
        choice.search,
        filling=fitted.filling,
        source=fitted.source,
    )


def _mix(problem: Problem, plan: Plan, objective: Objective, choice: Choice, task: Task, began: float) -> Factorization:
    """Give every factor several members. They are found on the matrix without holes, within the remaining time."""
    source = objective.source
    plain = replace(problem, matrix=source)
    if choice.mixtures is not None:
        weights = solve_mixture_weights(source, choice, plan.tolerance, plan.max_iterations)
        result = Factorization(
            plain, choice.selection, weights, plan.repeatable, choice.search, choice.mixtures, source=source
        )
    else:
        method, constraints = find_method(plan.method), problem.constraints or Constraints()
        limit = float("inf") if plan.time_limit is None else plan.time_limit
        result = refine_members(
            _fit(plain, plan, EveryEntry(source), choice),
            problem.members,
            effort=plan.effort,
            limits=_limits(constraints, source.shape, method, task.rank),
            tolerance=plan.tolerance,
            max_iterations=plan.max_iterations,
            time_limit=max(0.0, limit - (time.monotonic() - began)),
        )
    return replace(_on_counted_entries(problem, plan, objective, result), problem=problem)


def _on_counted_entries(problem: Problem, plan: Plan, objective: Objective, result: Factorization) -> Factorization:
    """Fit the weights of mixtures to observed entries, if the matrix has holes."""
    observed = problem.counted
    if not isinstance(observed, Observed):
        return result
    assert result.mixtures is not None
    weights = solve_observed_weights(
        observed,
        result.mixtures.mixed_columns(result.source),
        result.mixtures.mixed_rows(result.source),
        tolerance=plan.tolerance,
        max_iterations=plan.max_iterations,
        start=(result.column_weights, result.row_weights),
    )
    return replace(result, weights=weights, filling=objective.filling)


def _size(rank: Rank) -> int:
    return rank if isinstance(rank, int) else sum(rank)

"""The one path from a matrix and a request to a factorization; all public calls take it.

matrix -> (scale) -> choose columns and rows -> weights -> Factorization
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gsnmf.checkpoint import Checkpoint
from gsnmf.constraints import Constraints, Limits
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.scaling import scaling_of
from gsnmf.matrix.validation import check_count, check_positive
from gsnmf.records import Choice
from gsnmf.registry import Method, Rank, Task, find_method
from gsnmf.result import Factorization
from gsnmf.search.alternatives import substitutes
from gsnmf.search.automatic import check_included
from gsnmf.search.effort import Effort, Progress, check_effort, check_time_limit
from gsnmf.search.members import check_members, fitted_mixtures, refine_members
from gsnmf.support.arrays import COLUMNS_ALONE
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, solve_weights


@dataclass(frozen=True)
class Request:
    """What a caller asks for, checked as far as possible without the matrix.

    Attributes
    ----------
    rank : int, or pair (n_columns, n_rows)
    method : Method
    effort : {"fast", "balanced", "best"}
    scale : bool
        Whether to choose on the matrix scaled to equal sums.
    checkpoint : path or None
    tolerance, max_iterations : float and int
        For the weights.
    constraints : Constraints or None
        What must and must not be chosen.
    time_limit, progress, members : float or None, callable or None, and int
        As in `gsnmf.registry.Task`.
    """

    rank: Any
    method: Method
    effort: Effort
    scale: bool
    checkpoint: str | os.PathLike[str] | None
    tolerance: float
    max_iterations: int
    constraints: Constraints | None = None
    time_limit: float | None = None
    progress: Progress | None = None
    members: int = 1

    @classmethod
    def of(
        cls,
        rank: Any,
        *,
        method: str = "auto",
        effort: Effort = "balanced",
        scale: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        max_iterations: int = DEFAULT_MAX_ITERATIONS,
        constraints: Constraints | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
        members: int = 1,
    ) -> Request:
        """Check what a caller gave."""
        found = find_method(method)
        if checkpoint is not None:
            found.check_resumable()
        if constraints is not None:
            found.check_constrained()
            if not isinstance(constraints, Constraints):
                raise TypeError(f"constraints must be a gsnmf.Constraints; got {constraints!r}.")
        if time_limit is not None:
            check_time_limit(time_limit)
            found.check_timed()
        return cls(
            rank=rank,
            method=found,
            effort=check_effort(effort),
            scale=bool(scale),
            checkpoint=checkpoint,
            tolerance=check_positive(tolerance, "tolerance"),
            max_iterations=check_count(max_iterations, "max_iterations"),
            constraints=constraints,
            time_limit=time_limit,
            progress=progress,
            members=check_count(members, "members"),
        )

    def rank_for(self, matrix: Matrix) -> Rank:
        """The rank, after checking that the method takes it and this matrix."""
        self.method.check_place(matrix.in_memory)
        if self.scale and not matrix.in_memory:
            raise ValueError("scale must be False for a Dask array: scaling reads the data hundreds of times.")
        return self.method.checked_rank(self.rank, matrix.shape)

    def limits_for(self, matrix: Matrix, rank: Rank) -> Limits | None:
        """The constraints resolved for this matrix and rank; None without constraints.

        A method that chooses from one axis gets a limit of zero on the other.
        """
        if self.constraints is None:
            return None
        return self._resolved(self.constraints, matrix, rank)

    def limits_of_members(self, matrix: Matrix) -> Limits:
        """The constraints on the members of mixtures."""
        return self._resolved(self.constraints or Constraints(), matrix, self.rank_for(matrix))

    def _resolved(self, constraints: Constraints, matrix: Matrix, rank: Rank) -> Limits:
        if isinstance(rank, int) and len(self.method.axes) == 1:
            rank = (rank, 0) if self.method.axes == COLUMNS_ALONE else (0, rank)
        return constraints.resolve(matrix.shape, rank)


def choose(matrix: Matrix, request: Request) -> Choice:
    """Choose columns and rows, and return them with any weights that the method found on the way."""
    rank = request.rank_for(matrix)
    limits = request.limits_for(matrix, rank)
    if limits is not None:
        check_included(matrix, limits)
    checkpoint = None
    if request.scale:
        assert isinstance(matrix, InMemoryMatrix)
        matrix = hold(scaling_of(matrix).matrix)
    if request.checkpoint is not None:
        checkpoint = Checkpoint(request.checkpoint, matrix, request.method.name, rank)
    task = Task(rank, request.effort, checkpoint, limits, request.time_limit, request.progress, request.members)
    with matrix.many_products():
        choice = request.method.choose(matrix, task)
    return replace(choice, start=None) if request.scale else choice  # weights of the scaled matrix are useless here


def choose_and_finish(matrix: Matrix, request: Request, finish: Callable[[Choice], Factorization]) -> Factorization:
    """Choose columns and rows and build the factorization; an interrupt carries the best one so far."""
    try:
        choice = choose(matrix, request)
    except KeyboardInterrupt as interrupt:
        found: Any = getattr(interrupt, "best_so_far", None)
        if found is not None and not request.scale:
            best = Choice(found.selection, found.fit.weights(matrix), found.record)
            interrupt.best_so_far = finish(best)  # type: ignore[attr-defined]
        raise
    return finish(choice)


def solve(matrix: Matrix, request: Request) -> Factorization:
    """Choose columns and rows and solve for their weights, starting from those that the method found."""
    began = time.monotonic()
    check_members(request.members, matrix)
    result = choose_and_finish(matrix, request, lambda choice: weighted(matrix, choice, request))
    if request.members == 1 or result.mixtures is not None:
        return result
    try:
        return _with_members(result, request, time.monotonic() - began)
    except KeyboardInterrupt as interrupt:
        interrupt.best_so_far = result  # type: ignore[attr-defined]
        raise


def _with_members(result: Factorization, request: Request, spent: float) -> Factorization:
    """The result with several members per factor, within the remaining time."""
    limit = float("inf") if request.time_limit is None else request.time_limit
    return refine_members(
        result,
        request.members,
        effort=request.effort,
        limits=request.limits_of_members(result.source),
        tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        time_limit=max(0.0, limit - spent),
        progress=request.progress,
    )


def weighted(matrix: Matrix, choice: Choice, request: Request) -> Factorization:
    """Solve for the weights of a choice."""
    known = partial(substitutes, constraints=request.constraints)
    if choice.mixtures is not None:
        result = fitted_mixtures(matrix, choice, request.tolerance, request.max_iterations)
        return replace(result, _substitutes=known)
    weights = solve_weights(
        matrix,
        choice.selection.columns,
        choice.selection.rows,
        tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        start=choice.start,
    )
    return Factorization(choice.selection, weights, matrix, choice.search, known)

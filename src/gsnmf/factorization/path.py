"""The one path from a matrix and a request to a factorization; all public calls walk it.

matrix -> (scale) -> choose columns and rows -> weights -> Factorization
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gsnmf.factorization.registry import Method, Rank, Task, find_method
from gsnmf.matrices import InMemoryMatrix, Matrix
from gsnmf.matrices.checks import check_count, check_positive
from gsnmf.matrices.holding import hold
from gsnmf.matrices.scaling import scaling_of
from gsnmf.results import Choice, Factorization
from gsnmf.results.checkpoint import Checkpoint
from gsnmf.search.automatic import Effort, check_effort
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, solve_weights


@dataclass(frozen=True)
class Request:
    """What is asked of a matrix, checked as far as that is possible without the matrix.

    Attributes
    ----------
    rank : int, or pair (n_columns, n_rows)
    method : Method
    effort : {"fast", "balanced", "best"}
    scale : bool
        Whether to choose on the matrix scaled to equal sums.
    checkpoint : path or None
    tolerance, max_iterations : float and int
        Of the weights.
    """

    rank: Any
    method: Method
    effort: Effort
    scale: bool
    checkpoint: str | os.PathLike[str] | None
    tolerance: float
    max_iterations: int

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
    ) -> Request:
        """Check what a caller gave."""
        found = find_method(method)
        if checkpoint is not None:
            found.check_resumable()
        return cls(
            rank=rank,
            method=found,
            effort=check_effort(effort),
            scale=bool(scale),
            checkpoint=checkpoint,
            tolerance=check_positive(tolerance, "tolerance"),
            max_iterations=check_count(max_iterations, "max_iterations"),
        )

    def rank_for(self, matrix: Matrix) -> Rank:
        """The rank, if the method takes it and this matrix."""
        self.method.check_place(matrix.in_memory)
        if self.scale and not matrix.in_memory:
            raise ValueError("scale must be False for a Dask array: scaling reads the data hundreds of times.")
        return self.method.checked_rank(self.rank, matrix.shape)


def choose(matrix: Matrix, request: Request) -> Choice:
    """Choose columns and rows, with the weights that the method has found on the way."""
    rank = request.rank_for(matrix)
    checkpoint = None
    if request.scale:
        assert isinstance(matrix, InMemoryMatrix)
        matrix = hold(scaling_of(matrix).matrix)
    if request.checkpoint is not None:
        checkpoint = Checkpoint(request.checkpoint, matrix, request.method.name, rank)
    choice = request.method.choose(matrix, Task(rank, request.effort, checkpoint))
    return Choice(choice.selection) if request.scale else choice  # weights of the scaled matrix are of no use


def solve(matrix: Matrix, request: Request) -> Factorization:
    """Choose columns and rows and solve for their weights, from where the method has left them."""
    choice = choose(matrix, request)
    weights = solve_weights(
        matrix,
        choice.selection.columns,
        choice.selection.rows,
        tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        start=choice.start,
    )
    return Factorization(choice.selection, weights, matrix)

"""`factorize`, `select` and `fit_weights`: the path as functions of anything matrix-like."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.validation import Hints, check_block, check_count, check_indices, check_positive
from gsnmf.objectives import objective_of
from gsnmf.problem import Problem
from gsnmf.records import Selection, Weights
from gsnmf.registry import Plan, Ranks, find_method
from gsnmf.result import Factorization
from gsnmf.search.effort import Effort
from gsnmf.solve import choose, solve
from gsnmf.support.arrays import COLUMNS_ALONE, Axis, Floats, Indices
from gsnmf.support.progress import Progress, reported
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, warn_unless_converged

if TYPE_CHECKING:
    from gsnmf.model_selection.rank_choice import RankChoice

_HINTS = Hints("gsnmf.factorize(..., missing_values=numpy.nan)", 'gsnmf.factorize(..., negative="clip")')


def factorize(
    matrix: Any,
    rank: Any,
    *,
    method: str = "auto",
    effort: Effort = "balanced",
    scale: bool = False,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    checkpoint: str | os.PathLike[str] | None = None,
    constraints: Constraints | None = None,
    time_limit: float | None = None,
    progress: Progress = None,
    members: int = 1,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
) -> Factorization:
    r"""Explain a nonnegative matrix by a few of its own columns and rows.

    Chooses columns and rows, ``rank`` in all, and the nonnegative weights that minimise

    .. math:: \| M - M(:, \mathrm{columns})\, P_1 - P_2\, M(\mathrm{rows}, :) \|_F .

    Parameters
    ----------
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse stays sparse. A Dask array, with dense or SciPy sparse
        chunks, is read chunk by chunk and never held as a whole; ``row_weights`` and ``W``, which have one row per row
        of the matrix, are then Dask arrays in the same chunks of rows.
    rank : int, pair (n_columns, n_rows), range, or "auto"
        How many columns and rows to choose in total; a pair for methods that cannot divide the total themselves. From a
        range `gsnmf.choose_rank` takes the number that it recommends; "auto" is the range from 2 to 30.
    method : str
        How to choose them: see `gsnmf.methods`.
    effort : {"fast", "balanced", "best"}
        What ``method="auto"`` may spend: about a second, ten seconds, or minutes.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`). The weights and the error
        still refer to ``matrix`` itself.
    tolerance : float
        Bound on the relative violation of the optimality conditions of the weights (`gsnmf.weights`).
    max_iterations : int
        Limit on the iterations of the weights.
    checkpoint : path, optional
        A file from which the same choice goes on after an interruption, and which it keeps up to date; for the methods
        "gspa", "spa-columns" and "spa-rows".
    constraints : gsnmf.Constraints, optional
        What must be chosen, what must not, and the smallest and largest numbers of columns and rows.
    time_limit : float, optional
        Seconds after which ``method="auto"`` returns the best so far; the answer then depends on the machine.
    progress : True or callable, optional
        True shows a bar on standard error. A function is called with small records: ``message``, ``fraction`` of the
        work that is done, and ``quality`` so far. Searches (``method="auto"`` and ``members``) report progress.
    members : int
        If above one, each factor is a nonnegative mixture of at most this many columns, or of at most this many rows, M
        ~ (M A) P1 + P2 (B M): ``result.column_mixture`` is A, ``result.row_mixture`` is B, and ``result.columns`` and
        ``result.rows`` are the leading members, the first of equal ones. The methods ``"smooth-spa-columns"`` and
        ``"smooth-spa-rows"`` take the mean of exactly this many; every other method chooses single ones, from which the
        search for members starts. The matrix must be in memory.
    missing_values : numpy.nan, "unstored" or None
        Which entries are missing: those that are NaN in a dense array, those that a sparse array does not store, or
        none. A low-rank matrix fills the holes, columns and rows are chosen on the filled matrix, and the weights are
        fitted to observed entries only; ``result.reconstruct()`` predicts the holes.
    entry_weights : array or sparse array, shape (m, n), optional
        Nonnegative weight of every entry in the sum of squares; 0 means missing. The error that is minimised and
        reported is then the weighted error on observed entries; ``result.observed_share`` is their share.
    negative : {"error", "clip"}
        What to do with negative entries: refuse them, or set them to zero, which ``result.clipped_share`` reports.

    Returns
    -------
    Factorization
        ``result.search`` records what ``method="auto"`` did; ``result.alternatives()`` shows what else could have been
        chosen.

    Raises
    ------
    KeyboardInterrupt
        The user's own interrupt. Its attribute ``best_so_far`` is the best Factorization so far, or None.

    Examples
    --------
    A matrix made of three of its columns and two of its rows, with a little noise:

    >>> import gsnmf
    >>> from gsnmf.datasets import fully_random
    >>> data = fully_random(0.001, shape=(60, 80), n_columns=3, n_rows=2, random_state=0)
    >>> result = gsnmf.factorize(data.matrix, 5)
    >>> result
    Factorization: 3 columns and 2 rows of 60 x 80, quality 99.9 %, auto
    >>> sorted(result.columns) == list(data.columns), sorted(result.rows) == list(data.rows)
    (True, True)
    """
    plan = Plan(method, effort, bool(scale), tolerance, max_iterations, checkpoint, time_limit)
    problem = Problem.of(
        matrix,
        rank,
        missing_values=missing_values,
        entry_weights=entry_weights,
        negative=negative,
        constraints=constraints,
        members=members,
        hints=_HINTS,
    )
    problem.warn()
    with reported(progress):
        result = solve(with_chosen_rank(problem, plan)[0], plan)
    warn_unless_converged(result.weights, plan.tolerance)
    return result


def select(
    matrix: Any,
    rank: Any,
    *,
    method: str = "auto",
    effort: Effort = "balanced",
    scale: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    constraints: Constraints | None = None,
    time_limit: float | None = None,
    progress: Progress = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
) -> Selection:
    """Choose columns and rows of a nonnegative matrix, without weights.

    Parameters
    ----------
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        Finite and nonnegative.
    rank : int, pair (n_columns, n_rows), range, or "auto"
        As for `factorize`.
    method, effort, scale, checkpoint, constraints, time_limit, progress
        As for `factorize`.
    missing_values, entry_weights, negative
        As for `factorize`.

    Returns
    -------
    Selection
        The chosen columns and rows, in the order of choice, and why the choice ended.

    Examples
    --------
    >>> import gsnmf
    >>> gsnmf.select([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows").rows
    array([0, 1])
    """
    plan = Plan(method, effort, bool(scale), checkpoint=checkpoint, time_limit=time_limit)
    problem = Problem.of(
        matrix,
        rank,
        missing_values=missing_values,
        entry_weights=entry_weights,
        negative=negative,
        constraints=constraints,
        hints=_HINTS,
    )
    problem.warn()
    with reported(progress):
        return choose(with_chosen_rank(problem, plan)[0], plan).selection


def fit_weights(
    matrix: Any,
    columns: Any,
    rows: Any,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
    sum_to_one: Axis | None = None,
) -> Weights:
    """Nonnegative weights with which chosen columns and rows explain a matrix best.

    Parameters
    ----------
    matrix : array-like, sparse or Dask array, shape (m, n)
        Nonnegative. The row weights of a Dask array are a Dask array with the same chunks of rows, computed when they
        are asked for.
    columns, rows : sequences of int
        Chosen columns and rows, distinct; one of them may be empty.
    tolerance : float
        Bound on the relative violation of the optimality conditions defined in `gsnmf.weights.optimality`. With one
        side only, the weights are exact and this does not matter.
    max_iterations : int
        Limit on iterations; a ``ConvergenceWarning`` says if it was reached.
    start : pair of arrays, shape (r1, n) and (m, r2), optional
        Weights to start from. The result is never worse. For a Dask array only the first of them counts.
    missing_values, entry_weights, negative
        As for `gsnmf.factorize`. With missing entries or entry weights, a low-rank matrix fills the holes of the chosen
        columns and rows, and the error counts observed entries only.
    sum_to_one : {"columns", "rows"}, optional
        ``"columns"``: every column is a mixture of the chosen columns, with weights that sum to one; ``rows`` must then
        be empty. ``"rows"``: the same for rows. The weights are exact: the optimality conditions hold to about 1e-12.
        The matrix must be in memory.

    Returns
    -------
    Weights

    Examples
    --------
    >>> import numpy as np
    >>> import gsnmf
    >>> M = np.array([[1.0, 0, 2], [0, 1, 2], [0, 0, 1]])
    >>> weights = gsnmf.fit_weights(M, columns=[0, 1], rows=[2])
    >>> weights.column_weights.round(3)
    array([[1., 0., 2.],
           [0., 1., 2.]])
    >>> weights.converged
    True
    """
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    problem = Problem.of(matrix, missing_values=missing_values, entry_weights=entry_weights, negative=negative)
    m, n = problem.matrix.shape
    columns, rows = check_indices(columns, n, "columns"), check_indices(rows, m, "rows")
    if start is not None:
        start = (
            check_block(start[0], (columns.size, n), name="the column weights of start", nonnegative=True),
            check_block(start[1], (m, rows.size), name="the row weights of start", nonnegative=True),
        )
    if sum_to_one is not None:
        _check_sum_to_one(problem, columns, rows, sum_to_one)
    problem.warn()
    size = columns.size + rows.size
    if sum_to_one == "columns":
        turned = objective_of(problem.with_matrix(problem.matrix.T), size).summing_to_one(columns, tolerance).weights
        column_weights, row_weights = (np.ascontiguousarray(X.T) for X in (turned.row_weights, turned.column_weights))
        return replace(turned, column_weights=column_weights, row_weights=row_weights)
    objective = objective_of(problem, size)
    if sum_to_one == "rows":
        return objective.summing_to_one(rows, tolerance).weights
    weights = objective.nonnegative(columns, rows, start, tolerance, max_iterations).weights
    warn_unless_converged(weights, tolerance)
    return weights


def _check_sum_to_one(problem: Problem, columns: Indices, rows: Indices, axis: Axis) -> None:
    """Refuse weights that sum to one unless they are for columns alone, or for rows alone, in memory."""
    if axis not in ("columns", "rows"):
        raise ValueError(f"sum_to_one must be 'columns', 'rows' or None; got {axis!r}.")
    chosen, others = (columns, rows) if axis == "columns" else (rows, columns)
    if others.size or not chosen.size:
        other = "rows" if axis == "columns" else "columns"
        raise ValueError(
            f"sum_to_one={axis!r} needs chosen {axis} and no chosen {other}; got {columns.size} columns and "
            f"{rows.size} rows."
        )
    if not problem.matrix.in_memory:
        raise ValueError("sum_to_one must be None for a Dask array; GSNMF(sum_to_one=True).transform takes one.")


def with_chosen_rank(problem: Problem, plan: Plan, *, name: str = "rank") -> tuple[Problem, RankChoice | None]:
    """The problem with a number in place of a range of ranks or "auto", and how `gsnmf.choose_rank` chose it.

    A method that chooses from one axis alone gets a rank that was recommended for this axis. Messages call the rank
    ``name``.
    """
    rank = problem.rank
    if isinstance(rank, str) and rank != "auto":
        raise ValueError(f"{name} must be a number, a pair, a range or 'auto'; got {rank!r}.")
    if not isinstance(rank, str | range):
        return problem, None
    if problem.weighted or problem.sum_to_one:
        raise ValueError(
            f"{name} must be a number or a pair with weights of samples or features, or with sum_to_one; got {rank!r}."
        )
    method, constraints = find_method(plan.method), problem.constraints
    if method.ranks == Ranks.PAIR:
        raise ValueError(f"method={method.name!r} needs {name} as a pair; got {rank!r}.")
    from gsnmf.model_selection.rank_choice import USUAL_RANKS, choose_rank  # needed by few calls

    if len(method.axes) == 1:
        most = max(problem.matrix.shape)
        one_sided = (most, 0) if method.axes == COLUMNS_ALONE else (0, most)
        constraints = replace(constraints or Constraints(), at_most=one_sided)
    ranks = rank if isinstance(rank, range) else USUAL_RANKS
    choice = choose_rank(problem.matrix, ranks, effort=plan.effort, constraints=constraints)
    return problem.with_rank(choice.rank), choice

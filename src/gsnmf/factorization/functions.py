"""`factorize` and `select`: the path as functions of anything that a person calls a matrix."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from gsnmf.factorization.missing import choose_held, solve_held
from gsnmf.factorization.path import Request
from gsnmf.matrices.entrance import Negative, admit
from gsnmf.matrices.observed import MissingValues
from gsnmf.results import Factorization, Selection
from gsnmf.search.automatic import Effort, Progress
from gsnmf.selection.constraints import Constraints
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, warn_unless_converged


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
    progress: Progress | None = None,
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
    rank : int, or pair (n_columns, n_rows)
        How many columns and rows to choose in all; a pair for methods that cannot divide it themselves.
    method : str
        How to choose them: see `gsnmf.methods`.
    effort : {"fast", "balanced", "best"}
        What ``method="auto"`` may spend: about a second, ten seconds, or minutes.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`). The weights and the error
        are those of ``matrix`` itself all the same.
    tolerance : float
        On the relative violation of the optimality conditions of the weights (`gsnmf.weights`).
    max_iterations : int
        Limit on the iterations of the weights.
    checkpoint : path, optional
        A file from which an interrupted choice of the same columns and rows goes on, and which it keeps up to date;
        for the methods "gspa", "spa-columns" and "spa-rows".
    constraints : gsnmf.Constraints, optional
        What must be chosen, what must not, and how many of each at least and at most.
    time_limit : float, optional
        Seconds after which ``method="auto"`` returns the best so far; the answer then depends on the machine.
    progress : callable, optional
        Called by ``method="auto"`` with the stage, the work done, the work in all, and the best quality so far.
    members : int
        With more than one, each factor is a nonnegative mixture of at most so many columns, or of at most so many
        rows, M ~ (M A) P1 + P2 (B M): ``result.column_mixture`` is A, ``result.row_mixture`` is B, and
        ``result.columns`` and ``result.rows`` are the leading members, the first of equal ones. The methods
        ``"smooth-spa-columns"`` and ``"smooth-spa-rows"`` take the mean of exactly so many; every other method chooses
        single ones, from which the search for members starts. For matrices in memory.
    missing_values : numpy.nan, "unstored" or None
        Which entries are missing: those that are NaN in a dense array, those that a sparse array does not store, or
        none. Holes are filled by a matrix of low rank, columns and rows chosen on the filled matrix, and the weights
        fitted on observed entries alone; ``result.reconstruct()`` predicts the holes.
    entry_weights : array or sparse array, shape (m, n), optional
        Nonnegative weight of every entry in the sum of squares; 0 means missing. The error that is minimised and
        reported is then the weighted one, of observed entries; ``result.observed_share`` says how many those are.
    negative : {"error", "clip"}
        What to do with negative entries: refuse them, or set them to zero, which ``result.clipped_share`` reports.

    Returns
    -------
    Factorization
        ``result.search`` tells what ``method="auto"`` did; ``result.alternatives()`` what else could have been chosen.

    Raises
    ------
    KeyboardInterrupt
        As it came, with the best so far, a Factorization or None, as its attribute ``best_so_far``.

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
    request = Request.of(
        rank,
        method=method,
        effort=effort,
        scale=scale,
        checkpoint=checkpoint,
        tolerance=tolerance,
        max_iterations=max_iterations,
        constraints=constraints,
        time_limit=time_limit,
        progress=progress,
        members=members,
    )
    data = admit(matrix, missing_values=missing_values, entry_weights=entry_weights, negative=negative)
    data.warn()
    result = solve_held(data.held, request)
    warn_unless_converged(result.weights, request.tolerance)
    return replace(result, clipped_share=data.clipped_share) if data.clipped_share else result


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
    progress: Progress | None = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
) -> Selection:
    """Choose columns and rows of a nonnegative matrix, without weights; parameters as for `factorize`.

    Examples
    --------
    >>> import gsnmf
    >>> gsnmf.select([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows").rows
    array([0, 1])
    """
    request = Request.of(
        rank,
        method=method,
        effort=effort,
        scale=scale,
        checkpoint=checkpoint,
        constraints=constraints,
        time_limit=time_limit,
        progress=progress,
    )
    data = admit(matrix, missing_values=missing_values, entry_weights=entry_weights, negative=negative)
    data.warn()
    return choose_held(data.held, request).selection

"""The path for rows as mixtures: choose rows alone, and fit weights that sum to one."""

from __future__ import annotations

import math
from dataclasses import replace

from gsnmf.factorization.missing import completed, observation_of
from gsnmf.factorization.path import Request, choose
from gsnmf.factorization.weighted_axes import both_scaled, scaled_matrix, weighted_observation
from gsnmf.matrix import Matrix
from gsnmf.matrix.observed import Observed
from gsnmf.registry import Ranks
from gsnmf.result import Factorization
from gsnmf.support.arrays import Doubles
from gsnmf.weights.optimality import ratio
from gsnmf.weights.sum_to_one import solve_mixtures


def solve_mixed(held: Matrix | Observed, request: Request) -> Factorization:
    """Explain every row as a mixture of a few rows, with nonnegative weights that sum to one.

    The rows are chosen by the method of the request, for nonnegative weights of any sum; the weights are exact.
    """
    request = _for_rows(request)
    source: Matrix
    seen = None
    if isinstance(held, Observed):
        source, completion = completed(held, request)
        seen = observation_of(held, completion)
    elif held.in_memory:
        source = held
    else:
        raise ValueError("sum_to_one must be False to fit a Dask array; transform takes one.")
    choice = choose(source, request)
    weights = solve_mixtures(held, source.T.raw_columns(choice.selection.rows).T, request.tolerance)
    return Factorization(choice.selection, weights, source, choice.search, observation=seen)


def solve_weighted_mixed(matrix: Matrix, request: Request, of_rows: Doubles, of_columns: Doubles) -> Factorization:
    """`solve_mixed` with weights of rows and of columns in the error, as in `gsnmf.factorization.weighted_axes`.

    The weight of a row affects which rows are chosen, but not the mixture that explains the row.
    """
    rows, columns, scaled = both_scaled(matrix, of_rows, of_columns)
    choice = choose(scaled, _for_rows(request))
    chosen = matrix.T.raw_columns(choice.selection.rows).T * columns
    weights = solve_mixtures(scaled_matrix(matrix, None, columns), chosen, request.tolerance)
    squared_error = scaled.squared_distance(weights.row_weights * rows[:, None], chosen)
    weights = replace(weights, relative_error=ratio(math.sqrt(squared_error), math.sqrt(scaled.squared_norm)))
    seen = weighted_observation(rows, columns, scaled)
    return Factorization(choice.selection, weights, matrix, choice.search, observation=seen)


def _for_rows(request: Request) -> Request:
    """The request for rows alone, or an error that says how to ask for them."""
    method, rank = request.method, request.rank
    if method.axes == ("rows",):
        return request
    if method.axes == ("columns",) or method.ranks == Ranks.NUMBER:
        raise ValueError(
            f"sum_to_one=True needs a method that can choose samples alone, such as 'auto' or 'spa-rows'; got "
            f"{method.name!r}."
        )
    if not isinstance(rank, tuple):
        return replace(request, rank=(0, rank))
    if rank[0]:
        raise ValueError(f"sum_to_one=True chooses samples alone: n_components must be a number or (0, k); got {rank}.")
    return request

"""The smallest number of components that reaches a target error."""

from __future__ import annotations

import math
from collections.abc import Callable

from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.singular_values import singular_triplets
from gsnmf.model_selection.rank_path import rank_path
from gsnmf.result import Factorization

LARGEST_SEARCHED = 200
"""Largest number of components that is tried: every step costs more than the one before."""


def smallest_factorization(
    matrix: Matrix, target_error: float, factorize: Callable[[int], Factorization]
) -> Factorization:
    """The fewest components that reach the target error, starting from nested choices.

    The search stops at once if truncated SVD, the best approximation of any rank, proves the target out of reach.
    """
    limit = min(LARGEST_SEARCHED, max(matrix.shape))
    _check_reachable(matrix, limit, target_error)
    errors = rank_path(matrix, limit, target_error=target_error).errors
    error, rank = float(errors[-1]), max(1, errors.size - 1)
    while error <= target_error:
        result = factorize(rank)
        if result.relative_error <= target_error:
            return _shortened(result, target_error, factorize)
        if rank == limit:
            error = result.relative_error
        rank += 1
    raise ValueError(
        f"{limit} components have a relative error of {error:.3g}, above target_error={target_error}; raise it or set "
        "n_components."
    )


def _check_reachable(matrix: Matrix, limit: int, target_error: float) -> None:
    """Raise if no approximation of rank ``limit`` can reach the target error."""
    if not isinstance(matrix, InMemoryMatrix) or limit >= min(matrix.shape) or matrix.squared_norm == 0:
        return
    values = singular_triplets(matrix, limit)[1].astype(float)
    explained = float(values @ values) / matrix.squared_norm
    bound = math.sqrt(max(0.0, 1.0 - explained))
    if bound > target_error:
        raise ValueError(
            f"target_error={target_error} is out of reach: no {limit} components of any kind have a relative error "
            f"below {bound:.3g} (truncated SVD). Raise target_error or set n_components."
        )


def _shortened(result: Factorization, goal: float, factorize: Callable[[int], Factorization]) -> Factorization:
    """Reduce the number of components by bisection, as far as the goal is still reached."""
    too_few = 0
    while result.selection.n_selected - too_few > 1:
        rank = (too_few + result.selection.n_selected) // 2
        trial = factorize(rank)
        if trial.relative_error <= goal:
            result = trial
        else:
            too_few = rank
    return result

"""Nonnegative weights of chosen columns and rows of a matrix of any kind, and a warning if they have not converged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.warning import warn_caller
from gsnmf.weights.joint import JointProblem, solve_joint
from gsnmf.weights.one_sided import one_sided_weights
from gsnmf.weights.optimality import CANCELLED, DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, SMALL_RESIDUAL, ratio
from gsnmf.weights.out_of_core import solve_out_of_core

_REFINED = 1e-6
_REFINING_ITERATIONS = 100
"""Nearly exact fits are refined to this fraction of the tolerance, for at most so many iterations."""


def warn_unless_converged(weights: Weights, tolerance: float) -> None:
    """Warn the caller of a public function that the weights did not reach the tolerance."""
    if not weights.converged:
        warn_caller(
            f"The weights stopped after {weights.n_iterations} iterations with an optimality violation of "
            f"{weights.optimality:.1e}, above the tolerance {tolerance:.1e}; raise max_iterations or tolerance "
            "(max_iter or tol of an estimator).",
            ConvergenceWarning,
        )


def solve_weights(
    matrix: Matrix,
    columns: Indices,
    rows: Indices,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
) -> Weights:
    """`gsnmf.fit_weights` for input that is known to be right, with every entry observed, and without its warning."""
    if not matrix.in_memory:
        return solve_out_of_core(matrix, columns, rows, tolerance, max_iterations, None if start is None else start[0])
    m, n = matrix.shape
    used_columns, used_rows = _nonzero(matrix, columns), _nonzero(matrix.T, rows)
    if start is not None:
        start = (start[0][used_columns], start[1][:, used_rows])
    solved = _solve_nonzero(matrix, columns[used_columns], rows[used_rows], tolerance, max_iterations, start)
    column_weights = np.zeros((columns.size, n), dtype=matrix.dtype)
    row_weights = np.zeros((m, rows.size), dtype=matrix.dtype)
    column_weights[used_columns] = solved.column_weights
    row_weights[:, used_rows] = solved.row_weights
    return replace(solved, column_weights=column_weights, row_weights=row_weights)


def _nonzero(matrix: Matrix, columns: Indices) -> Indices:
    """Positions of the nonzero columns. If ``columns`` is empty, no norms are computed."""
    return np.flatnonzero(matrix.squared_column_norms[columns] > 0) if columns.size else columns


def _solve_nonzero(
    matrix: Matrix,
    columns: Indices,
    rows: Indices,
    tolerance: float,
    max_iterations: int,
    start: tuple[Floats, Floats] | None,
) -> Weights:
    if rows.size and columns.size:
        problem = JointProblem.of(matrix, columns, rows)
        P, Q = (np.zeros_like(linear) for linear in problem.linear)
        if start is not None:
            P, Q = problem.columns.scaled(start[0].T), problem.rows.scaled(start[1])
        with single_threaded_blas():
            squared_error, optimality, n_iterations = _solve_and_refine(problem, P, Q, tolerance, max_iterations)
        column_weights, row_weights = (P / problem.columns.lengths).T, Q / problem.rows.lengths
    else:
        side, indices = (matrix, columns) if columns.size else (matrix.T, rows)
        X, squared_error, optimality = one_sided_weights(side, indices)
        n_iterations = 1
        none = np.zeros((0, matrix.shape[1])), np.zeros((matrix.shape[0], 0))
        column_weights, row_weights = (X.T, none[1]) if columns.size else (none[0], X)
    if squared_error < CANCELLED * matrix.squared_norm:
        W = np.hstack([matrix.columns(columns), row_weights])
        H = np.vstack([column_weights, matrix.T.columns(rows).T])
        squared_error = matrix.squared_residual(W, H)
    relative_error = ratio(np.sqrt(squared_error), np.sqrt(matrix.squared_norm))
    return Weights(column_weights, row_weights, relative_error, optimality, n_iterations, optimality <= tolerance)


def _solve_and_refine(
    problem: JointProblem, P: Doubles, Q: Doubles, tolerance: float, max_iterations: int
) -> tuple[float, float, int]:
    """`solve_joint`, and a few more iterations if the fit is nearly exact.

    There, among nearly dependent columns, the optimality conditions may hold although the error could be much smaller.
    """
    solved = squared_error, optimality, n_iterations = solve_joint(problem, P, Q, tolerance, max_iterations)
    if optimality > tolerance or squared_error > SMALL_RESIDUAL**2 * problem.squared_norm:
        return solved
    finer_P, finer_Q = P.copy(), Q.copy()
    left = min(_REFINING_ITERATIONS, max_iterations - n_iterations)
    squared_error, optimality, n_refining = solve_joint(problem, finer_P, finer_Q, _REFINED * tolerance, left)
    if optimality > tolerance:
        return solved
    P[...], Q[...] = finer_P, finer_Q
    return squared_error, optimality, n_iterations + n_refining

"""Fit the weights of chosen columns and rows: recognise the kind of data and of weights, and call their solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.completion import complete, filled
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_block, check_count, check_indices, check_positive
from gsnmf.problem import Problem
from gsnmf.records import Weights
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.warning import warn_caller
from gsnmf.weights.joint import JointProblem, solve_joint
from gsnmf.weights.observed import solve_anchored
from gsnmf.weights.one_sided import one_sided_weights
from gsnmf.weights.optimality import CANCELLED, DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, SMALL_RESIDUAL, ratio
from gsnmf.weights.out_of_core import solve_out_of_core
from gsnmf.weights.sum_to_one import solve_mixtures

_REFINED = 1e-6
_REFINING_ITERATIONS = 100
"""Nearly exact fits are refined to this fraction of the tolerance, for at most so many iterations."""


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
    >>> from gsnmf.weights import fit_weights
    >>> M = np.array([[1.0, 0, 2], [0, 1, 2], [0, 0, 1]])
    >>> weights = fit_weights(M, columns=[0, 1], rows=[2])
    >>> weights.column_weights.round(3)
    array([[1., 0., 2.],
           [0., 1., 2.]])
    >>> weights.converged
    True
    """
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    problem = Problem.of(matrix, missing_values=missing_values, entry_weights=entry_weights, negative=negative)
    held = problem.matrix
    m, n = held.shape
    columns, rows = check_indices(columns, n, "columns"), check_indices(rows, m, "rows")
    if start is not None:
        start = _check_start(start, (columns.size, n), (m, rows.size))
    problem.warn()
    if sum_to_one is not None:
        return _mixtures(held, columns, rows, sum_to_one, tolerance)
    if isinstance(held, Observed):
        options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations, "start": start}
        weights = solve_anchored(held, _completed(held, columns, rows), columns, rows, **options).weights
    else:
        weights = solve_weights(held, columns, rows, tolerance=tolerance, max_iterations=max_iterations, start=start)
    warn_unless_converged(weights, tolerance)
    return weights


def _completed(observed: Observed, columns: Indices, rows: Indices) -> InMemoryMatrix:
    """The matrix with its holes filled by a low-rank matrix; its rank is the number of indices."""
    return filled(observed, complete(observed, columns.size + rows.size))


def _mixtures(held: Matrix | Observed, columns: Indices, rows: Indices, axis: Axis, tolerance: float) -> Weights:
    """Weights that sum to one, for columns alone or for rows alone."""
    if axis not in ("columns", "rows"):
        raise ValueError(f"sum_to_one must be 'columns', 'rows' or None; got {axis!r}.")
    chosen, others = (columns, rows) if axis == "columns" else (rows, columns)
    if others.size or not chosen.size:
        other = "rows" if axis == "columns" else "columns"
        raise ValueError(
            f"sum_to_one={axis!r} needs chosen {axis} and no chosen {other}; got {columns.size} columns and "
            f"{rows.size} rows."
        )
    source = _completed(held, columns, rows) if isinstance(held, Observed) else held
    if not source.in_memory:
        raise ValueError("sum_to_one must be None for a Dask array; GSNMF(sum_to_one=True).transform takes one.")
    components = source.along(axis).raw_columns(chosen).T
    if axis == "rows":
        return solve_mixtures(held, components, tolerance)
    turned = solve_mixtures(held.T, components, tolerance)
    return replace(
        turned,
        column_weights=np.ascontiguousarray(turned.row_weights.T),
        row_weights=np.ascontiguousarray(turned.column_weights.T),
    )


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
    """`fit_weights` for input that is known to be right, and without its warning."""
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


def _check_start(
    start: tuple[Floats, Floats], column_shape: tuple[int, int], row_shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    column_weights, row_weights = start
    return (
        check_block(column_weights, column_shape, name="the column weights of start", nonnegative=True),
        check_block(row_weights, row_shape, name="the row weights of start", nonnegative=True),
    )

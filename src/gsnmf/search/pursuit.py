"""Pursuit: one column or row after another, each with the largest guaranteed decrease of the error.

After every choice all weights are fitted again from where they are, so the next choice sees what is really left
unexplained. The selections are nested: the first k of rank r are those of rank k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.matrix.protocol import Matrix
from gsnmf.records import Choice, Selection
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.state import State
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Doubles, Indices
from gsnmf.support.reasons import selection_reason
from gsnmf.weights.joint import JointProblem, Side, solve_joint

_ROUNDING = 1e-14
"""A squared error below this fraction of the matrix is rounding."""
_TOLERANCE, _MAX_ITERATIONS = 1e-3, 30
"""For the weights after each choice; better ones rarely change the next choice."""


def pursuit(matrix: Matrix, rank: int, limits: Limits | None = None) -> Choice:
    """Choose ``rank`` columns and rows greedily by how much of the rest each is guaranteed to explain."""
    order: list[Axis] = []
    state = None
    for state in pursue(matrix, rank, limits):
        order.append("columns" if state.columns.size > order.count("columns") else "rows")
    if state is None:
        return Choice(Selection.of([], "pursuit", rank))
    reason = selection_reason(len(order), rank)
    selection = Selection(state.columns.indices, state.rows.indices, tuple(order), "pursuit", reason)
    return Choice(selection, state.plain_weights)


def pursue(matrix: Matrix, rank: int, limits: Limits | None = None) -> Iterator[State]:
    """States with one more index each, up to ``rank`` indices or until nothing is left to explain.

    With ``limits``, the included indices come first, one after another, and excluded ones are never chosen.
    """
    candidates = candidate_pool(matrix, limits=limits)
    included = [] if limits is None else [(axis, int(j)) for axis in COLUMNS_AND_ROWS for j in limits.included(axis)]
    state = candidates.empty()
    with single_threaded_blas():
        while state.size < rank and (included or state.squared_error > _ROUNDING * matrix.squared_norm):
            axes = COLUMNS_AND_ROWS if limits is None else limits.open_axes(state.columns.size, state.rows.size)
            best = [included.pop(0)] if included else candidates.best(state, axes=axes)
            if not best:
                return
            state, _ = candidates.extended(state, *best[0]).solved(_TOLERANCE, _MAX_ITERATIONS)
            yield state


@dataclass(frozen=True)
class FactorPath:
    """Factors in the order of use.

    Attributes
    ----------
    order : int array
        Numbers of the factors (columns are numbered first), without those that explain nothing more.
    squared_errors : array
        Squared errors of the first 0, 1, ... factors.
    """

    order: Indices
    squared_errors: Doubles


def factor_path(matrix: Matrix, C: Doubles, R: Doubles) -> FactorPath:
    """Order given factors by pursuit among them, most useful first, with weights fitted again after each.

    Parameters
    ----------
    matrix : Matrix, shape (m, n)
    C : array, shape (m, r1)
        Factors that are columns, or mixtures of columns.
    R : array, shape (n, r2)
        Factors that are rows, or mixtures of rows, transposed.
    """
    problem = JointProblem(Side.of_vectors(matrix, C), Side.of_vectors(matrix.T, R), matrix.squared_norm)
    weights = tuple(np.zeros_like(linear) for linear in problem.linear)
    r1, r = C.shape[1], C.shape[1] + R.shape[1]
    order: list[int] = []
    errors = [problem.squared_norm]
    with single_threaded_blas():
        while len(order) < r and errors[-1] > _ROUNDING * problem.squared_norm:
            slopes = [np.maximum(-gradient, 0.0) for gradient in problem.gradient(*weights)]
            gains = np.concatenate([np.square(one).sum(axis=0) for one in slopes])
            gains[order] = 0.0
            if not gains.any():
                break
            best = int(np.argmax(gains))
            order.append(best)
            own, k = (0, best) if best < r1 else (1, best - r1)
            weights[own][:, k] = slopes[own][:, k]
            used = np.array(order)
            columns, rows = np.sort(used[used < r1]), np.sort(used[used >= r1]) - r1
            chosen = JointProblem(problem.columns.take(columns), problem.rows.take(rows), problem.squared_norm)
            P, Q = (np.ascontiguousarray(X[:, at]) for X, at in zip(weights, (columns, rows), strict=True))
            errors.append(float(solve_joint(chosen, P, Q, _TOLERANCE, _MAX_ITERATIONS)[0]))
            weights[0][:, columns], weights[1][:, rows] = P, Q
    return FactorPath(np.array(order, dtype=np.intp), np.array(errors))

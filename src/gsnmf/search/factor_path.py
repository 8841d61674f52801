"""Orders given factors, most useful first, with the error of the first 1, 2, ... of them.

The order is that of pursuit among these factors: next comes the one with the largest guaranteed decrease of the error
(`gsnmf.search.candidates`), and the weights are fitted again after each. Factors are vectors, so mixtures of columns or
rows are ordered like single ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.weights.joint import JointProblem, solve_joint

_TOLERANCE, _MAX_ITERATIONS = 1e-3, 30
_ROUNDING = 1e-14
"""A squared error below this fraction of the matrix is rounding."""


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
    """Order factors by usefulness, with weights fitted again after each.

    Parameters
    ----------
    matrix : Matrix, shape (m, n)
    C : array, shape (m, r1)
        Factors that are columns, or mixtures of columns.
    R : array, shape (n, r2)
        Factors that are rows, or mixtures of rows, transposed.
    """
    problem = _problem(matrix, C, R)
    m, n = matrix.shape
    r1 = C.shape[1]
    order: list[int] = []
    P, Q = np.zeros((n, r1)), np.zeros((m, R.shape[1]))
    errors = [problem.squared_norm]
    with single_threaded_blas():
        while len(order) < r1 + R.shape[1] and errors[-1] > _ROUNDING * problem.squared_norm:
            slopes_P, slopes_Q = (np.maximum(-slopes, 0.0) for slopes in problem.gradient(P, Q))
            gains = np.concatenate([np.square(slopes_P).sum(axis=0), np.square(slopes_Q).sum(axis=0)])
            gains[order] = 0.0
            best = int(np.argmax(gains)) if gains.size else 0
            if not gains.any():
                break
            order.append(best)
            if best < r1:
                P[:, best] = slopes_P[:, best]
            else:
                Q[:, best - r1] = slopes_Q[:, best - r1]
            errors.append(_fit(problem, P, Q, np.array(order)))
    return FactorPath(np.array(order, dtype=np.intp), np.array(errors))


def _fit(problem: JointProblem, P: Doubles, Q: Doubles, used: Indices) -> float:
    """Fit the weights of the factors used so far, in place; return the squared error."""
    columns, rows = np.sort(used[used < P.shape[1]]), np.sort(used[used >= P.shape[1]]) - P.shape[1]
    part = JointProblem(
        C=np.ascontiguousarray(problem.C[:, columns]),
        R=np.ascontiguousarray(problem.R[:, rows]),
        gram_C=problem.gram_C[np.ix_(columns, columns)],
        gram_R=problem.gram_R[np.ix_(rows, rows)],
        linear_P=np.ascontiguousarray(problem.linear_P[:, columns]),
        linear_Q=np.ascontiguousarray(problem.linear_Q[:, rows]),
        column_lengths=problem.column_lengths[columns],
        row_lengths=problem.row_lengths[rows],
        squared_norm=problem.squared_norm,
    )
    own_P, own_Q = np.ascontiguousarray(P[:, columns]), np.ascontiguousarray(Q[:, rows])
    squared_error = float(solve_joint(part, own_P, own_Q, _TOLERANCE, _MAX_ITERATIONS)[0])
    P[:, columns], Q[:, rows] = own_P, own_Q
    return squared_error


def _problem(matrix: Matrix, C: Doubles, R: Doubles) -> JointProblem:
    C, column_lengths = _unit(C)
    R, row_lengths = _unit(R)
    return JointProblem(
        C=C,
        R=R,
        gram_C=C.T @ C,
        gram_R=R.T @ R,
        linear_P=-np.asarray(matrix.T.dot(C), dtype=np.float64),
        linear_Q=-np.asarray(matrix.dot(R), dtype=np.float64),
        column_lengths=column_lengths,
        row_lengths=row_lengths,
        squared_norm=matrix.squared_norm,
    )


def _unit(vectors: Doubles) -> tuple[Doubles, Doubles]:
    """Columns of unit length, or zero, and their lengths, one for those that are zero."""
    lengths = np.linalg.norm(vectors, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return np.ascontiguousarray(vectors / lengths), lengths

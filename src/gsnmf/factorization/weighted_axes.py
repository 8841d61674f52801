r"""The path for weights of rows and of columns: a matrix scaled from both sides.

With weights :math:`s_i` of rows and :math:`f_j` of columns, the weighted error is an ordinary one,

.. math:: \sum_{ij} s_i f_j (M - C P_1 - P_2 R)_{ij}^2 = \| S^{1/2} (M - C P_1 - P_2 R) F^{1/2} \|_F^2 ,

of the scaled matrix :math:`S^{1/2} M F^{1/2}`, whose columns and rows are the scaled columns and rows of M. So nothing
has to be filled, and a sparse matrix stays sparse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.factorization.path import Request, solve
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.validation import check_with_largest
from gsnmf.result import Factorization, Observation
from gsnmf.support.arrays import Doubles


def solve_weighted(matrix: Matrix, request: Request, of_rows: Doubles, of_columns: Doubles) -> Factorization:
    """Explain a matrix by a few of its own columns and rows, with nonnegative weights of rows and columns in the error.

    Rows and columns of weight zero are never chosen, and their factor weights are zero.
    """
    if request.members != 1:
        raise ValueError(f"weights of rows and columns need members=1; got {request.members}.")
    rows, columns, scaled = both_scaled(matrix, of_rows, of_columns)
    result = solve(scaled, request)
    P1 = result.column_weights * columns[result.columns][:, None] * _inverse(columns)
    P2 = result.row_weights * rows[result.rows] * _inverse(rows)[:, None]
    weights = replace(
        result.weights,
        column_weights=P1.astype(matrix.dtype, copy=False),
        row_weights=P2.astype(matrix.dtype, copy=False),
    )
    seen = weighted_observation(rows, columns, scaled)
    return Factorization(result.selection, weights, matrix, result.search, observation=seen)


def both_scaled(matrix: Matrix, of_rows: Doubles, of_columns: Doubles) -> tuple[Doubles, Doubles, InMemoryMatrix]:
    """S^1/2 and F^1/2 with a largest entry of one, and the scaled matrix."""
    if not matrix.in_memory:
        raise ValueError("weights of rows and columns need a matrix in memory; got a Dask array.")
    rows, columns = np.sqrt(of_rows / of_rows.max()), np.sqrt(of_columns / of_columns.max())
    return rows, columns, scaled_matrix(matrix, rows, columns)


def weighted_observation(rows: Doubles, columns: Doubles, scaled: Matrix) -> Observation:
    """What a result remembers of the weights of rows and columns."""
    share = float(np.count_nonzero(rows) * np.count_nonzero(columns)) / (rows.size * columns.size)
    return Observation(share, scaled.norm, weighted=True)


def scaled_matrix(matrix: Matrix, rows: Doubles | None, columns: Doubles) -> InMemoryMatrix:
    """The matrix with its rows and columns multiplied by numbers."""
    data: Any = matrix.data
    is_sparse = bool(sp.issparse(data))
    if is_sparse:
        scaled = data.multiply(columns) if rows is None else data.multiply(columns).multiply(rows[:, None])
    else:
        scaled = data * columns if rows is None else data * columns * rows[:, None]
    return hold(*check_with_largest(scaled.astype(matrix.dtype, copy=False)))


def _inverse(factors: Doubles) -> Doubles:
    return np.divide(1.0, factors, out=np.zeros_like(factors), where=factors > 0)

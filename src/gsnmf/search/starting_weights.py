"""The weights that a search has found, handed on to the final solve."""

from __future__ import annotations

import numpy as np

from gsnmf.matrices import Matrix
from gsnmf.search.candidates import Fit
from gsnmf.support.arrays import Doubles


def starting_weights(matrix: Matrix, fit: Fit) -> tuple[Doubles, Doubles]:
    """Column weights, r1 x n, and row weights, m x r2, of a fit, converted from columns and rows of unit length."""
    column_lengths = np.sqrt(matrix.squared_column_norms[fit.columns])
    row_lengths = np.sqrt(matrix.T.squared_column_norms[fit.rows]) if fit.rows.size else np.empty(0)
    return (fit.P / column_lengths).T, fit.Q / row_lengths

"""A solution of the convex model, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.support.arrays import Floats, Indices
from gsnmf.support.reasons import StopReason
from gsnmf.support.records import Record


@dataclass(frozen=True, eq=False, repr=False)
class ConvexSolution(Record):
    """A solution of the convex model with its certificate.

    Attributes
    ----------
    columns, rows : int arrays
        Indices of the nonzero rows of X and columns of Y.
    X : array, shape (len(columns), n)
        The nonzero rows of X.
    Y : array, shape (m, len(rows))
        The nonzero columns of Y.
    strength : float
        lambda.
    objective, lower_bound : float
        The value reached and a proved bound on the optimum.
    residual_norm : float
        ||M - M X - Y M||_F.
    n_iterations : int
    converged : bool
        Whether the relative gap met the tolerance.
    stop_reason : StopReason

    Examples
    --------
    >>> from gsnmf.convex import solve_convex
    >>> solution = solve_convex([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> bool(solution.lower_bound <= solution.objective)
    True
    >>> solution.converged
    True
    """

    columns: Indices
    rows: Indices
    X: Floats
    Y: Floats
    strength: float
    objective: float
    lower_bound: float
    residual_norm: float
    n_iterations: int
    converged: bool
    stop_reason: StopReason

    @property
    def gap(self) -> float:
        """Relative duality gap, (objective - lower_bound) / objective."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0

    @property
    def column_diagonal(self) -> Floats:
        """X_ii of ``columns``."""
        return self.X[np.arange(self.columns.size), self.columns]

    @property
    def row_diagonal(self) -> Floats:
        """Y_ll of ``rows``."""
        return self.Y[self.rows, np.arange(self.rows.size)]

    def __repr__(self) -> str:
        return (
            f"ConvexSolution: {self.columns.size} nonzero rows of X and {self.rows.size} nonzero columns of Y, "
            f"relative gap {self.gap:.1e}, {self.stop_reason}"
        )

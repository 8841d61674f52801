"""What the library returns: frozen records of arrays, how good they are, and why the search for them ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gsnmf.matrices.checks import is_dask
from gsnmf.matrices.protocol import dense_columns
from gsnmf.support.arrays import Floats, Indices, RawMatrix

StopReason = Literal["rank reached", "residual is zero"]


@dataclass(frozen=True)
class Selection:
    """Columns and rows chosen from a matrix.

    Attributes
    ----------
    columns, rows : int arrays
        Indices in the order in which they were chosen.
    order : str
        One letter an index in the order of choice: ``"c"`` for a column, ``"r"`` for a row.
    method : str
        The method that chose them, as ``gsnmf.select`` names it.
    stop_reason : {"rank reached", "residual is zero"}
        With ``"residual is zero"`` there can be fewer indices than asked for: those chosen span the matrix.
    """

    columns: Indices
    rows: Indices
    order: str
    method: str
    stop_reason: StopReason = "rank reached"

    @property
    def n_selected(self) -> int:
        """Number of columns and rows together."""
        return self.columns.size + self.rows.size


@dataclass(frozen=True)
class Weights:
    """Nonnegative weights of chosen columns and rows; see `gsnmf.weights.fit_weights` for the problem.

    Attributes
    ----------
    column_weights : array, shape (r1, n)
    row_weights : array, shape (m, r2)
    relative_error : float
        ||M - M[:, columns] column_weights - row_weights M[rows, :]||_F / ||M||_F.
    optimality : float
        Relative violation of the optimality conditions.
    n_iterations : int
    converged : bool
        Whether ``optimality`` met the tolerance.
    """

    column_weights: Floats
    row_weights: Floats
    relative_error: float
    optimality: float
    n_iterations: int
    converged: bool


@dataclass(frozen=True)
class ConvexSolution:
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
        Gradient steps.
    converged : bool
        Whether the relative gap met the tolerance.
    stop_reason : str
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
    stop_reason: str

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


@dataclass(frozen=True)
class Factorization:
    """A matrix explained by some of its own columns and rows, M ~ M[:, columns] P1 + P2 M[rows, :].

    Attributes
    ----------
    columns, rows : int arrays of length r1 and r2
        Indices in the order in which they were chosen.
    column_weights : array, shape (r1, n)
        P1.
    row_weights : array, shape (m, r2)
        P2. For a Dask array a Dask array with the same chunks of rows, computed when it is asked for: by reading the
        chunk and solving for the weights of its rows exactly, with the column weights as they are.
    relative_error : float
        ||M - M[:, columns] P1 - P2 M[rows, :]||_F / ||M||_F on the whole matrix.
    optimality : float
        Relative violation of the optimality conditions of the weights.
    n_iterations : int
        Iterations spent on the weights.
    converged : bool
        Whether the weights met their tolerance.
    selection : Selection
        How the columns and rows were found.
    """

    columns: Indices
    rows: Indices
    column_weights: Floats
    row_weights: Floats
    relative_error: float
    optimality: float
    n_iterations: int
    converged: bool
    selection: Selection
    matrix: RawMatrix = field(repr=False)

    @property
    def quality(self) -> float:
        """One minus the relative error."""
        return 1.0 - self.relative_error

    @property
    def stop_reason(self) -> str:
        """Why the search for columns and rows ended."""
        return self.selection.stop_reason

    @property
    def W(self) -> Floats:
        """Left factor [M[:, columns], P2], shape (m, r1 + r2), dense; lazy if the matrix is a Dask array."""
        if is_dask(self.matrix):
            from gsnmf.matrices.chunked.arrays import left_factor

            return left_factor(self.matrix, self.columns, self.row_weights)
        return np.hstack([dense_columns(self.matrix, self.columns), self.row_weights])

    @property
    def H(self) -> Floats:
        """Right factor [P1; M[rows, :]], shape (r1 + r2, n), dense."""
        return np.vstack([self.column_weights, dense_columns(self.matrix, self.rows, across=True).T])

    def reconstruct(self, rows: Indices | slice | None = None, columns: Indices | slice | None = None) -> Floats:
        """The approximation W H, or a part of it.

        Parameters
        ----------
        rows, columns : index array or slice, optional
            The part to compute; everything if left out, which is a dense m x n array.

        Returns
        -------
        array
            If the matrix is a Dask array, so is this: ``.compute()`` what fits in memory.
        """
        W = self.W if rows is None else self.W[rows]
        H = self.H if columns is None else self.H[:, columns]
        return W @ H

    def _repr_html_(self) -> str:
        from gsnmf.reports.notebook import factor_table  # results know nothing of how they are shown

        return factor_table(self)._repr_html_()

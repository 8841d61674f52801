"""Nonnegative weights of chosen columns and rows."""

from __future__ import annotations

from dataclasses import dataclass

from gsnmf.support.arrays import Floats
from gsnmf.support.formatting import columns_and_rows
from gsnmf.support.records import Record


@dataclass(frozen=True, eq=False, repr=False)
class Weights(Record):
    """Nonnegative weights of chosen columns and rows; see `gsnmf.fit_weights` for the problem.

    Attributes
    ----------
    column_weights : array, shape (r1, n)
    row_weights : array, shape (m, r2)
        For a Dask matrix, a Dask array with the same chunks of rows. Computing a chunk reads that chunk of the matrix
        and solves exactly for the weights of its rows, with the column weights fixed.
    relative_error : float
        ||M - M[:, columns] column_weights - row_weights M[rows, :]||_F / ||M||_F.
    optimality : float
        Relative violation of the optimality conditions.
    n_iterations : int
    converged : bool
        Whether ``optimality`` met the tolerance.

    Examples
    --------
    >>> import gsnmf
    >>> weights = gsnmf.fit_weights([[2.0, 4.0], [1.0, 2.0]], columns=[0], rows=[])
    >>> weights.column_weights.round(6)
    array([[1., 2.]])
    >>> weights.converged
    True
    """

    column_weights: Floats
    row_weights: Floats
    relative_error: float
    optimality: float
    n_iterations: int
    converged: bool

    def __repr__(self) -> str:
        chosen = columns_and_rows(self.column_weights.shape[0], self.row_weights.shape[1])
        state = "converged" if self.converged else "not converged"
        return f"Weights of {chosen}: relative error {self.relative_error:.3g}, {state} to {self.optimality:.1e}"

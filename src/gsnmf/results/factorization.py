"""A matrix explained by some of its own columns and rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gsnmf.matrices.protocol import Matrix
from gsnmf.results.factors import Factor, described_factors, factor_table
from gsnmf.results.selection import Selection
from gsnmf.results.weights import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.reasons import StopReason
from gsnmf.support.records import Record
from gsnmf.support.words import columns_and_rows


@dataclass(frozen=True, eq=False, repr=False)
class Factorization(Record):
    """A matrix explained by some of its own columns and rows, M ~ M[:, columns] P1 + P2 M[rows, :].

    Two factorizations are equal if they chose the same columns and rows, in the same way, with the same weights.

    Attributes
    ----------
    selection : Selection
        The columns and rows, and how they were found.
    weights : Weights
        Their weights, the error, and how exact the weights are.
    source : Matrix
        The matrix, as algorithms hold it.
    """

    selection: Selection
    weights: Weights
    source: Matrix = field(compare=False)

    @property
    def columns(self) -> Indices:
        """Chosen columns, r1 indices in the order of choice."""
        return self.selection.columns

    @property
    def rows(self) -> Indices:
        """Chosen rows, r2 indices in the order of choice."""
        return self.selection.rows

    @property
    def column_weights(self) -> Floats:
        """P1, shape (r1, n)."""
        return self.weights.column_weights

    @property
    def row_weights(self) -> Floats:
        """P2, shape (m, r2); lazy, with the same chunks of rows, if the matrix is a Dask array."""
        return self.weights.row_weights

    @property
    def relative_error(self) -> float:
        """||M - M[:, columns] P1 - P2 M[rows, :]||_F / ||M||_F on the whole matrix."""
        return self.weights.relative_error

    @property
    def absolute_error(self) -> float:
        """||M - M[:, columns] P1 - P2 M[rows, :]||_F; infinite only if that itself is too large for a number."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(self.relative_error * np.sqrt(self.source.squared_norm), self.source.exponent))

    @property
    def quality(self) -> float:
        """One minus the relative error."""
        return 1.0 - self.relative_error

    @property
    def optimality(self) -> float:
        """Relative violation of the optimality conditions of the weights."""
        return self.weights.optimality

    @property
    def n_iterations(self) -> int:
        """Iterations spent on the weights."""
        return self.weights.n_iterations

    @property
    def converged(self) -> bool:
        """Whether the weights met their tolerance."""
        return self.weights.converged

    @property
    def method(self) -> str:
        """The method that chose columns and rows."""
        return self.selection.method

    @property
    def stop_reason(self) -> StopReason:
        """Why the search for columns and rows ended."""
        return self.selection.stop_reason

    @property
    def matrix(self) -> Any:
        """The matrix: a NumPy array, a compressed SciPy array, or a Dask array."""
        return self.source.data

    @property
    def W(self) -> Floats:
        """Left factor [M[:, columns], P2], shape (m, r1 + r2), dense; lazy if the matrix is a Dask array."""
        factor: Floats = self.source.left_factor(self.columns, self.row_weights)
        return factor

    @property
    def H(self) -> Floats:
        """Right factor [P1; M[rows, :]], shape (r1 + r2, n), dense."""
        return np.vstack([self.column_weights, self.source.T.raw_columns(self.rows).T])

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

    @property
    def shares(self) -> Doubles:
        """Share of each factor, columns first, in the sum of all entries of the reconstruction."""
        of_columns = self.source.column_sums[self.columns] * self.column_weights.sum(axis=1, dtype=np.float64)
        of_rows = self.source.T.column_sums[self.rows] * np.asarray(self.row_weights.sum(axis=0, dtype=np.float64))
        masses = np.concatenate([of_columns, of_rows])
        return np.asarray(masses / masses.sum() if masses.sum() > 0 else masses)

    def factors(self, n_strongest: int = 8) -> tuple[Factor, ...]:
        """Every chosen column, then every chosen row, each with the columns and rows in which it is strongest.

        Examples
        --------
        >>> import gsnmf
        >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
        >>> [(factor.axis, factor.index, factor.columns.tolist()) for factor in result.factors()]
        [('rows', 0, [2, 0]), ('rows', 1, [2, 1])]
        """
        strongest = self.source.strongest_rows(self.W, n_strongest + 1)
        return described_factors(self.selection, self.H, strongest, self.shares, n_strongest)

    def __repr__(self) -> str:
        m, n = self.source.shape
        chosen = columns_and_rows(self.columns.size, self.rows.size)
        doubt = "" if self.converged else ", weights not converged"
        return f"Factorization: {chosen} of {m} x {n}, quality {100 * self.quality:.1f} %, {self.method}{doubt}"

    def _repr_html_(self) -> str:
        trust = "weights optimal" if self.converged else "weights not converged"
        caption = f"{self!r}; {self.stop_reason}; {trust} (violation {self.optimality:.1e})."
        return factor_table(self.factors(n_strongest=5), caption)._repr_html_()

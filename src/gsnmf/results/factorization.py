"""A matrix explained by some of its own columns and rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.checks import check_count
from gsnmf.matrix.protocol import Matrix
from gsnmf.results.alternatives import Alternative
from gsnmf.results.factors import Factor, described_factors, factor_table
from gsnmf.results.mixtures import Mixtures
from gsnmf.results.observation import Observation
from gsnmf.results.search import SearchRecord
from gsnmf.results.selection import Selection
from gsnmf.results.weights import Weights
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.formatting import Table, columns_and_rows
from gsnmf.support.reasons import StopReason
from gsnmf.support.records import Record


class Substitutes(Protocol):
    """Finds substitutes for chosen columns and rows. The search, a layer above the results, provides it."""

    def __call__(self, result: Factorization, *, count: int, quick: bool) -> list[Alternative]:
        """At most ``count`` alternatives for each factor."""


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
    search : SearchRecord or None
        What a search did to find the columns and rows: its starts, exchanges, and why it ended.
    mixtures : Mixtures or None
        The mixtures that take the place of single columns and rows, M ~ (M A) P1 + P2 (B M), if the factors have
        several members each. ``columns`` and ``rows`` are then the leading members; two mixtures may share one.
    observation : Observation or None
        What was observed, if entries were missing or have weights. Then ``relative_error`` counts the observed entries,
        with their weights, and ``source`` is the matrix with its holes filled.
    clipped_share : float
        Norm of negative entries that were set to zero, relative to the norm of the matrix.

    Examples
    --------
    >>> import gsnmf
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> result.rows
    array([0, 1])
    >>> result.W.shape, result.H.shape
    ((3, 2), (2, 3))
    >>> round(result.quality, 3)
    0.899
    """

    selection: Selection
    weights: Weights
    source: Matrix = field(compare=False)
    search: SearchRecord | None = field(default=None, compare=False)
    _substitutes: Substitutes | None = field(default=None, compare=False)
    mixtures: Mixtures | None = None
    observation: Observation | None = None
    clipped_share: float = 0.0

    @property
    def columns(self) -> Indices:
        """Chosen columns, r1 indices in the order of choice."""
        return self.selection.columns

    @property
    def rows(self) -> Indices:
        """Chosen rows, r2 indices in the order of choice."""
        return self.selection.rows

    @property
    def column_mixture(self) -> sp.csc_array:
        """A, sparse, shape (n, r1): the shares of the members of each column factor, which sum to one."""
        return self._mixtures.column_mixture

    @property
    def row_mixture(self) -> sp.csr_array:
        """B, sparse, shape (r2, m): the shares of the members of each row factor, which sum to one."""
        return self._mixtures.row_mixture

    @property
    def members(self) -> list[tuple[Indices, Floats]]:
        """Members and shares of every factor, column factors first, largest share first; one member each without
        mixtures.

        Examples
        --------
        >>> import gsnmf
        >>> gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows").members
        [(array([0]), array([1.])), (array([1]), array([1.]))]
        """
        return self._mixtures.members()

    @property
    def _mixtures(self) -> Mixtures:
        if self.mixtures is not None:
            return self.mixtures
        return Mixtures.single(self.columns, self.rows, self.source.shape, self.source.dtype)

    @property
    def column_weights(self) -> Floats:
        """P1, shape (r1, n)."""
        return self.weights.column_weights

    @property
    def row_weights(self) -> Floats:
        """P2, shape (m, r2); lazy, with the same chunks of rows, if the matrix is a Dask array."""
        return self.weights.row_weights

    @property
    def observed_share(self) -> float:
        """Share of the entries that are observed; the error counts only these."""
        return 1.0 if self.observation is None else self.observation.share

    @property
    def relative_error(self) -> float:
        """||M - W H||_F / ||M||_F on the whole matrix, or on its observed entries with their weights."""
        return self.weights.relative_error

    @property
    def absolute_error(self) -> float:
        """||M - M[:, columns] P1 - P2 M[rows, :]||_F; infinite only if it exceeds the largest float."""
        if self.observation is not None:
            return self.relative_error * self.observation.norm
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
        """Left factor [M[:, columns], P2], shape (m, r1 + r2), dense; lazy if the matrix is a Dask array.

        With mixtures it is [M A, P2].
        """
        if self.mixtures is not None:
            return np.hstack([self.mixtures.mixed_columns(self.source), self.row_weights])
        factor: Floats = self.source.left_factor(self.columns, self.row_weights)
        return factor

    @property
    def H(self) -> Floats:
        """Right factor [P1; M[rows, :]], with mixtures [P1; B M], shape (r1 + r2, n), dense."""
        if self.mixtures is not None:
            return np.vstack([self.column_weights, self.mixtures.mixed_rows(self.source)])
        return np.vstack([self.column_weights, self.source.T.raw_columns(self.rows).T])

    def reconstruct(self, rows: Indices | slice | None = None, columns: Indices | slice | None = None) -> Floats:
        """The approximation W H, or a part of it.

        Parameters
        ----------
        rows, columns : index array or slice, optional
            The part to compute. By default the whole dense m x n array.

        Returns
        -------
        array
            A Dask array if the matrix is one: ``.compute()`` what fits in memory.
        """
        W = self.W if rows is None else self.W[rows]
        H = self.H if columns is None else self.H[:, columns]
        return W @ H

    @property
    def shares(self) -> Doubles:
        """Share of each factor, column factors first, in the sum of all entries of the reconstruction."""
        masses = self._mixtures.sums(self.source)
        masses[: self.columns.size] *= self.column_weights.sum(axis=1, dtype=np.float64)
        masses[self.columns.size :] *= np.asarray(self.row_weights.sum(axis=0, dtype=np.float64))
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
        most = 1 if self.mixtures is None else self.mixtures.most
        strongest = self.source.strongest_rows(self.W, n_strongest + most)
        return described_factors(self.selection, self.H, strongest, self.shares, n_strongest, self.members)

    @property
    def knows_alternatives(self) -> bool:
        """Whether `alternatives` can be asked for."""
        return self._substitutes is not None

    def alternatives(self, count: int = 5, *, quick: bool = False) -> Table:
        """The best substitutes for every factor, with the error after all weights are fitted again.

        A substitute takes the place of the chosen column or row. In a mixture it takes the place of one member: the
        table lists the best exchanges of any one member, with the shares of all members fitted again.

        Parameters
        ----------
        count : int
            Largest number of substitutes per factor.
        quick : bool
            Score every column and row with the current weights, and fit the best few for one round only. This takes a
            fraction of the time if the matrix is in memory, but the errors are slightly too large.

        Returns
        -------
        Table
            One row per substitute: the number of the factor, the axis, the chosen index that is given up, the
            substitute, the relative error with it, and by how many percentage points the quality falls.

        Examples
        --------
        >>> import gsnmf
        >>> result = gsnmf.factorize([[4.0, 3.9, 0, 1], [0, 0.1, 2, 0], [0, 0, 0, 1]], (2, 0))
        >>> result.alternatives(1)
        factor  axis     chosen  substitute  relative error  points lost
        ------  -------  ------  ----------  --------------  -----------
        0       columns  0       1           0.165           0.0913
        1       columns  2       3           0.328           16.4
        """
        if self._substitutes is None:
            raise ValueError(
                "alternatives need a result of gsnmf.factorize or gsnmf.load, which knows how to search, and without "
                "several members and missing entries at once."
            )
        found = self._substitutes(self, count=check_count(count, "count"), quick=quick)
        rows = tuple(
            (a.factor, a.axis, a.chosen, a.index, a.relative_error, 100.0 * (a.relative_error - self.relative_error))
            for a in found
        )
        return Table(("factor", "axis", "chosen", "substitute", "relative error", "points lost"), rows)

    def __repr__(self) -> str:
        m, n = self.source.shape
        seen = ""
        if self.observation is not None:
            weighted = " with weights" if self.observation.weighted else ""
            seen = f" on the {100 * self.observed_share:.3g} % observed{weighted}"
        chosen = columns_and_rows(self.columns.size, self.rows.size)
        if self.mixtures is not None:
            chosen = f"mixtures of up to {self.mixtures.most} members each, {chosen},"
        doubt = "" if self.converged else ", weights not converged"
        return f"Factorization: {chosen} of {m} x {n}, quality {100 * self.quality:.1f} %{seen}, {self.method}{doubt}"

    def _repr_html_(self) -> str:
        trust = "weights optimal" if self.converged else "weights not converged"
        caption = f"{self!r}; {self.stop_reason}; {trust} (violation {self.optimality:.1e})."
        return factor_table(self.factors(n_strongest=5), caption)._repr_html_()

"""`Factorization`: a matrix explained by some of its own columns and rows, and `Factor`, each of them described."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix, largest_of
from gsnmf.matrix.validation import check_count
from gsnmf.objectives import EveryEntry, Filling, objective_of
from gsnmf.problem import Problem
from gsnmf.records import Alternative, Mixtures, Record, SearchRecord, Selection, Weights
from gsnmf.registry import Plan
from gsnmf.search.alternatives import substitutes
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.formatting import Table, columns_and_rows, percent
from gsnmf.support.reasons import StopReason

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN = 20

_TRIED = 2
"""How many substitutes are fitted for each requested one, if the objective is another than the search's."""
_TOLERANCE, _ITERATIONS = 1e-3, 200
"""For the weights of these substitutes, which only serve to compare them."""


@dataclass(frozen=True, eq=False, repr=False)
class Factorization(Record):
    """A matrix explained by some of its own columns and rows, M ~ M[:, columns] P1 + P2 M[rows, :].

    Two factorizations are equal if they chose the same columns and rows, in the same way, with the same weights.

    Attributes
    ----------
    problem : Problem
        What was asked: the matrix, which entries count and how much, rank, constraints, members.
    selection : Selection
        The columns and rows, and how they were found.
    weights : Weights
        Their weights, the error, and how exact the weights are.
    plan : Plan
        How the answer was searched for.
    search : SearchRecord or None
        What a search did to find the columns and rows: its starts, exchanges, and why it ended.
    mixtures : Mixtures or None
        The mixtures that take the place of single columns and rows, M ~ (M A) P1 + P2 (B M), if the factors have
        several members each. ``columns`` and ``rows`` are then the leading members; two mixtures may share one.
    filling : Filling or None
        What fills the holes of the matrix. Then ``relative_error`` counts the observed entries, with their weights.
    source : Matrix
        The matrix as algorithms hold it, with its holes filled.

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

    problem: Problem = field(compare=False)
    selection: Selection
    weights: Weights
    plan: Plan = field(default=Plan(), compare=False)
    search: SearchRecord | None = field(default=None, compare=False)
    mixtures: Mixtures | None = None
    filling: Filling | None = None
    source: Matrix = field(default=cast("Matrix", None), compare=False)

    def __post_init__(self) -> None:
        if self.source is None:
            object.__setattr__(self, "source", self.problem.matrix)

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
        return self.problem.observed_share

    @property
    def clipped_share(self) -> float:
        """Norm of the negative entries that were set to zero, relative to the norm of the matrix."""
        return self.problem.clipped_share

    @property
    def relative_error(self) -> float:
        """||M - W H||_F / ||M||_F on the whole matrix, or on its observed entries with their weights."""
        return self.weights.relative_error

    @property
    def absolute_error(self) -> float:
        """||M - M[:, columns] P1 - P2 M[rows, :]||_F; infinite only if it exceeds the largest float."""
        if self.problem.partial:
            return self.relative_error * self.problem.norm
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

    def to_frame(self) -> pd.DataFrame:
        """The factors as a pandas DataFrame: one row per factor, with its share and where it is strongest.

        Examples
        --------
        >>> import gsnmf
        >>> gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows").to_frame()[["axis", "index"]]
           axis  index
        0  rows      0
        1  rows      1
        """
        header = ("axis", "index", "members", "share", "strongest columns", "strongest rows")
        rows = tuple(
            (f.axis, f.index, tuple(f.members), f.share, tuple(f.columns.tolist()), tuple(f.rows.tolist()))
            for f in self.factors()
        )
        return Table(header, rows).to_frame()

    @property
    def knows_alternatives(self) -> bool:
        """Whether `alternatives` can be asked for."""
        return self.mixtures is None or not self.problem.partial

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
        if not self.knows_alternatives:
            raise ValueError("alternatives need factors of one member each if entries are missing or have weights.")
        found = _alternatives(self, check_count(count, "count"), quick)
        rows = tuple(
            (a.factor, a.axis, a.chosen, a.index, a.relative_error, 100.0 * (a.relative_error - self.relative_error))
            for a in found
        )
        return Table(("factor", "axis", "chosen", "substitute", "relative error", "points lost"), rows)

    def __repr__(self) -> str:
        m, n = self.source.shape
        seen = ""
        if self.problem.partial:
            weighted = " with weights" if self.problem.entries_weighted else ""
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


def _alternatives(result: Factorization, count: int, quick: bool) -> list[Alternative]:
    """Alternatives of every factor, with errors of the objective that the result minimises."""
    problem = result.problem
    if not (problem.partial or problem.sum_to_one):
        return substitutes(result, count=count, quick=quick, constraints=problem.constraints)
    if isinstance(problem.counted, Observed) and not problem.sum_to_one:
        return substitutes(result, count=count, quick=quick, constraints=problem.constraints, observed=problem.counted)
    return _refitted_substitutes(result, count, quick)


def _refitted_substitutes(result: Factorization, count: int, quick: bool) -> list[Alternative]:
    """Alternatives for every entry and nonnegative weights, compared by the objective of the result."""
    problem, size = result.problem, result.selection.n_selected
    objective = objective_of(problem, size)
    plain = EveryEntry(objective.source).nonnegative(result.columns, result.rows, None, _TOLERANCE, _ITERATIONS)
    on_source = Factorization(Problem(objective.source), result.selection, plain.weights)
    found = substitutes(on_source, count=_TRIED * count, quick=quick, constraints=problem.constraints)
    errors = []
    for one in found:
        columns, rows = result.columns.copy(), result.rows.copy()
        if one.axis == "columns":
            columns[one.factor] = one.index
        else:
            rows[one.factor - columns.size] = one.index
        fitted = (
            objective.summing_to_one(rows, _TOLERANCE)
            if problem.sum_to_one
            else objective.nonnegative(columns, rows, None, _TOLERANCE, _ITERATIONS)
        )
        errors.append(replace(one, relative_error=fitted.weights.relative_error))
    return [one for _, group in groupby(errors, key=attrgetter("factor")) for one in _best(group, count)]


def _best(alternatives: Iterable[Alternative], count: int) -> list[Alternative]:
    return sorted(alternatives, key=attrgetter("relative_error"))[:count]


@dataclass(frozen=True, eq=False)
class Factor(Record):
    """One chosen column or row, and what goes with it.

    Attributes
    ----------
    axis : {"columns", "rows"}
        Which it is.
    index : int
        Its position in the matrix; for a mixture, the position of the leading member.
    share : float
        Its share of the sum of all entries of the reconstruction.
    columns, rows : int arrays
        The columns and rows in which the factor is strongest, strongest first, without its own members.
    column_strengths, row_strengths : arrays
        Their strengths: entries of the factor's row of H and column of W.
    members : int array
        The columns (or rows) that it mixes, largest share first; ``index`` alone if it is a single one.
    member_shares : array
        Their shares in the mixture, which sum to one.

    Examples
    --------
    >>> import gsnmf
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> factor = result.factors()[0]
    >>> factor.axis, factor.index
    ('rows', 0)
    """

    axis: Axis
    index: int
    share: float
    columns: Indices
    column_strengths: Floats
    rows: Indices
    row_strengths: Floats
    members: Indices
    member_shares: Floats


def described_factors(
    selection: Selection,
    H: Floats,
    strongest_rows: Sequence[tuple[Indices, Floats]],
    shares: Doubles,
    count: int,
    members: Sequence[tuple[Indices, Floats]],
) -> tuple[Factor, ...]:
    """Every chosen column, then every chosen row, each with what goes with it.

    Parameters
    ----------
    selection : Selection
    H : array, shape (r, n)
        Right factor.
    strongest_rows : sequence of r pairs
        Positions and values of the largest entries of each column of the left factor; at least ``count`` more than the
        factor has members.
    shares : array of length r
    count : int
        How many columns and rows to give at most.
    members : sequence of r pairs
        Members of each factor and their shares, the largest share first.
    """
    chosen: list[tuple[Axis, int]] = [("columns", int(j)) for j in selection.columns]
    chosen += [("rows", int(i)) for i in selection.rows]
    factors = []
    for k, (axis, index) in enumerate(chosen):
        mixed, member_shares = members[k]
        columns = largest_of(H[k], count + mixed.size)
        rows, strengths = strongest_rows[k]
        if axis == "columns":
            columns = columns[~np.isin(columns, mixed)]
        else:
            others = ~np.isin(rows, mixed)
            rows, strengths = rows[others], strengths[others]
        factors.append(
            Factor(
                axis=axis,
                index=index,
                share=float(shares[k]),
                columns=columns[:count],
                column_strengths=H[k, columns[:count]],
                rows=rows[:count],
                row_strengths=strengths[:count],
                members=mixed,
                member_shares=member_shares,
            )
        )
    return tuple(factors)


def factor_table(factors: Sequence[Factor], caption: str) -> Table:
    """The first factors as a table for people."""
    rows = tuple(
        (
            _name(factor),
            percent(factor.share),
            tuple(map(str, factor.columns)),
            tuple(map(str, factor.rows)),
        )
        for factor in factors[:_MOST_SHOWN]
    )
    remark = f" The first {_MOST_SHOWN} of {len(factors)}:" if len(factors) > _MOST_SHOWN else ""
    return Table(("chosen", "share", "strongest columns", "strongest rows"), rows, caption + remark)


def _name(factor: Factor) -> str:
    """A factor named by its members, such as "column 4 + 1"."""
    return f"{factor.axis.removesuffix('s')} {' + '.join(map(str, factor.members))}"

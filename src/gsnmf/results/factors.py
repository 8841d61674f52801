"""The factors of a factorization: each chosen column or row, and where it is strongest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsnmf.matrix.protocol import largest_of
from gsnmf.results.selection import Selection
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices
from gsnmf.support.formatting import Table, percent
from gsnmf.support.records import Record

_MOST_SHOWN = 20


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

"""Columns and rows chosen from a matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from gsnmf.results.mixtures import Mixtures
from gsnmf.results.search import SearchRecord
from gsnmf.support.arrays import Axis, Doubles, Indices, axes_of
from gsnmf.support.formatting import columns_and_rows
from gsnmf.support.reasons import StopReason, selection_reason
from gsnmf.support.records import Record


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Record):
    """Columns and rows chosen from a matrix.

    Attributes
    ----------
    columns, rows : int arrays
        Indices in the order in which they were chosen.
    order : tuple of {"columns", "rows"}
        The axis of each index, in the order in which all of them were chosen.
    method : str
        The method that chose them, as ``gsnmf.select`` names it.
    stop_reason : StopReason
        ``"rank reached"``, or ``"residual is zero"`` if fewer indices than asked for already span the matrix.

    Examples
    --------
    >>> Selection.of([("columns", 4), ("rows", 1)], "gspa", wanted=2)
    Selection: 1 column and 1 row, gspa
    """

    columns: Indices
    rows: Indices
    order: tuple[Axis, ...]
    method: str
    stop_reason: StopReason = StopReason.RANK_REACHED

    @classmethod
    def of(cls, picks: Iterable[tuple[Axis, int]], method: str, wanted: int) -> Selection:
        """The selection of these columns and rows, in the order of choice, when ``wanted`` were asked for."""
        chosen = list(picks)
        columns, rows = (
            np.array([index for picked, index in chosen if picked == axis], dtype=np.intp) for axis in _AXES
        )
        order = tuple(axis for axis, _ in chosen)
        return cls(columns, rows, order, method, selection_reason(len(order), wanted))

    @classmethod
    def of_indices(cls, columns: Indices, rows: Indices, method: str, wanted: int) -> Selection:
        """The selection of these columns, then of these rows, when ``wanted`` were asked for."""
        order = axes_of(columns.size, rows.size)
        return cls(columns, rows, order, method, selection_reason(len(order), wanted))

    @property
    def n_selected(self) -> int:
        """Number of columns and rows together."""
        return self.columns.size + self.rows.size

    def named(self, method: str) -> Selection:
        """The same selection, attributed to another method."""
        return replace(self, method=method)

    def __repr__(self) -> str:
        return f"Selection: {columns_and_rows(self.columns.size, self.rows.size)}, {self.method}"


_AXES: tuple[Axis, Axis] = ("columns", "rows")


@dataclass(frozen=True, eq=False)
class Choice(Record):
    """What a method hands on: the selection, and any weights that it found on the way.

    Attributes
    ----------
    selection : Selection
    start : pair of arrays, shape (r1, n) and (m, r2), or None
        Weights from which the final solve can start.
    search : SearchRecord or None
        What a search did to find them.
    mixtures : Mixtures or None
        The mixtures that take the place of single columns and rows.
    """

    selection: Selection
    start: tuple[Doubles, Doubles] | None = None
    search: SearchRecord | None = None
    mixtures: Mixtures | None = None

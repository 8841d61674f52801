"""Choosing columns one at a time: included ones first, then whatever a rule finds next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gsnmf._parallel import single_threaded_blas
from gsnmf.selection.cone_projection import ReducedColumns
from gsnmf.selection.constraints import Limits
from gsnmf.support.arrays import Axis


class Chosen(Protocol):
    """The columns chosen so far, and the distances of all others from them."""

    columns: ReducedColumns

    def choose(self, index: int) -> None:
        """Add a column."""


def choose_one_by_one(
    chosen: Chosen, rank: int, following: Callable[[], int | None], axis: Axis, limits: Limits | None
) -> list[int]:
    """Add columns until there are ``rank`` of them, or until ``following`` finds no other; return their indices."""
    indices: list[int] = []
    with single_threaded_blas():
        if limits is not None:
            chosen.columns.open &= ~limits.excluded(axis)
            indices += limits.included(axis).tolist()
            for index in indices:
                chosen.choose(index)
        while len(indices) < rank and (found := following()) is not None:
            chosen.choose(found)
            indices.append(found)
    return indices

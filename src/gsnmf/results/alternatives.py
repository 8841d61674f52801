"""What else could have been chosen instead of one column or row."""

from __future__ import annotations

from dataclasses import dataclass

from gsnmf.support.arrays import Axis


@dataclass(frozen=True)
class Alternative:
    """One substitute for one chosen index.

    Attributes
    ----------
    factor : int
        The number of the factor, counted from 0, columns first.
    axis : {"columns", "rows"}
        The axis of the chosen index and of the substitute.
    chosen : int
        The index that is given up; in a mixture, one of its members.
    index : int
        The index that takes its place.
    relative_error : float
        With the substitute, after the weights are fitted again.
    """

    factor: int
    axis: Axis
    chosen: int
    index: int
    relative_error: float

"""What a factorization of a matrix with holes, or with weights of its entries, was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gsnmf.support.arrays import Doubles, Floats
from gsnmf.support.records import Record


@dataclass(frozen=True, eq=False)
class Observation(Record):
    """What was observed of a matrix, and what fills its holes.

    Attributes
    ----------
    share : float
        Share of the entries that are observed.
    norm : float
        Weighted norm of the observed entries, in the unit of the data. The relative error is relative to this.
    weighted : bool
        Whether the entries have different weights.
    missing_values : {"nan", "unstored", None}
        How the matrix marks missing entries.
    completion : pair of arrays, shape (m, k) and (n, k), or None
        Factors of the low-rank matrix that fills the holes; None if nothing had to be filled.
    anchors : pair of arrays, shape (m, r1) and (r2, n), or None
        The chosen columns and rows, with holes filled by the factorization itself; None if the completion filled them.
    """

    share: float
    norm: float
    weighted: bool
    missing_values: Literal["nan", "unstored"] | None = None
    completion: tuple[Doubles, Doubles] | None = None
    anchors: tuple[Floats, Floats] | None = None

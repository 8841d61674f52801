"""What to do about NaN and negative entries, in terms of the function that was called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Remedies:
    """How a caller asks for missing values and for clipping negative entries."""

    missing: str
    clip: str

    def for_nan(self) -> str:
        """A sentence that names the option for missing values."""
        return f" {self.missing} takes NaN as missing."

    def for_negative(self, entries: Any) -> str:
        """A sentence that names the option for negative entries, and how much it would cut off."""
        n_negative, share = negative_share(entries)
        negatives = "the one negative entry" if n_negative == 1 else f"the {n_negative} negative entries"
        return f" {self.clip} sets {negatives}, {100 * share:.3g} % of the norm, to zero."


OF_FILES = Remedies("--missing nan (missing_values=numpy.nan)", '--negative clip (negative="clip")')

_BY_NAME = {
    "matrix": Remedies("gsnmf.factorize(..., missing_values=numpy.nan)", 'gsnmf.factorize(..., negative="clip")'),
    "X": Remedies("GSNMF(missing_values=numpy.nan)", 'GSNMF(negative="clip")'),
}


def remedies_for(name: str) -> Remedies | None:
    """The remedies for the function that calls its matrix ``name`` in messages; None if there are none."""
    return _BY_NAME.get(name)


def negative_share(entries: Any) -> tuple[int, float]:
    """How many entries are negative, and their norm over the norm of all finite entries.

    Examples
    --------
    >>> negative_share(np.array([3.0, -4.0, np.nan]))
    (1, 0.8)
    """
    below = entries[(entries < 0) & np.isfinite(entries)].astype(np.float64)
    finite = entries[np.isfinite(entries)].astype(np.float64)
    largest = float(np.abs(finite).max(initial=0.0))
    if below.size == 0 or largest == 0.0:
        return 0, 0.0
    squares = np.square(below / largest).sum(), np.square(finite / largest).sum()  # in a unit in which they are safe
    return int(below.size), math.sqrt(float(squares[0] / squares[1]))

"""Squared residual norms that are updated by subtraction, and which of them can be trusted.

Repeated subtraction loses digits. So once a norm has fallen far below the value at which it was last computed, it is
computed again from the residual column itself before it decides anything, as in LAPACK's pivoted QR.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gsnmf.support.arrays import Doubles, Flags, Indices

ROUNDING = 10.0
"""A residual below this times eps times the root of the dimension is rounding, not data."""

TIE = 64.0
"""Norms closer than this times eps count as equal, and the first index wins."""


def tie_factor(dtype: np.dtype[np.floating]) -> float:
    """Norms above this fraction of the largest count as equal to it."""
    return 1.0 - TIE * float(np.finfo(dtype).eps)


@dataclass
class Norms:
    """Squared norms of residual columns.

    Attributes
    ----------
    squared : array
        The norms; zero for columns that are ruled out.
    initial : array
        Norms of the columns themselves, not squared.
    error_bound, unreliable_below : array
        By how much a norm may be wrong, and where that begins to matter.
    eps : float
        Machine epsilon of the matrix's type.
    slack : float
        Bound on how much larger the errors of reductions are than those of products.
    """

    squared: Doubles
    initial: Doubles
    error_bound: Doubles
    unreliable_below: Doubles
    eps: float
    slack: float

    @classmethod
    def of(cls, squared: Doubles, dtype: np.dtype[np.floating], slack: float = 1.0) -> Norms:
        """Norms of columns before anything is chosen."""
        empty = np.empty(squared.size), np.empty(squared.size)
        norms = cls(squared.copy(), np.sqrt(squared), *empty, float(np.finfo(dtype).eps), slack)
        norms._trust(np.arange(squared.size))
        return norms

    def copy(self) -> Norms:
        """A copy that can be changed independently."""
        copies = {name: getattr(self, name).copy() for name in ("squared", "error_bound", "unreliable_below")}
        return replace(self, **copies)

    def largest(self) -> tuple[float, float]:
        """The largest certain norm, and the largest value that an uncertain one may have."""
        suspect = self._suspect()
        largest_certain = float(np.max(self.squared, where=~suspect, initial=0.0))
        return largest_certain, float(np.max(self.squared + self.error_bound, where=suspect, initial=-1.0))

    def doubtful(self, largest: float) -> Flags:
        """Uncertain norms that may be as large as the given one."""
        return self._suspect() & (self.squared + self.error_bound >= largest)

    def reduce(self, squares: Doubles) -> None:
        """Subtract ``squares`` from the norms. What falls to zero is not trusted as zero until it is recomputed."""
        alive = self.squared > 0
        tiny = np.finfo(np.float64).tiny
        np.subtract(self.squared, squares, out=self.squared, where=alive)
        np.maximum(self.squared, tiny, out=self.squared, where=alive)

    def set(self, indices: Indices, squared: Doubles, zero_below: Doubles) -> None:
        """Replace norms by ones computed from residuals, with the given rounding errors."""
        self.squared[indices] = np.where(squared <= np.square(zero_below), 0.0, squared)
        self._trust(indices)

    def _suspect(self) -> Flags:
        return np.asarray((self.squared > 0) & (self.squared < self.unreliable_below))

    def _trust(self, indices: Indices) -> None:
        """Set how far norms just computed may be reduced before their rounding errors show.

        A reduction by g_j^2 is wrong by about g_j eps |M_j|, so all those since the norm was computed add up to
        eps |M_j| |R_j|, with R_j as it was then. It may reach the root of eps, or ten times the error that computing
        the norm anew would leave.
        """
        squared, initial = self.squared[indices], self.initial[indices]
        scale = initial * np.sqrt(squared)
        self.error_bound[indices] = 100.0 * self.slack * self.eps * scale
        self.unreliable_below[indices] = np.minimum(0.01 * squared, np.sqrt(self.eps) * scale)

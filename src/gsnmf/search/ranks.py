"""How many columns and rows: the error of nested selections, one index more at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gsnmf.matrices import wrap
from gsnmf.matrices.checks import check_positive, check_rank
from gsnmf.search.candidates import Fit, candidate_pool
from gsnmf.search.pursuit import pursuit_path
from gsnmf.support.arrays import Floats, Indices
from gsnmf.support.records import Record


@dataclass(frozen=True, eq=False)
class RankPath(Record):
    """Nested selections by pursuit and the relative error of each.

    Attributes
    ----------
    errors : array
        ``errors[k]`` is the relative error of the first k indices; ``errors[0]`` is 1.
    columns, rows : int arrays
        All columns and rows, in the order of choice.
    n_columns : int array
        How many of the first k indices are columns.
    """

    errors: Floats
    columns: Indices
    rows: Indices
    n_columns: Indices

    @classmethod
    def of_fits(cls, fits: list[Fit], squared_norm: float) -> RankPath:
        """The path of nested fits of 1, 2, ... indices of a matrix with that norm."""
        none = np.empty(0, dtype=np.intp)
        squared = np.array([squared_norm, *(fit.squared_error for fit in fits)])
        return cls(
            errors=np.sqrt(squared / squared_norm) if squared_norm > 0 else np.zeros(1),
            columns=fits[-1].columns if fits else none,
            rows=fits[-1].rows if fits else none,
            n_columns=np.array([0, *(fit.columns.size for fit in fits)], dtype=np.intp),
        )

    def selection(self, rank: int) -> tuple[Indices, Indices]:
        """Columns and rows of the first ``rank`` indices."""
        limit = self.errors.size - 1
        if not 0 <= rank <= limit:
            raise ValueError(f"rank must be in [0, {limit}] on this path; got {rank}.")
        n_columns = int(self.n_columns[rank])
        return self.columns[:n_columns], self.rows[: rank - n_columns]

    def smallest(self, target_error: float) -> int:
        """The smallest rank on the path whose error is at most ``target_error``."""
        good = np.flatnonzero(self.errors <= target_error)
        if good.size == 0:
            raise ValueError(
                f"no rank up to {self.errors.size - 1} reaches an error of {target_error}; "
                f"the smallest error on the path is {self.errors[-1]:.4g}."
            )
        return int(good[0])


def rank_path(matrix: Any, max_rank: int, *, target_error: float | None = None) -> RankPath:
    """Errors of nested selections of 1, 2, ... columns and rows, to choose the rank by.

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        Nonnegative.
    max_rank : int
        Where to stop.
    target_error : float, optional
        Stop earlier, as soon as the relative error is at most this.

    Returns
    -------
    RankPath

    Examples
    --------
    >>> import gsnmf
    >>> path = gsnmf.rank_path([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 3)
    >>> path.errors.round(3)
    array([1.   , 0.318, 0.225, 0.   ])
    >>> path.smallest(0.25)
    2
    """
    checked = wrap(matrix)
    limit = check_rank(max_rank, checked.shape)
    goal = 0.0 if target_error is None else check_positive(target_error, "target_error")
    fits: list[Fit] = []
    scale = checked.squared_norm
    for fit in pursuit_path(candidate_pool(checked), limit):
        fits.append(fit)
        if fit.squared_error <= goal**2 * scale:
            break
    return RankPath.of_fits(fits, scale)

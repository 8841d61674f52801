"""What the factorizations return: the factors, how good they are, and why the search for them ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from gsnmf.records import Record
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.reasons import StopReason


@dataclass(frozen=True, eq=False)
class LowRankResult(Record):
    """A matrix approximated by a product, M ~ W H.

    Attributes
    ----------
    W : array, shape (m, r)
    H : array, shape (r, n)
    relative_error : float
        ||M - W H||_F / ||M||_F; zero for a zero matrix.
    n_iterations : int
    converged : bool
        Whether the optimality conditions hold to the tolerance.

    Examples
    --------
    >>> from gsnmf.nmf import truncated_svd
    >>> result = truncated_svd([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result.W.shape, result.H.shape
    ((3, 2), (2, 3))
    >>> 0 < result.relative_error < 1
    True
    """

    W: Floats = field(repr=False)
    H: Floats = field(repr=False)
    relative_error: float
    n_iterations: int
    converged: bool

    @property
    def quality(self) -> float:
        """One minus the relative error."""
        return 1.0 - self.relative_error


@dataclass(frozen=True, eq=False)
class NMFResult(LowRankResult):
    """A nonnegative factorization M ~ W H.

    Attributes
    ----------
    optimality : float
        Relative violation of the optimality conditions, as the function that made the result defines it.
    stop_reason : StopReason
        ``"tolerance reached"``, ``"max_iterations reached"``, or ``"no further decrease"`` if the objective has stopped
        falling because of rounding.
    objective : array of length n_iterations + 1
        The objective at the start and after each iteration, divided by ||M||_F^2 / 2. It never rises. Each value is
        the one before plus the change, computed from the change of the factors; so values far below the first one
        carry the rounding of the first one, while ``relative_error`` does not.
    weight : float
        Weight of the volume in the objective of `gsnmf.nmf.minimum_volume`, divided by ||M||_F^2; otherwise zero.

    Examples
    --------
    >>> from gsnmf.nmf import hals
    >>> result = hals([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result.W.shape, result.H.shape
    ((3, 2), (2, 3))
    >>> bool(result.objective[-1] <= result.objective[0])
    True
    """

    optimality: float
    stop_reason: StopReason
    objective: Doubles = field(repr=False)
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class SVDResult(LowRankResult):
    """A truncated singular value decomposition, W = U diag(singular_values) and H = V'.

    Attributes
    ----------
    singular_values : array, shape (r,)
        In decreasing order.

    Examples
    --------
    >>> from gsnmf.nmf import truncated_svd
    >>> truncated_svd([[3.0, 0.0], [0.0, 4.0]], 1).singular_values
    array([4.])
    """

    singular_values: Floats


@dataclass(frozen=True, eq=False)
class CURResult(LowRankResult):
    """A matrix approximated from its own columns and rows, M ~ C U R: W = C U and H = R.

    Attributes
    ----------
    columns, rows : int arrays
        C = M[:, columns] and R = M[rows, :].
    U : array, shape (number of columns, number of rows)

    Examples
    --------
    >>> from gsnmf.nmf import cur
    >>> result = cur([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> result.columns.size, result.rows.size, result.U.shape
    (2, 2, (2, 2))
    """

    columns: Indices
    rows: Indices
    U: Floats = field(repr=False)

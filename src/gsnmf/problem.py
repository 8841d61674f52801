"""`Problem`: everything that is asked about a matrix, validated once and never changed.

Algorithms trust what a problem holds. What was asked and cannot be done is refused here, before any work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.constraints import Constraints
from gsnmf.matrix.in_memory import scaled_matrix
from gsnmf.matrix.input import (
    MissingValues,
    Negative,
    check_missing_values,
    clip_negative,
    observe,
    warn_of_clipping,
    warn_of_empty,
    wrap,
)
from gsnmf.matrix.observed import MissingKind, Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import Hints, as_floats, check_count, is_dask
from gsnmf.records import Record
from gsnmf.support.arrays import Doubles

_OPTIONS = Hints("missing_values=numpy.nan", 'negative="clip"')


@dataclass(frozen=True, eq=False)
class Problem(Record):
    """A matrix, which of its entries count and how much, and what columns, rows and weights must satisfy.

    Make one with `Problem.of`, which validates everything.

    Attributes
    ----------
    matrix : Matrix or Observed
        A `Matrix` if every entry is observed with the same weight, otherwise the observed entries with their weights.
    rank : int, pair (n_columns, n_rows), or None
        How many columns and rows to choose; None as long as it is not known.
    constraints : Constraints or None
        What must and must not be chosen.
    members : int
        How many columns, or rows, a factor may mix.
    sum_to_one : bool
        Whether every row is a mixture of chosen rows, with weights that sum to one, instead of nonnegative ones.
    sample_weight, feature_weight : arrays or None
        Weight of each row and of each column in the sum of squares, the largest being one; None if all are equal.
    n_clipped : int
        How many negative entries were set to zero.
    clipped_share : float
        Their norm over the norm of the matrix.

    Examples
    --------
    >>> Problem.of([[1.0, -0.5]], negative="clip").matrix.data
    array([[1., 0.]])
    >>> Problem.of([[1.0, np.nan]], missing_values=np.nan).matrix.share
    0.5
    """

    matrix: Matrix | Observed
    rank: Any = None
    constraints: Constraints | None = None
    members: int = 1
    sum_to_one: bool = False
    sample_weight: Doubles | None = None
    feature_weight: Doubles | None = None
    n_clipped: int = 0
    clipped_share: float = 0.0

    @classmethod
    def of(
        cls,
        matrix: Any,
        rank: Any = None,
        *,
        missing_values: MissingValues = None,
        entry_weights: Any = None,
        negative: Negative = "error",
        constraints: Constraints | None = None,
        members: int = 1,
        sum_to_one: bool = False,
        sample_weight: Any = None,
        feature_weight: Any = None,
        name: str = "matrix",
        hints: Hints | None = None,
    ) -> Problem:
        """Validate what is asked.

        Parameters
        ----------
        matrix : array-like, DataFrame, SciPy sparse or Dask array, or a `Matrix` or `Observed`, which stays as it is
            With ``missing_values``, ``entry_weights`` or ``negative="clip"`` it must be in memory.
        rank, members, sum_to_one
            As for `gsnmf.factorize`.
        missing_values, entry_weights
            As for `gsnmf.matrix.input.observe`.
        negative : {"error", "clip"}
            Refuse negative entries, or set them to zero.
        constraints : Constraints, optional
        sample_weight, feature_weight : array-like, optional
            Nonnegative weights of rows and of columns.
        name : str
            What messages call the matrix.
        hints : Hints, optional
            How messages advise to treat NaN and negative entries.
        """
        if constraints is not None and not isinstance(constraints, Constraints):
            raise TypeError(f"constraints must be a gsnmf.Constraints; got {constraints!r}.")
        held, n_clipped, clipped_share = _held(matrix, missing_values, entry_weights, negative, name, hints or _OPTIONS)
        return cls(
            held,
            rank,
            constraints,
            check_count(members, "members"),
            bool(sum_to_one),
            checked_weight(sample_weight, held.shape[0], "sample_weight"),
            checked_weight(feature_weight, held.shape[1], "feature_weight"),
            n_clipped,
            clipped_share,
        )

    def with_matrix(self, matrix: Matrix | Observed) -> Problem:
        """The same question about another matrix of the same shape, for refits."""
        return replace(self, matrix=matrix)

    def with_rank(self, rank: Any) -> Problem:
        """The same question with another rank."""
        return replace(self, rank=rank)

    @property
    def weighted(self) -> bool:
        """Whether rows or columns have different weights."""
        return self.sample_weight is not None or self.feature_weight is not None

    @property
    def axis_weights(self) -> tuple[Doubles, Doubles]:
        """The weights of all rows and of all columns."""
        m, n = self.matrix.shape
        of_rows = np.ones(m) if self.sample_weight is None else self.sample_weight
        return of_rows, np.ones(n) if self.feature_weight is None else self.feature_weight

    @cached_property
    def counted(self) -> Matrix | Observed:
        """The matrix, or its observed entries with all weights of entries, rows and columns multiplied."""
        if isinstance(self.matrix, Observed) and self.weighted:
            return self.matrix.weighted(*self.axis_weights)
        return self.matrix

    @property
    def partial(self) -> bool:
        """Whether entries are missing, or count with different weights."""
        return self.weighted or isinstance(self.matrix, Observed)

    @property
    def entries_weighted(self) -> bool:
        """Whether entries count with different weights."""
        return self.weighted or (isinstance(self.matrix, Observed) and self.matrix.weights is not None)

    @property
    def observed_share(self) -> float:
        """Share of the entries that count in the error."""
        if isinstance(self.counted, Observed):
            return self.counted.share
        return float(np.prod([np.count_nonzero(weights) / weights.size for weights in self.axis_weights]))

    @cached_property
    def norm(self) -> float:
        """Norm of the matrix in the unit of the data, with the weights that entries have in the error."""
        if isinstance(self.counted, Observed):
            return math.sqrt(self.counted.squared_norm)
        if not self.weighted:
            return self.counted.norm
        return scaled_matrix(self.counted, *map(np.sqrt, self.axis_weights)).norm

    def warn(self, *, name: str = "matrix", of_empty: bool = True) -> None:
        """Warn the caller of a public function about empty rows and columns, and about much clipping."""
        if of_empty:
            warn_of_empty(self.matrix, name=name)
        warn_of_clipping(self.n_clipped, self.clipped_share, name=name)

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        if self.sum_to_one and self.members != 1:
            raise ValueError(f"members must be 1 with sum_to_one=True; got {self.members}.")
        if self.sum_to_one and not self.matrix.in_memory:
            raise ValueError("sum_to_one must be False to fit a Dask array; transform takes one.")
        if self.weighted and self.members != 1:
            raise ValueError(f"weights of rows and columns need members=1; got {self.members}.")
        if self.weighted and not self.matrix.in_memory:
            raise ValueError("weights of rows and columns need a matrix in memory; got a Dask array.")


def checked_weight(weight: Any, length: int, name: str) -> Doubles | None:
    """Nonnegative weights of ``length`` rows or columns, of which one is positive; None if all are equal."""
    if weight is None:
        return None
    array = np.asarray(weight)
    if array.ndim != 1 or array.size != length or array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be {length} numbers, one each; got shape {array.shape} and type {array.dtype}.")
    doubles = array.astype(np.float64)
    if not np.isfinite(doubles).all() or doubles.min() < 0 or not doubles.max() > 0:
        raise ValueError(
            f"{name} must be finite and nonnegative, and one weight above zero; got values from {doubles.min()} to "
            f"{doubles.max()}."
        )
    return None if doubles.min() == doubles.max() else doubles / doubles.max()


def _held(
    matrix: Any, missing_values: MissingValues, entry_weights: Any, negative: Negative, name: str, hints: Hints
) -> tuple[Matrix | Observed, int, float]:
    """The kind of matrix that holds the data, how many entries were clipped, and their share of the norm."""
    kind = check_missing_values(missing_values)
    if negative not in ("error", "clip"):
        raise ValueError(f"negative must be 'error' or 'clip'; got {negative!r}.")
    if kind is None and entry_weights is None and negative == "error":
        return matrix if isinstance(matrix, Observed) else wrap(matrix, name=name, hints=hints), 0, 0.0
    if is_dask(matrix) or isinstance(matrix, Matrix | Observed):
        description = "a Dask array" if is_dask(matrix) else f"a {type(matrix).__name__}"
        raise ValueError(
            f"missing_values, entry_weights and negative='clip' need an array or sparse array in memory; {name} is "
            f"{description}."
        )
    n_clipped, clipped_share = 0, 0.0
    if negative == "clip":
        clipped = clip_negative(matrix, name=name)
        matrix, n_clipped, clipped_share = clipped.matrix, clipped.n_clipped, clipped.clipped_share
    if entry_weights is not None or _may_have_holes(matrix, kind, name):
        observed = observe(matrix, missing_values=missing_values, entry_weights=entry_weights, name=name, hints=hints)
        if not observed.complete:
            return observed, n_clipped, clipped_share
    return wrap(matrix, name=name, hints=hints), n_clipped, clipped_share


def _may_have_holes(matrix: Any, kind: MissingKind, name: str) -> bool:
    if kind != "nan":
        return kind == "unstored"
    is_sparse = bool(sp.issparse(matrix))
    entries: Any = sp.csr_array(matrix).data if is_sparse else as_floats(matrix, name=name)
    return entries.dtype.kind == "f" and bool(np.isnan(entries).any())

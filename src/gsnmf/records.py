"""Records that methods and solvers hand on: small, frozen, comparable although they hold arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Axis, Doubles, Floats, Indices, axes_of
from gsnmf.support.formatting import columns_and_rows
from gsnmf.support.reasons import StopReason, selection_reason

if TYPE_CHECKING:
    from gsnmf.matrix.protocol import Matrix


class Record:
    """Base of frozen dataclasses, declared with ``eq=False``: equal if all fields are, arrays by their entries.

    Arrays that are not in memory count as equal if their shapes are equal: they follow from the other fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Point(Record):
    ...     x: np.ndarray
    >>> Point(np.arange(3)) == Point(np.arange(3)), Point(np.arange(3)) == Point(np.ones(3))
    (True, False)
    """

    __hash__ = None  # type: ignore[assignment]  # arrays have none either

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (field.name for field in fields(self) if field.compare)  # type: ignore[arg-type]
        return all(same_value(getattr(self, name), getattr(other, name)) for name in names)


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal; NaN equals NaN."""
    if sp.issparse(a) or sp.issparse(b):
        return sp.issparse(a) and sp.issparse(b) and _same_sparse(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if np.shape(a) != np.shape(b) or not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return bool(a.shape == b.shape)
    return bool(a == b) or (a != a and b != b)


def _same_sparse(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and (a != b).nnz == 0)


EndReason = Literal["work spent", "time limit", "error is zero", "nothing better nearby"]


@dataclass(frozen=True)
class Start:
    """One start of a search.

    Attributes
    ----------
    name : str
        The method that chose it.
    relative_error : float
        Error of its selection before any exchange, after it was made to obey the constraints.
    n_columns, n_rows : int
    """

    name: str
    relative_error: float
    n_columns: int
    n_rows: int


@dataclass(frozen=True)
class SearchRecord:
    """What a search did.

    Attributes
    ----------
    effort : str
    starts : tuple of Start
        In the order in which they were made.
    n_candidates : pair of int
        Numbers of columns and rows that exchanges could choose from.
    exchanges_tried, exchanges_kept : int
        How many exchanges had their weights fitted, and how many of these lowered the error.
    perturbations, perturbations_kept : int
        How often the search left a selection that no exchange improved, and how often that led to a better one.
    optimal_under_exchanges : bool
        Whether every exchange of one index for one candidate was tried at the end, and none lowered the error.
    end : {"work spent", "time limit", "error is zero", "nothing better nearby"}
        "nothing better nearby": as many perturbations in a row as the effort allows led to nothing better.
    work : float
        In nominal seconds: see `gsnmf.search.effort`.

    Examples
    --------
    >>> import gsnmf
    >>> record = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, effort="fast").search
    >>> record.effort, record.optimal_under_exchanges
    ('fast', False)
    """

    effort: str
    starts: tuple[Start, ...]
    n_candidates: tuple[int, int]
    exchanges_tried: int
    exchanges_kept: int
    perturbations: int
    perturbations_kept: int
    optimal_under_exchanges: bool
    end: EndReason
    work: float

    def __str__(self) -> str:
        best = min(self.starts, key=lambda start: start.relative_error, default=None)
        begin = f"{len(self.starts)} starts" + (f", the best by {best.name}" if best else "")
        kept = f"{self.exchanges_kept} of {self.exchanges_tried} exchanges kept"
        moved = f"{self.perturbations_kept} of {self.perturbations} perturbations kept" if self.perturbations else ""
        optimal = "optimal under single exchanges" if self.optimal_under_exchanges else ""
        return "; ".join(part for part in (begin, kept, moved, optimal, f"ended: {self.end}") if part)


NO_GAIN = 1e-9
"""A change of one member must lower the squared error by more than this fraction to count."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixtures(Record):
    """Factors that are nonnegative mixtures of a few columns, or of a few rows, M ~ (M A) P1 + P2 (B M).

    Attributes
    ----------
    column_mixture : sparse array, shape (n, r1)
        A: column k holds the shares of the members of factor k, which sum to one.
    row_mixture : sparse array, shape (r2, m)
        B: row k holds the shares of the members of row factor k, which sum to one.
    most : int
        How many members a factor may have.
    gain : float or None
        The largest relative decrease of the squared error from adding or exchanging one member of one factor while the
        weights stay as they are. Zero means that no such change helps. None if members were not chosen to lower the
        error.

    Examples
    --------
    >>> mixtures = Mixtures.of([([4, 1], [0.3, 0.7])], [([2], [1.0])], (3, 5), most=2)
    >>> mixtures.column_mixture.toarray().ravel()
    array([0. , 0.7, 0. , 0. , 0.3])
    >>> mixtures.leading_columns, mixtures.leading_rows
    (array([1]), array([2]))
    """

    column_mixture: sp.csc_array
    row_mixture: sp.csr_array
    most: int
    gain: float | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[tuple[Any, Any]],
        rows: Sequence[tuple[Any, Any]],
        shape: tuple[int, int],
        most: int,
        gain: float | None = None,
        dtype: Any = np.float64,
    ) -> Mixtures:
        """Mixtures from pairs of members and weights, for a matrix of this shape."""
        A, B = _assembled(columns, shape[1], dtype), _assembled(rows, shape[0], dtype)
        return cls(A, B.T, most, gain)

    @classmethod
    def single(cls, columns: Indices, rows: Indices, shape: tuple[int, int], dtype: Any) -> Mixtures:
        """Factors of one member each."""
        one = np.ones(1)
        return cls.of([([j], one) for j in columns], [([i], one) for i in rows], shape, 1, dtype=dtype)

    @property
    def settled(self) -> bool:
        """Whether no addition or exchange of one member lowers the error, up to rounding."""
        return self.gain is not None and self.gain <= NO_GAIN

    @property
    def leading_columns(self) -> Indices:
        """The member with the largest share of each mixture of columns; two mixtures may share it."""
        return _leading(self.column_mixture)

    @property
    def leading_rows(self) -> Indices:
        """The member with the largest share of each mixture of rows; two mixtures may share it."""
        return _leading(self.row_mixture.T)

    def members(self) -> list[tuple[Indices, Floats]]:
        """Members and shares of every factor, mixtures of columns first, largest share first."""
        return _pairs(self.column_mixture) + _pairs(self.row_mixture.T)

    def mixed_columns(self, matrix: Matrix) -> Floats:
        """M A in the unit of the data, shape (m, r1)."""
        return _mixed(matrix, self.column_mixture)

    def mixed_rows(self, matrix: Matrix) -> Floats:
        """B M in the unit of the data, shape (r2, n)."""
        return _mixed(matrix.T, self.row_mixture.T).T

    def sums(self, matrix: Matrix) -> Doubles:
        """Sums of the entries of every factor, mixtures of columns first, in the unit in which the matrix is held."""
        of_columns = self.column_mixture.T @ matrix.column_sums
        return np.concatenate([of_columns, self.row_mixture @ matrix.T.column_sums])

    def __repr__(self) -> str:
        r1, r2 = self.column_mixture.shape[1], self.row_mixture.shape[0]
        return f"Mixtures: {r1} of columns and {r2} of rows, of at most {self.most} members each"


def _assembled(mixtures: Sequence[tuple[Any, Any]], length: int, dtype: Any) -> sp.csc_array:
    """Sparse array with one mixture per column, whose entries sum to one."""
    ends = np.cumsum([0] + [len(members) for members, _ in mixtures])
    indices = np.concatenate([np.asarray(members, dtype=np.intp) for members, _ in mixtures] or [np.empty(0, np.intp)])
    shares = [np.asarray(weights, dtype=np.float64) / np.sum(weights) for _, weights in mixtures]
    values = np.concatenate(shares or [np.empty(0)]).astype(dtype)
    array = sp.csc_array((values, indices, ends), shape=(length, len(mixtures)))
    array.sort_indices()
    return array


def _pairs(mixture: sp.csc_array) -> list[tuple[Indices, Floats]]:
    found = []
    for start, stop in zip(mixture.indptr[:-1], mixture.indptr[1:], strict=True):
        order = start + np.argsort(-mixture.data[start:stop], kind="stable")
        found.append((mixture.indices[order].astype(np.intp), mixture.data[order]))
    return found


def _leading(mixture: sp.csc_array) -> Indices:
    return np.array([members[0] for members, _ in _pairs(mixture)], dtype=np.intp)


def _mixed(matrix: Matrix, mixture: sp.csc_array) -> Floats:
    members, positions = np.unique(mixture.indices, return_inverse=True)
    small = sp.csc_array((mixture.data, positions, mixture.indptr), shape=(members.size, mixture.shape[1]))
    product: Floats = matrix.raw_columns(members.astype(np.intp)) @ small.toarray()
    return product


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


@dataclass(frozen=True, eq=False, repr=False)
class Weights(Record):
    """Nonnegative weights of chosen columns and rows; see `gsnmf.fit_weights` for the problem.

    Attributes
    ----------
    column_weights : array, shape (r1, n)
    row_weights : array, shape (m, r2)
        For a Dask matrix, a Dask array with the same chunks of rows. Computing a chunk reads that chunk of the matrix
        and solves exactly for the weights of its rows, with the column weights fixed.
    relative_error : float
        ||M - M[:, columns] column_weights - row_weights M[rows, :]||_F / ||M||_F.
    optimality : float
        Relative violation of the optimality conditions.
    n_iterations : int
    converged : bool
        Whether ``optimality`` met the tolerance.

    Examples
    --------
    >>> import gsnmf
    >>> weights = gsnmf.fit_weights([[2.0, 4.0], [1.0, 2.0]], columns=[0], rows=[])
    >>> weights.column_weights.round(6)
    array([[1., 2.]])
    >>> weights.converged
    True
    """

    column_weights: Floats
    row_weights: Floats
    relative_error: float
    optimality: float
    n_iterations: int
    converged: bool

    def __repr__(self) -> str:
        chosen = columns_and_rows(self.column_weights.shape[0], self.row_weights.shape[1])
        state = "converged" if self.converged else "not converged"
        return f"Weights of {chosen}: relative error {self.relative_error:.3g}, {state} to {self.optimality:.1e}"


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

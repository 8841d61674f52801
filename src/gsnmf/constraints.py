"""Which columns and rows must be chosen, which must not, and how many of each are allowed."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Flags, Indices, axes_of


@dataclass(frozen=True)
class Constraints:
    """What is known about the columns and rows to choose.

    Attributes
    ----------
    include_columns, include_rows : sequences of int, or boolean masks
        Always chosen.
    exclude_columns, exclude_rows : sequences of int, or boolean masks
        Never chosen, but still explained like all others.
    at_least : pair (n_columns, n_rows)
        The smallest allowed numbers of columns and of rows.
    at_most : pair (n_columns, n_rows), optional
        The largest allowed numbers of columns and of rows. A rank given as a pair sets both ``at_least`` and
        ``at_most``.

    Examples
    --------
    >>> limits = Constraints(include_columns=[3], exclude_rows=[0, 1], at_least=(0, 2)).resolve((30, 40), 5)
    >>> limits.most_columns, limits.least_rows, limits.included_columns
    (3, 2, array([3]))
    """

    include_columns: Any = ()
    include_rows: Any = ()
    exclude_columns: Any = ()
    exclude_rows: Any = ()
    at_least: tuple[int, int] = (0, 0)
    at_most: tuple[int, int] | None = None

    def resolve(self, shape: tuple[int, int], rank: int | tuple[int, int]) -> Limits:
        """Check the constraints against a matrix of this shape and a checked rank.

        Raises
        ------
        ValueError
            If an index is out of range, or if no choice of that rank satisfies the constraints.
        """
        m, n = shape
        included_columns = _indices(self.include_columns, n, "include_columns")
        included_rows = _indices(self.include_rows, m, "include_rows")
        excluded_columns = _indices(self.exclude_columns, n, "exclude_columns")
        excluded_rows = _indices(self.exclude_rows, m, "exclude_rows")
        _check_disjoint(included_columns, excluded_columns, "columns")
        _check_disjoint(included_rows, excluded_rows, "rows")
        size = rank if isinstance(rank, int) else sum(rank)
        least = _pair(self.at_least, "at_least")
        most = (size, size) if self.at_most is None else _pair(self.at_most, "at_most")
        if not isinstance(rank, int):
            _check_pair(rank, least, most)
            least = most = rank
        available = n - excluded_columns.size, m - excluded_rows.size
        included = included_columns.size, included_rows.size
        lowest, highest = _bounds(size, least, most, included, available)
        return Limits(
            size, lowest, highest, included_columns, included_rows, _mask(excluded_columns, n), _mask(excluded_rows, m)
        )

    @property
    def plain(self) -> Constraints:
        """The same constraints with tuples in place of lists, arrays and masks, for files."""
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: tuple(np.asarray(value).tolist()) for name, value in given.items() if value is not None}
        )


@dataclass(frozen=True)
class Limits:
    """Constraints that are known to be satisfiable, in the form the search uses.

    ``size`` is the total number of columns and rows, of which ``least_columns`` to ``most_columns`` are columns.
    Included ones are indices, excluded ones masks of length n and m.
    """

    size: int
    least_columns: int
    most_columns: int
    included_columns: Indices
    included_rows: Indices
    excluded_columns: Flags
    excluded_rows: Flags

    @property
    def least_rows(self) -> int:
        """The smallest number of rows."""
        return self.size - self.most_columns

    @property
    def most_rows(self) -> int:
        """The largest number of rows."""
        return self.size - self.least_columns

    @property
    def text(self) -> str:
        """All of it in words, by which a file recognises the same constraints."""
        excluded = [np.flatnonzero(self.excluded(axis)).tolist() for axis in COLUMNS_AND_ROWS]
        included = [np.sort(self.included(axis)).tolist() for axis in COLUMNS_AND_ROWS]
        return f"{self.least_columns} to {self.most_columns} columns, with {included}, without {excluded}"

    @property
    def only_numbers(self) -> bool:
        """Whether nothing is included or excluded, and the numbers of columns and of rows are free or both given."""
        named = int(self.included_columns.size + self.included_rows.size)
        named += int(self.excluded_columns.sum() + self.excluded_rows.sum())
        fewest = max(0, self.size - self.excluded_rows.size)  # a matrix may have fewer rows than the size
        most = min(self.size, self.excluded_columns.size)
        numbers = self.least_columns, self.most_columns
        return not named and (numbers == (fewest, most) or self.least_columns == self.most_columns)

    def included(self, axis: Axis) -> Indices:
        """Indices that are always chosen."""
        return self.included_columns if axis == "columns" else self.included_rows

    def excluded(self, axis: Axis) -> Flags:
        """Which indices are never chosen."""
        return self.excluded_columns if axis == "columns" else self.excluded_rows

    def most(self, axis: Axis) -> int:
        """The largest number of indices."""
        return self.most_columns if axis == "columns" else self.most_rows

    def with_columns(self, n_columns: int) -> Limits:
        """The same limits with a given number of columns."""
        return replace(self, least_columns=n_columns, most_columns=n_columns)

    def open_axes(self, n_columns: int, n_rows: int) -> Axes:
        """Axes along which one more index still leaves room for what is required."""
        room = self.size - n_columns - n_rows
        columns = n_columns < self.most_columns and room > max(0, self.least_rows - n_rows)
        rows = n_rows < self.most_rows and room > max(0, self.least_columns - n_columns)
        return axes_of(int(columns), int(rows))

    def obeyed_by(self, columns: Indices, rows: Indices) -> bool:
        """Whether a selection of ``size`` indices, or of fewer if they suffice, satisfies the constraints."""
        return bool(
            columns.size + rows.size <= self.size
            and columns.size <= self.most_columns
            and rows.size <= self.most_rows
            and np.isin(self.included_columns, columns).all()
            and np.isin(self.included_rows, rows).all()
            and not self.excluded_columns[columns].any()
            and not self.excluded_rows[rows].any()
        )


def indices_of_names(wanted: Sequence[Any], names: Sequence[Any], kind: str) -> Indices:
    """Positions of the wanted names among all names, or an error that suggests the nearest known ones.

    The first of several equal names counts. ``kind`` is what error messages call ``wanted``.

    Examples
    --------
    >>> indices_of_names(["rain"], ["sun", "rain", "snow"], "include_columns")
    array([1])
    >>> indices_of_names(["rian"], ["sun", "rain", "snow"], "include_columns")
    Traceback (most recent call last):
    ...
    ValueError: include_columns must be known names; got 'rian': did you mean 'rain'?
    """
    position: dict[Any, int] = {}
    for i, name in enumerate(names):
        position.setdefault(name, i)
    unknown = [name for name in wanted if name not in position]
    if unknown:
        suggestions = difflib.get_close_matches(str(unknown[0]), [str(name) for name in position], n=3)
        hint = (
            f": did you mean {' or '.join(map(repr, suggestions))}?"
            if suggestions
            else f", and none of {len(position)} is near."
        )
        raise ValueError(f"{kind} must be known names; got {', '.join(map(repr, unknown))}{hint}")
    return np.array([position[name] for name in wanted], dtype=np.intp)


def _indices(given: Any, length: int, name: str) -> Indices:
    values = np.asarray(given)
    if values.dtype.kind == "b":
        if values.shape != (length,):
            raise ValueError(f"{name} must be a mask of length {length}; got one of shape {values.shape}.")
        return np.flatnonzero(values)
    if values.size == 0:
        return np.empty(0, dtype=np.intp)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a sequence of integers or a boolean mask; got {given!r}.")
    if values.min() < 0 or values.max() >= length:
        out_of_range = values[(values < 0) | (values >= length)]
        raise ValueError(f"{name} must be in [0, {length - 1}]; got {out_of_range[0]}.")
    if np.unique(values).size < values.size:
        raise ValueError(f"{name} must be distinct; got {values.tolist()}.")
    return values.astype(np.intp)


def _pair(given: Any, name: str) -> tuple[int, int]:
    try:
        first, second = given
    except (TypeError, ValueError):
        first = second = None
    for number in (first, second):
        if not isinstance(number, numbers.Integral) or isinstance(number, bool) or int(number) < 0:
            raise ValueError(f"{name} must be a pair (n_columns, n_rows) of integers of at least 0; got {given!r}.")
    return int(first), int(second)


def _check_disjoint(included: Indices, excluded: Indices, axis: str) -> None:
    overlap = np.intersect1d(included, excluded)
    if overlap.size:
        raise ValueError(f"{axis} must not be both included and excluded; got {overlap.tolist()} in both.")


def _check_pair(rank: tuple[int, int], least: tuple[int, int], most: tuple[int, int]) -> None:
    for number, low, high, axis in zip(rank, least, most, ("columns", "rows"), strict=True):
        if not low <= number <= high:
            raise ValueError(
                f"a rank of {rank} asks for {number} {axis}, but at_least and at_most allow {low} to {high}; "
                "leave them out: a pair says how many of each."
            )


def _bounds(
    size: int, least: tuple[int, int], most: tuple[int, int], included: tuple[int, int], available: tuple[int, int]
) -> tuple[int, int]:
    """The smallest and the largest number of columns, or an error that names the contradiction."""
    if sum(included) > size:
        raise ValueError(f"at most {size} indices can be included with a rank of {size}; got {sum(included)}.")
    if sum(least) > size:
        raise ValueError(f"at_least must sum to at most the rank, {size}; got {least}.")
    for number, high, n_available, low, axis in zip(included, most, available, least, ("columns", "rows"), strict=True):
        if low > high:
            raise ValueError(f"at_least must not exceed at_most; got {low} and {high} for {axis}.")
        if number > high:
            raise ValueError(f"at most {high} {axis} are allowed, but {number} are included.")
        if low > n_available:
            raise ValueError(f"at least {low} {axis} are wanted, but only {n_available} are not excluded.")
    lowest = max(least[0], included[0], size - min(most[1], available[1]))
    highest = min(most[0], available[0], size - max(least[1], included[1]))
    if lowest > highest:
        raise ValueError(
            f"no choice of {size} indices obeys: at_least {least} with the included ones {included} and at_most "
            f"{most} with {available} available columns and rows leave no number of columns; allow more of one of "
            "them, or change the rank."
        )
    return lowest, highest


def _mask(indices: Indices, length: int) -> Flags:
    mask = np.zeros(length, dtype=np.bool_)
    mask[indices] = True
    return mask

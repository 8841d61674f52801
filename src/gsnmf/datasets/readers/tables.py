"""Tables: delimited text, JSON lines and Parquet, as matrices with names or as DataFrames.

Delimited text is split by Python's `csv`: pandas fills rows that are too short with empty cells, so that a damaged
table would pass as one with missing values, and is no faster where numbers must be exact.
"""

from __future__ import annotations

import csv
import json
import logging
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.files import FileError, ReadOptions, open_text, reading, shortened
from gsnmf.support.optional import import_optional

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

_BLANK = ("", "NA")
"""Cell contents that mean a missing value."""
_LONG = 40
"""Characters of a cell above which it is taken for text that was meant to be read."""
_LONGEST_CELL = 2**31 - 1
"""Longest cell that is read; `csv` has 128 kB by default, and a document may be longer."""
_INSTALL = 'pip install "gsnmf[files]"'


def read_table(
    path: Path, format: Literal["csv", "tsv", "jsonl", "parquet"], *, encoding: str = "utf-8"
) -> pd.DataFrame:
    """A table with named columns as a DataFrame of what its cells hold.

    Cells of delimited text are text, an empty one too; values that JSON objects or a Parquet file leave out are NaN or
    None.

    Raises
    ------
    FileError
        If a row has too many or too few cells, or a line is no JSON object; the message names the row or line.
    """
    pandas = import_optional("pandas", "reading tables", _INSTALL)
    frame: pd.DataFrame
    if format == "parquet":
        parquet = import_optional("pyarrow.parquet", "reading Parquet files", _INSTALL)
        with reading(path, "a Parquet file"):
            frame = parquet.read_table(path).to_pandas(integer_object_nulls=True)
    elif format == "jsonl":
        with reading(path, "JSON lines"), open_text(path, encoding) as text:
            numbered = enumerate(text, 1)
            frame = pandas.DataFrame([_json_row(path, n, line) for n, line in numbered if line.strip()], dtype=object)
    else:
        with reading(path, "a table"), open_text(path, encoding) as text:
            _, lines = _split(text, "\t" if format == "tsv" else None)
            header = [name.strip() for name in next(lines, [])]
            rows = list(lines)
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                raise FileError(f"{path}: row {number} must have {len(header)} cells like the header; got {len(row)}.")
        frame = pandas.DataFrame(rows, columns=header, dtype=object)
    return frame


def read_csv(path: Path, options: ReadOptions, delimiter: str | None = None) -> LabelledMatrix:
    """A matrix as delimited text: the first line and the first column are names if they are not numbers.

    Parameters
    ----------
    path : Path
        ``-`` for standard input.
    options : ReadOptions
        ``header`` and ``row_names`` say whether the first line and the first column are names. By default the first
        line is if it opens with an empty cell or if another of its cells is not a number, and the first column is if
        its first cell is not a number or if the header has no name for it.
    delimiter : str, optional
        Between cells; by default the one of comma, semicolon and tab that the first line has most of. With a semicolon
        a number may have a decimal comma.

    Notes
    -----
    A table that can be read in two ways is an error: a header that opens with a number, a first column with names and
    numbers in it, or a blank corner among nothing but numbers that are not all labels such as years. The log says what
    was taken as names.
    """
    with reading(path, "a table"), open_text(path, options.encoding) as text:
        delimiter, lines = _split(text, delimiter)
        return _NumberTable(path, options.header, options.row_names, delimiter == ";", options.blank_is_missing).read(
            lines
        )


def read_tsv(path: Path, options: ReadOptions) -> LabelledMatrix:
    """`read_csv` with tabs between cells."""
    return read_csv(path, options, "\t")


def read_parquet(path: Path, options: ReadOptions) -> LabelledMatrix:
    """A matrix in a Parquet file: columns of numbers, and at most one column of names."""
    parquet = import_optional("pyarrow.parquet", "reading Parquet files", _INSTALL)
    types = import_optional("pyarrow.types", "reading Parquet files", _INSTALL)

    def is_number(kind: Any) -> bool:
        return any(check(kind) for check in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))

    with reading(path, "a Parquet file"):
        table = parquet.read_table(path)
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
        named = [name for name in table.column_names if name in index or not is_number(table.schema.field(name).type)]
        if len(named) > 1:
            raise FileError(f"{path}: at most one column may hold names; got {', '.join(named)}.")
        numbers = [name for name in table.column_names if name not in named]
        if not numbers:
            raise FileError(f"{path}: has no column of numbers.")
        values = np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in numbers])
        names = table.column(named[0]).to_pylist() if named else []
    return LabelledMatrix(values, tuple("" if name is None else str(name) for name in names), tuple(numbers))


def _split(text: TextIO, delimiter: str | None) -> tuple[str, Iterator[list[str]]]:
    """The delimiter of a table, and its rows that are not empty."""
    csv.field_size_limit(_LONGEST_CELL)
    first = next((line for line in text if line.strip()), "")
    delimiter = delimiter or max(",;\t", key=first.count)
    return delimiter, filter(None, csv.reader(chain([first], text), delimiter=delimiter))


def _json_row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}: line {number} is not JSON: {error.msg} at character {error.pos}.") from None
    if not isinstance(row, dict):
        raise FileError(
            f'{path}: line {number} must be a JSON object, such as {{"text": ...}}; got {shortened(line)!r}.'
        )
    return row


@dataclass(frozen=True)
class _NumberTable:
    """A table of numbers: what the caller said about its names, and what its cells may hold."""

    path: Path
    header: bool | None
    row_names: bool | None
    decimal_comma: bool
    blank_is_missing: bool

    def read(self, lines: Iterator[list[str]]) -> LabelledMatrix:
        """The numbers in the lines, with the names of rows and columns."""
        first = next(lines, None)
        if first is None:
            raise FileError(f"{self.path}: is empty.")
        names: list[str] = []
        if self._has_header(first):
            names, first = first, next(lines, None)
            if first is None:
                raise FileError(f"{self.path}: has a header and no rows.")
        named = self._has_row_names(names, first)
        values, row_names = array("d"), []
        for number, cells in enumerate(chain([first], lines)):
            if len(cells) != len(first):
                raise FileError(
                    f"{self.path}: row {number} must have {len(first)} cells like the first; got {len(cells)}."
                )
            if named:
                row_names.append(cells[0])
            values.extend(self._numbers(cells[named:], number))
        if named and (len(names) != len(first) - 1 or not names):  # otherwise the header leaves no doubt
            self._check_row_names(names, row_names)
        n = len(first) - named
        if names and len(names) not in (n, n + named):
            raise FileError(f"{self.path}: the header must have {len(first)} cells like the rows; got {len(names)}.")
        taken = [place for place, used in (("the first line", names), ("the first column", row_names)) if used]
        logger.info("%s: took %s as names", self.path, " and ".join(taken) or "nothing")
        matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, n) if n else np.empty((len(row_names), 0))
        return LabelledMatrix(matrix, tuple(row_names), tuple(names[len(names) - n :]))

    def _number(self, cell: str) -> float:
        if self.blank_is_missing and cell.strip() in _BLANK:
            return float("nan")
        return float(cell.replace(",", ".") if self.decimal_comma else cell)

    def _is_number(self, cell: str) -> bool:
        try:
            self._number(cell)
        except ValueError:
            return False
        return True

    def _numbers(self, cells: Sequence[str], row: int) -> list[float]:
        try:
            return [self._number(cell) for cell in cells]
        except ValueError:
            column = next(j for j, cell in enumerate(cells) if not self._is_number(cell))
            cell = " ".join(cells[column].split())
            found = f"got {shortened(cell)!r}" if cell else "the cell is empty"
            hint = " It looks like a table of texts." if len(cell) > _LONG else ""
            if cell in _BLANK:
                hint = " missing_values=numpy.nan takes it as missing."
            raise FileError(
                f"{self.path}: cells must be numbers; {found} at row {row}, column {column}.{hint}"
            ) from None

    def _has_header(self, cells: Sequence[str]) -> bool:
        if self.header is not None:
            return self.header
        if cells[0].strip() == "":
            return True
        if all(self._is_number(cell) for cell in cells[1:] or cells):
            return False
        if self._is_number(cells[0]) and len(cells) > 1:
            raise FileError(
                f"{self.path}: the first line opens with the number {cells[0].strip()!r} and has cells that are not "
                "numbers; say whether it holds the names of the columns: header=True or header=False."
            )
        return True

    def _has_row_names(self, names: Sequence[str], first: Sequence[str]) -> bool:
        if self.row_names is not None:
            return self.row_names
        unnamed_corner = bool(names) and (names[0].strip() == "" or len(names) == len(first) - 1)
        return unnamed_corner or not self._is_number(first[0])

    def _check_row_names(self, names: Sequence[str], row_names: Sequence[str]) -> None:
        """Raise if the first column might hold numbers, unless the caller said that it holds names."""
        if self.row_names is not None:
            return
        numbers = [name for name in row_names if self._is_number(name)]
        if names and names[0].strip() == "":
            labels = all(name.strip().isdecimal() or not self._is_number(name) for name in names[1:])  # years are names
            if labels or len(numbers) < len(row_names) or self.header:
                return
            problem = "the first cell is blank and all others are numbers"
        else:
            doubtful = [name for name in row_names if name.strip() == ""] or numbers
            if not doubtful or len(numbers) == len(row_names):
                return
            other = next(name for name in row_names if not self._is_number(name))
            problem = f"the first column has {shortened(other)!r} as well as {shortened((numbers or doubtful)[0])!r}"
        raise FileError(
            f"{self.path}: {problem}; say whether the first column holds the names of the rows, row_names=True or "
            "row_names=False, or correct the cell."
        )

"""Readers of tables: comma- or tab-separated text, Parquet, AnnData."""

from __future__ import annotations

import csv
import logging
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from gsnmf.datasets.readers.annotated import find_expression
from gsnmf.datasets.readers.files import FileError, open_text, reading
from gsnmf.datasets.readers.labelled import LabelledMatrix
from gsnmf.matrix.validation import OF_FILES
from gsnmf.support.optional import import_optional

logger = logging.getLogger(__name__)

_DELIMITERS = ",;\t"

_BLANK = ("", "NA")
"""Cell contents that mean a missing value."""

_LONGEST_SHOWN = 40
"""How many characters of a cell an error shows."""


def read_csv(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    row_names: bool | None = None,
    encoding: str,
    blank_is_missing: bool = False,
) -> LabelledMatrix:
    """A table as text: the first line and the first column are names if they are not numbers.

    Parameters
    ----------
    path : Path
        ``-`` for standard input.
    delimiter : str, optional
        Between cells; by default the one of comma, semicolon and tab that the first line has most of. With a semicolon
        a number may have a decimal comma.
    header : bool, optional
        Whether the first line names the columns; by default if any of its cells but the first is not a number, or the
        first is empty.
    row_names : bool, optional
        Whether the first column names the rows; by default if its first cell is not a number, or if the header has no
        name for it.
    encoding : str
    blank_is_missing : bool
        Whether empty cells, and cells with NA, become NaN; otherwise they are an error.

    Notes
    -----
    A table that can be read in two ways is an error: a header that opens with a number, a first column with names and
    numbers in it, or a blank corner among nothing but numbers that are not all labels such as years. The log says what
    was taken as names.
    """
    with reading(path, "a table"), open_text(path, encoding) as text:
        first = next((line for line in text if line.strip()), "")
        delimiter = delimiter or max(_DELIMITERS, key=first.count)
        lines = csv.reader(chain([first], text), delimiter=delimiter)
        beginning = [cells for cells in islice(lines, 2) if cells]
        asked = _Names(path, header, row_names, _Cells(delimiter == ";", blank_is_missing))
        return _parse(asked, beginning, (cells for cells in lines if cells))


def read_parquet(path: Path) -> LabelledMatrix:
    """A Parquet file: numbers, and at most one column of names."""
    parquet = import_optional("pyarrow.parquet", "reading Parquet files", 'pip install "gsnmf[files]"')
    with reading(path, "a Parquet file"):
        table = parquet.read_table(path)
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
        named = [name for name in table.column_names if name in index or not _is_number(table.schema.field(name).type)]
        if len(named) > 1:
            raise FileError(f"{path}: at most one column may hold names; got {', '.join(named)}.")
        numbers = [name for name in table.column_names if name not in named]
        if not numbers:
            raise FileError(f"{path}: has no column of numbers.")
        values = np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in numbers])
        row_names = (
            tuple("" if name is None else str(name) for name in table.column(named[0]).to_pylist()) if named else ()
        )
    return LabelledMatrix(values, row_names, tuple(numbers))


def read_h5ad(path: Path, key: str | None = None) -> LabelledMatrix:
    """An AnnData file as cells x genes: ``X``, ``raw`` or the layer that ``key`` names.

    Without a ``key`` it is ``X``, or ``raw`` if ``X`` has negative entries and ``raw`` has none, which the log then
    says (`gsnmf.datasets.readers.annotated`).
    """
    anndata = import_optional("anndata", "reading AnnData files", 'pip install "gsnmf[cells]"')
    with reading(path, "an AnnData file"):
        data = anndata.read_h5ad(path)
        named = key is not None and key not in data.layers and key in ("X", "raw")
        if key is not None and not named and key not in data.layers:
            raise FileError(f"{path}: has no layer {key!r}; got {', '.join(data.layers) or 'none'}.")
        try:
            found = find_expression(data, layer=None if named else key, use_raw=key == "raw" if named else None)
        except ValueError as error:
            raise FileError(f"{path}: {error}") from error
        names = tuple(map(str, data.obs_names)), found.gene_names
    return LabelledMatrix(found.values, *names, row_kind="cell", column_kind="gene")


@dataclass(frozen=True)
class _Cells:
    """How the cells of a table are read as numbers."""

    decimal_comma: bool
    blank_is_missing: bool

    def number(self, cell: str) -> float:
        """The number in a cell; a `ValueError` if there is none."""
        if self.blank_is_missing and cell.strip() in _BLANK:
            return float("nan")
        return float(cell.replace(",", ".") if self.decimal_comma else cell)

    def is_number(self, cell: str) -> bool:
        """Whether there is a number in a cell."""
        try:
            self.number(cell)
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class _Names:
    """What is known about the names in a table before it is read."""

    path: Path
    header: bool | None
    row_names: bool | None
    cells: _Cells

    def has_header(self, cells: Sequence[str]) -> bool:
        """Whether the first line holds names, as asked for or as its cells say."""
        if self.header is not None:
            return self.header
        if cells[0].strip() == "":
            return True
        if all(self.is_number(cell) for cell in cells[1:] or cells):
            return False
        if self.is_number(cells[0]) and len(cells) > 1:
            raise FileError(
                f"{self.path}: the first line opens with the number {cells[0].strip()!r} and has cells that are not "
                "numbers; say whether it holds the names of the columns (header=True or False, --header or "
                "--no-header)."
            )
        return True

    def has_row_names(self, names: Sequence[str], first: Sequence[str]) -> bool:
        """Whether rows open with a name: the first is no number, or the header has no name for that column."""
        if self.row_names is not None:
            return self.row_names
        unnamed_corner = bool(names) and (names[0].strip() == "" or len(names) == len(first) - 1)
        return unnamed_corner or not self.is_number(first[0])

    def check_row_names(self, names: Sequence[str], row_names: Sequence[str]) -> None:
        """Raise if the first column might hold numbers, unless the caller said that it holds names."""
        if self.row_names is not None:
            return
        numbers = [name for name in row_names if self.is_number(name)]
        if names and names[0].strip() == "":
            labels = all(_is_label(name) or not self.is_number(name) for name in names[1:])
            if labels or len(numbers) < len(row_names) or self.header:
                return
            problem = "the first cell is blank and all others are numbers"
        else:
            doubtful = [name for name in row_names if name.strip() == ""] or numbers
            if not doubtful or len(numbers) == len(row_names):
                return
            other = next(name for name in row_names if not self.is_number(name))
            problem = f"the first column has {_short(other)!r} as well as {_short((numbers or doubtful)[0])!r}"
        raise FileError(
            f"{self.path}: {problem}; say whether the first column holds the names of the rows (row_names=True or "
            "False), or mend the cell."
        )

    def is_number(self, cell: str) -> bool:
        return self.cells.is_number(cell)


def _is_label(cell: str) -> bool:
    """Whether a cell of a header is an integer without a sign, such as a year, and so may be a name."""
    return cell.strip().isdecimal()


def _parse(asked: _Names, beginning: list[list[str]], rest: Iterator[list[str]]) -> LabelledMatrix:
    path = asked.path
    if not beginning:
        raise FileError(f"{path}: is empty.")
    names = beginning.pop(0) if asked.has_header(beginning[0]) else []
    lines = chain(beginning, rest)
    first = next(lines, None)
    if first is None:
        raise FileError(f"{path}: has a header and no rows.")
    named = asked.has_row_names(names, first)
    values, row_names = array("d"), []
    for number, cells in enumerate(chain([first], lines)):
        if len(cells) != len(first):
            raise FileError(f"{path}: row {number} must have {len(first)} cells like the first; got {len(cells)}.")
        if named:
            row_names.append(cells[0])
        _extend(values, cells[named:], path, number, asked.cells)
    if named and (len(names) != len(first) - 1 or not names):  # otherwise the header says so
        asked.check_row_names(names, row_names)
    n = len(first) - named
    if names and len(names) not in (n, n + named):
        raise FileError(f"{path}: the header must have {len(first)} cells like the rows; got {len(names)}.")
    taken = [place for place, is_taken in (("the first line", names), ("the first column", row_names)) if is_taken]
    logger.info("%s: took %s as names", path, " and ".join(taken) or "nothing")
    matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, n) if n else np.empty((len(row_names), 0))
    return LabelledMatrix(matrix, tuple(row_names), tuple(names[len(names) - n :]))


def _extend(values: array[float], cells: Sequence[str], path: Path, row: int, kind: _Cells) -> None:
    try:
        values.extend([kind.number(cell) for cell in cells])
    except ValueError:
        column = next(j for j, cell in enumerate(cells) if not kind.is_number(cell))
        cell = " ".join(cells[column].split())
        found = f"got {_short(cell)!r}" if cell else "the cell is empty"
        hint = " For a table of texts there is: gsnmf topics." if len(cell) > _LONGEST_SHOWN else ""
        if cell in _BLANK:
            hint = f" {OF_FILES.missing} takes it as missing."
        raise FileError(f"{path}: cells must be numbers; {found} at row {row}, column {column}.{hint}") from None


def _short(cell: str) -> str:
    return cell if len(cell) <= _LONGEST_SHOWN else cell[: _LONGEST_SHOWN - 1] + "…"


def _is_number(kind: Any) -> bool:
    types = import_optional("pyarrow.types", "reading Parquet files", 'pip install "gsnmf[files]"')
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))

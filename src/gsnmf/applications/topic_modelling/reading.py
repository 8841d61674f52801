"""Texts with their labels, names and dates from tables, JSON lines, folders, or files with one document per line."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from gsnmf.applications.topic_modelling.dates import Date, read_date
from gsnmf.datasets.readers.files import STANDARD_INPUT, FileError, open_text, read_lines, reading
from gsnmf.support.optional import import_optional

TEXT_ENDINGS = (".txt", ".text", ".md", ".rst")
"""Endings of files in a folder that are read as documents."""

_USUAL_TEXT = ("text", "review", "body", "content", "abstract", "document", "comment", "message", "description")
_LONGEST_SHOWN = 40
_MOST_SHOWN = 12

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Texts:
    """Documents as they were read.

    Attributes
    ----------
    texts : tuple of str
        One per document; empty where the file has none.
    ids : tuple of str
        Names of the documents.
    labels : tuple of str
        Their labels; empty if there are none.
    dates : tuple of date or None
        Their dates; empty if there are none, None where one is missing.
    source : str
        Where they came from.
    text_column : str
        The column that holds the texts, if they come from a table.
    """

    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    dates: tuple[Date | None, ...] = field(default=(), repr=False)
    source: str = ""
    text_column: str = ""


@dataclass(frozen=True)
class Columns:
    """Names of the columns that hold texts, labels, names and dates."""

    text: str | None = None
    label: str | None = None
    id: str | None = None
    date: str | None = None

    def named(self) -> dict[str, str]:
        """The columns that were asked for, by what they hold."""
        asked = {"text": self.text, "label": self.label, "id": self.id, "date": self.date}
        return {kind: name for kind, name in asked.items() if name is not None}


def read_texts(
    path: str | Path,
    *,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    date_column: str | None = None,
    encoding: str = "utf-8",
) -> Texts:
    """Read documents.

    Parameters
    ----------
    path : str or Path
        A table (.csv, .tsv, .parquet), JSON lines (.jsonl, .ndjson), a text file with one document per line, a folder
        with one document per file, whose subfolders are labels, or ``-`` for standard input, which needs a ``format``.
        Text files may be compressed (.gz).
    format : str, optional
        One of `FORMATS`; by default the ending of the file decides.
    text_column : str, optional
        By default a column with a usual name, such as "text" or "review", or else the column with the longest cells.
    label_column, id_column, date_column : str, optional
        Columns with a label, a name and a date. Dates are written as 2024-05-31, 2024/05/31, 2024-05 or 2024; a time of
        day is ignored.
    encoding : str
        Of text files.

    Returns
    -------
    Texts

    Raises
    ------
    FileError
        A `ValueError` for a file that cannot be read so. It shows at most 40 characters of a cell.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("id,review,stars\\na1,Good tea.,5\\na2,Cold soup.,1\\n")
    ...     data = read_texts(table, label_column="stars", id_column="id")
    >>> data.texts, data.labels, data.ids
    (('Good tea.', 'Cold soup.'), ('5', '1'), ('a1', 'a2'))
    """
    source = Path(path)
    columns = Columns(text_column, label_column, id_column, date_column)
    form = _format_of(source, format)
    if form in ("folder", "lines") and columns.named():
        raise FileError(f"{source}: has no columns; it is read as {_FORMATS[form].title}.")
    return _FORMATS[form].read(source, columns, encoding)


def _read_lines(path: Path, columns: Columns, encoding: str) -> Texts:
    numbered = [(number, line) for number, line in enumerate(read_lines(path, encoding), 1) if line.strip()]
    return _checked(path, Texts(tuple(line for _, line in numbered), tuple(f"line {n}" for n, _ in numbered)))


def _read_folder(folder: Path, columns: Columns, encoding: str) -> Texts:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in TEXT_ENDINGS and file.is_file() and not file.name.startswith(".")
    )
    if not files:
        raise FileError(f"{folder}: holds no documents; their files end in {', '.join(TEXT_ENDINGS)}.")
    texts = []
    for file in files:
        with open_text(file, encoding) as stream:
            texts.append(stream.read())
    parts = [file.relative_to(folder) for file in files]
    labelled = all(len(part.parts) > 1 for part in parts) and len({part.parts[0] for part in parts}) > 1
    ids = tuple(part.with_suffix("").as_posix() for part in parts)
    labels = tuple(part.parts[0] for part in parts) if labelled else ()
    return _checked(folder, Texts(tuple(texts), ids, labels))


def _read_table(delimiter: str | None) -> Callable[[Path, Columns, str], Texts]:
    def read(path: Path, columns: Columns, encoding: str) -> Texts:
        with reading(path, "a table"), open_text(path, encoding) as stream:
            csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a document is longer than a usual cell
            first = next((line for line in stream if line.strip()), "")
            between = delimiter or max(",;\t", key=first.count)
            lines = csv.reader(chain([first], stream), delimiter=between)
            header = [name.strip() for name in next(lines, [])]
            return _of_rows(path, columns, header, _cells(path, header, lines))

    return read


def _cells(path: Path, header: Sequence[str], lines: Iterator[list[str]]) -> Iterator[Row]:
    for number, cells in enumerate((cells for cells in lines if cells), 1):
        if len(cells) != len(header):
            raise FileError(f"{path}: row {number} must have {len(header)} cells like the header; got {len(cells)}.")
        yield dict(zip(header, cells, strict=True))


def _read_json_lines(path: Path, columns: Columns, encoding: str) -> Texts:
    with reading(path, "JSON lines"), open_text(path, encoding) as stream:
        rows: list[Row] = []
        for number, line in enumerate(stream, 1):
            if line.strip():
                rows.append(_json_row(path, number, line))
    header = list(dict.fromkeys(name for row in rows for name in row))
    return _of_rows(path, columns, header, iter(rows))


def _json_row(path: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}: line {number} is not JSON: {error.msg} at character {error.pos}.") from None
    if not isinstance(row, dict):
        raise FileError(f'{path}: line {number} must be a JSON object, such as {{"text": ...}}; got {_short(line)}.')
    return row


def _read_parquet(path: Path, columns: Columns, encoding: str) -> Texts:
    parquet = import_optional("pyarrow.parquet", "reading Parquet files", 'pip install "gsnmf[files]"')
    with reading(path, "a Parquet file"):
        table = parquet.read_table(path)
    return _of_rows(path, columns, table.column_names, iter(table.to_pylist()))


def _of_rows(path: Path, columns: Columns, header: Sequence[str], rows: Iterator[Row]) -> Texts:
    for kind, name in columns.named().items():
        if name not in header:
            raise FileError(f"{path}: has no column {_short(name)} to take as {kind}; it has {_shown_names(header)}.")
    held = list(rows)
    text = columns.text or _guess_text(path, header, held)
    ids = [_cell(row, columns.id) for row in held] if columns.id else [f"row {n}" for n in range(1, len(held) + 1)]
    labels = [_cell(row, columns.label) for row in held] if columns.label else []
    dates = [_date(path, number, row, columns.date) for number, row in enumerate(held, 1)] if columns.date else []
    texts = tuple(_cell(row, text) for row in held)
    return _checked(path, Texts(texts, tuple(ids), tuple(labels), tuple(dates), text_column=text))


def _checked(path: Path, read: Texts) -> Texts:
    if not any(text.strip() for text in read.texts):
        raise FileError(f"{path}: holds no documents.")
    source = "standard input" if path == STANDARD_INPUT else str(path)
    return Texts(read.texts, read.ids, read.labels, read.dates, source, read.text_column)


def _guess_text(path: Path, header: Sequence[str], rows: Sequence[Row]) -> str:
    usual = {name.lower(): name for name in reversed(header)}
    for name in _USUAL_TEXT:
        if name in usual:
            return usual[name]
    sample = rows[:100]
    lengths = {name: sum(len(v) for row in sample if isinstance(v := row.get(name), str)) for name in header}
    if not lengths or max(lengths.values()) == 0:
        raise FileError(f"{path}: name the column that holds the texts; it has {_shown_names(header)}.")
    return max(header, key=lambda name: lengths[name])


def _cell(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None or value != value else str(value)


def _date(path: Path, number: int, row: Row, name: str) -> Date | None:
    value = row.get(name)
    try:
        return read_date(value)
    except ValueError as error:
        raise FileError(f"{path}: row {number}, column {_short(name)}: {error}") from None


def _short(text: str) -> str:
    clean = " ".join(text.split())
    return repr(clean if len(clean) <= _LONGEST_SHOWN else clean[: _LONGEST_SHOWN - 1] + "…")


def _shown_names(header: Sequence[str]) -> str:
    names = ", ".join(_short(name) for name in header[:_MOST_SHOWN]) or "none"
    return names + (f" and {len(header) - _MOST_SHOWN} more" if len(header) > _MOST_SHOWN else "")


@dataclass(frozen=True)
class _Format:
    title: str
    endings: tuple[str, ...]
    read: Callable[[Path, Columns, str], Texts]


_FORMATS = {
    "csv": _Format("a table", (".csv", ".csv.gz"), _read_table(None)),
    "tsv": _Format("a table", (".tsv", ".tsv.gz", ".tab"), _read_table("\t")),
    "jsonl": _Format("JSON lines", (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), _read_json_lines),
    "parquet": _Format("a Parquet file", (".parquet",), _read_parquet),
    "lines": _Format("one document per line", (".txt", ".text", ".txt.gz"), _read_lines),
    "folder": _Format("a folder with one document per file", (), _read_folder),
}

FORMATS = tuple(_FORMATS)
"""Names of the formats that `read_texts` knows."""

STREAMED_FORMATS = ("csv", "tsv", "jsonl", "lines")
"""Formats that can be read from standard input."""


def _format_of(path: Path, format: str | None) -> str:
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    if path == STANDARD_INPUT:
        if format not in STREAMED_FORMATS:
            allowed = ", ".join(STREAMED_FORMATS)
            raise ValueError(f"format must be one of {allowed} for standard input; got {format or 'none'}.")
        return format
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if path.is_dir() or format == "folder":
        if not path.is_dir() or format not in (None, "folder"):
            raise FileError(f"{path}: a folder is read as one document per file; got format {format}.")
        return "folder"
    if format is not None:
        return format
    for name, form in _FORMATS.items():
        if form.endings and path.name.lower().endswith(form.endings):
            return name
    endings = ", ".join(ending for form in _FORMATS.values() for ending in form.endings)
    raise FileError(f"{path}: the ending must be one of {endings}, or name the format; got {path.suffix or 'none'}.")

"""Texts with their labels, names and dates: read from files, checked, and turned into a matrix of documents x words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from gsnmf.datasets.readers.files import STANDARD_INPUT, FileError, open_text, read_lines, shortened
from gsnmf.datasets.readers.folders import TEXT_SUFFIXES, files_below
from gsnmf.datasets.readers.tables import read_table
from gsnmf.support.arrays import Indices

Date: TypeAlias = date
StopWords: TypeAlias = Literal["english"] | Iterable[str] | None

_FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "csv": ("a table", (".csv", ".csv.gz")),
    "tsv": ("a table", (".tsv", ".tsv.gz", ".tab")),
    "jsonl": ("JSON lines", (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")),
    "parquet": ("a Parquet file", (".parquet",)),
    "lines": ("one document per line", (".txt", ".text", ".txt.gz")),
    "folder": ("a folder with one document per file", ()),
}
"""What each format is, and the endings of its files."""

FORMATS = tuple(_FORMATS)
"""Names of the formats that `read_texts` knows."""

STREAMED_FORMATS = ("csv", "tsv", "jsonl", "lines")
"""Formats that can be read from standard input."""

_USUAL_TEXT = ("text", "review", "body", "content", "abstract", "document", "comment", "message", "description")
_FREQUENT = 0.5
"""Without a list of stop words, words in a larger part of the documents are left out."""

_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?:[T ].*)?")
_MOST_PERIODS = 40
_MOST_SHOWN = 12
"""Columns that an error message names."""


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
        Encoding of text files.

    Raises
    ------
    FileError
        A `ValueError` for a file that cannot be read. It shows at most 40 characters of a cell.

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
    form = _format_of(source, format)
    given = {"text": text_column, "label": label_column, "id": id_column, "date": date_column}
    columns = {kind: name for kind, name in given.items() if name is not None}
    if form in ("folder", "lines"):
        if columns:
            raise FileError(f"{source}: has no columns; it is read as {_FORMATS[form][0]}.")
        found = (_read_folder if form == "folder" else _read_lines)(source, encoding)
    else:
        table = read_table(source, cast("Any", form), encoding=encoding)
        found = _from_columns(source, table, columns)
    if not any(text.strip() for text in found.texts):
        raise FileError(f"{source}: holds no documents.")
    return replace(found, source="standard input" if source == STANDARD_INPUT else str(source))


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
    for name, (_, endings) in _FORMATS.items():
        if path.name.lower().endswith(endings):
            return name
    known = ", ".join(ending for _, endings in _FORMATS.values() for ending in endings)
    raise FileError(f"{path}: the ending must be one of {known}, or name the format; got {path.suffix or 'none'}.")


def _read_lines(path: Path, encoding: str) -> Texts:
    numbered = [(number, line) for number, line in enumerate(read_lines(path, encoding), 1) if line.strip()]
    return Texts(tuple(line for _, line in numbered), tuple(f"line {number}" for number, _ in numbered))


def _read_folder(folder: Path, encoding: str) -> Texts:
    files = files_below(folder, TEXT_SUFFIXES)
    if not files:
        raise FileError(f"{folder}: holds no documents; their files end in {', '.join(TEXT_SUFFIXES)}.")
    texts = []
    for file in files:
        with open_text(file, encoding) as stream:
            texts.append(stream.read())
    parts = [file.relative_to(folder) for file in files]
    labelled = all(len(part.parts) > 1 for part in parts) and len({part.parts[0] for part in parts}) > 1
    ids = tuple(part.with_suffix("").as_posix() for part in parts)
    return Texts(tuple(texts), ids, tuple(part.parts[0] for part in parts) if labelled else ())


def _from_columns(path: Path, frame: Any, columns: dict[str, str]) -> Texts:
    names = ", ".join(repr(shortened(name)) for name in frame.columns[:_MOST_SHOWN]) or "none"
    names += f" and {frame.shape[1] - _MOST_SHOWN} more" if frame.shape[1] > _MOST_SHOWN else ""
    for kind, name in columns.items():
        if name not in frame.columns:
            raise FileError(f"{path}: has no column {shortened(name)!r} to take as {kind}; it has {names}.")
    values = frame.astype(object).where(frame.notna(), None)
    text = columns.get("text") or _guess_text(values)
    if text is None:
        raise FileError(f"{path}: name the column that holds the texts; it has {names}.")

    def cells(name: str) -> tuple[str, ...]:
        return tuple("" if value is None else str(value) for value in values[name])

    dates: list[Date | None] = []
    for number, value in enumerate(values[columns["date"]] if "date" in columns else (), 1):
        try:
            dates.append(read_date(value))
        except ValueError as error:
            raise FileError(f"{path}: row {number}, column {shortened(columns['date'])!r}: {error}") from None
    return Texts(
        texts=cells(text),
        ids=cells(columns["id"]) if "id" in columns else tuple(f"row {n}" for n in range(1, len(values) + 1)),
        labels=cells(columns["label"]) if "label" in columns else (),
        dates=tuple(dates),
        text_column=text,
    )


def _guess_text(values: Any) -> str | None:
    """The column with a usual name, or else with the longest cells among the first rows; None without any text."""
    lowered = {name.lower(): name for name in reversed(values.columns)}
    for name in _USUAL_TEXT:
        if name in lowered:
            return str(lowered[name])
    lengths = values.head(100).map(lambda value: len(value) if isinstance(value, str) else 0).sum()
    return str(lengths.idxmax()) if lengths.max() > 0 else None


def read_date(value: Any) -> Date | None:
    """A date from text, a year, or a date of Python, NumPy or pandas; None if it is missing.

    Examples
    --------
    >>> read_date("2024-05-31T12:00"), read_date(1999), read_date("2024/5"), read_date("")
    (datetime.date(2024, 5, 31), datetime.date(1999, 1, 1), datetime.date(2024, 5, 1), None)
    """
    if value is None or value != value:  # NaN and NaT are not equal to themselves
        return None
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value).strip()
    if not text or text == "NaT":
        return None
    if (found := _DATE.fullmatch(text)) is not None:
        try:
            return date(*(int(part) if part else 1 for part in found.groups()))
        except ValueError:
            pass
    raise ValueError(f"a date must be written as 2024-05-31, 2024-05 or 2024; got {shortened(text)!r}.")


def periods(dates: Sequence[Date | None]) -> tuple[list[str], list[int]]:
    """Days, months or years, as fine as gives at most 40 of them, and the period of each date; -1 where it is missing.

    Empty periods between the first and the last are included.

    Examples
    --------
    >>> periods([date(2024, 11, 5), None, date(2025, 1, 7)])
    (['2024-11', '2024-12', '2025-01'], [0, -1, 2])
    """
    days = np.array(dates, dtype="datetime64[D]")
    known = days[~np.isnat(days)]
    if not known.size:
        return [], [-1] * days.size
    are_years = bool((known == known.astype("datetime64[Y]")).all())
    for unit in ("D", "Y") if are_years else ("D", "M", "Y"):
        first, last = (day.astype(f"datetime64[{unit}]") for day in (known.min(), known.max()))
        count = int((last - first).astype(int)) + 1
        if count <= _MOST_PERIODS:
            break
    step = -(-count // _MOST_PERIODS)  # above 1 only for years
    names = [str(start) if step == 1 else f"{start}–{start + step - 1}" for start in np.arange(first, last + 1, step)]
    groups = (days.astype(first.dtype) - first).astype(int) // step
    return names, np.where(np.isnat(days), -1, groups).tolist()


def check_texts(texts: Any) -> list[str]:
    """Texts as a list; missing ones are empty."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a sequence of documents; got one {type(texts).__name__}. Use [text], or lines.")
    if hasattr(texts, "columns"):
        raise TypeError(
            "texts must be a sequence of documents; got a table. Give the column that holds the texts, as in "
            'topics(table["text"]).'
        )
    found = []
    for position, text in enumerate(texts):
        if text is None or (isinstance(text, float) and np.isnan(text)):
            text = ""
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings; got {type(text).__name__} at position {position}.")
        found.append(text)
    if not found:
        raise ValueError("texts must hold at least one document; got none.")
    return found


def fit_vectorizer(
    texts: Sequence[str],
    *,
    stop_words: StopWords = "english",
    min_df: float = 2,
    max_df: float | None = None,
    ngrams: tuple[int, int] = (1, 1),
    vectorizer: Any = None,
) -> tuple[Any, sp.csr_array]:
    """A fitted vectorizer and the matrix of the texts; parameters as for `gsnmf.applications.topics`."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    if vectorizer is not None:
        return vectorizer, nonnegative(vectorizer.fit_transform(texts))
    if isinstance(stop_words, str) and stop_words != "english":
        raise ValueError(f"stop_words must be 'english', a list of words, or None; got {stop_words!r}.")
    if stop_words is not None and not isinstance(stop_words, str):
        stop_words = sorted({word.strip().lower() for word in stop_words if word.strip()}) or None
    largest_share = max_df if max_df is not None else 1.0 if stop_words or len(texts) < 10 else _FREQUENT
    smallest_count = min(min_df, len(texts)) if isinstance(min_df, int) else min_df
    made = TfidfVectorizer(
        stop_words=stop_words, min_df=smallest_count, max_df=largest_share, ngram_range=tuple(ngrams)
    )
    try:
        return made, nonnegative(made.fit_transform(texts))
    except ValueError as error:
        if "vocabulary" not in str(error) and "terms remain" not in str(error):
            raise
        raise ValueError(
            f"no word of the {len(texts)} documents is left: a word must not be a stop word, and must occur in at "
            f"least {min_df} of them. Lower min_df, or give other stop words."
        ) from None


def nonnegative(matrix: Any) -> sp.csr_array:
    """The output of a vectorizer as a sparse matrix of nonnegative numbers in single or double precision."""
    found = sp.csr_array(matrix)
    if found.dtype not in (np.float32, np.float64):
        found = found.astype(np.float64)
    if found.nnz and found.data.min() < 0:
        raise ValueError("the vectorizer must make nonnegative values; got negative ones. Set alternate_sign=False.")
    return found


def word_sequences(vectorizer: Any, texts: Sequence[str]) -> list[Indices]:
    """The words of each text by number, in the order of the text; other words and stop words are left out."""
    if tuple(getattr(vectorizer, "ngram_range", (1, 1))) != (1, 1):
        raise ValueError("coherence over a window needs single words; got a vocabulary with expressions of several.")
    analyze, vocabulary = vectorizer.build_analyzer(), vectorizer.vocabulary_
    return [np.array([vocabulary[w] for w in analyze(text) if w in vocabulary], dtype=np.intp) for text in texts]

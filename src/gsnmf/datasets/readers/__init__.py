"""Readers of matrices with the names of their rows and columns: one function for every format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.annotated import read_h5ad
from gsnmf.datasets.readers.arrays import read_cluto, read_mat, read_matrix_market, read_npy, read_npz
from gsnmf.datasets.readers.files import STANDARD_INPUT, FileError, ReadOptions, read_lines
from gsnmf.datasets.readers.folders import IMAGE_SUFFIXES, TEXT_SUFFIXES, files_below, read_documents, read_images
from gsnmf.datasets.readers.tables import read_csv, read_parquet, read_tsv
from gsnmf.matrix.input import MissingValues, Negative, check_missing_values
from gsnmf.matrix.validation import check_count

__all__ = ["FORMATS", "STREAMED_FORMATS", "FileError", "Format", "LabelledMatrix", "format_of", "read_matrix"]


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes
    ----------
    suffixes : tuple of str
        Endings of its files.
    read : callable
        Reads a path with `ReadOptions` as a `LabelledMatrix`.
    options : tuple of str
        Options of `read_matrix` that have an effect on this format only, or on few formats.
    streamed : bool
        Whether it can be read from standard input.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], LabelledMatrix]
    options: tuple[str, ...] = ()
    streamed: bool = False


_PIXELS = ("image_shape", "image_order")
_ARRAY = (*_PIXELS, "cube")
_TABLE = (*_PIXELS, "header", "row_names", "encoding")

FORMATS = {
    "npz": Format((".npz",), read_npz, ("key", *_ARRAY)),
    "npy": Format((".npy",), read_npy, _ARRAY),
    "mtx": Format((".mtx", ".mtx.gz"), read_matrix_market, _PIXELS, streamed=True),
    "mat": Format((".mat",), read_mat, ("key", *_ARRAY)),
    "cluto": Format((".cluto",), read_cluto, _PIXELS, streamed=True),
    "csv": Format((".csv", ".csv.gz"), read_csv, _TABLE, streamed=True),
    "tsv": Format((".tsv", ".tsv.gz", ".tab"), read_tsv, _TABLE, streamed=True),
    "parquet": Format((".parquet",), read_parquet, _PIXELS),
    "h5ad": Format((".h5ad",), read_h5ad, ("key", *_PIXELS)),
    "images": Format((), read_images, ("image_shape",)),
    "text": Format(
        (*TEXT_SUFFIXES, ".txt.gz"), read_documents, ("encoding", "stop_words", "min_documents"), streamed=True
    ),
}
"""The formats that `read_matrix` knows, by name."""

STREAMED_FORMATS = tuple(name for name, form in FORMATS.items() if form.streamed)
"""Names of the formats that can be read from standard input."""


def read_matrix(
    path: str | Path,
    *,
    format: str | None = None,
    rows: str | Path | None = None,
    columns: str | Path | None = None,
    key: str | None = None,
    header: bool | None = None,
    row_names: bool | None = None,
    encoding: str = "utf-8",
    stop_words: Literal["english"] | None = "english",
    min_documents: int = 2,
    image_shape: tuple[int, int] | None = None,
    image_order: Literal["C", "F"] = "C",
    cube: bool = False,
    missing_values: MissingValues = None,
    negative: Negative = "error",
) -> LabelledMatrix:
    """Read a nonnegative matrix with the names of its rows and columns.

    Parameters
    ----------
    path : str or Path
        A file, a folder of images (one image per row, in grey), a folder of texts (one document per row), or ``-`` for
        standard input, which needs a ``format``.
    format : str, optional
        ``"npz"``, ``"npy"``, ``"mtx"``, ``"mat"``, ``"cluto"``, ``"csv"``, ``"tsv"``, ``"parquet"``, ``"h5ad"``,
        ``"images"`` or ``"text"``; by default the one that the ending or the content of the folder says. A ``.txt``
        file has one document per line. ``.npy`` files are mapped to memory, not read.
    rows, columns : str or Path, optional
        Files with one name per line, in UTF-8; an empty line leaves a row or column without a name.
    key : str, optional
        Which array of an ``.npz`` or MATLAB file, or which layer of an AnnData file; needed if there are several.
    header : bool, optional
        Whether the first line of a table names its columns; by default if it is not all numbers. Tables that can be
        read in two ways are an error that asks for this or for ``row_names``.
    row_names : bool, optional
        Whether the first column of a table names its rows; by default if it is not all numbers.
    encoding : str
        Of text.
    stop_words : {"english", None}
        Words of documents to leave out.
    min_documents : int
        Leave out words that occur in fewer documents.
    image_shape : pair of int, optional
        Height and width of images. Images of a folder are resized to it; for a matrix it says that one axis holds
        pixels; for an array with three dimensions it says that it is a stack of images.
    image_order : {"C", "F"}
        Whether the pixels of an image in a matrix follow each other row by row or column by column.
    cube : bool
        Whether the file holds a spectral image, height x width x bands, to be read as pixels x bands. Without this and
        without ``image_shape`` three dimensions are an error.
    missing_values : numpy.nan, "unstored" or None
        Which entries are missing: NaN and the empty cells of a table, entries that a sparse matrix does not store, or
        none.
    negative : {"error", "clip"}
        Refuse negative entries, or set them to zero; ``clipped_share`` of the result says how much of the norm.

    Returns
    -------
    LabelledMatrix

    Raises
    ------
    FileError
        A `ValueError` for a file that does not fit its format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gsnmf.datasets import read_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "table.csv")
    ...     _ = table.write_text(",apples,pears\\nmonday,1,0\\ntuesday,2,3\\n")
    ...     data = read_matrix(table)
    >>> data.row_names, data.column_names
    (('monday', 'tuesday'), ('apples', 'pears'))
    >>> data.matrix
    array([[1., 0.],
           [2., 3.]])
    """
    source = Path(path)
    check_count(min_documents, "min_documents")
    if stop_words not in ("english", None):
        raise ValueError(f"stop_words must be 'english' or None; got {stop_words!r}.")
    if image_order not in ("C", "F"):
        raise ValueError(f"image_order must be 'C' or 'F'; got {image_order!r}.")
    if cube and image_shape is not None:
        raise ValueError(f"image_shape must be None with cube=True, which has its own; got {image_shape}.")
    blank_is_missing = check_missing_values(missing_values) == "nan"
    form = format_of(source, format)
    data = FORMATS[form].read(
        source,
        ReadOptions(key, header, row_names, encoding, stop_words, min_documents, image_shape, cube, blank_is_missing),
    )
    if image_shape is not None and data.image_shape is None:
        data = data.with_image_shape(image_shape)
    if form != "images":
        data = replace(data, image_order=image_order)
    data = replace(data, source="standard input" if source == STANDARD_INPUT else str(source))
    if rows is not None:
        data = replace(data, row_names=_read_names(rows, data.matrix.shape[0], "rows"))
    if columns is not None:
        data = replace(data, column_names=_read_names(columns, data.matrix.shape[1], "columns"))
    return data.checked(missing_values=missing_values, negative=negative)


def _read_names(path: str | Path, length: int, axis: str) -> tuple[str, ...]:
    names = read_lines(path)
    if len(names) != length:
        raise FileError(f"{path}: must have one name per line for {length} {axis}; got {len(names)}.")
    return names


def format_of(path: Path, format: str | None = None) -> str:
    """The name of the format of a file, a folder or standard input: the one given, or what its ending says."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    if path == STANDARD_INPUT:
        if format not in STREAMED_FORMATS:
            raise ValueError(
                f"format must be one of {', '.join(STREAMED_FORMATS)} for standard input; got {format or 'none'}."
            )
        return format
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if path.is_dir():
        return _format_of_folder(path, format)
    if format == "images":
        raise FileError(f"{path}: images are read from a folder; this is a file.")
    if format is not None:
        return format
    for name, form in FORMATS.items():
        if form.suffixes and path.name.lower().endswith(form.suffixes):
            return name
    endings = ", ".join(ending for form in FORMATS.values() for ending in form.suffixes)
    raise FileError(
        f"{path}: the ending must be one of {endings}, or the format be named; got {path.suffix or 'none'}."
    )


def _format_of_folder(folder: Path, format: str | None) -> str:
    if format not in (None, "images", "text"):
        raise FileError(f"{folder}: a folder is read as images or text; got format {format}.")
    if format is not None:
        return format
    endings = {"images": IMAGE_SUFFIXES, "text": TEXT_SUFFIXES}
    found = [name for name in endings if files_below(folder, endings[name])]
    if len(found) > 1:
        raise FileError(f"{folder}: holds images and texts; name the format, images or text.")
    if not found:
        raise FileError(
            f"{folder}: holds neither images ({', '.join(IMAGE_SUFFIXES)}) nor texts ({', '.join(TEXT_SUFFIXES)})."
        )
    return found[0]

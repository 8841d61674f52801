"""Readers of matrices with the names of their rows and columns: one function for every format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gsnmf.datasets.readers.arrays import Layout, read_cluto, read_mat, read_npy, read_npz
from gsnmf.datasets.readers.files import STANDARD_INPUT, FileError, read_lines
from gsnmf.datasets.readers.images import IMAGE_SUFFIXES, read_image_folder
from gsnmf.datasets.readers.labelled import LabelledMatrix
from gsnmf.datasets.readers.matrix_market import read_matrix_market
from gsnmf.datasets.readers.tables import read_csv, read_h5ad, read_parquet
from gsnmf.datasets.readers.text import TEXT_SUFFIXES, read_text_folder, read_text_lines
from gsnmf.matrix.input import MissingValues, Negative, check_missing_values
from gsnmf.matrix.validation import check_count
from gsnmf.support.arrays import Axis

__all__ = ["FORMATS", "STREAMED_FORMATS", "FileError", "LabelledMatrix", "format_of", "read_matrix", "read_names"]


@dataclass(frozen=True)
class _Options:
    """What readers may ask; see `read_matrix`."""

    key: str | None
    header: bool | None
    row_names: bool | None
    encoding: str
    stop_words: Literal["english"] | None
    min_documents: int
    image_shape: tuple[int, int] | None
    cube: bool
    with_holes: bool

    @property
    def layout(self) -> Layout:
        """How to read an array with three dimensions."""
        return Layout(self.image_shape, self.cube)


@dataclass(frozen=True)
class _Format:
    """A format: the endings of its files, whether it can be streamed, and its reader."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, _Options], LabelledMatrix]
    streamed: bool = False


def _read_text(path: Path, options: _Options) -> LabelledMatrix:
    if path.is_dir():
        return read_text_folder(
            path,
            _files(path, TEXT_SUFFIXES),
            encoding=options.encoding,
            stop_words=options.stop_words,
            min_documents=options.min_documents,
        )
    return read_text_lines(
        path, encoding=options.encoding, stop_words=options.stop_words, min_documents=options.min_documents
    )


def _read_table(delimiter: str | None) -> Callable[[Path, _Options], LabelledMatrix]:
    return lambda path, o: read_csv(
        path,
        delimiter=delimiter,
        header=o.header,
        row_names=o.row_names,
        encoding=o.encoding,
        blank_is_missing=o.with_holes,
    )


_FORMATS: dict[str, _Format] = {
    "npz": _Format((".npz",), lambda path, o: read_npz(path, o.key, o.layout)),
    "npy": _Format((".npy",), lambda path, o: read_npy(path, o.layout)),
    "mtx": _Format((".mtx", ".mtx.gz"), lambda path, o: read_matrix_market(path), streamed=True),
    "mat": _Format((".mat",), lambda path, o: read_mat(path, o.key, o.layout)),
    "cluto": _Format((".cluto",), lambda path, o: read_cluto(path), streamed=True),
    "csv": _Format((".csv", ".csv.gz"), _read_table(None), streamed=True),
    "tsv": _Format((".tsv", ".tsv.gz", ".tab"), _read_table("\t"), streamed=True),
    "parquet": _Format((".parquet",), lambda path, o: read_parquet(path)),
    "h5ad": _Format((".h5ad",), lambda path, o: read_h5ad(path, o.key)),
    "images": _Format((), lambda path, o: read_image_folder(path, _files(path, IMAGE_SUFFIXES), o.image_shape)),
    "text": _Format((*TEXT_SUFFIXES, ".txt.gz"), _read_text, streamed=True),
}

FORMATS = tuple(_FORMATS)
"""Names of the formats that `read_matrix` knows."""

STREAMED_FORMATS = tuple(name for name, form in _FORMATS.items() if form.streamed)
"""Those that can be read from standard input."""


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
        Whether the file holds a spectral image, height x width x bands, to be read as pixels x bands; see also
        `gsnmf.applications.unmix`. Without this and without ``image_shape`` three dimensions are an error.
    missing_values : numpy.nan, "unstored" or None
        What is missing: NaN and the empty cells of a table, what a sparse matrix does not store, or nothing.
    negative : {"error", "clip"}
        Refuse negative entries, or set them to zero; ``clipped_share`` of the result says how much that was.

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
    form = _FORMATS[format_of(source, format)]
    if cube and image_shape is not None:
        raise ValueError(f"image_shape must be None with cube=True, which has its own; got {image_shape}.")
    with_holes = check_missing_values(missing_values) == "nan"
    options = _Options(key, header, row_names, encoding, stop_words, min_documents, image_shape, cube, with_holes)
    data = form.read(source, options)
    if image_shape is not None and data.image_shape is None:
        data = data.with_image_shape(image_shape)
    if form is not _FORMATS["images"]:
        data = replace(data, image_order=image_order)
    name = "standard input" if source == STANDARD_INPUT else str(source)
    named = replace(data, source=name)
    for axis, names in (("rows", rows), ("columns", columns)):
        if names is not None:
            named = _with_names(named, axis, Path(names))  # type: ignore[arg-type]
    return named.checked(missing_values=missing_values, negative=negative)


def read_names(path: str | Path) -> tuple[str, ...]:
    """Names from a file in UTF-8, one per line."""
    return read_lines(Path(path))


def _with_names(data: LabelledMatrix, axis: Axis, path: Path) -> LabelledMatrix:
    names = read_names(path)
    length = data.matrix.shape[0 if axis == "rows" else 1]
    if len(names) != length:
        raise FileError(f"{path}: must have one name per line for {length} {axis}; got {len(names)}.")
    return replace(data, row_names=names) if axis == "rows" else replace(data, column_names=names)


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
    return format or _format_of_name(path)


def _format_of_name(path: Path) -> str:
    for name, form in _FORMATS.items():
        if path.name.lower().endswith(form.suffixes or ("/",)):
            return name
    endings = ", ".join(ending for form in _FORMATS.values() for ending in form.suffixes)
    raise FileError(
        f"{path}: the ending must be one of {endings}, or the format be named; got {path.suffix or 'none'}."
    )


def _format_of_folder(folder: Path, format: str | None) -> str:
    if format is None:
        found = [
            name for name, endings in (("images", IMAGE_SUFFIXES), ("text", TEXT_SUFFIXES)) if _files(folder, endings)
        ]
        if len(found) > 1:
            raise FileError(f"{folder}: holds images and texts; name the format, images or text.")
        if not found:
            raise FileError(
                f"{folder}: holds neither images ({', '.join(IMAGE_SUFFIXES)}) nor texts ({', '.join(TEXT_SUFFIXES)})."
            )
        return found[0]
    if format not in ("images", "text"):
        raise FileError(f"{folder}: a folder is read as images or text; got format {format}.")
    return format


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Files below a folder with one of the endings, in order; hidden ones are left out."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in endings and file.is_file() and not file.name.startswith(".")
    )

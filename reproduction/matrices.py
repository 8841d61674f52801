"""The matrices of the paper's tables, prepared as there, and a few of the applications that it names.

The files themselves are not part of the library. They are looked for in the folder that the environment variable
``GSNMF_DATA`` names (`reproduction.files`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Floats, RawMatrix
from reproduction.files import DATA_VARIABLE, data_file, data_folder, describe, read_arrays
from reproduction.published import DOCUMENT_NAMES, FACE_NAMES, published

__all__ = [
    "APPLICATION_NAMES",
    "DATA_VARIABLE",
    "PaperMatrix",
    "data_folder",
    "load",
    "missing_data",
    "paper_matrix",
    "paper_matrix_names",
]

APPLICATION_NAMES = ("jasper", "piano", "swimmer")

_Images = tuple[Floats, tuple[int, int], Literal["C", "F"], Any]

_FILES = {"NG10": ("ng20",), "TDT30": ("tdt2_cai30",), "la12": ("la1", "la2"), "Yale": ("yaleb_48x42",)}
_FILES |= {"piano": ("piano_mary",), **{name: (name.lower(),) for name in ("CBCL", "Frey", "ORL")}}


@dataclass(frozen=True)
class PaperMatrix:
    """A matrix of the paper's tables, or of one of the applications that it names.

    Attributes
    ----------
    name : str
    matrix : csr_array or ndarray, shape (m, n)
        Documents x words as raw counts; pixels x images with columns that sum to one; bands x pixels; frequencies x
        moments.
    rank : int
        The paper's choice, or the number of sources.
    published : dict
        Quality in percent that the paper prints, by method; empty for applications.
    same_matrix : bool
        Whether the truncated SVD confirms that this is the paper's own matrix.
    terms : tuple of str
        Name of each column of a document matrix; empty where unknown.
    labels : int array
        Class of each document, counted from one, or person of each image; empty where unknown.
    class_names : tuple of str
        Name of each class; empty where unknown.
    image_shape : pair of int, or None
        Height and width of an image.
    image_order : {"C", "F"}
        How the pixels of an image are laid out in a column.
    extra : dict
        What else the file of an application holds, such as its ground truth.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.matrices import PaperMatrix
    >>> data = PaperMatrix("identity", np.eye(3), rank=2, published={"SVD": 42.3})
    >>> data.matrix.shape, data.rank
    ((3, 3), 2)
    """

    name: str
    matrix: RawMatrix = field(repr=False)
    rank: int
    published: dict[str, float]
    same_matrix: bool = True
    terms: tuple[str, ...] = field(default=(), repr=False)
    labels: Any = field(default=(), repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)
    image_shape: tuple[int, int] | None = None
    image_order: Literal["C", "F"] = "C"
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best_published(self) -> float:
        """Highest quality that the paper prints for a separable or generalized separable method."""
        return published(self.name).best


def paper_matrix_names() -> tuple[str, ...]:
    """Names that `paper_matrix` takes, in the order of the paper's tables."""
    return (*DOCUMENT_NAMES, *FACE_NAMES)


def load(name: str, *, folder: str | Path | None = None) -> PaperMatrix:
    """Read a data set by its name.

    Parameters
    ----------
    name : str
        One of the paper's tables (``paper_matrix_names``), or ``"jasper"`` (a hyperspectral image, bands x pixels),
        ``"piano"`` (a spectrogram, frequencies x moments) or ``"swimmer"`` (pixels x images). Upper and lower case are
        the same.
    folder : path, optional
        Where the files are; by default the folder that ``GSNMF_DATA`` names.

    Returns
    -------
    PaperMatrix

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message says which, what it should hold, and where such data is published.

    Examples
    --------
    >>> import tempfile
    >>> load("jasper", folder=tempfile.gettempdir())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    FileNotFoundError: The data file jasper.npz is not in ... It should hold `M` (198 bands x 10000 pixels), ...
    """
    names = (*paper_matrix_names(), *APPLICATION_NAMES)
    known = next((known for known in names if known.lower() == str(name).lower()), None)
    if known is None:
        raise ValueError(f"name must be one of {', '.join(names)}; got {name!r}.")
    if known not in APPLICATION_NAMES:
        return paper_matrix(known, folder=folder)
    path = data_folder(folder)
    return _read_application(known, read_arrays(path, _files(known)[0]))


def missing_data(name: str, folder: str | Path | None = None) -> str:
    """Why a data set cannot be read, without naming a folder; empty if its files are available."""
    chosen = folder or os.environ.get(DATA_VARIABLE)
    for file in _files(name):
        if not chosen:
            return f"The data file {file}.npz is needed, and {DATA_VARIABLE} names no folder. {describe(file)}"
        if not (Path(chosen) / f"{file}.npz").is_file():
            return f"The data file {file}.npz is not at hand. {describe(file)}"
    return ""


def paper_matrix(name: str, *, folder: str | Path | None = None, random_state: int = 0) -> PaperMatrix:
    """Read a matrix of the paper's tables.

    Parameters
    ----------
    name : str
        One of ``paper_matrix_names``.
    folder : path, optional
        Where the files are; by default the folder that ``GSNMF_DATA`` names.
    random_state : int
        Seed for drawing ten images per person for the Yale matrix. The paper's own draw is unknown.

    Returns
    -------
    PaperMatrix

    Notes
    -----
    Documents are rows and words columns, as raw counts. Images are columns that sum to one: (pixels + 1) / 256 for
    CBCL and the negative for Frey, as in the paper. TDT30 is a version with more words than the paper's, ORL was
    reduced in another way, and the paper's draw of Yale is unknown: ``same_matrix`` is False for these.
    """
    path = data_folder(folder)
    if name in DOCUMENT_NAMES:
        return _read_documents(name, path)
    if name in FACE_NAMES:
        return _read_faces(name, path, random_state)
    raise ValueError(f"name must be one of {', '.join(paper_matrix_names())}; got {name!r}.")


def _read_documents(name: str, folder: Path) -> PaperMatrix:
    line = published(name)
    files = _files(name)
    counts = sp.vstack([sp.csr_array(sp.load_npz(data_file(folder, file))) for file in files], format="csr")
    arrays = [read_arrays(folder, file) for file in files]
    labels = np.concatenate([part["labels"] for part in arrays])
    terms = _terms(folder, {"NG10": "ng20", "la1": "la12", "la2": "la12"}.get(name, name))
    if name == "NG10":
        counts = counts[labels <= 10]
        occurring = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
        counts, labels = counts[:, occurring], labels[labels <= 10]
        terms = tuple(terms[i] for i in occurring) if terms else ()
    return PaperMatrix(
        name=name,
        matrix=sp.csr_array(counts.astype(np.float64)),
        rank=line.rank,
        published=line.quality,
        same_matrix=name != "TDT30",
        terms=terms,
        labels=labels,
        class_names=tuple(str(label) for label in arrays[0].get("class_names", ())),
    )


def _read_faces(name: str, folder: Path, random_state: int) -> PaperMatrix:
    line = published(name)
    arrays = read_arrays(folder, _files(name)[0])
    prepare: dict[str, Callable[[], _Images]] = {
        "CBCL": lambda: _cbcl(arrays),
        "Frey": lambda: _frey(arrays),
        "Yale": lambda: _yale(arrays, random_state),
        "ORL": lambda: _orl(arrays),
    }
    pixels, shape, order, labels = prepare[name]()
    return PaperMatrix(
        name=name,
        matrix=pixels / pixels.sum(axis=0),
        rank=line.rank,
        published=line.quality,
        same_matrix=name in ("CBCL", "Frey"),
        labels=labels,
        image_shape=shape,
        image_order=order,
    )


def _read_application(name: str, arrays: dict[str, Any]) -> PaperMatrix:
    key, rank, shape = {
        "jasper": ("M", 4, (100, 100)),
        "piano": ("spectrogram", 3, None),
        "swimmer": ("M", 17, (20, 11)),
    }[name]
    matrix = np.ascontiguousarray(arrays.pop(key), dtype=np.float64)
    return PaperMatrix(name, matrix, rank, published={}, image_shape=shape, image_order="F", extra=arrays)


def _files(name: str) -> tuple[str, ...]:
    return _FILES.get(name, (name,))


def _cbcl(arrays: dict[str, Any]) -> _Images:
    return (arrays["pixels"] + 1.0) / 256.0, (19, 19), "F", ()


def _frey(arrays: dict[str, Any]) -> _Images:
    pixels = arrays["pixels"].astype(np.float64)
    return pixels.max() - pixels, (28, 20), "C", ()


def _yale(arrays: dict[str, Any], random_state: int) -> _Images:
    rng = np.random.default_rng(random_state)
    people = arrays["subject"]
    drawn = np.concatenate([rng.choice(np.flatnonzero(people == p), 10, replace=False) for p in np.unique(people)])
    return _as_columns(arrays["images"][drawn]), (48, 42), "C", people[drawn]


def _orl(arrays: dict[str, Any]) -> _Images:
    return _as_columns(arrays["images_23x19"]), (23, 19), "C", arrays["subject"]


def _as_columns(images: Any) -> Floats:
    return np.ascontiguousarray(images.reshape(len(images), -1).T, dtype=np.float64)


def _terms(folder: Path, name: str) -> tuple[str, ...]:
    path = folder / f"{name}.terms.txt"
    return tuple(path.read_text(encoding="utf-8").split("\n")[:-1]) if path.is_file() else ()

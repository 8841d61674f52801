"""The matrices of the paper's tables, prepared as there, with the figures that the paper prints for them.

The files themselves are not part of the library. They are looked for in the folder that the environment variable
``GSNMF_DATA`` names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.validation import Floats, Matrix

DATA_VARIABLE = "GSNMF_DATA"

_COLUMNS = ("gspa", "gs-fgm", "spa-both", "spa-columns", "spa-rows", "nmf", "minimum-volume", "svd")


@dataclass(frozen=True)
class PaperMatrix:
    """A matrix of the paper.

    Attributes
    ----------
    name : str
    matrix : csr_array or ndarray, shape (m, n)
        Documents x words as raw counts, or pixels x images with columns that sum to one.
    rank : int
        The paper's choice.
    published : dict
        Quality in percent that the paper prints, by method.
    same_matrix : bool
        Whether the truncated SVD confirms that this is the paper's own matrix.
    terms : tuple of str
        Name of each column of a document matrix; empty where unknown.
    labels : int array
        Class of each document, or person of each image; empty where unknown.
    image_shape : pair of int, or None
        Height and width of an image.
    image_order : {"C", "F"}
        How the pixels of an image are laid out in a column.
    """

    name: str
    matrix: Matrix = field(repr=False)
    rank: int
    published: dict[str, float]
    same_matrix: bool = True
    terms: tuple[str, ...] = field(default=(), repr=False)
    labels: Any = field(default=(), repr=False)
    image_shape: tuple[int, int] | None = None
    image_order: str = "C"

    @property
    def best_published(self) -> float:
        """Highest quality that the paper prints for a separable or generalized separable method."""
        return max(self.published[method] for method in _COLUMNS[:5])


_DOCUMENTS: dict[str, tuple[int, tuple[float, ...]]] = {
    "NG10": (10, (91.61, 91.64, 91.35, 91.44, 91.49, 92.41, 92.37, 92.46)),
    "TDT30": (30, (14.13, 14.38, 14.03, 14.47, 11.30, 17.69, 17.49, 18.48)),
    "classic": (4, (3.58, 3.58, 3.58, 3.58, 1.48, 5.12, 3.40, 5.20)),
    "reviews": (5, (8.39, 8.39, 8.39, 8.39, 7.69, 13.25, 13.06, 13.48)),
    "ohscal": (10, (10.27, 10.27, 10.27, 10.27, 7.03, 11.23, 11.14, 11.49)),
    "k1b": (6, (5.76, 7.07, 5.62, 5.78, 4.54, 9.42, 9.16, 9.62)),
    "la12": (6, (4.79, 4.79, 4.79, 4.79, 3.02, 7.52, 5.96, 7.78)),
    "hitech": (6, (6.43, 6.43, 4.50, 5.77, 4.86, 8.84, 8.08, 8.99)),
    "la1": (6, (5.05, 5.13, 4.51, 5.11, 3.73, 7.83, 6.50, 8.03)),
    "la2": (6, (5.86, 5.86, 5.86, 5.86, 3.90, 8.11, 7.73, 8.35)),
    "tr41": (10, (52.30, 54.90, 53.31, 53.12, 56.03, 57.19, 56.66, 57.74)),
    "tr45": (10, (69.08, 71.94, 68.20, 68.37, 69.55, 76.22, 76.18, 76.36)),
    "tr11": (9, (74.21, 74.27, 72.14, 72.50, 74.74, 76.33, 76.28, 76.44)),
    "tr23": (6, (63.66, 70.70, 68.46, 65.04, 71.32, 72.73, 72.69, 72.86)),
}

_FACES: dict[str, tuple[int, tuple[float, ...]]] = {
    "CBCL": (49, (80.73, 83.10, 82.29, 79.44, 84.57, 90.51, 90.50, 91.40)),
    "Frey": (50, (82.46, 83.89, 83.43, 80.61, 83.78, 90.40, 90.41, 91.51)),
    "Yale": (38, (57.52, 68.26, 61.10, 60.24, 62.94, 76.94, 76.85, 79.23)),
    "ORL": (40, (81.38, 82.54, 82.32, 82.23, 83.26, 89.47, 89.49, 90.24)),
}


def paper_matrix_names() -> tuple[str, ...]:
    """Names that `paper_matrix` takes, in the order of the paper's tables."""
    return (*_DOCUMENTS, *_FACES)


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder with the data files: the one given, or the one that ``GSNMF_DATA`` names."""
    chosen = folder or os.environ.get(DATA_VARIABLE)
    if not chosen:
        raise FileNotFoundError(
            f"The paper's data files are not part of gsnmf; set {DATA_VARIABLE} to the folder that holds them."
        )
    path = Path(chosen)
    if not path.is_dir():
        raise FileNotFoundError(f"The data folder {path} does not exist or is not a folder.")
    return path


def paper_matrix(name: str, *, folder: str | Path | None = None, random_state: int = 0) -> PaperMatrix:
    """Read a matrix of the paper's tables.

    Parameters
    ----------
    name : str
        One of `paper_matrix_names`.
    folder : path, optional
        Where the files are; by default the folder that ``GSNMF_DATA`` names.
    random_state : int
        Seed of the draw of ten images a person that makes the Yale matrix. The paper's own draw is unknown.

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
    if name in _DOCUMENTS:
        return _read_documents(name, path)
    if name in _FACES:
        return _read_faces(name, path, random_state)
    raise ValueError(f"name must be one of {', '.join(paper_matrix_names())}; got {name!r}.")


def _published(row: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(_COLUMNS, row, strict=True))


def _read_documents(name: str, folder: Path) -> PaperMatrix:
    rank, row = _DOCUMENTS[name]
    files = {"NG10": ["ng20"], "TDT30": ["tdt2_cai30"], "la12": ["la1", "la2"]}.get(name, [name])
    counts = sp.vstack([sp.csr_array(sp.load_npz(_file(folder, file))) for file in files], format="csr")
    labels = np.concatenate([_arrays(folder, file)["labels"] for file in files])
    terms = _terms(folder, {"NG10": "ng20", "la1": "la12", "la2": "la12"}.get(name, name))
    if name == "NG10":
        counts = counts[labels <= 10]
        occurring = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
        counts, labels = counts[:, occurring], labels[labels <= 10]
        terms = tuple(terms[i] for i in occurring) if terms else ()
    return PaperMatrix(
        name=name,
        matrix=sp.csr_array(counts.astype(np.float64)),
        rank=rank,
        published=_published(row),
        same_matrix=name != "TDT30",
        terms=terms,
        labels=labels,
    )


def _read_faces(name: str, folder: Path, random_state: int) -> PaperMatrix:
    rank, row = _FACES[name]
    prepare: dict[str, Callable[[], tuple[Floats, tuple[int, int], str, Any]]] = {
        "CBCL": lambda: _cbcl(_arrays(folder, "cbcl")),
        "Frey": lambda: _frey(_arrays(folder, "frey")),
        "Yale": lambda: _yale(_arrays(folder, "yaleb_48x42"), random_state),
        "ORL": lambda: _orl(_arrays(folder, "orl")),
    }
    pixels, shape, order, labels = prepare[name]()
    return PaperMatrix(
        name=name,
        matrix=pixels / pixels.sum(axis=0),
        rank=rank,
        published=_published(row),
        same_matrix=name in ("CBCL", "Frey"),
        labels=labels,
        image_shape=shape,
        image_order=order,
    )


def _cbcl(arrays: dict[str, Any]) -> tuple[Floats, tuple[int, int], str, Any]:
    return (arrays["pixels"] + 1.0) / 256.0, (19, 19), "F", ()


def _frey(arrays: dict[str, Any]) -> tuple[Floats, tuple[int, int], str, Any]:
    pixels = arrays["pixels"].astype(np.float64)
    return pixels.max() - pixels, (28, 20), "C", ()


def _yale(arrays: dict[str, Any], random_state: int) -> tuple[Floats, tuple[int, int], str, Any]:
    rng = np.random.default_rng(random_state)
    people = arrays["subject"]
    drawn = np.concatenate([rng.choice(np.flatnonzero(people == p), 10, replace=False) for p in np.unique(people)])
    return _as_columns(arrays["images"][drawn]), (48, 42), "C", people[drawn]


def _orl(arrays: dict[str, Any]) -> tuple[Floats, tuple[int, int], str, Any]:
    return _as_columns(arrays["images_23x19"]), (23, 19), "C", arrays["subject"]


def _as_columns(images: Any) -> Floats:
    return np.ascontiguousarray(images.reshape(len(images), -1).T, dtype=np.float64)


def _file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"The data file {path.name} is not in {folder}.")
    return path


def _arrays(folder: Path, name: str) -> dict[str, Any]:
    with np.load(_file(folder, name)) as arrays:
        return dict(arrays)


def _terms(folder: Path, name: str) -> tuple[str, ...]:
    path = folder / f"{name}.terms.txt"
    return tuple(path.read_text(encoding="utf-8").split("\n")[:-1]) if path.is_file() else ()

"""The matrices of the paper's tables, prepared as there, and a few of the applications that it names.

The files themselves are not part of the repository. They are looked for in the folder that the environment variable
``GSNMF_DATA`` names; an error says what a missing file should hold and where such data is published.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Floats, RawMatrix
from reproduction.published import DOCUMENT_NAMES, FACE_NAMES, published

DATA_VARIABLE = "GSNMF_DATA"
PAPER_NAMES = (*DOCUMENT_NAMES, *FACE_NAMES)
"""Matrices of the paper's tables, in their order."""
APPLICATION_NAMES = ("jasper", "piano", "swimmer")

_CLUTO = "the CLUTO collections, prepared by Zhong and Ghosh (2005): glaros.dtc.umn.edu/gkhome/cluto/cluto/download"
_BOOK = "the code of N. Gillis, Nonnegative Matrix Factorization: gitlab.com/ngillis/nmfbook"


def _counts(documents: int, words: int, classes: int) -> str:
    return (
        f"word counts of {documents} documents x {words} words as scipy.sparse.save_npz writes them, with `labels` "
        f"(classes 1 to {classes})"
    )


FILES: dict[str, tuple[str, str]] = {
    "classic": (_counts(7094, 41681, 4), _CLUTO),
    "reviews": (_counts(4069, 18483, 5), _CLUTO),
    "sports": (_counts(8580, 14870, 7), _CLUTO),
    "ohscal": (_counts(11162, 11465, 10), _CLUTO),
    "k1b": (_counts(2340, 21819, 6), _CLUTO),
    "hitech": (_counts(2301, 10080, 6), _CLUTO),
    "la1": (_counts(3204, 31472, 6), _CLUTO),
    "la2": (_counts(3075, 31472, 6), _CLUTO),
    "tr41": (_counts(878, 7453, 10), _CLUTO),
    "tr45": (_counts(690, 8261, 10), _CLUTO),
    "tr11": (_counts(414, 6424, 9), _CLUTO),
    "tr23": (_counts(204, 5831, 6), _CLUTO),
    "ng20": (_counts(19949, 43586, 20), "the 20 Newsgroups messages: qwone.com/~jason/20Newsgroups"),
    "tdt2_cai30": (
        _counts(9394, 36771, 30),
        "TDT2 as prepared by Deng Cai: www.cad.zju.edu.cn/home/dengcai/Data/TextData.html",
    ),
    "cbcl": (
        "`pixels` (361 x 2429, 0 to 255, one image per column)",
        "CBCL face database 1, MIT Center for Biological and Computational Learning: cbcl.mit.edu",
    ),
    "frey": ("`pixels` (560 x 1965, 0 to 255, one image per column)", "cs.nyu.edu/~roweis/data.html"),
    "yaleb_48x42": (
        "`images` (2414 x 48 x 42) and `subject` (a number per person)",
        "the cropped extended Yale face database B: vision.ucsd.edu/~leekc/ExtYaleDatabase",
    ),
    "orl": (
        "`images_23x19` (400 x 23 x 19) and `subject` (1 to 40)",
        "the database of faces of AT&T Laboratories Cambridge: cam-orl.co.uk/facedatabase.html",
    ),
    "jasper": (
        "`M` (198 bands x 10000 pixels), `W_true` (198 x 4), `H_true` (4 x 10000), `names` and `bands`",
        "Jasper Ridge with its ground truth: rslab.ut.ac.ir/data",
    ),
    "piano_mary": ("`waveform` (75200 samples at 16 kHz, 16 bit)", _BOOK),
    "swimmer": ("`M` (220 pixels x 256 images, 0 or 1)", _BOOK),
}
"""What each file should hold and where such data is published, by its name without the ending .npz."""

_FILES_OF = {"NG10": ("ng20",), "TDT30": ("tdt2_cai30",), "la12": ("la1", "la2"), "Yale": ("yaleb_48x42",)}
_FILES_OF |= {"piano": ("piano_mary",), **{name: (name.lower(),) for name in ("CBCL", "Frey", "ORL")}}
_WORDS_OF = {"NG10": "ng20", "la1": "la12", "la2": "la12"}


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


def load(name: str, *, folder: str | Path | None = None, random_state: int = 0) -> PaperMatrix:
    """Read a data set by its name.

    Parameters
    ----------
    name : str
        One of the paper's tables (``PAPER_NAMES``), or ``"jasper"`` (a hyperspectral image, bands x pixels),
        ``"piano"`` (a spectrogram, frequencies x moments) or ``"swimmer"`` (pixels x images). Upper and lower case are
        the same.
    folder : path, optional
        Where the files are; by default the folder that ``GSNMF_DATA`` names.
    random_state : int
        Seed for drawing ten images per person for the Yale matrix. The paper's own draw is unknown.

    Returns
    -------
    PaperMatrix

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message says which, what it should hold, and where such data is published.

    Notes
    -----
    Documents are rows and words columns, as raw counts. Images are columns that sum to one: (pixels + 1) / 256 for
    CBCL and the negative for Frey, as in the paper. TDT30 is a version with more words than the paper's, ORL was
    reduced in another way, and the paper's draw of Yale is unknown: ``same_matrix`` is False for these.

    Examples
    --------
    >>> import tempfile
    >>> load("jasper", folder=tempfile.gettempdir())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    FileNotFoundError: The data file jasper.npz is not in ... It should hold `M` (198 bands x 10000 pixels), ...
    """
    names = (*PAPER_NAMES, *APPLICATION_NAMES)
    known = next((known for known in names if known.lower() == str(name).lower()), None)
    if known is None:
        raise ValueError(f"name must be one of {', '.join(names)}; got {name!r}.")
    path = data_folder(folder)
    if known in DOCUMENT_NAMES:
        return _documents(known, path)
    (file,) = _FILES_OF.get(known, (known,))
    arrays = _read(path, file)
    return _faces(known, arrays, random_state) if known in FACE_NAMES else _application(known, arrays)


def missing_data(name: str, folder: str | Path | None = None) -> str:
    """Why a data set cannot be read, without naming a folder; empty if its files are available."""
    chosen = folder or os.environ.get(DATA_VARIABLE)
    for file in _FILES_OF.get(name, (name,)):
        if not chosen:
            return f"The data file {file}.npz is needed, and {DATA_VARIABLE} names no folder. {_describe(file)}"
        if not (Path(chosen) / f"{file}.npz").is_file():
            return f"The data file {file}.npz is not at hand. {_describe(file)}"
    return ""


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


def _describe(file: str) -> str:
    contents, source = FILES[file]
    return f"It should hold {contents}; published: {source}."


def _path(folder: Path, file: str) -> Path:
    path = folder / f"{file}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"The data file {path.name} is not in {folder}. {_describe(file)}")
    return path


def _read(folder: Path, file: str) -> dict[str, Any]:
    with np.load(_path(folder, file)) as arrays:
        return dict(arrays)


def _documents(name: str, folder: Path) -> PaperMatrix:
    files = _FILES_OF.get(name, (name,))
    counts = sp.vstack([sp.csr_array(sp.load_npz(_path(folder, file))) for file in files], format="csr")
    arrays = [_read(folder, file) for file in files]
    labels = np.concatenate([part["labels"] for part in arrays])
    words = folder / f"{_WORDS_OF.get(name, name)}.terms.txt"
    terms = tuple(words.read_text(encoding="utf-8").split("\n")[:-1]) if words.is_file() else ()
    if name == "NG10":
        counts = counts[labels <= 10]
        occurring = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
        counts, labels = counts[:, occurring], labels[labels <= 10]
        terms = tuple(terms[i] for i in occurring) if terms else ()
    line = published(name)
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


def _faces(name: str, arrays: dict[str, Any], random_state: int) -> PaperMatrix:
    order: Literal["C", "F"] = "F" if name == "CBCL" else "C"
    labels: Any = ()
    if name == "CBCL":
        pixels, shape = (arrays["pixels"] + 1.0) / 256.0, (19, 19)
    elif name == "Frey":
        pixels, shape = float(arrays["pixels"].max()) - arrays["pixels"].astype(np.float64), (28, 20)
    elif name == "Yale":
        rng, people = np.random.default_rng(random_state), arrays["subject"]
        drawn = np.concatenate([rng.choice(np.flatnonzero(people == p), 10, replace=False) for p in np.unique(people)])
        pixels, shape, labels = _as_columns(arrays["images"][drawn]), (48, 42), people[drawn]
    else:
        pixels, shape, labels = _as_columns(arrays["images_23x19"]), (23, 19), arrays["subject"]
    line = published(name)
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


def _as_columns(images: Any) -> Floats:
    return np.ascontiguousarray(images.reshape(len(images), -1).T, dtype=np.float64)


def _application(name: str, arrays: dict[str, Any]) -> PaperMatrix:
    key, rank, shape = {
        "jasper": ("M", 4, (100, 100)),
        "piano": ("spectrogram", 3, None),
        "swimmer": ("M", 17, (20, 11)),
    }[name]
    matrix = np.ascontiguousarray(arrays.pop(key), dtype=np.float64)
    return PaperMatrix(name, matrix, rank, published={}, image_shape=shape, image_order="F", extra=arrays)

"""Data files that the library reads but does not include: what each holds and where such data is published."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DATA_VARIABLE = "GSNMF_DATA"


@dataclass(frozen=True)
class DataFile:
    """A file and what is in it."""

    contents: str
    published: str


_CLUTO = "the CLUTO collections, prepared by Zhong and Ghosh (2005): glaros.dtc.umn.edu/gkhome/cluto/cluto/download"


def _counts(documents: int, words: int, classes: int) -> DataFile:
    return DataFile(
        f"word counts of {documents} documents x {words} words as scipy.sparse.save_npz writes them, with `labels` "
        f"(classes 1 to {classes})",
        _CLUTO,
    )


FILES: dict[str, DataFile] = {
    "classic": _counts(7094, 41681, 4),
    "reviews": _counts(4069, 18483, 5),
    "sports": _counts(8580, 14870, 7),
    "ohscal": _counts(11162, 11465, 10),
    "k1b": _counts(2340, 21819, 6),
    "hitech": _counts(2301, 10080, 6),
    "la1": _counts(3204, 31472, 6),
    "la2": _counts(3075, 31472, 6),
    "tr41": _counts(878, 7453, 10),
    "tr45": _counts(690, 8261, 10),
    "tr11": _counts(414, 6424, 9),
    "tr23": _counts(204, 5831, 6),
    "ng20": DataFile(
        _counts(19949, 43586, 20).contents,
        "the 20 Newsgroups messages: qwone.com/~jason/20Newsgroups",
    ),
    "tdt2_cai30": DataFile(
        _counts(9394, 36771, 30).contents,
        "TDT2 as prepared by Deng Cai: www.cad.zju.edu.cn/home/dengcai/Data/TextData.html",
    ),
    "cbcl": DataFile(
        "`pixels` (361 x 2429, 0 to 255, one image per column)",
        "CBCL face database 1, MIT Center for Biological and Computational Learning: cbcl.mit.edu",
    ),
    "frey": DataFile("`pixels` (560 x 1965, 0 to 255, one image per column)", "cs.nyu.edu/~roweis/data.html"),
    "yaleb_48x42": DataFile(
        "`images` (2414 x 48 x 42) and `subject` (a number per person)",
        "the cropped extended Yale face database B: vision.ucsd.edu/~leekc/ExtYaleDatabase",
    ),
    "orl": DataFile(
        "`images_23x19` (400 x 23 x 19) and `subject` (1 to 40)",
        "the database of faces of AT&T Laboratories Cambridge: cam-orl.co.uk/facedatabase.html",
    ),
    "jasper": DataFile(
        "`M` (198 bands x 10000 pixels), `W_true` (198 x 4), `H_true` (4 x 10000), `names` and `bands`",
        "Jasper Ridge with its ground truth: rslab.ut.ac.ir/data",
    ),
    "piano_mary": DataFile(
        "`waveform` (75200 samples at 16 kHz, 16 bit)",
        "the code of N. Gillis, Nonnegative Matrix Factorization: gitlab.com/ngillis/nmfbook",
    ),
    "swimmer": DataFile(
        "`M` (220 pixels x 256 images, 0 or 1)",
        "the code of N. Gillis, Nonnegative Matrix Factorization: gitlab.com/ngillis/nmfbook",
    ),
}
"""By the name of the file without its ending, .npz."""


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


def data_file(folder: Path, name: str) -> Path:
    """The path of a file, or an error that says what it should hold and where to look for it."""
    path = folder / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"The data file {path.name} is not in {folder}. {describe(name)}")
    return path


def describe(name: str) -> str:
    """What a file should hold, and where such data is published."""
    file = FILES[name]
    return f"It should hold {file.contents}; published: {file.published}."


def read_arrays(folder: Path, name: str) -> dict[str, Any]:
    """All arrays of a file by their names."""
    with np.load(data_file(folder, name)) as arrays:
        return dict(arrays)

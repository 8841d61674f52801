"""Reader of a folder of images, as images x pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gsnmf.datasets.readers.files import FileError, reading
from gsnmf.datasets.readers.labelled import LabelledMatrix
from gsnmf.support.arrays import Floats
from gsnmf.support.optional import import_optional

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp", ".tif", ".tiff", ".gif", ".webp")


def read_image_folder(folder: Path, files: list[Path], image_shape: tuple[int, int] | None = None) -> LabelledMatrix:
    """Images as rows, in grey from 0 to 1, called by their paths in the folder.

    Parameters
    ----------
    folder : Path
    files : list of Path
    image_shape : pair of int, optional
        Height and width to which all are brought; without it they must agree.
    """
    if not files:
        raise FileError(f"{folder}: holds no images.")
    rows: list[Floats] = []
    shape = image_shape
    for file in files:
        grey = _read_grey(file, image_shape)
        shape = shape or (grey.shape[0], grey.shape[1])
        if grey.shape != shape:
            raise FileError(
                f"{file}: images must have one size, here {shape[0]} x {shape[1]} as {files[0].name} has; got "
                f"{grey.shape[0]} x {grey.shape[1]}. An image shape brings them all to that size."
            )
        rows.append(grey.ravel())
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return LabelledMatrix(np.array(rows), names, (), "image", "pixel", image_shape=shape)


def _read_grey(file: Path, image_shape: tuple[int, int] | None) -> Floats:
    pillow = import_optional("PIL.Image", "reading images", 'pip install "gsnmf[files]"')
    with reading(file, "an image"), pillow.open(file) as image:
        deep = image.mode.startswith(("I", "F"))
        grey = image if deep else image.convert("L")
        if image_shape is not None:
            grey = grey.resize((image_shape[1], image_shape[0]))
        values = np.asarray(grey, dtype=np.float64)
    return values / (65535.0 if deep else 255.0)

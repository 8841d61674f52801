"""Documents and images, one per row: a folder of files, or a text file with one document per line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.files import FileError, ReadOptions, open_text, read_lines, reading, shortened
from gsnmf.support.arrays import Floats
from gsnmf.support.optional import import_optional

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp", ".tif", ".tiff", ".gif", ".webp")
TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst")

_NAME_LENGTH = 60


def files_below(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Files in a folder and its subfolders with one of these endings, sorted, without hidden ones."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in endings and file.is_file() and not file.name.startswith(".")
    )


def read_documents(path: Path, options: ReadOptions) -> LabelledMatrix:
    """Count words as documents x words, with scikit-learn.

    The documents are the files of a folder, named by their paths in it without the ending, or the lines of a file that
    are not empty, named by their number and first words.
    """
    if path.is_dir():
        files = files_below(path, TEXT_SUFFIXES)
        names = [file.relative_to(path).with_suffix("").as_posix() for file in files]
        texts = []
        for file in files:
            with open_text(file, options.encoding) as stream:
                texts.append(stream.read())
    else:
        lines = [(n, line) for n, line in enumerate(read_lines(path, options.encoding), 1) if line.strip()]
        names = [f"{n}: {shortened(line, _NAME_LENGTH)}" for n, line in lines]
        texts = [line for _, line in lines]
    if not texts:
        raise FileError(f"{path}: holds no documents.")
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import, and only documents need it

    # a word of one document among two cannot be required to occur in more than there are
    vectorizer = CountVectorizer(stop_words=options.stop_words, min_df=min(options.min_documents, len(texts)))
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise FileError(
            f"{path}: no word is left of {len(texts)} documents that is no stop word and occurs in "
            f"{options.min_documents} of them; ask for fewer, or keep stop words."
        ) from error
    words = tuple(vectorizer.get_feature_names_out().tolist())
    return LabelledMatrix(sp.csr_array(counts), tuple(names), words, "document", "word")


def read_images(folder: Path, options: ReadOptions) -> LabelledMatrix:
    """Images as rows of grey values from 0 to 1, named by their paths in the folder.

    All images are resized to ``options.image_shape``; without it they must have one size.
    """
    files = files_below(folder, IMAGE_SUFFIXES)
    if not files:
        raise FileError(f"{folder}: holds no images.")
    rows: list[Floats] = []
    shape = options.image_shape
    for file in files:
        grey = _read_grey(file, options.image_shape)
        shape = shape or (grey.shape[0], grey.shape[1])
        if grey.shape != shape:
            raise FileError(
                f"{file}: images must have one size, here {shape[0]} x {shape[1]} as {files[0].name} has; got "
                f"{grey.shape[0]} x {grey.shape[1]}. image_shape=(height, width) resizes them all."
            )
        rows.append(grey.ravel())
    names = tuple(file.relative_to(folder).as_posix() for file in files)
    return LabelledMatrix(np.array(rows), names, (), "image", "pixel", image_shape=shape)


def _read_grey(file: Path, image_shape: tuple[int, int] | None) -> Floats:
    pillow = import_optional("PIL.Image", "reading images", 'pip install "gsnmf[files]"')
    with reading(file, "an image"), pillow.open(file) as image:
        deep = image.mode.startswith(("I", "F"))  # 16 bits per pixel, which "L" would cut to 8
        grey = image if deep else image.convert("L")
        if image_shape is not None:
            grey = grey.resize((image_shape[1], image_shape[0]))
        values = np.asarray(grey, dtype=np.float64)
    return values / (65535.0 if deep else 255.0)

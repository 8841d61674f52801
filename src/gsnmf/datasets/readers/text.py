"""Readers of text documents, counted as documents x words by scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import scipy.sparse as sp

from gsnmf.datasets.readers.files import FileError, open_text, read_lines
from gsnmf.datasets.readers.labelled import LabelledMatrix

TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst")

_NAME_LENGTH = 60


def read_text_lines(
    path: Path, *, encoding: str, stop_words: Literal["english"] | None, min_documents: int
) -> LabelledMatrix:
    """A file with one document per line; empty lines are skipped. A document is named by its line and first words."""
    numbered = [(number, line) for number, line in enumerate(read_lines(path, encoding), 1) if line.strip()]
    names = [f"{number}: {_beginning(line)}" for number, line in numbered]
    return _count(path, names, [line for _, line in numbered], stop_words, min_documents)


def read_text_folder(
    folder: Path, files: list[Path], *, encoding: str, stop_words: Literal["english"] | None, min_documents: int
) -> LabelledMatrix:
    """A folder with one document per file, called by its path in the folder without the ending."""
    texts = []
    for file in files:
        with open_text(file, encoding) as text:
            texts.append(text.read())
    names = [file.relative_to(folder).with_suffix("").as_posix() for file in files]
    return _count(folder, names, texts, stop_words, min_documents)


def _count(
    path: Path, names: list[str], texts: list[str], stop_words: Literal["english"] | None, min_documents: int
) -> LabelledMatrix:
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import, and only documents need it

    if not texts:
        raise FileError(f"{path}: holds no documents.")
    # in one or two documents no word can be asked to occur in more
    vectorizer = CountVectorizer(stop_words=stop_words, min_df=min(min_documents, len(texts)))
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise FileError(
            f"{path}: no word is left of {len(texts)} documents that is no stop word and occurs in {min_documents} of "
            "them; ask for fewer, or keep stop words."
        ) from error
    words = tuple(vectorizer.get_feature_names_out().tolist())
    return LabelledMatrix(sp.csr_array(counts), tuple(names), words, "document", "word")


def _beginning(line: str) -> str:
    words = " ".join(line.split())
    return words if len(words) <= _NAME_LENGTH else words[: _NAME_LENGTH - 1].rstrip() + "…"

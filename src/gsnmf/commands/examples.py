"""The library at work on two collections that need no download.

Python's own documentation topics (in every Python) are a matrix of documents x words, scikit-learn's digits a matrix
of images x pixels. Each is explained by a few of its own rows and columns, next to truncated SVD, which no method of
the same rank can beat and which has nothing to read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import compare
from gsnmf.functions import factorize
from gsnmf.matrix.validation import check_matrix
from gsnmf.reports.findings import Bar, Findings, gather
from gsnmf.result import Factorization
from gsnmf.support.arrays import Indices

DOCUMENT_RANK = 10
DIGIT_RANK = 16
IMAGE_SIDE = 8

_ALTERNATIVES = (("gspa", False), ("gspa", True), ("spa-rows", False), ("spa-columns", False))


@dataclass(frozen=True)
class Example:
    """A collection explained by its own columns and rows.

    Attributes
    ----------
    name : str
        Of the file of its report.
    result : Factorization
        By ``method="auto"``.
    findings : Findings
        What its report says; other methods at the same rank are among the ``bars``.
    """

    name: str
    result: Factorization
    findings: Findings


def run(stage: Callable[[str], None] = lambda stage: None) -> tuple[Example, Example]:
    """Factorize both collections, the documents first; ``stage`` is told what begins."""
    stage("Python's documentation")
    documents = documentation_topics()
    stage("Handwritten digits")
    return documents, digit_images()


def documentation_topics(rank: int = DOCUMENT_RANK) -> Example:
    """Python's documentation topics as documents x words.

    Entries are counts x inverse document frequency of words in at least three topics, documents of unit length, as
    scikit-learn makes them by default.
    """
    from pydoc_data.topics import topics

    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
    data = LabelledMatrix(
        check_matrix(vectorizer.fit_transform(topics.values())),
        row_names=tuple(topics),
        column_names=tuple(vectorizer.get_feature_names_out().tolist()),
        row_kind="document",
        column_kind="word",
        source="pydoc_data.topics",
    )
    about = (
        "The texts behind Python's help(), as tf-idf with documents of unit length; English stop words and words in "
        "fewer than three documents are left out"
    )
    return _example("documentation", "Python's documentation topics", about, data, rank)


def digit_images(rank: int = DIGIT_RANK) -> Example:
    """scikit-learn's handwritten digits as images x pixels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    data = LabelledMatrix(
        check_matrix(digits.data),
        row_names=tuple(f"a {label} (image {i})" for i, label in enumerate(digits.target)),
        row_kind="image",
        column_kind="pixel",
        image_shape=(IMAGE_SIDE, IMAGE_SIDE),
        source="sklearn.datasets.load_digits",
    )
    return _example("digits", "Handwritten digits", "Scanned digits, ink from 0 to 16", data, rank)


def pixel_map(columns: Indices) -> str:
    """Chosen pixels of the digits as text, ``#`` on a ground of dots.

    Examples
    --------
    >>> import numpy as np
    >>> print(pixel_map(np.array([0, 9]))[:31])
    # . . . . . . .
    . # . . . . . .
    """
    marks = np.full(IMAGE_SIDE * IMAGE_SIDE, ".")
    marks[columns] = "#"
    return "\n".join(" ".join(row) for row in marks.reshape(IMAGE_SIDE, IMAGE_SIDE))


def _example(name: str, title: str, about: str, data: LabelledMatrix, rank: int) -> Example:
    result = factorize(data.matrix, rank)
    others = [_alternative(data, rank, method, scale) for method, scale in _ALTERNATIVES]
    parameters = {"Rank": str(rank), "Method": "auto", "Effort": "balanced"}
    compared = compare(result, nmf=True)
    findings = gather(result, data, title=title, about=about, comparison=compared, others=others, parameters=parameters)
    return Example(name, result, findings)


def _alternative(data: LabelledMatrix, rank: int, method: str, scale: bool) -> Bar:
    """How well another method does at the same rank."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        result = factorize(data.matrix, rank, method=method, scale=scale)
    failed = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    chosen = f"{result.columns.size} {data.column_kind}s, {result.rows.size} {data.row_kind}s"
    return Bar(
        f"{method}, scale=True" if scale else method,
        result.quality,
        f"{chosen}; did not converge" if failed else chosen,
    )

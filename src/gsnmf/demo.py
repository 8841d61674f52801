"""The library at work on two collections that need no download.

Python's own documentation topics (in every Python) are a matrix of documents x words, scikit-learn's digits a matrix
of images x pixels. Each is explained by a few of its own rows and columns, next to truncated SVD, which no method of
the same rank can beat and which has nothing to read.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

from gsnmf.factorize import factorize
from gsnmf.metrics import relative_error
from gsnmf.results import Factorization
from gsnmf.topics import Factor, describe_factors
from gsnmf.validation import Indices

DOCUMENT_RANK = 10
DIGIT_RANK = 16
IMAGE_SIDE = 8

_ALTERNATIVES = (("gspa", False), ("gspa", True), ("spa-rows", False), ("spa-columns", False))


@dataclass(frozen=True)
class Trial:
    """How well one method explains a matrix; ``note`` says what went wrong, if anything."""

    method: str
    n_columns: int
    n_rows: int
    quality: float
    note: str = ""


@dataclass(frozen=True)
class Example:
    """A collection explained by its own columns and rows.

    Attributes
    ----------
    title, about : str
        What the matrix is.
    result : Factorization
        By ``method="auto"``.
    factors : tuple of Factor
        Columns, then rows, in the order of choice.
    trials : tuple of Trial
        ``"auto"`` first, then other methods at the same rank.
    svd_quality : float
        Quality of truncated SVD at the same rank.
    """

    title: str
    about: str
    result: Factorization
    factors: tuple[Factor, ...]
    trials: tuple[Trial, ...]
    svd_quality: float


@dataclass(frozen=True)
class Demo:
    """Both examples; ``digit_labels`` says which digit each image shows."""

    documents: Example
    digits: Example
    digit_labels: Indices


def run() -> Demo:
    """Factorize both collections."""
    digits, labels = digit_images()
    return Demo(documents=documentation_topics(), digits=digits, digit_labels=labels)


def documentation_topics(rank: int = DOCUMENT_RANK) -> Example:
    """Python's documentation topics as documents x words.

    Entries are counts x inverse document frequency of words in at least three topics, documents of unit length, as
    scikit-learn makes them by default.
    """
    from pydoc_data.topics import topics

    vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
    matrix = vectorizer.fit_transform(topics.values())
    result = factorize(matrix, rank)
    words, names = vectorizer.get_feature_names_out().tolist(), list(topics)
    chosen = [("word", words[j]) for j in result.columns] + [("document", names[i]) for i in result.rows]
    return Example(
        title="Python's documentation topics",
        about=(
            f"{matrix.shape[0]} documents x {matrix.shape[1]} words, tf-idf, documents of unit length; "
            "English stop words and words in fewer than three documents are left out"
        ),
        result=result,
        factors=describe_factors(result.W, result.H, chosen, words, names),
        trials=_trials(matrix, rank, result),
        svd_quality=svd_quality(matrix, rank),
    )


def digit_images(rank: int = DIGIT_RANK) -> tuple[Example, Indices]:
    """scikit-learn's handwritten digits as images x pixels, and the digit that each image shows."""
    digits = load_digits()
    matrix, labels = digits.data, np.asarray(digits.target, dtype=np.intp)
    result = factorize(matrix, rank)
    pixels = [f"({index // IMAGE_SIDE}, {index % IMAGE_SIDE})" for index in range(matrix.shape[1])]
    classes = [str(label) for label in range(10)]
    use = np.stack([result.W[labels == label].mean(axis=0) for label in range(10)])
    chosen = [("pixel", pixels[j]) for j in result.columns]
    chosen += [("image", f"{labels[i]} (image {i})") for i in result.rows]
    example = Example(
        title="Handwritten digits",
        about=f"{matrix.shape[0]} images x {matrix.shape[1]} pixels, ink from 0 to 16",
        result=result,
        factors=describe_factors(use, result.H, chosen, pixels, classes, n_rows=3),
        trials=_trials(matrix, rank, result),
        svd_quality=svd_quality(matrix, rank),
    )
    return example, labels


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


def svd_quality(matrix: Any, rank: int) -> float:
    """Quality of truncated SVD, the largest that any approximation of this rank can have."""
    svd = TruncatedSVD(rank, algorithm="arpack", random_state=0)
    left = svd.fit_transform(matrix)
    return 1.0 - relative_error(matrix, left, svd.components_)


def _trials(matrix: Any, rank: int, auto: Factorization) -> tuple[Trial, ...]:
    """The automatic choice and other methods at the same rank."""
    trials = [_trial("auto", auto)]
    for method, scale in _ALTERNATIVES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            result = factorize(matrix, rank, method=method, scale=scale)
        failed = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        label = f"{method}, scale=True" if scale else method
        trials.append(_trial(label, result, "did not converge" if failed else ""))
    return tuple(trials)


def _trial(label: str, result: Factorization, note: str = "") -> Trial:
    return Trial(label, result.columns.size, result.rows.size, result.quality, note)

"""Texts as a matrix of documents x words, weighted by tf-idf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Indices

StopWords = Literal["english"] | Iterable[str] | None

OFTEN = 0.5
"""Words in a larger part of the documents are left out where no list of stop words is given."""


def check_texts(texts: Any) -> list[str]:
    """Texts as a list; missing ones are empty."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a sequence of documents; got one {type(texts).__name__}. Use [text], or lines.")
    if hasattr(texts, "columns"):
        raise TypeError(
            "texts must be a sequence of documents; got a table. Give the column that holds the texts, as in "
            'topics(table["text"]).'
        )
    found = []
    for position, text in enumerate(texts):
        if text is None or (isinstance(text, float) and np.isnan(text)):
            text = ""
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings; got {type(text).__name__} at position {position}.")
        found.append(text)
    if not found:
        raise ValueError("texts must hold at least one document; got none.")
    return found


def fit_vectorizer(
    texts: Sequence[str],
    *,
    stop_words: StopWords = "english",
    min_df: float = 2,
    max_df: float | None = None,
    ngrams: tuple[int, int] = (1, 1),
    vectorizer: Any = None,
) -> tuple[Any, sp.csr_array]:
    """A fitted vectorizer and the matrix of the texts; parameters as for `gsnmf.applications.topics`."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    if vectorizer is not None:
        return vectorizer, nonnegative(vectorizer.fit_transform(texts))
    listed = stop_words if stop_words is None or isinstance(stop_words, str) else _folded(stop_words)
    if isinstance(listed, str) and listed != "english":
        raise ValueError(f"stop_words must be 'english', a list of words, or None; got {listed!r}.")
    largest_share = max_df if max_df is not None else 1.0 if listed or len(texts) < 10 else OFTEN
    smallest_count = min(min_df, len(texts)) if isinstance(min_df, int) else min_df
    made = TfidfVectorizer(stop_words=listed, min_df=smallest_count, max_df=largest_share, ngram_range=tuple(ngrams))
    try:
        return made, nonnegative(made.fit_transform(texts))
    except ValueError as error:
        if "vocabulary" not in str(error) and "terms remain" not in str(error):
            raise
        raise ValueError(
            f"no word of the {len(texts)} documents is left: a word must not be a stop word, and must occur in at "
            f"least {min_df} of them. Lower min_df, or give other stop words."
        ) from None


def word_sequences(vectorizer: Any, texts: Sequence[str]) -> list[Indices]:
    """The words of each text by number, in the order of the text; other words and stop words are left out."""
    if tuple(getattr(vectorizer, "ngram_range", (1, 1))) != (1, 1):
        raise ValueError("coherence over a window needs single words; got a vocabulary with expressions of several.")
    analyze, vocabulary = vectorizer.build_analyzer(), vectorizer.vocabulary_
    return [np.array([vocabulary[w] for w in analyze(text) if w in vocabulary], dtype=np.intp) for text in texts]


def _folded(words: Iterable[str]) -> list[str] | None:
    return sorted({word.strip().lower() for word in words if word.strip()}) or None


def nonnegative(matrix: Any) -> sp.csr_array:
    """What a vectorizer made, as a sparse matrix of nonnegative numbers in single or double precision."""
    found = sp.csr_array(matrix)
    if found.dtype not in (np.float32, np.float64):
        found = found.astype(np.float64)
    if found.nnz and found.data.min() < 0:
        raise ValueError("the vectorizer must make nonnegative values; got negative ones. Set alternate_sign=False.")
    return found

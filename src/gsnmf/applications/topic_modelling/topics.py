"""`topics`: from texts to a `TopicModel` in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

import gsnmf
from gsnmf.applications.topic_modelling.model import TopicModel
from gsnmf.applications.topic_modelling.text import StopWords, check_texts, fit_vectorizer, read_date
from gsnmf.estimators.grouping import NO_GROUP, learn_groups
from gsnmf.matrix import wrap
from gsnmf.model_selection.rank_choice import USUAL_RANKS, choose_rank
from gsnmf.result import Factorization
from gsnmf.search.effort import Effort
from gsnmf.support.formatting import counted
from gsnmf.support.progress import Progress, log_stage, reported
from gsnmf.weights import coefficients_for


def topics(
    texts: Any,
    rank: int | tuple[int, int] | range | Literal["auto"] = 12,
    *,
    labels: Sequence[object] | None = None,
    ids: Sequence[object] | None = None,
    dates: Sequence[object] | None = None,
    stop_words: StopWords = "english",
    min_df: float = 2,
    max_df: float | None = None,
    ngrams: tuple[int, int] = (1, 1),
    vectorizer: Any = None,
    method: str = "auto",
    effort: Effort = "balanced",
    members: int = 1,
    stability: bool = False,
    progress: Progress = None,
) -> TopicModel:
    """Find the topics of documents: each is one word, or one document, of the collection and what goes with it.

    With ``members`` above one, each is a mixture of a few words, or of a few documents.

    The texts become a matrix of documents x words, weighted by tf-idf. `gsnmf.factorize` explains it by a few of its
    own words (anchor words) and documents (pure documents), each of which stands for a topic. Nonnegative least squares
    then finds how much of each topic a document holds, and each document belongs to the topic that it resembles most.

    Parameters
    ----------
    texts : sequence of str, or Series
        The documents. Missing ones are empty.
    rank : int, pair (n_words, n_documents), range, or "auto"
        How many topics, or how many words and documents to choose as topics. From a range, or from 2 to 30 with "auto",
        `gsnmf.choose_rank` chooses.
    labels, ids, dates : sequences, optional
        A label, a name and a date per document. Names are by default the index of a Series, or numbers. Dates are
        text such as "2024-05-31", "2024-05" or "2024", or dates of Python, NumPy or pandas.
    stop_words : "english", list of str, or None
        Words to leave out. Without a list, words in more than half of the documents are left out.
    min_df, max_df : int or float
        Leave out words in fewer, or more, documents: a number of documents, or a share of them if not an integer.
    ngrams : pair of int
        The shortest and the longest expressions to count, in words: (1, 2) for single words and pairs of words.
    vectorizer : scikit-learn vectorizer, optional
        What makes the matrix, in place of the five parameters above.
    method, effort
        As for `gsnmf.factorize`.
    members : int
        How many words, or documents, a topic may mix. Three to five explain much of what NMF explains beyond single
        ones, and the topics are still made of a few words or documents that can be named.
    stability : bool
        Find out how similar the topics of slightly changed data are, and how often the same words and documents would
        be chosen: see `gsnmf.stability`.
    progress : True or callable, optional
        True shows a bar on standard error. A function is called with small records: ``stage``, ``message`` and
        ``fraction`` of the stage that is done.

    Returns
    -------
    TopicModel

    Examples
    --------
    >>> from gsnmf.applications import topics
    >>> texts = ["tea and cake", "green tea", "tea with cake", "cars on roads", "cars"]
    >>> model = topics(texts, rank=2, labels=["food", "food", "food", "traffic", "traffic"], min_df=1)
    >>> [topic.words[0] for topic in model.topics]
    ['tea', 'cars']
    >>> model.document_topics
    array([0, 0, 0, 1, 1])
    >>> model.predict(["a cake", "fast cars"])
    array([0, 1])
    """
    held = check_texts(texts)
    if ids is None:
        index = getattr(texts, "index", None)  # of a Series; that of a list is a method
        ids = range(len(held)) if index is None or callable(index) else index
    names = _per_document(ids, "ids", len(held))
    classes = _per_document(labels, "labels", len(held))
    days = tuple(read_date(day) for day in _per_document(dates, "dates", len(held)))
    with reported(progress):
        log_stage("Counting words")
        fitted, counts = fit_vectorizer(
            held, stop_words=stop_words, min_df=min_df, max_df=max_df, ngrams=ngrams, vectorizer=vectorizer
        )
        matrix = wrap(counts)  # validated here, once
        choice = None
        if isinstance(rank, (str, range)):
            if isinstance(rank, str) and rank != "auto":
                raise ValueError(f"rank must be a number, a pair, a range or 'auto'; got {rank!r}.")
            log_stage("Choosing the number of topics")
            choice = choose_rank(matrix, rank if isinstance(rank, range) else USUAL_RANKS, effort=effort)
            rank = choice.rank
        if isinstance(rank, int) and rank > max(matrix.shape):
            m, n = matrix.shape
            raise ValueError(
                f"rank must be at most {max(m, n)} for {counted(m, 'document')} with {counted(n, 'word')}; got {rank}. "
                "Rare words, in fewer documents than min_df, are left out."
            )
        log_stage("Choosing words and documents")
        result = gsnmf.factorize(matrix, rank, method=method, effort=effort, members=members)
        sure = None
        if stability:
            log_stage("Changing the data and fitting again")
            sure = gsnmf.stability(result)
        log_stage("Assigning documents to topics")
        assigned = _assigned(result)
    return TopicModel(
        result=result,
        vectorizer=fitted,
        texts=tuple(held),
        ids=tuple(map(str, names)),
        labels=tuple("" if label is None else str(label) for label in classes),
        dates=days,
        rank_choice=choice,
        stability=sure,
        **assigned,
    )


def _assigned(result: Factorization) -> dict[str, Any]:
    """Documents and topics of a factorization, the topics sorted by their number of documents."""
    components = np.asarray(result.H, dtype=np.float64)
    weights = coefficients_for(result.source, components)
    found, groups = learn_groups(result.source, weights)
    order = np.argsort(-np.bincount(found[found >= 0], minlength=len(components)), kind="stable")
    return {
        "order": order,
        "components": components[order],
        "weights": weights[:, order],
        "document_topics": np.where(found >= 0, np.argsort(order)[found], NO_GROUP),
        "means": groups.means[order],
    }


def _per_document(values: Sequence[object] | None, name: str, count: int) -> tuple[Any, ...]:
    found = () if values is None else tuple(values)
    if values is not None and len(found) != count:
        raise ValueError(f"{name} must have one entry for each of the {count} documents; got {len(found)}.")
    return found

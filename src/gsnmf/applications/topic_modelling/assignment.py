"""Documents and topics: how much of each topic a document holds, and which topic it belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrices import wrap
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse
from gsnmf.weights import coefficients_for

MAX_ROUNDS = 10
"""Limit on the rounds of moving documents to the topic that they resemble most."""

NO_TOPIC = -1
"""Topic of a document without a known word."""


def coefficients(matrix: Sparse, components: Floats) -> Doubles:
    r"""How much of each topic a document holds, by nonnegative least squares.

    .. math:: \min_{W \ge 0} \|M - W H\|_F

    Parameters
    ----------
    matrix : sparse array, shape (n_documents, n_words)
        M.
    components : array, shape (n_topics, n_words)
        H.

    Returns
    -------
    array, shape (n_documents, n_topics)
        W, exactly. In contrast to values that are read off at the chosen words, it is zero for no document that shares
        a word with a topic.
    """
    return coefficients_for(wrap(matrix), components)


def strongest_topics(weights: Doubles) -> Indices:
    """The strongest topic of each document, relative to the average strength of each topic.

    The factors of a factorization have no common scale, since a factor can be doubled and its weights halved; relative
    to their mean, weights have one. A document without weights has `NO_TOPIC`.

    Examples
    --------
    >>> import numpy as np
    >>> strongest_topics(np.array([[3.0, 10.0], [1.0, 20.0], [0.0, 0.0]]))
    array([ 0,  1, -1])
    """
    means = weights.mean(axis=0)
    relative = np.divide(weights, means, out=np.zeros_like(weights), where=means > 0)
    return np.where(relative.max(axis=1, initial=0.0) > 0, relative.argmax(axis=1), NO_TOPIC)


def group_documents(matrix: Sparse, weights: Doubles) -> tuple[Indices, Doubles]:
    r"""Put every document with the topic whose documents it resembles most.

    Starting from `strongest_topics`, a round computes the mean document :math:`c_k` of each topic and moves every
    document x to the topic with the largest :math:`x \cdot c_k`, which is the mean of the similarities of x with the
    documents of that topic. Rounds end when no document moves, or after `MAX_ROUNDS`.

    Parameters
    ----------
    matrix : sparse array, shape (n_documents, n_words)
        With rows of unit length, so that a product of two documents is their cosine.
    weights : array, shape (n_documents, n_topics)
        From `coefficients`.

    Returns
    -------
    topics : int array of length n_documents
        `NO_TOPIC` for a document without a word. A document that shares no word with any topic, directly or through
        other documents, goes with the largest topic.
    means : array, shape (n_topics, n_words)
        The mean document of each topic, zero for a topic without documents.

    Notes
    -----
    On the thirteen labelled collections of ``gsnmf bench topics`` (tf-idf, as many topics as classes), the mean of
    normalised mutual information with the classes is 0.44 for `strongest_topics` and 0.53 after these rounds; the
    adjusted Rand index rises from 0.33 to 0.42.
    """
    topics = strongest_topics(weights)
    means = np.zeros((weights.shape[1], matrix.shape[1]))
    for _ in range(MAX_ROUNDS):
        means = _mean_documents(matrix, topics, means)
        moved = nearest_topics(matrix, means)
        if np.array_equal(moved, topics):
            break
        topics = moved
    return topics, means


def nearest_topics(matrix: Sparse, means: Doubles) -> Indices:
    """The topic whose mean document has the largest product with each document; see `group_documents`."""
    products = np.asarray(matrix @ means.T)
    topics = np.where(products.max(axis=1, initial=0.0) > 0, products.argmax(axis=1), NO_TOPIC)
    unassigned = (topics == NO_TOPIC) & (np.diff(sp.csr_array(matrix).indptr) > 0)
    if unassigned.any() and (topics >= 0).any():
        topics[unassigned] = np.bincount(topics[topics >= 0]).argmax()
    return topics


def _mean_documents(matrix: Sparse, topics: Indices, before: Doubles) -> Doubles:
    """Means of the documents of each topic; a topic that has lost its documents keeps the mean from before."""
    count = before.shape[0]
    known = np.flatnonzero(topics >= 0)
    sizes = np.bincount(topics[known], minlength=count)
    indicator = sp.csr_array((np.ones(known.size), (topics[known], known)), shape=(count, matrix.shape[0]))
    sums: Any = indicator @ matrix
    means = sums.toarray() / np.maximum(sizes, 1)[:, None]
    return np.where((sizes > 0)[:, None], means, before)

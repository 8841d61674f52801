r"""Coherence of topics: how often the words of a topic occur together, as normalised pointwise mutual information.

For two words and a unit of text, either a whole document or a window of consecutive words,

.. math:: \mathrm{NPMI}(a, b) = \frac{\log \frac{p(a, b)}{p(a)\, p(b)}}{-\log p(a, b)} \in [-1, 1],

where p is the share of units in which the words occur. It is -1 for words that never occur together, 0 for independent
words, and 1 for words that never occur apart. The coherence of a topic is the mean over all pairs of its words.

References
----------
G. Bouma, Normalized (pointwise) mutual information in collocation extraction, GSCL (2009).
M. Röder, A. Both, A. Hinneburg, Exploring the space of topic coherence measures, WSDM (2015),
doi:10.1145/2684822.2685324.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Doubles, Indices, Sparse


def document_coherence(topics: Sequence[Indices], counts: Sparse) -> Doubles:
    """Coherence of topics over whole documents.

    Parameters
    ----------
    topics : sequence of int arrays
        The words of each topic, as columns of ``counts``.
    counts : sparse array, shape (n_documents, n_words)
        Positive where a word occurs in a document.

    Returns
    -------
    array of length len(topics)
        NaN for a topic of fewer than two words.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> counts = sp.csr_array([[1, 2, 0], [3, 1, 0], [0, 0, 1], [1, 0, 1]])
    >>> document_coherence([np.array([0, 1]), np.array([1, 2])], counts).round(3)
    array([ 0.415, -1.   ])
    """
    used = _used(topics)
    occurs: Any = sp.csc_array(counts)[:, used] > 0
    return _coherence(topics, used, _joint_counts(occurs), counts.shape[0])


def window_coherence(topics: Sequence[Indices], documents: Sequence[Indices], window: int = 10) -> Doubles:
    """Coherence of topics over windows of consecutive words.

    Parameters
    ----------
    topics : sequence of int arrays
        The words of each topic, by number.
    documents : sequence of int arrays
        The words of each document by number, in the order of the text; negative where a word has none.
    window : int
        Words in a window, which moves on by one word at a time. A document shorter than the window is one window.

    Returns
    -------
    array
        As from `document_coherence`.

    Examples
    --------
    >>> text = np.array([0, 1, 2, 0, 1])
    >>> window_coherence([np.array([0, 1])], [text], window=2).round(3)
    array([-0.17])
    """
    if window < 1:
        raise ValueError(f"window must be a positive number of words; got {window}.")
    used = _used(topics)
    lengths = np.array([len(document) for document in documents], dtype=np.intp)
    n_windows = np.where(lengths > 0, np.maximum(lengths - window + 1, 1), 0)
    starts = np.concatenate([[0], np.cumsum(n_windows)])
    words = np.concatenate([np.empty(0, dtype=np.intp), *(np.asarray(d, dtype=np.intp) for d in documents)])
    place = np.full(max(int(words.max(initial=-1)), int(used.max(initial=-1))) + 2, -1)
    place[used] = np.arange(used.size)
    document = np.repeat(np.arange(lengths.size), lengths)
    position = np.arange(words.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = np.flatnonzero(place[words] >= 0)  # a word of number -1 reads the last place, which is no topic's
    first = np.maximum(position[kept] - window + 1, 0)
    last = np.minimum(position[kept], n_windows[document[kept]] - 1)
    spans = last - first + 1
    inside = np.arange(int(spans.sum())) - np.repeat(np.cumsum(spans) - spans, spans)
    rows = np.repeat(starts[document[kept]] + first, spans) + inside
    columns = np.repeat(place[words[kept]], spans)
    shape = (int(starts[-1]), used.size)
    occurs = sp.csc_array((np.ones(rows.size), (rows, columns)), shape=shape) > 0
    return _coherence(topics, used, _joint_counts(occurs), shape[0])


def _used(topics: Sequence[Indices]) -> Indices:
    return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *(np.asarray(t, dtype=np.intp) for t in topics)]))


def _joint_counts(occurs: Any) -> Doubles:
    """In how many units each pair of words occurs; on the diagonal, each word."""
    flags = sp.csc_array(occurs, dtype=np.float64)
    return np.asarray((flags.T @ flags).toarray())


def _coherence(topics: Sequence[Indices], used: Indices, joint: Doubles, n_units: int) -> Doubles:
    probability = joint / max(n_units, 1)
    single = np.diag(probability)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(probability / np.outer(single, single)) / -np.log(probability)
    values = np.where(probability > 0, values, -1.0)
    values[probability >= 1.0] = 1.0
    coherences = np.full(len(topics), np.nan)
    for k, topic in enumerate(topics):
        places = np.searchsorted(used, np.asarray(topic, dtype=np.intp))
        if places.size > 1:
            pairs = np.triu_indices(places.size, 1)
            coherences[k] = values[np.ix_(places, places)][pairs].mean()
    return coherences

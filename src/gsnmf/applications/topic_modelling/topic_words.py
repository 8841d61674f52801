r"""What the words of a topic say about it: the strongest words, measures of topics, and sentences that show a topic.

The coherence of a topic says how often its words occur together, as normalised pointwise mutual information. For two
words and a unit of text, which is a whole document or a window of consecutive words,

.. math:: \mathrm{NPMI}(a, b) = \frac{\log \frac{p(a, b)}{p(a)\, p(b)}}{-\log p(a, b)} \in [-1, 1],

where p is the share of units in which the words occur. It is -1 for words that never occur together, 0 for independent
words, and 1 for words that never occur apart. The coherence of a topic is the mean over all pairs of its words.

In all functions, ``topics`` holds one array of words per topic, as column numbers of ``components``, the nonnegative
weights of words in topics.

References
----------
G. Bouma, Normalized (pointwise) mutual information in collocation extraction, GSCL (2009).
M. Röder, A. Both, A. Hinneburg, Exploring the space of topic coherence measures, WSDM (2015),
doi:10.1145/2684822.2685324.
A. B. Dieng, F. J. R. Ruiz, D. M. Blei, Topic modeling in embedding spaces, TACL 8 (2020), doi:10.1162/tacl_a_00325.
J. M. Bischof, E. M. Airoldi, Summarizing topical content with word frequency and exclusivity, ICML (2012).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import cosine_similarity

from gsnmf.matrix.protocol import largest_of
from gsnmf.support.arrays import Doubles, Floats, Indices, Sparse

LONGEST_PASSAGE = 320
"""Characters of a passage; a longer sentence is cut around the words of the topic."""

USUAL_WORD = r"(?u)\b\w\w+\b"
"""Scikit-learn's pattern of a word."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+|\n\s*\n|(?<=[。！？])")
_FEWEST_LETTERS = 0.8
"""Sentences with a smaller share of letters and spaces are rather headings, tables or code."""

_NO_WORDS = np.empty(0, dtype=np.intp)


def strongest_words(components: Floats, leading: Sequence[Indices], n_words: int = 10) -> list[Indices]:
    """The words of each topic: the words that were chosen for it, then its strongest other words.

    Parameters
    ----------
    components : array, shape (n_topics, n_words_in_all)
    leading : sequence of int arrays
        The words that were chosen for each topic; empty where a document was chosen.
    n_words : int
        Largest number of words per topic.

    Examples
    --------
    >>> import numpy as np
    >>> strongest_words(np.array([[0.0, 2.0, 5.0, 1.0]]), [np.array([1])], 3)
    [array([1, 2, 3])]
    """
    found = []
    for component, first in zip(components, leading, strict=True):
        others = largest_of(component, n_words + first.size)
        found.append(np.concatenate([first, others[~np.isin(others, first)]])[:n_words])
    return found


def document_coherence(topics: Sequence[Indices], counts: Sparse) -> Doubles:
    """Coherence of topics over whole documents; NaN for a topic of fewer than two words.

    Parameters
    ----------
    topics : sequence of int arrays
    counts : sparse array, shape (n_documents, n_words)
        Positive where a word occurs in a document.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> counts = sp.csr_array([[1, 2, 0], [3, 1, 0], [0, 0, 1], [1, 0, 1]])
    >>> document_coherence([np.array([0, 1]), np.array([1, 2])], counts).round(3)
    array([ 0.415, -1.   ])
    """
    used = np.unique(np.concatenate([_NO_WORDS, *topics]))
    return _coherence(topics, used, sp.csc_array(counts)[:, used] > 0)


def window_coherence(topics: Sequence[Indices], documents: Sequence[Indices], window: int = 10) -> Doubles:
    """Coherence of topics over windows of consecutive words; NaN for a topic of fewer than two words.

    Parameters
    ----------
    topics : sequence of int arrays
    documents : sequence of int arrays
        The words of each document by number, in the order of the text; negative for a word outside the vocabulary.
    window : int
        Number of words in a window, which moves on by one word at a time. A shorter document is one window.

    Examples
    --------
    >>> text = np.array([0, 1, 2, 0, 1])
    >>> window_coherence([np.array([0, 1])], [text], window=2).round(3)
    array([-0.17])
    """
    if window < 1:
        raise ValueError(f"window must be a positive number of words; got {window}.")
    used = np.unique(np.concatenate([_NO_WORDS, *topics]))
    lengths = np.array([len(document) for document in documents], dtype=np.intp)
    n_windows = np.where(lengths > 0, np.maximum(lengths - window + 1, 1), 0)
    document = np.repeat(np.arange(lengths.size), lengths)
    position = np.arange(document.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    words = np.concatenate([_NO_WORDS, *documents])
    kept = np.isin(words, used)
    document, position, words = document[kept], position[kept], words[kept]
    first = np.maximum(position - window + 1, 0)
    n_spanned = np.minimum(position, n_windows[document] - 1) - first + 1
    offset = np.arange(int(n_spanned.sum())) - np.repeat(np.cumsum(n_spanned) - n_spanned, n_spanned)
    windows = np.repeat((np.cumsum(n_windows) - n_windows)[document] + first, n_spanned) + offset
    columns = np.repeat(np.searchsorted(used, words), n_spanned)
    shape = (int(n_windows.sum()), used.size)
    return _coherence(topics, used, sp.csc_array((np.ones(windows.size), (windows, columns)), shape=shape) > 0)


def _coherence(topics: Sequence[Indices], used: Indices, occurs: Any) -> Doubles:
    """Mean NPMI of each topic from flags, units of text x used words."""
    flags = sp.csc_array(occurs, dtype=np.float64)
    joint = (flags.T @ flags).toarray() / max(flags.shape[0], 1)
    single = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(joint / np.outer(single, single)) / -np.log(joint)
    values = np.where(joint > 0, values, -1.0)
    values[joint >= 1.0] = 1.0
    coherences = np.full(len(topics), np.nan)
    for k, topic in enumerate(topics):
        if topic.size > 1:
            places = np.searchsorted(used, topic)
            coherences[k] = values[np.ix_(places, places)][np.triu_indices(places.size, 1)].mean()
    return coherences


def diversity(topics: Sequence[Indices]) -> float:
    """Share of distinct words among the words of all topics (Dieng et al., 2020): 1 if no word occurs in two topics.

    Examples
    --------
    >>> import numpy as np
    >>> diversity([np.array([0, 1]), np.array([1, 2])])
    0.75
    """
    words = np.concatenate([_NO_WORDS, *topics])
    return float(np.unique(words).size / words.size) if words.size else 1.0


def exclusivity(topics: Sequence[Indices], components: Floats) -> Doubles:
    r"""How much the words T of each topic belong to that topic alone, from 0 to 1; NaN for a topic without words.

    .. math:: \mathrm{exclusivity}_k = \frac{1}{|T_k|} \sum_{w \in T_k} \frac{h_{kw}}{\sum_l h_{lw}}

    for components H whose rows are divided by their sums (Bischof and Airoldi, 2012).

    Examples
    --------
    >>> import numpy as np
    >>> exclusivity([np.array([0, 1]), np.array([1, 2])], np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    array([0.75, 0.75])
    """
    shares = distributions(components)
    totals = np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
    return np.array([(shares[k, T] / totals[T]).mean() if T.size else np.nan for k, T in enumerate(topics)])


def similarity(components: Floats) -> Doubles:
    """Cosine of the angle between every two topics, from 0 to 1; 0 for a topic of zeros, even with itself.

    Examples
    --------
    >>> import numpy as np
    >>> similarity(np.array([[1.0, 1.0], [1.0, 0.0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    return np.asarray(np.clip(cosine_similarity(np.asarray(components, dtype=np.float64)), 0.0, 1.0))


def distributions(values: Floats) -> Doubles:
    """Rows divided by their sums; rows of zeros stay zero."""
    doubles = np.asarray(values, dtype=np.float64)
    sums = doubles.sum(axis=1, keepdims=True)
    return np.asarray(doubles / np.where(sums > 0, sums, 1.0))


@dataclass(frozen=True)
class Passage:
    """A sentence of a document in which words of a topic occur.

    Attributes
    ----------
    document : int
        Position of the document.
    text : str
        The sentence, or the part of it around the words.
    spans : tuple of pairs (start, end)
        Where the words stand in ``text``.
    """

    document: int
    text: str
    spans: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.text


def find_passage(
    document: int, text: str, weights: Mapping[str, float], *, pattern: str = USUAL_WORD
) -> Passage | None:
    """The sentence of a text with the largest sum of weights of distinct words; None if none of the words occurs.

    Sentences of letters and spaces are preferred to headings, tables and code.

    Parameters
    ----------
    document : int
        Position of the document.
    text : str
    weights : mapping of str to float
        The words of a topic, in lower case. An expression of several words counts where they follow each other.
    pattern : str
        Regular expression of a word.

    Examples
    --------
    >>> find_passage(0, "It rained. The cat saw a dog! Dogs ran.", {"cat": 1.0, "dog": 0.5}).text
    'The cat saw a dog!'
    """
    best, best_score, best_spans = "", 0.0, []  # type: tuple[str, float, list[tuple[int, int]]]
    word = re.compile(pattern)
    longest = max((len(term.split(" ")) for term in weights), default=1)
    for sentence in sentences(text):
        terms, spans = _occurrences(sentence, weights, word, longest)
        letters = sum(character.isalpha() or character == " " for character in sentence)
        readable = 1.0 if letters >= _FEWEST_LETTERS * len(sentence) else 0.1
        score = readable * sum(weights[term] for term in terms)
        if score > best_score:
            best, best_score, best_spans = sentence, score, spans
    return Passage(document, *_cut(best, best_spans)) if best else None


def sentences(text: str) -> list[str]:
    """The sentences of a text, with single spaces between words.

    Examples
    --------
    >>> sentences("One.  Two\\nlines? Three")
    ['One.', 'Two lines?', 'Three']
    """
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text) if part)
    return [part for part in parts if part]


def _occurrences(
    sentence: str, weights: Mapping[str, float], word: re.Pattern[str], longest: int
) -> tuple[set[str], list[tuple[int, int]]]:
    """The words of a topic that occur in a sentence, and where, without overlaps; the longest expression wins."""
    words = [(match.group().lower(), *match.span()) for match in word.finditer(sentence)]
    terms: set[str] = set()
    spans: list[tuple[int, int]] = []
    for at, (_, start, _) in enumerate(words):
        for length in range(min(longest, len(words) - at), 0, -1):
            term = " ".join(text for text, _, _ in words[at : at + length])
            if term in weights:
                terms.add(term)
                if not spans or start >= spans[-1][1]:
                    spans.append((start, words[at + length - 1][2]))
                break
    return terms, spans


def _cut(sentence: str, spans: Sequence[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """At most `LONGEST_PASSAGE` characters of a sentence, with the spans that lie in them."""
    if len(sentence) <= LONGEST_PASSAGE:
        return sentence, tuple(spans)
    start = max(0, min(spans[0][0] - 40, len(sentence) - LONGEST_PASSAGE))
    start = 0 if start == 0 else sentence.rfind(" ", 0, start + 1) + 1
    stop = min(len(sentence), start + LONGEST_PASSAGE)
    before, after = "…" if start else "", "…" if stop < len(sentence) else ""
    shift = len(before) - start
    return before + sentence[start:stop] + after, tuple(
        (a + shift, b + shift) for a, b in spans if start <= a < b <= stop
    )

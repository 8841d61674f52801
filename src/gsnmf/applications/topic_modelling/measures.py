"""Further measures of topics: how different their words are, and how similar the topics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gsnmf.matrix.protocol import largest_of
from gsnmf.support.arrays import Doubles, Floats, Indices


def strongest_words(components: Floats, leading: Sequence[Indices], n_words: int = 10) -> list[Indices]:
    """The words of each topic: those that were chosen for it, then the strongest others.

    Parameters
    ----------
    components : array, shape (n_topics, n_words_in_all)
        Nonnegative.
    leading : sequence of int arrays
        The words that were chosen for each topic; empty where a document was chosen.
    n_words : int
        How many for each topic, at most.

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


def diversity(topics: Sequence[Indices]) -> float:
    """Share of distinct words among the words of all topics: 1 if no word occurs in two of them.

    Parameters
    ----------
    topics : sequence of int arrays
        The words of each topic.

    References
    ----------
    A. B. Dieng, F. J. R. Ruiz, D. M. Blei, Topic modeling in embedding spaces, TACL 8 (2020), doi:10.1162/tacl_a_00325.

    Examples
    --------
    >>> import numpy as np
    >>> diversity([np.array([0, 1]), np.array([1, 2])])
    0.75
    """
    words = np.concatenate([np.empty(0, dtype=np.intp), *topics])
    return float(np.unique(words).size / words.size) if words.size else 1.0


def exclusivity(topics: Sequence[Indices], components: Floats) -> Doubles:
    r"""How much the words of each topic belong to that topic alone.

    .. math:: \mathrm{exclusivity}_k = \frac{1}{|T_k|} \sum_{w \in T_k} \frac{h_{kw}}{\sum_l h_{lw}},
        \qquad \sum_w h_{kw} = 1 .

    Parameters
    ----------
    topics : sequence of int arrays
        T, the words of each topic.
    components : array, shape (n_topics, n_words)
        Nonnegative; every row is divided by its sum first.

    Returns
    -------
    array of length n_topics
        From 0 to 1; NaN for a topic without words.

    References
    ----------
    J. M. Bischof, E. M. Airoldi, Summarizing topical content with word frequency and exclusivity, ICML (2012).

    Examples
    --------
    >>> import numpy as np
    >>> exclusivity([np.array([0, 1]), np.array([1, 2])], np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    array([0.75, 0.75])
    """
    shares = distributions(components)
    of_all = shares.sum(axis=0)
    values = [shares[k, words] / np.maximum(of_all[words], 1e-300) for k, words in enumerate(topics)]
    return np.array([float(v.mean()) if v.size else np.nan for v in values])


def similarity(components: Floats) -> Doubles:
    """Cosine of the angle between every two topics, from 0 to 1.

    Parameters
    ----------
    components : array, shape (n_topics, n_words)
        Nonnegative.

    Returns
    -------
    array, shape (n_topics, n_topics)
        A topic of zeros is similar to nothing, not even to itself.

    Examples
    --------
    >>> import numpy as np
    >>> similarity(np.array([[1.0, 1.0], [1.0, 0.0]])).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """
    values = np.asarray(components, dtype=np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit = values / np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.clip(unit @ unit.T, 0.0, 1.0))


def distributions(components: Floats) -> Doubles:
    """Rows divided by their sums; rows of zeros stay what they are."""
    values = np.asarray(components, dtype=np.float64)
    sums = values.sum(axis=1, keepdims=True)
    return np.asarray(values / np.where(sums > 0, sums, 1.0))


def layout(components: Floats) -> Doubles:
    r"""Topics as points of the plane, similar ones close to each other.

    The distance of two topics is the square root of the Jensen-Shannon divergence of their distributions over words;
    classical scaling finds the points, whose larger coordinate is then 1. The components are those of `similarity`.

    Returns
    -------
    array, shape (n_topics, 2)

    References
    ----------
    C. Sievert, K. Shirley, LDAvis: A method for visualizing and interpreting topics, ACL Workshop on Interactive
    Language Learning, Visualization, and Interfaces (2014), doi:10.3115/v1/W14-3110.
    """
    shares = distributions(components)
    count = len(shares)
    squared = np.zeros((count, count))
    for k in range(count):
        for other in range(k):
            squared[k, other] = squared[other, k] = _divergence(shares[k], shares[other])
    centring = np.eye(count) - 1.0 / max(count, 1)
    values, vectors = np.linalg.eigh(-0.5 * centring @ squared @ centring)
    points = np.zeros((count, 2))
    for axis in range(min(2, count)):
        vector = vectors[:, -1 - axis]
        sign = np.sign(vector[np.argmax(np.abs(vector))])  # eigenvectors come with either sign
        points[:, axis] = sign * vector * np.sqrt(max(values[-1 - axis], 0.0))
    largest = float(np.abs(points).max(initial=0.0))
    return points / largest if largest > 0 else points


def _divergence(first: Doubles, second: Doubles) -> float:
    """Jensen-Shannon divergence of two distributions, in nats."""
    middle = (first + second) / 2.0
    total = 0.0
    for share in (first, second):
        used = share > 0
        total += 0.5 * float(np.sum(share[used] * np.log(share[used] / middle[used])))
    return max(total, 0.0)

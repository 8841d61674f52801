"""How much of each topic a document holds."""

from __future__ import annotations

from gsnmf.matrix import wrap
from gsnmf.support.arrays import Doubles, Floats, Sparse
from gsnmf.weights import coefficients_for


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

"""How similar the factors of two factorizations are, matched one to one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from gsnmf.support.arrays import Doubles, Floats


def agreement(left: Floats, right: Floats, other_left: Floats, other_right: Floats) -> float:
    """Mean similarity of matched factors of two factorizations of the same matrix, from 0 to 1.

    A factor is a matrix of rank one, the product of a column of ``left``, m x r, and a column of ``right``, n x r. The
    similarity of two factors is the cosine of their angle. Factors are matched so that the sum of similarities is
    largest; an unmatched one counts as 0.

    Examples
    --------
    >>> eye = np.eye(3)
    >>> agreement(eye[:, :2], eye[:, :2], eye[:, 1:], eye[:, 1:])
    0.5
    """
    similarities = unit_columns(left).T @ unit_columns(other_left)
    similarities *= unit_columns(right).T @ unit_columns(other_right)
    if similarities.size == 0:
        return float(similarities.shape[0] == similarities.shape[1])
    matched = linear_sum_assignment(-similarities)
    return float(similarities[matched].sum() / max(similarities.shape))


def unit_columns(block: Floats) -> Doubles:
    """Columns scaled to length one, in double precision; zero columns stay zero."""
    doubles = block.astype(np.float64, copy=False)
    lengths = np.linalg.norm(doubles, axis=0)
    return doubles / np.where(lengths > 0, lengths, 1.0)

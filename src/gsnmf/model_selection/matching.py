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
    most = max(left.shape[1], other_left.shape[1])
    return float(matched_similarities(left, right, other_left, other_right).sum() / most) if most else 1.0


def matched_similarities(left: Floats, right: Floats, other_left: Floats, other_right: Floats) -> Doubles:
    """Similarity of each factor of the first factorization to its match in the second; see `agreement`.

    Examples
    --------
    >>> eye = np.eye(3)
    >>> matched_similarities(eye[:, :2], eye[:, :2], eye[:, 1:], eye[:, 1:])
    array([0., 1.])
    """
    similarities = unit_columns(left).T @ unit_columns(other_left)
    similarities *= unit_columns(right).T @ unit_columns(other_right)
    found = np.zeros(left.shape[1])
    own, other = linear_sum_assignment(-similarities)
    found[own] = similarities[own, other]
    return found


def unit_columns(block: Floats) -> Doubles:
    """Columns scaled to length one, in double precision; zero columns stay zero."""
    doubles = block.astype(np.float64, copy=False)
    lengths = np.linalg.norm(doubles, axis=0)
    return doubles / np.where(lengths > 0, lengths, 1.0)

r"""A fingerprint of the entries of a matrix, by which a file recognises the matrix that it belongs to.

The fingerprint holds the norm and a few numbers

.. math:: x_k^T M y_k / \|M\|_F

with fixed pseudo-random vectors. Where two matrices M and N of the same norm differ, these numbers differ by
:math:`x_k^T (M - N) y_k / \|M\|_F`, which is of the size of :math:`\|M - N\|_F / \|M\|_F`: exchanged columns show
as well as changed entries. Rounding shows far less than `_SAME`, so a matrix has the same fingerprint whether it is
dense, sparse or chunked, and in single or double precision.

A fingerprint costs one product with the matrix. It tells matrices apart; it does not protect against forgery.
"""

from __future__ import annotations

import math

import numpy as np

from gsnmf.matrix.protocol import Matrix
from gsnmf.support.arrays import Doubles

_SAME = 1e-6
"""Largest difference between fingerprints of one matrix."""


def fingerprint(matrix: Matrix) -> Doubles:
    """The logarithm of the norm, to base two, and the numbers above; zeros for a matrix of zeros.

    Examples
    --------
    >>> from gsnmf.matrix import wrap
    >>> M = np.array([[3.0, 0.0], [4.0, 2.0]])
    >>> one = fingerprint(wrap(M))
    >>> same_fingerprint(one, fingerprint(wrap(M.astype(np.float32))))
    True
    >>> same_fingerprint(one, fingerprint(wrap(M[:, ::-1])))
    False
    """
    sketch = matrix.sketch()
    squared_norm = matrix.squared_norm
    if squared_norm == 0:
        return np.zeros(1 + sketch.size)
    norm = 0.5 * math.log2(squared_norm) + matrix.exponent
    return np.concatenate([[norm], sketch / math.sqrt(squared_norm)])


def same_fingerprint(found: Doubles, expected: Doubles) -> bool:
    """Whether two fingerprints may belong to the same matrix."""
    return found.shape == expected.shape and bool(np.all(np.abs(found - expected) <= _SAME))

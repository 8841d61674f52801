"""A matrix with the columns and rows that were planted in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.support.arrays import Doubles, Indices, RawMatrix


@dataclass(frozen=True, eq=False)
class Planted:
    """A generalized separable matrix and what it was made of.

    Attributes
    ----------
    matrix : ndarray or csr_array, shape (m, n)
        The matrix to factorize: noisy, and permuted.
    noiseless : ndarray or csr_array, shape (m, n)
        The same without noise; equal to ``W @ H`` up to rounding.
    columns, rows : int arrays of length r1 and r2
        The planted columns and rows, in increasing order.
    W : ndarray or csr_array, shape (m, r1 + r2)
        ``[noiseless[:, columns], P2]``.
    H : ndarray or csr_array, shape (r1 + r2, n)
        ``[P1; noiseless[rows, :]]``.
    noise_level : float
        ||N||_F / ||noiseless||_F for the noise N that was added before negative entries were set to zero.

    Examples
    --------
    >>> from gsnmf.datasets import non_unique_example
    >>> truth = non_unique_example()
    >>> truth.columns, truth.rows
    (array([0, 1]), array([2]))
    >>> bool((truth.W @ truth.H == truth.matrix).all())
    True
    """

    matrix: RawMatrix
    noiseless: RawMatrix
    columns: Indices
    rows: Indices
    W: RawMatrix
    H: RawMatrix
    noise_level: float

    @property
    def column_weights(self) -> RawMatrix:
        """P1, shape (r1, n)."""
        return self.H[: self.columns.size]

    @property
    def row_weights(self) -> RawMatrix:
        """P2, shape (m, r2)."""
        return self.W[:, self.columns.size :]


def stacked_factors(W1: Doubles, H1: Doubles, W2: Doubles, H2: Doubles) -> tuple[Doubles, Doubles]:
    """W = [W1, W2; 0, I] and H = [I, H1; 0, H2]."""
    r1, r2 = W1.shape[1], H2.shape[0]
    W = np.block([[W1, W2], [np.zeros((r2, r1)), np.eye(r2)]])
    H = np.block([[np.eye(r1), H1], [np.zeros((r2, r1)), H2]])
    return W, H

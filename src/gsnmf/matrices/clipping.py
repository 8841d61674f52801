"""Data that is nonnegative but for a little: negative entries set to zero, and how much that was."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrices.checks import check_matrix
from gsnmf.support.arrays import Floats, RawMatrix
from gsnmf.support.records import Record

LARGE_SHARE = 0.01
"""Share of the norm above which a warning says that more than noise was cut off."""


@dataclass(frozen=True, eq=False)
class Clipped(Record):
    """A matrix without its negative entries.

    Attributes
    ----------
    matrix : array or sparse array
        The matrix with zeros in place of negative entries; NaN, which may stand for missing entries, stays NaN.
    n_clipped : int
        How many entries were negative.
    clipped_share : float
        Norm of the negative entries over the norm of the matrix.
    """

    matrix: RawMatrix
    n_clipped: int
    clipped_share: float


def clip_negative(matrix: Any, *, name: str = "matrix") -> Clipped:
    """Set the negative entries of a matrix to zero.

    Baselines and backgrounds that were subtracted leave small negative entries, which the model does not have.

    Parameters
    ----------
    matrix : array-like or SciPy sparse array, shape (m, n)
        Real numbers. It is not changed. Entries that a sparse matrix stores stay stored.
    name : str
        How messages call it.

    Returns
    -------
    Clipped

    Warns
    -----
    UserWarning
        If the negative entries make up more than 1 % of the norm.

    Examples
    --------
    >>> clipped = clip_negative([[3.0, -0.01], [4.0, 0.0]])
    >>> clipped.matrix.tolist(), clipped.n_clipped, round(clipped.clipped_share, 4)
    ([[3.0, 0.0], [4.0, 0.0]], 1, 0.002)
    """
    is_sparse = sp.issparse(matrix)
    array: Any = sp.csr_array(matrix) if is_sparse else np.asarray(matrix)
    entries = array.data if is_sparse else array
    if entries.dtype.kind not in "fiub" or array.ndim != 2:
        check_matrix(matrix, name=name)  # says what is wrong
    negative = entries < 0
    n_clipped = int(np.count_nonzero(negative))
    if n_clipped == 0:
        return Clipped(array, 0, 0.0)
    if np.isneginf(entries).any():
        raise ValueError(f"{name} must be finite; got -inf, which negative='clip' does not set to zero.")
    share = _share(entries, negative)
    if share > LARGE_SHARE:
        warnings.warn(
            f"The negative entries of {name} were set to zero: {n_clipped} in number, {100 * share:.3g} % of its norm. "
            "That is more than noise: look at the data, or add a constant to it first.",
            UserWarning,
            stacklevel=3,
        )
    return Clipped(_without(array, entries, negative), n_clipped, share)


def _share(entries: Any, negative: Any) -> float:
    """Norm of the negative entries over that of all, in units in which squares are safe."""
    doubles = entries[np.isfinite(entries)].astype(np.float64)
    below = entries[negative].astype(np.float64)
    largest = float(np.abs(doubles).max())
    return math.sqrt(float(np.square(below / largest).sum() / np.square(doubles / largest).sum()))


def _without(array: Any, entries: Any, negative: Any) -> RawMatrix:
    zeroed: Floats = np.where(negative, entries.dtype.type(0), entries)
    if isinstance(array, np.ndarray):
        return zeroed
    return sp.csr_array((zeroed, array.indices, array.indptr), shape=array.shape)

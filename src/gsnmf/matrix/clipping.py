"""Nearly nonnegative data: set negative entries to zero and report how much that was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.checks import as_floats, check_matrix
from gsnmf.matrix.remedies import negative_share
from gsnmf.support.arrays import Floats, RawMatrix
from gsnmf.support.records import Record
from gsnmf.support.warning import warn_caller

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

    Subtracting a baseline or background leaves small negative entries, which the model does not allow.

    Parameters
    ----------
    matrix : array-like or SciPy sparse array, shape (m, n)
        Real numbers. It is not changed. Entries that a sparse matrix stores stay stored.
    name : str
        Its name in messages.

    Returns
    -------
    Clipped

    Examples
    --------
    >>> clipped = clip_negative([[3.0, -0.01], [4.0, 0.0]])
    >>> clipped.matrix.tolist(), clipped.n_clipped, round(clipped.clipped_share, 4)
    ([[3.0, 0.0], [4.0, 0.0]], 1, 0.002)
    """
    is_sparse = bool(sp.issparse(matrix))
    array: Any = sp.csr_array(matrix) if is_sparse else as_floats(matrix, name=name)
    entries = array.data if is_sparse else array
    if array.ndim != 2 or entries.dtype.kind not in "fiub":
        check_matrix(matrix, name=name)  # says what is wrong
    negative = entries < 0
    if not negative.any():
        return Clipped(array, 0, 0.0)
    if np.isneginf(entries).any():
        raise ValueError(f"{name} must be finite; got -inf, which negative='clip' does not set to zero.")
    n_clipped, share = negative_share(entries)
    zeroed: Floats = np.where(negative, entries.dtype.type(0), entries)
    clipped = sp.csr_array((zeroed, array.indices, array.indptr), shape=array.shape) if is_sparse else zeroed
    return Clipped(clipped, n_clipped, share)


def warn_of_clipping(n_clipped: int, clipped_share: float, *, name: str = "matrix") -> None:
    """Warn the caller of a public function that more than noise was cut off."""
    if clipped_share > LARGE_SHARE:
        warn_caller(
            f"The negative entries of {name} were set to zero: {n_clipped} in number, {100 * clipped_share:.3g} % of "
            "its norm. That is more than noise: look at the data, or add a constant to it first.",
        )

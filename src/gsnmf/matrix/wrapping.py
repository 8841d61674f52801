"""Turns anything matrix-like into a checked `Matrix`: the entrance of every public function."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gsnmf.matrix.checks import check_with_largest
from gsnmf.matrix.holding import hold
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.remedies import Remedies
from gsnmf.support.arrays import Floats


def wrap(matrix: Any, *, name: str = "matrix", remedies: Remedies | None = None) -> Matrix:
    """Check a matrix, which error messages call ``name``, and hold it in the form that algorithms use.

    Parameters
    ----------
    matrix : array-like, DataFrame, SciPy sparse, Dask array, or a `Matrix`, which comes back as it is
        The entries of a Dask array are checked when they are first read.
    name : str
    remedies : Remedies, optional
        What messages advise about NaN and negative entries; by default it follows from ``name``.

    Examples
    --------
    >>> M = wrap([[3, 0], [4, 2]])
    >>> M.squared_column_norms, M.T.squared_column_norms
    (array([25.,  4.]), array([ 9., 20.]))
    """
    if isinstance(matrix, Matrix):
        return matrix
    if is_dask(matrix):
        from gsnmf.matrix.chunked import ChunkedMatrix, check_dask_array  # only here: it needs Dask

        return ChunkedMatrix(check_dask_array(matrix, name), name)
    return hold(*check_with_largest(matrix, name=name, remedies=remedies))


def wrap_in_memory(matrix: Any, *, name: str = "matrix") -> InMemoryMatrix:
    """`wrap` for computations that need the matrix in memory."""
    held = wrap(matrix, name=name)
    if not isinstance(held, InMemoryMatrix):
        raise TypeError(f"{name} is a Dask array, and this needs it in memory; pass {name}.compute() if it fits.")
    return held


def check_block(block: Any, shape: tuple[int | None, int | None], *, name: str, nonnegative: bool = False) -> Floats:
    """Return a dense block of numbers of a given shape (None: any length), or say what is wrong with it.

    A Dask array passes with its shape checked; it is one of the arrays that stay with their data.
    """
    array = block if is_dask(block) else np.asarray(block)
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {tuple(array.shape)}.")
    wanted = tuple("any" if length is None else length for length in shape)
    if any(w is not None and w != s for w, s in zip(shape, array.shape, strict=False)):
        raise ValueError(f"{name} must have shape ({wanted[0]}, {wanted[1]}); got {tuple(array.shape)}.")
    if is_dask(array):
        return array
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    floats: Floats = array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} must be finite; got NaN or infinity.")
    if nonnegative and floats.size and floats.min() < 0:
        raise ValueError(f"{name} must be nonnegative; got {floats.min()}.")
    return floats


def is_dask(matrix: Any) -> bool:
    """Whether this is a Dask array; Dask is not imported to find out."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(matrix, module.Array)

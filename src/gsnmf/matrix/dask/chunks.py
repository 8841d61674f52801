"""What a Dask array and each of its chunks must be, checked before and while they are read."""

from __future__ import annotations

from typing import Any, cast

import dask.array as da
import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.validation import check_matrix, float_type
from gsnmf.support.arrays import Doubles, RawMatrix, Sparse
from gsnmf.support.warning import warn_caller

_MANY_CHUNKS = 2000
_SMALL_CHUNK = 1 << 16
"""Above this number of chunks with fewer entries than this, Dask spends more time scheduling than computing."""


def check_dask_array(matrix: da.Array, name: str) -> da.Array:
    """Return a Dask array if its shape and type are right, or say how to make them right. Entries are not checked."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional; got shape {matrix.shape}.")
    if any(np.isnan(size) for sizes in matrix.chunks for size in sizes):
        raise ValueError(
            f"{name} must have chunks of known sizes; got chunks {matrix.chunks}. Call {name}.compute_chunk_sizes() "
            "first, or, for an array from a Dask DataFrame, use frame.to_dask_array(lengths=True)."
        )
    if min(matrix.shape) == 0:
        raise ValueError(f"{name} must have at least one row and one column; got shape {matrix.shape}.")
    if matrix.dtype == object:
        raise TypeError(f"{name} must hold real numbers; got dtype object. Use {name}.astype(float) if they all are.")
    float_type(matrix.dtype, name)
    n_entries = matrix.shape[0] * matrix.shape[1]
    if matrix.npartitions > _MANY_CHUNKS and n_entries < _SMALL_CHUNK * matrix.npartitions:
        warn_caller(
            f"{name} has {matrix.npartitions} chunks of about {n_entries // matrix.npartitions} entries, and every "
            f"pass over it takes about a millisecond per chunk; {name}.rechunk('64 MiB') makes them larger.",
        )
    return matrix


def held(block: Any, *, dtype: np.dtype[Any], exponent: int) -> RawMatrix:
    """A chunk as an array or compressed sparse array of the right type and unit."""
    if sp.issparse(block):
        kind: Any = sp.csc_array if getattr(block, "format", "csr") == "csc" else sp.csr_array
        compressed: Sparse = kind(block).astype(dtype, copy=False)
        if not exponent:
            return compressed
        parts = np.ldexp(compressed.data, -exponent), compressed.indices, compressed.indptr
        return cast("Sparse", kind(parts, shape=compressed.shape))
    array = np.asarray(block).astype(dtype, copy=False)
    return np.ldexp(array, -exponent) if exponent else array


def inspected(
    block: Any, *, name: str, chunks: tuple[tuple[int, ...], ...], dtype: np.dtype[Any], exponent: int,
    block_id: tuple[int, int],
) -> tuple[Doubles, Doubles, Doubles]:  # fmt: skip
    """A chunk's contributions to the totals of columns and of rows, and its largest entry."""
    i, j = block_id
    expected = (chunks[0][i], chunks[1][j])
    if np.shape(block) != expected:
        raise ValueError(
            f"chunk {block_id} of {name} must have shape {expected}, as its chunks say; got {np.shape(block)}. Give "
            f"map_blocks the true sizes as chunks=, or call {name}.compute_chunk_sizes()."
        )
    if not sp.issparse(block) and not isinstance(block, np.ndarray):
        raise TypeError(
            f"chunks of {name} must be NumPy arrays or SciPy sparse matrices; got {type(block).__name__} in chunk "
            f"{block_id}. Convert them with {name}.map_blocks."
        )
    m, n = expected
    if min(expected) == 0:
        return np.zeros((1, n, 2)), np.zeros((m, 1, 2)), np.zeros((1, 1))
    origin = sum(chunks[0][:i]), sum(chunks[1][:j])
    try:
        checked = check_matrix(block, name=f"chunk {block_id} of {name}", origin=origin)
    except ValueError as error:
        raise ValueError(f"{error} To take such entries as zero: {_zeroed(name, sp.issparse(block))}.") from None
    typed = held(checked, dtype=dtype, exponent=exponent)
    entries = typed if isinstance(typed, np.ndarray) else typed.data
    peak = np.full((1, 1), entries.max(initial=0.0), dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):  # then another pass follows in another unit
        if isinstance(typed, np.ndarray):
            squares = [np.einsum(f"ij,ij->{axis}", typed, typed, dtype=np.float64) for axis in "ji"]
            sums = [typed.sum(axis=axis, dtype=np.float64) for axis in (0, 1)]
        else:
            double = typed.astype(np.float64)
            sums = [np.asarray(double.sum(axis=axis)).ravel() for axis in (0, 1)]
            double.data = np.square(typed.data, dtype=np.float64)
            squares = [np.asarray(double.sum(axis=axis)).ravel() for axis in (0, 1)]
    of_columns, of_rows = (np.stack(pair, axis=1) for pair in zip(squares, sums, strict=True))
    return of_columns[None], of_rows[:, None], peak


def _zeroed(name: str, sparse: bool) -> str:
    if not sparse:
        return f"da.where(({name} > 0) & ({name} < np.inf), {name}, 0)"
    return f"{name}.map_blocks of a function with chunk.data[~((chunk.data > 0) & (chunk.data < np.inf))] = 0"

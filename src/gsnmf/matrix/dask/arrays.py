"""Lazy arrays made from a Dask array or from its chunks of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from gsnmf._parallel import in_one_thread
from gsnmf.matrix.dask.chunks import held
from gsnmf.matrix.dask.passes import NO_META, single_chunk
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.protocol import dense, largest_of
from gsnmf.matrix.validation import check_with_largest, float_type
from gsnmf.support.arrays import Floats, Indices


def gather(matrix: da.Array, indices: Indices, *, transposed: bool) -> Floats:
    """Columns of a Dask array (or rows, as columns) as a dense block in memory."""
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if indices.size == 0:
        return np.empty((matrix.shape[1 if transposed else 0], 0), dtype=dtype)
    lazy, order, _ = gathered(_typed(matrix, dtype), indices, transposed)
    return np.asarray(lazy.compute()[:, order])


def lazy_columns(matrix: da.Array, indices: Indices) -> da.Array:
    """Columns of a Dask array as a lazy dense block in its chunks of rows."""
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if indices.size == 0:
        return da.empty((matrix.shape[0], 0), chunks=(matrix.chunks[0], (0,)), dtype=dtype)
    lazy, order, _ = gathered(_typed(matrix, dtype), indices, transposed=False)
    return lazy.map_blocks(_reordered, order, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))


def left_factor(matrix: da.Array, columns: Indices, row_weights: Any) -> Floats:
    """[M[:, columns], P2] as a Dask array with the row chunks of the matrix; the weights may be lazy or not."""
    weights = (
        row_weights if isinstance(row_weights, da.Array) else da.from_array(row_weights, chunks=(matrix.chunks[0], -1))
    )
    parts = [part for part in (lazy_columns(matrix, columns), weights) if part.shape[1]]
    if not parts:
        return cast("Floats", weights)
    return cast("Floats", da.concatenate(parts, axis=1).rechunk({1: -1}))


def map_chunks_of_rows(
    matrix: da.Array,
    function: Callable[..., Floats],
    width: int,
    *,
    shared: tuple[Floats, ...] = (),
    name: str = "matrix",
) -> da.Array:
    """Apply a function lazily to checked rows; it gives ``width`` numbers per row, in the same chunks of rows.

    The function gets all columns of a chunk of rows at once. Its other arguments are the ``shared`` arrays, which go to
    each worker once.
    """
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if width == 0:
        return da.zeros((matrix.shape[0], 0), chunks=(matrix.chunks[0], (0,)), dtype=dtype)
    starts = da.from_array(np.cumsum((0, *matrix.chunks[0][:-1])), chunks=1, name=False)
    return da.blockwise(
        partial(_mapped_rows, function=function, width=width, dtype=dtype, name=name), "ik", matrix, "ij", starts, "i",
        new_axes={"k": width}, align_arrays=False,
        shared=[dask.delayed(array) for array in shared], concatenate=None, dtype=dtype,
        meta=np.empty((0, 0), dtype=dtype),
    )  # fmt: skip


def strongest_rows(array: da.Array, count: int) -> list[tuple[Indices, Floats]]:
    """Positions and values of the largest positive entries of each column of an array with one chunk of columns."""
    starts = np.cumsum((0, *array.chunks[0]))
    found = dask.compute(*[dask.delayed(_strongest)(chunk, count) for chunk in array.to_delayed()[:, 0]])
    best = []
    for k in range(array.shape[1]):
        positions = np.concatenate([start + part[k][0] for start, part in zip(starts, found, strict=False)])
        values = np.concatenate([part[k][1] for part in found])
        at = largest_of(values, count)
        best.append((positions[at], values[at]))
    return best


def _strongest(chunk: Floats, count: int) -> list[tuple[Indices, Floats]]:
    found = [(largest_of(column, count), column) for column in chunk.T]
    return [(positions, column[positions]) for positions, column in found]


def located(indices: Indices, sizes: tuple[int, ...]) -> tuple[Indices, list[Indices], Indices]:
    """The chunks that hold these indices in increasing order, the positions in each, and how to restore the order."""
    starts = np.cumsum((0, *sizes))
    sorting = np.argsort(indices, kind="stable")
    ordered = indices[sorting]
    owners = np.searchsorted(starts, ordered, side="right") - 1
    blocks = np.unique(owners)
    return blocks, [ordered[owners == b] - starts[b] for b in blocks], np.argsort(sorting)


def chunks_at(array: da.Array, blocks: Indices, transposed: bool) -> da.Array:
    """The chunks with these numbers along the columns or, if ``transposed``, along the rows."""
    return array.blocks[blocks.tolist(), :] if transposed else array.blocks[:, blocks.tolist()]


def gathered(array: da.Array, indices: Indices, transposed: bool) -> tuple[da.Array, Indices, float]:
    """Lazy dense columns in increasing order, how to restore their order, and what fraction of the data they read.

    With ``transposed``, rows as columns.
    """
    axis = 0 if transposed else 1
    blocks, local, order = located(indices, array.chunks[axis])
    parts = [
        da.blockwise(
            partial(extracted, indices=part, transposed=transposed), "jk" if transposed else "ik",
            chunks_at(array, blocks[at : at + 1], transposed), "ij", new_axes={"k": part.size}, concatenate=None,
            dtype=array.dtype, meta=NO_META,
        )
        for at, part in enumerate(local)
    ]  # fmt: skip
    joined = parts[0] if len(parts) == 1 else da.concatenate(parts, axis=1).rechunk({1: -1})
    return joined, order, blocks.size / len(array.chunks[axis])


def extracted(blocks: Any, *, indices: Indices, transposed: bool) -> Floats:
    """Columns (or rows) of a chunk as dense columns."""
    block = single_chunk(blocks)
    return dense(block[indices].T if transposed else block[:, indices])


def _typed(matrix: da.Array, dtype: np.dtype[Any]) -> da.Array:
    return matrix.map_blocks(partial(held, dtype=dtype, exponent=0), dtype=dtype, meta=NO_META)


def _reordered(block: Floats, order: Indices) -> Floats:
    return block[:, order]


def _mapped_rows(
    blocks: Any,
    starts: Indices,
    *,
    function: Callable[..., Floats],
    width: int,
    dtype: np.dtype[Any],
    name: str,
    shared: list[Floats],
) -> Floats:
    parts: list[Any] = [held(block, dtype=dtype, exponent=0) for block in blocks]
    if parts[0].shape[0] == 0:
        return np.empty((0, width), dtype=dtype)
    all_dense = all(isinstance(part, np.ndarray) for part in parts)
    rows = np.hstack(parts) if all_dense else sp.hstack([sp.csr_array(part) for part in parts], format="csr")
    with in_one_thread():
        return function(hold(*check_with_largest(rows, name=name, origin=(int(starts[0]), 0))), *shared)

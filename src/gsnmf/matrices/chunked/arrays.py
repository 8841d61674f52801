"""Arrays that are made from a Dask array, or from its chunks of rows, and are as lazy as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from gsnmf.kernels.threads import in_one_thread
from gsnmf.matrices.checks import check_matrix, float_type, is_dask
from gsnmf.matrices.chunked.chunks import held
from gsnmf.matrices.chunked.passes import NO_META, only
from gsnmf.matrices.protocol import dense
from gsnmf.support.arrays import Floats, Indices


def gather(matrix: da.Array, indices: Indices, *, across: bool) -> Floats:
    """Columns of a Dask array, or rows as columns, as a dense block in memory."""
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if indices.size == 0:
        return np.empty((matrix.shape[1 if across else 0], 0), dtype=dtype)
    lazy, order, _ = gathered(_typed(matrix, dtype), indices, across)
    return np.asarray(lazy.compute()[:, order])


def lazy_columns(matrix: da.Array, indices: Indices) -> da.Array:
    """Columns of a Dask array as a lazy dense block in its chunks of rows."""
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if indices.size == 0:
        return da.empty((matrix.shape[0], 0), chunks=(matrix.chunks[0], (0,)), dtype=dtype)
    lazy, order, _ = gathered(_typed(matrix, dtype), indices, across=False)
    return lazy.map_blocks(_reordered, order, dtype=dtype, meta=np.empty((0, 0), dtype=dtype))


def left_factor(matrix: da.Array, columns: Indices, row_weights: Any) -> Floats:
    """[M[:, columns], P2] as a Dask array in the chunks of the rows of the matrix, for lazy or other weights."""
    weights = row_weights if is_dask(row_weights) else da.from_array(row_weights, chunks=(matrix.chunks[0], -1))
    parts = [part for part in (lazy_columns(matrix, columns), weights) if part.shape[1]]
    if not parts:
        return cast("Floats", weights)
    return cast("Floats", da.concatenate(parts, axis=1).rechunk({1: -1}))


def map_rows(
    matrix: da.Array,
    function: Callable[..., Floats],
    width: int,
    *,
    shared: tuple[Floats, ...] = (),
    name: str = "matrix",
) -> da.Array:
    """Lazily, what a function of checked rows gives for each, ``width`` numbers a row; chunks of rows stay as they are.

    All columns of a chunk of rows are put together for it. The ``shared`` arrays, which go to each worker once, are its
    other arguments.
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


def in_chunks_of_rows(array: da.Array, function: Callable[[Floats], Any]) -> list[tuple[int, Any]]:
    """What a function gives for each chunk of rows, which should be little, with the number of its first row.

    The array has all its columns in one chunk.
    """
    starts = np.cumsum((0, *array.chunks[0]))
    found = dask.compute(*[dask.delayed(function)(chunk) for chunk in array.to_delayed()[:, 0]])
    return [(int(start), part) for start, part in zip(starts, found, strict=False)]


def located(indices: Indices, sizes: tuple[int, ...]) -> tuple[Indices, list[Indices], Indices]:
    """Chunks in which indices are, in increasing order, where they are in each, and how to restore their order."""
    starts = np.cumsum((0, *sizes))
    sorting = np.argsort(indices, kind="stable")
    ordered = indices[sorting]
    owners = np.searchsorted(starts, ordered, side="right") - 1
    blocks = np.unique(owners)
    return blocks, [ordered[owners == b] - starts[b] for b in blocks], np.argsort(sorting)


def thick(array: da.Array, blocks: Indices, across: bool) -> da.Array:
    """The chunks of these numbers along the columns, or, ``across``, along the rows."""
    return array.blocks[blocks.tolist(), :] if across else array.blocks[:, blocks.tolist()]


def gathered(array: da.Array, indices: Indices, across: bool) -> tuple[da.Array, Indices, float]:
    """Lazy dense columns in increasing order, how to restore their order, and which part of the data they read.

    With ``across``, rows as columns.
    """
    axis = 0 if across else 1
    blocks, local, order = located(indices, array.chunks[axis])
    parts = [
        da.blockwise(
            partial(extracted, indices=part, across=across), "jk" if across else "ik",
            thick(array, blocks[at : at + 1], across), "ij", new_axes={"k": part.size}, concatenate=None,
            dtype=array.dtype, meta=NO_META,
        )
        for at, part in enumerate(local)
    ]  # fmt: skip
    joined = parts[0] if len(parts) == 1 else da.concatenate(parts, axis=1).rechunk({1: -1})
    return joined, order, blocks.size / len(array.chunks[axis])


def extracted(blocks: Any, *, indices: Indices, across: bool) -> Floats:
    """Columns, or rows, of a chunk, as dense columns."""
    block = only(blocks)
    return dense(block[indices].T if across else block[:, indices])


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
        return function(check_matrix(rows, name=name, origin=(int(starts[0]), 0)), *shared)

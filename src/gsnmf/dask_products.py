"""Products of a Dask array, whose chunks are dense arrays or SciPy sparse matrices: each request is one pass.

A pass is one ``compute`` of one small task a chunk, whose results (parts of vectors, or blocks a few columns wide) are
added in a tree of fixed shape, so that a result depends neither on the scheduler nor on which worker did what. Nothing
stays on the workers between passes: one that is lost costs its tasks of the current pass, which Dask computes again.

Chunks are read again in every pass. An array that fits in the memory of all workers together is best persisted first
(``matrix = matrix.persist()``).
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NoReturn, cast

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gsnmf.products import BLOCK_BYTES, DenseProducts, Products, SparseProducts, safe_exponent
from gsnmf.validation import Floats, Indices, Matrix, Sparse, check_matrix, float_type

logger = logging.getLogger("gsnmf")

_SPLIT = 8
"""Partial results that are added at a time."""

_MANY_CHUNKS = 2000
_SMALL_CHUNK = 1 << 16
"""More chunks than that of fewer entries than this spend their time on being scheduled."""

_LONG = 1 << 26
"""Norms and sums of more columns, or rows, than this are not computed unless they are asked for, in one pass more."""

_NO_META = np.empty((0, 0))


def check_dask_matrix(matrix: da.Array, name: str) -> da.Array:
    """Return a Dask array whose shape and type are right, or say how to make them right; entries are not looked at."""
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
        warnings.warn(
            f"{name} has {matrix.npartitions} chunks of about {n_entries // matrix.npartitions} entries, and every "
            f"pass over it takes about a millisecond a chunk; {name}.rechunk('64 MiB') makes them larger.",
            UserWarning,
            stacklevel=4,
        )
    return matrix


def gather(matrix: da.Array, indices: Indices, *, across: bool) -> Floats:
    """Columns of a Dask array, or rows as columns, as a dense block in memory."""
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    if indices.size == 0:
        return np.empty((matrix.shape[1 if across else 0], 0), dtype=dtype)
    held = matrix.map_blocks(partial(_held, dtype=dtype, exponent=0), dtype=dtype, meta=_NO_META)
    lazy, order, _ = _gathered(held, indices, across)
    return np.asarray(lazy.compute()[:, order])


def map_rows(matrix: da.Array, function: Callable[[Matrix], Floats], width: int) -> da.Array:
    """Lazily, what a function of checked rows gives for each, ``width`` numbers a row; chunks of rows stay as they are.

    All columns of a chunk of rows are put together for it.
    """
    dtype = np.dtype(float_type(matrix.dtype, "matrix"))
    return da.blockwise(
        partial(_mapped_rows, function=function, width=width, dtype=dtype), "ik", matrix, "ij", new_axes={"k": width},
        concatenate=None, dtype=dtype, meta=np.empty((0, 0), dtype=dtype),
    )  # fmt: skip


class DaskProducts(Products):
    """Products of a Dask array with known chunks.

    Attributes
    ----------
    n_passes : float
        How often the data were read so far; a read of some of the chunks counts as that part.
    """

    out_of_core = True

    def __init__(self, array: da.Array, name: str = "matrix") -> None:
        self._source = _Source(array, name)
        self._across = False
        self._set_shape()
        self._transpose: DaskProducts | None = None

    def _set_shape(self) -> None:
        m, n = self._source.array.shape
        self.shape = (n, m) if self._across else (m, n)
        self.dtype = self._source.dtype
        self.exponent = self._source.exponent

    @property
    def T(self) -> DaskProducts:  # noqa: D102
        if self._transpose is None:
            transpose = object.__new__(DaskProducts)
            transpose._source, transpose._across, transpose._transpose = self._source, not self._across, self
            transpose._set_shape()
            self._transpose = transpose
        return self._transpose

    @property
    def n_passes(self) -> float:  # noqa: D102
        return self._source.n_passes

    @property
    def accumulator(self) -> np.dtype[np.floating]:  # noqa: D102
        return np.dtype(np.float64)

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.size == 0:
            return np.empty((self.shape[0], 0), dtype=block.dtype)
        return _like(self._source.compute(self._lazy_dot(block))[0], block)

    def dot_both_ways(self, right: Floats, left: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        first, second = self._source.compute(self._lazy_dot(right), self.T._lazy_dot(left))
        return _like(first, right), _like(second, left)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        if indices.size == 0:
            return np.empty((self.shape[0], 0), dtype=self.dtype, order="F")
        lazy, order, part = self._columns(indices)
        return np.asfortranarray(self._source.compute(lazy, part=part)[0][:, order])

    def with_products(self, indices: Indices) -> tuple[Floats, NDArray[np.float64]]:  # noqa: D102
        if indices.size == 0:
            return self.columns(indices), np.empty((self.shape[1], 0))
        lazy, images, order = self._with_images(indices)
        chosen, products = self._source.compute(lazy, images)
        return np.asfortranarray(chosen[:, order]), products[:, order]

    def gram_rows(self, indices: Indices) -> NDArray[np.float64]:  # noqa: D102
        if indices.size == 0:
            return np.empty((0, self.shape[1]))
        _, images, order = self._with_images(indices)
        return np.ascontiguousarray(self._source.compute(images)[0][:, order].T)

    def gram(self, indices: Indices) -> NDArray[np.float64]:  # noqa: D102
        lazy, order, part = self._columns(indices)
        squares = da.blockwise(
            _square, "ikl", lazy, "ik", new_axes={"l": indices.size}, adjust_chunks={"i": 1}, dtype=np.float64,
            meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        gram = self._source.compute(squares.sum(axis=0, split_every=_SPLIT), part=part)[0]
        return np.asarray(gram[np.ix_(order, order)])

    @cached_property
    def squared_column_norms(self) -> NDArray[np.float64]:  # noqa: D102
        return np.ascontiguousarray(self._source.totals(self._across)[:, 0])

    @cached_property
    def column_sums(self) -> NDArray[np.float64]:  # noqa: D102
        return np.ascontiguousarray(self._source.totals(self._across)[:, 1])

    def squared_residual(self, W: Floats, H: Floats) -> float:  # noqa: D102
        if self._across:
            return self.T.squared_residual(H.T, W.T)
        if W.shape[1] == 0:
            return self.squared_norm
        left, right = self._spread(W, "i"), self._spread(np.ascontiguousarray(H.T), "j")
        parts = da.blockwise(
            _squared_residual, "ij", self._source.held, "ij", left, "ik", right, "jk", concatenate=True,
            align_arrays=False, adjust_chunks={"i": 1, "j": 1}, dtype=np.float64, meta=_NO_META,
        )  # fmt: skip
        return float(self._source.compute(parts.sum(split_every=_SPLIT))[0])

    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> NDArray[np.float64]:  # noqa: D102
        blocks, local, order = _located(indices, self._source.array.chunks[0 if self._across else 1])
        widths = tuple(part.size for part in local)
        right = da.from_array(H.T[np.argsort(order)], chunks=(widths, -1), name=False)
        chosen = da.from_array(np.concatenate(local), chunks=(widths,), name=False)
        norms = da.blockwise(
            partial(_residual_norms, across=self._across), "ij",
            _thick(self._source.held, blocks, self._across), "ij", chosen, self._inner,
            self._spread(W, self._outer), f"{self._outer}k", right, f"{self._inner}k", concatenate=True,
            align_arrays=False, adjust_chunks={self._outer: 1, self._inner: widths}, dtype=np.float64, meta=_NO_META,
        )  # fmt: skip
        part = blocks.size / len(self._source.array.chunks[0 if self._across else 1])
        total = norms.sum(axis=1 if self._across else 0, split_every=_SPLIT)
        return np.asarray(self._source.compute(total, part=part)[0][order])

    def residual(self, W: Floats, H: Floats) -> NoReturn:  # noqa: D102
        raise TypeError("this needs the matrix in memory; pass matrix.compute() instead of a Dask array.")

    @property
    def _outer(self) -> str:
        """Letter of the rows of this orientation in the underlying array, whose axes are i and j."""
        return "j" if self._across else "i"

    @property
    def _inner(self) -> str:
        return "i" if self._across else "j"

    def _spread(self, block: Floats, axis: str) -> da.Array:
        """A block of vectors in the chunks of an axis of the underlying array, for the graph of a pass."""
        chunks = self._source.array.chunks["ij".index(axis)]
        return da.from_array(block, chunks=(chunks, (block.shape[1],)), name=False)

    def _lazy_dot(self, block: Floats) -> da.Array:
        return self._product(self._spread(block[:, None] if block.ndim == 1 else block, self._inner))

    def _product(self, block: da.Array) -> da.Array:
        """The lazy product, in double precision, with a lazy block of columns in the chunks of the inner axis."""
        products = da.blockwise(
            partial(_product, across=self._across), "ijk", self._source.held, "ij", block, f"{self._inner}k",
            align_arrays=False, adjust_chunks={self._inner: 1}, dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        return products.sum(axis=0 if self._across else 1, split_every=_SPLIT)

    def _with_images(self, indices: Indices) -> tuple[da.Array, da.Array, Indices]:
        """Lazy dense columns in increasing order, their products with all columns, and how to restore their order."""
        if len(self._source.array.chunks[0 if self._across else 1]) > 1:
            lazy, order, _ = self._columns(indices)
            return lazy, self.T._product(lazy), order
        # One task does both where a chunk has all that it takes, so that chunks never go from worker to worker
        ordered, order = np.sort(indices), np.argsort(np.argsort(indices, kind="stable"))
        pairs = da.blockwise(
            partial(_extracted_with_product, indices=ordered, across=self._across), "ij", self._source.held, "ij",
            dtype=object, meta=np.empty((0, 0), dtype=object),
        )  # fmt: skip
        lazy = da.blockwise(
            partial(_part, at=0), f"{self._outer}k", pairs, "ij", new_axes={"k": indices.size}, concatenate=None,
            dtype=self.dtype, meta=_NO_META,
        )  # fmt: skip
        images = da.blockwise(
            partial(_part, at=1), "ijk", pairs, "ij", new_axes={"k": indices.size}, adjust_chunks={self._outer: 1},
            dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        return lazy, images.sum(axis=1 if self._across else 0, split_every=_SPLIT), order

    def _columns(self, indices: Indices) -> tuple[da.Array, Indices, float]:
        return _gathered(self._source.held, indices, self._across)


class _Source:
    """A Dask array, what its first pass found, and the count of passes."""

    def __init__(self, array: da.Array, name: str) -> None:
        self.array = array
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(float_type(array.dtype, name))
        self.n_passes = 0.0
        self.exponent = 0
        self._name = name
        short = [at for at in (0, 1) if array.shape[1 - at] <= _LONG]
        self._totals, largest = self._inspect(short)
        self.exponent = safe_exponent(largest, self.dtype)
        if self.exponent:
            self._totals, _ = self._inspect(short)

    def totals(self, across: bool) -> NDArray[np.float64]:
        """Squared norm and sum of every column, or, ``across``, of every row."""
        at = int(across)
        if at not in self._totals:
            self._totals |= self._inspect([at])[0]
        return self._totals[at]

    @cached_property
    def held(self) -> da.Array:
        """The array with its chunks in the type and unit in which all is computed."""
        prepare = partial(_held, dtype=self.dtype, exponent=self.exponent)
        return self.array.map_blocks(prepare, dtype=self.dtype, meta=_NO_META)

    def compute(self, *lazy: da.Array, part: float = 1.0) -> tuple[Any, ...]:
        """One pass over the data, or over a part of them."""
        self.n_passes += part
        logger.debug("pass over the data; %.4g so far", self.n_passes)
        # Vectors are meant to travel with the tasks; before distributed is imported, its settings must not be touched
        quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"} if "distributed" in sys.modules else {}
        with dask.config.set(quiet):
            computed: tuple[Any, ...] = dask.compute(*lazy)
        return computed

    def _inspect(self, axes: list[int]) -> tuple[dict[int, NDArray[np.float64]], float]:
        """Check every entry; squared norms and sums of columns (0) and of rows (1), and the largest entry."""
        found = self.array.map_blocks(
            partial(_inspected, name=self._name, chunks=self.array.chunks, dtype=self.dtype, exponent=self.exponent),
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
        )
        totals = [
            da.blockwise(
                partial(_part, at=at), "ijk", found, "ij", new_axes={"k": 2}, adjust_chunks={"ij"[at]: 1},
                dtype=np.float64, meta=np.empty((0, 0, 0)),
            ).sum(axis=at, split_every=_SPLIT)
            for at in axes
        ]  # fmt: skip
        largest = da.blockwise(
            partial(_part, at=2), "ij", found, "ij", adjust_chunks={"i": 1, "j": 1}, dtype=np.float64, meta=_NO_META
        ).max(split_every=_SPLIT)
        peak, *computed = self.compute(largest, *totals)
        return dict(zip(axes, computed, strict=True)), float(peak)


def _located(indices: Indices, sizes: tuple[int, ...]) -> tuple[Indices, list[Indices], Indices]:
    """Chunks in which indices are, in increasing order, where they are in each, and how to restore their order."""
    starts = np.cumsum((0, *sizes))
    sorting = np.argsort(indices, kind="stable")
    ordered = indices[sorting]
    owners = np.searchsorted(starts, ordered, side="right") - 1
    blocks = np.unique(owners)
    return blocks, [ordered[owners == b] - starts[b] for b in blocks], np.argsort(sorting)


def _thick(array: da.Array, blocks: Indices, across: bool) -> da.Array:
    """The chunks of these numbers along the columns, or, ``across``, along the rows."""
    return array.blocks[blocks.tolist(), :] if across else array.blocks[:, blocks.tolist()]


def _gathered(array: da.Array, indices: Indices, across: bool) -> tuple[da.Array, Indices, float]:
    """Lazy dense columns in increasing order, how to restore their order, and which part of the data they read.

    With ``across``, rows as columns.
    """
    axis = 0 if across else 1
    blocks, local, order = _located(indices, array.chunks[axis])
    parts = [
        da.blockwise(
            partial(_extracted, indices=part, across=across), "jk" if across else "ik",
            _thick(array, blocks[at : at + 1], across), "ij", new_axes={"k": part.size}, concatenate=None,
            dtype=array.dtype, meta=_NO_META,
        )
        for at, part in enumerate(local)
    ]  # fmt: skip
    joined = parts[0] if len(parts) == 1 else da.concatenate(parts, axis=1).rechunk({1: -1})
    return joined, order, blocks.size / len(array.chunks[axis])


def _like(product: Floats, operand: Floats) -> Floats:
    """A product as the operand came: in its precision, a vector if it was one."""
    return np.asarray(product[:, 0] if operand.ndim == 1 else product, dtype=operand.dtype)


def _held(block: Any, *, dtype: np.dtype[Any], exponent: int) -> Matrix:
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


def _inspected(
    block: Any, *, name: str, chunks: tuple[tuple[int, ...], ...], dtype: np.dtype[Any], exponent: int,
    block_id: tuple[int, int],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Totals of the columns and of the rows of a chunk, as its part of the sums of all, and its largest entry."""
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
    held = _held(checked, dtype=dtype, exponent=exponent)
    entries = held if isinstance(held, np.ndarray) else held.data
    peak = np.full((1, 1), entries.max(initial=0.0), dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):  # then there is another pass in another unit
        if isinstance(held, np.ndarray):
            squares = [np.einsum(f"ij,ij->{axis}", held, held, dtype=np.float64) for axis in "ji"]
            sums = [held.sum(axis=axis, dtype=np.float64) for axis in (0, 1)]
        else:
            double = held.astype(np.float64)
            sums = [np.asarray(double.sum(axis=axis)).ravel() for axis in (0, 1)]
            double.data = np.square(held.data, dtype=np.float64)
            squares = [np.asarray(double.sum(axis=axis)).ravel() for axis in (0, 1)]
    of_columns, of_rows = (np.stack(pair, axis=1) for pair in zip(squares, sums, strict=True))
    return of_columns[None], of_rows[:, None], peak


def _zeroed(name: str, sparse: bool) -> str:
    if not sparse:
        return f"da.where(({name} > 0) & ({name} < np.inf), {name}, 0)"
    return f"{name}.map_blocks of a function with chunk.data[~((chunk.data > 0) & (chunk.data < np.inf))] = 0"


def _mapped_rows(blocks: Any, *, function: Callable[[Matrix], Floats], width: int, dtype: np.dtype[Any]) -> Floats:
    parts: list[Any] = [_held(block, dtype=dtype, exponent=0) for block in blocks]
    if parts[0].shape[0] == 0:
        return np.empty((0, width), dtype=dtype)
    rows = np.hstack(parts) if isinstance(parts[0], np.ndarray) else sp.hstack(parts, format="csr")
    return function(check_matrix(rows, name="X"))


def _part(found: Any, *, at: int) -> NDArray[np.float64]:
    """One of several results of a task."""
    part: NDArray[np.float64] = _only(found)[at]
    return part


def _product(block: Matrix, vectors: Floats, *, across: bool) -> NDArray[np.float64]:
    """A chunk, or its transpose, times the part of a block of vectors that belongs to it."""
    product = (block.T if across else block) @ vectors.astype(np.float64, copy=False)
    return np.expand_dims(np.asarray(product, dtype=np.float64), 0 if across else 1)


def _extracted(blocks: Any, *, indices: Indices, across: bool) -> Floats:
    """Columns, or rows, of a chunk, as dense columns."""
    block = _only(blocks)
    return _dense(block[indices].T if across else block[:, indices])


def _extracted_with_product(block: Matrix, *, indices: Indices, across: bool) -> tuple[Floats, NDArray[np.float64]]:
    chosen = _extracted(block, indices=indices, across=across)
    return chosen, _product(block, chosen, across=not across)


def _residual_norms(block: Matrix, indices: Indices, W: Floats, H: Floats, *, across: bool) -> NDArray[np.float64]:
    side = block.T if across else block
    side = side if isinstance(side, np.ndarray) else side.tocsc()
    norms = np.zeros(indices.size)
    step = max(1, BLOCK_BYTES // (8 * max(1, side.shape[0])))
    for start in range(0, indices.size, step):
        part = slice(start, start + step)
        residual = _dense(side[:, indices[part]]) - W @ H[part].T
        norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
    return norms[:, None] if across else norms[None]


def _squared_residual(block: Matrix, W: Floats, H: Floats) -> NDArray[np.float64]:
    if min(block.shape) == 0:
        return np.zeros((1, 1))
    held = (
        DenseProducts(block) if isinstance(block, np.ndarray) else SparseProducts(cast("Sparse", check_matrix(block)))
    )
    return np.full((1, 1), held.squared_residual(W, H.T))


def _square(block: Floats, *_: Any) -> NDArray[np.float64]:
    double = block.astype(np.float64, copy=False)
    return np.asarray((double.T @ double)[None])


def _only(blocks: Any) -> Any:
    """The one chunk in the nested list that Dask passes for an axis that is summed over."""
    while isinstance(blocks, list):
        (blocks,) = blocks
    return blocks


def _dense(block: Any) -> Floats:
    return block if isinstance(block, np.ndarray) else np.asarray(block.toarray())

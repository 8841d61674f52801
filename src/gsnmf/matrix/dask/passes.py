"""Passes over the chunks of a Dask array: each is one execution, and they are counted.

A pass is one small task per chunk. The results of the tasks (parts of vectors, or blocks a few columns wide) are added
in a tree of fixed shape, so that a result depends neither on the scheduler nor on which worker did what. Results with
one entry per column come to the driver. Results with one entry per row stay where they were computed, as Dask arrays in
the chunks of the rows: a worker that is lost takes its part of them with it, and Dask computes that part again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import dask
import dask.array as da
import numpy as np

from gsnmf._parallel import in_one_thread
from gsnmf.matrix.dask.chunks import held, inspected
from gsnmf.matrix.protocol import safe_exponent
from gsnmf.matrix.validation import float_type
from gsnmf.support.arrays import Doubles
from gsnmf.support.progress import logger

SPLIT = 8
"""How many partial results are added at a time."""

NO_META = np.empty((0, 0))

_LONG = 1 << 26
"""With more rows than this, norms and sums of rows are computed only on request, in one extra pass."""


class Passes:
    """A Dask array, the findings of its first pass, and how often it was read.

    Attributes
    ----------
    array : dask array, shape (m, n)
    name : str
        How error messages call it.
    dtype : dtype
        Precision of the computation.
    n_passes : float
        How often the array has been read so far; reading some of the chunks counts as a fraction.
    """

    def __init__(self, array: da.Array, name: str) -> None:
        self.array = array
        self.name = name
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(float_type(array.dtype, name))
        self.n_passes = 0.0

    @property
    def exponent(self) -> int:
        """Entries are held in units of two to this power."""
        return self._first[0]

    @property
    def column_totals(self) -> Doubles:
        """Squared norm and sum of every column, shape (n, 2)."""
        return self._first[1]

    @cached_property
    def row_totals(self) -> da.Array:
        """Squared norm and sum of every row, shape (m, 2), in the chunks of the rows."""
        exponent, _, found = self._first
        return self._inspect(exponent, with_rows=True)[1] if found is None else found

    @cached_property
    def _first(self) -> tuple[int, Doubles, da.Array | None]:
        """What the first pass finds: the unit, the totals of columns and, unless there are too many rows, of rows."""
        with_rows = self.array.shape[0] <= _LONG
        columns, rows, largest = self._inspect(0, with_rows)
        exponent = safe_exponent(largest, self.dtype)
        if exponent:
            columns, rows, _ = self._inspect(exponent, with_rows)
        return exponent, columns, rows

    @cached_property
    def held(self) -> da.Array:
        """The array with its chunks in the precision and unit of the computation."""
        prepare = partial(held, dtype=self.dtype, exponent=self.exponent)
        return self.array.map_blocks(prepare, dtype=self.dtype, meta=NO_META)

    def run(
        self, *, keep: tuple[da.Array, ...] = (), fetch: tuple[da.Array, ...] = (), part: float = 1.0
    ) -> tuple[tuple[da.Array, ...], tuple[Any, ...]]:
        """One pass over the data, over a part of it, or only over what was kept.

        Parameters
        ----------
        keep : Dask arrays
            Results that stay where they are computed.
        fetch : Dask arrays
            Results that come to the driver.
        part : float
            Fraction of the data that is read for them.

        Returns
        -------
        pair
            Dask arrays whose chunks are computed, and NumPy arrays.
        """
        self.n_passes += part
        if part:
            logger.debug("pass over the data; %.4g so far", self.n_passes)
        # Vectors are meant to travel with the tasks; before distributed is imported, its settings must not be touched
        quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"} if "distributed" in sys.modules else {}
        with dask.config.set(quiet):
            if not keep:
                return (), dask.compute(*fetch)
            persisted = dask.persist(*keep, *fetch)
            return persisted[: len(keep)], dask.compute(*persisted[len(keep) :])

    def compute(self, *lazy: da.Array, part: float = 1.0) -> tuple[Any, ...]:
        """One pass whose results all come to the driver."""
        return self.run(fetch=lazy, part=part)[1]

    def _inspect(self, exponent: int, with_rows: bool) -> tuple[Doubles, Any, float]:
        """Check every entry; return the totals of the columns and, if wanted, of the rows, and the largest entry."""
        found = self.array.map_blocks(
            partial(inspected, name=self.name, chunks=self.array.chunks, dtype=self.dtype, exponent=exponent),
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
        )
        of_columns, of_rows = (
            da.blockwise(
                partial(part_of, at=at), "ijk", found, "ij", new_axes={"k": 2}, adjust_chunks={"ij"[at]: 1},
                dtype=np.float64, meta=np.empty((0, 0, 0)),
            ).sum(axis=at, split_every=SPLIT)
            for at in (0, 1)
        )  # fmt: skip
        largest = da.blockwise(
            partial(part_of, at=2), "ij", found, "ij", adjust_chunks={"i": 1, "j": 1}, dtype=np.float64, meta=NO_META
        ).max(split_every=SPLIT)
        kept, (peak, totals) = self.run(keep=(of_rows,) if with_rows else (), fetch=(largest, of_columns))
        return totals, kept[0] if with_rows else None, float(peak)


def by_rows(function: Callable[..., Any], *arrays: da.Array, width: int | None = None) -> da.Array:
    """Apply a function lazily to the same rows of several arrays; it gives ``width`` numbers per row, or one.

    The arrays have the same chunks of rows, and each has all its columns in one chunk.
    """
    return da.blockwise(
        partial(_on_chunks, function), "i" if width is None else "ik", *_along_rows(arrays),
        new_axes={} if width is None else {"k": width}, align_arrays=False, dtype=np.float64,
        meta=np.empty((0,) if width is None else (0, 0)),
    )  # fmt: skip


def side_by_side(*arrays: da.Array) -> da.Array:
    """Lazily, arrays with the same chunks of rows side by side in one array."""
    return by_rows(_side_by_side, *arrays, width=sum(array.shape[1] for array in arrays))


def _side_by_side(*parts: Any) -> Any:
    return np.hstack(parts)


def sum_by_rows(function: Callable[..., Any], *arrays: da.Array, shape: tuple[int, ...]) -> da.Array:
    """Lazily, the sum of what a function gives for each chunk of rows, an array of ``shape``."""
    letters = "xyz"[: len(shape)]
    parts = da.blockwise(
        partial(_on_chunks, function, stacked=True), f"i{letters}", *_along_rows(arrays),
        new_axes=dict(zip(letters, shape, strict=True)), adjust_chunks={"i": 1}, align_arrays=False, dtype=np.float64,
        meta=np.empty((0,) * (1 + len(shape))),
    )  # fmt: skip
    return parts.sum(axis=0, split_every=SPLIT)


def _along_rows(arrays: tuple[da.Array, ...]) -> list[Any]:
    """Arrays and the letters of their axes, of which i is that of the rows."""
    return [
        part
        for array, letter in zip(arrays, "abcdefgh", strict=False)
        for part in (array, "i" + letter * (array.ndim - 1))
    ]


def _on_chunks(function: Callable[..., Any], *chunks: Any, stacked: bool = False) -> Any:
    with in_one_thread():
        found = function(*map(single_chunk, chunks))
    return found[None] if stacked else found


def part_of(found: Any, *, at: int) -> Doubles:
    """One of several results of a task."""
    part: Doubles = single_chunk(found)[at]
    return part


def single_chunk(blocks: Any) -> Any:
    """The one chunk in the nested list that Dask passes for an axis that is summed over."""
    while isinstance(blocks, list):
        (blocks,) = blocks
    return blocks

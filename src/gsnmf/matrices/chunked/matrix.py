"""Matrix of a Dask array, whose chunks are dense arrays or SciPy sparse matrices: each request is one pass.

Chunks are read again in every pass (`gsnmf.matrices.chunked.passes`). An array that fits in the memory of all workers
together is best persisted first (``matrix = matrix.persist()``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NoReturn

import dask.array as da
import numpy as np

from gsnmf.matrices.checks import is_dask
from gsnmf.matrices.chunked import tasks
from gsnmf.matrices.chunked.arrays import gathered, located, thick
from gsnmf.matrices.chunked.passes import NO_META, SPLIT, Passes, by_rows, part_of
from gsnmf.matrices.protocol import Matrix
from gsnmf.support.arrays import Doubles, Floats, Indices


class ChunkedMatrix(Matrix):
    """Matrix of a Dask array with known chunks.

    Attributes
    ----------
    n_passes : float
        How often the data were read so far; a read of some of the chunks counts as that part.
    """

    out_of_core = True

    def __init__(self, array: da.Array, name: str = "matrix") -> None:
        self.passes = Passes(array, name)
        self._across = False
        self._set_shape()
        self._transpose: ChunkedMatrix | None = None

    def _set_shape(self) -> None:
        m, n = self.passes.array.shape
        self.shape = (n, m) if self._across else (m, n)
        self.dtype = self.passes.dtype
        self.exponent = self.passes.exponent

    @property
    def T(self) -> ChunkedMatrix:  # noqa: D102
        if self._transpose is None:
            transpose = object.__new__(ChunkedMatrix)
            transpose.passes, transpose._across, transpose._transpose = self.passes, not self._across, self
            transpose._set_shape()
            self._transpose = transpose
        return self._transpose

    @property
    def n_passes(self) -> float:  # noqa: D102
        return self.passes.n_passes

    @property
    def accumulator(self) -> np.dtype[np.floating]:  # noqa: D102
        return np.dtype(np.float64)

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.size == 0:
            return np.empty((self.shape[0], 0), dtype=block.dtype)
        return _like(self.passes.compute(self.lazy_dot(block))[0], block)

    def dot_both_ways(self, right: Floats, left: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        first, second = self.passes.compute(self.lazy_dot(right), self.T.lazy_dot(left))
        return _like(first, right), _like(second, left)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        if indices.size == 0:
            return np.empty((self.shape[0], 0), dtype=self.dtype, order="F")
        lazy, order, part = self.lazy_columns(indices)
        return np.asfortranarray(self.passes.compute(lazy, part=part)[0][:, order])

    def with_products(self, indices: Indices) -> tuple[Floats, Doubles]:  # noqa: D102
        if indices.size == 0:
            return self.columns(indices), np.empty((self.shape[1], 0))
        lazy, images, order = self.lazy_with_products(indices)
        chosen, products = self.passes.compute(lazy, images)
        return np.asfortranarray(chosen[:, order]), products[:, order]

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        if indices.size == 0:
            return np.empty((0, self.shape[1]))
        _, images, order = self.lazy_with_products(indices)
        return np.ascontiguousarray(self.passes.compute(images)[0][:, order].T)

    def gram(self, indices: Indices) -> Doubles:  # noqa: D102
        lazy, order, part = self.lazy_columns(indices)
        squares = da.blockwise(
            tasks.square, "ikl", lazy, "ik", new_axes={"l": indices.size}, adjust_chunks={"i": 1},
            dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        gram = self.passes.compute(squares.sum(axis=0, split_every=SPLIT), part=part)[0]
        return np.asarray(gram[np.ix_(order, order)])

    @cached_property
    def squared_column_norms(self) -> Doubles:  # noqa: D102
        return np.ascontiguousarray(self._totals[:, 0])

    @cached_property
    def column_sums(self) -> Doubles:  # noqa: D102
        return np.ascontiguousarray(self._totals[:, 1])

    @cached_property
    def _totals(self) -> Doubles:
        if not self._across:
            return self.passes.column_totals
        return np.asarray(self.passes.compute(self.passes.row_totals, part=0.0)[0])

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return float(self.passes.column_totals[:, 0].sum())

    def squared_residual(self, W: Floats, H: Floats) -> float:  # noqa: D102
        if self._across:
            return self.T.squared_residual(H.T, W.T)
        if W.shape[1] == 0:
            return self.squared_norm
        left, right = self._spread(W, "i"), self._spread(np.ascontiguousarray(H.T), "j")
        parts = da.blockwise(
            tasks.squared_residual, "ij", self.passes.held, "ij", left, "ik", right, "jk", concatenate=True,
            align_arrays=False, adjust_chunks={"i": 1, "j": 1}, dtype=np.float64, meta=NO_META,
        )  # fmt: skip
        return float(self.passes.compute(parts.sum(split_every=SPLIT))[0])

    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> Doubles:  # noqa: D102
        blocks, local, order = located(indices, self.passes.array.chunks[0 if self._across else 1])
        widths = tuple(part.size for part in local)
        right = da.from_array(H.T[np.argsort(order)], chunks=(widths, -1), name=False)
        chosen = da.from_array(np.concatenate(local), chunks=(widths,), name=False)
        norms = da.blockwise(
            partial(tasks.residual_norms, across=self._across), "ij",
            thick(self.passes.held, blocks, self._across), "ij", chosen, self._inner,
            self._spread(W, self._outer), f"{self._outer}k", right, f"{self._inner}k", concatenate=True,
            align_arrays=False, adjust_chunks={self._outer: 1, self._inner: widths}, dtype=np.float64, meta=NO_META,
        )  # fmt: skip
        part = blocks.size / len(self.passes.array.chunks[0 if self._across else 1])
        total = norms.sum(axis=1 if self._across else 0, split_every=SPLIT)
        return np.asarray(self.passes.compute(total, part=part)[0][order])

    def orthonormal_columns(self, indices: Indices) -> tuple[Any, Doubles]:
        """Q and R of the columns at ``indices`` scaled to unit length, C = QR; Q stays with the chunks of long columns.

        The diagonal of R is not negative.
        """
        lengths = np.sqrt(self.squared_column_norms[indices])
        if self._across:
            return tasks.orthonormal(self.columns(indices).astype(np.float64) / lengths)
        lazy, order, part = self.lazy_columns(indices)
        width = indices.size
        prepare = partial(tasks.scaled_columns, order=order, lengths=lengths)
        (columns,), _ = self.passes.run(keep=(by_rows(prepare, lazy, width=width),), part=part)
        # QR of each chunk, and of all their triangles: the orthogonal factor of a chunk is the product of both
        triangles = da.blockwise(
            tasks.chunk_triangle, "ikl", columns, "ik", new_axes={"l": width}, adjust_chunks={"i": 1},
            dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        stacked = self.passes.compute(triangles, part=0.0)[0]
        factor, triangle = tasks.orthonormal(stacked.reshape(-1, width))
        parts = da.from_array(factor, chunks=(width, -1), name=False)
        basis = by_rows(tasks.chunk_basis, columns, parts, width=width)
        return self.passes.run(keep=(basis,), part=0.0)[0][0], triangle

    def row_residual_norms(self, rows: da.Array, W: da.Array, H: Floats) -> da.Array:
        """Lazily, squared norms of those rows of M - W H of which a lazy mask says so; zero elsewhere."""
        right = self._spread(np.ascontiguousarray(H.T), "j")
        return da.blockwise(
            tasks.row_residual_norms, "ij", self.passes.held, "ij", rows, "i", W, "ik", right, "jk",
            concatenate=True, align_arrays=False, adjust_chunks={"j": 1}, dtype=np.float64, meta=NO_META,
        ).sum(axis=1, split_every=SPLIT)  # fmt: skip

    def residual(self, W: Floats, H: Floats) -> NoReturn:  # noqa: D102
        raise TypeError("this needs the matrix in memory; pass matrix.compute() instead of a Dask array.")

    @property
    def _outer(self) -> str:
        """Letter of the rows of this orientation in the underlying array, whose axes are i and j."""
        return "j" if self._across else "i"

    @property
    def _inner(self) -> str:
        return "i" if self._across else "j"

    def _spread(self, block: Any, axis: str) -> da.Array:
        """A block of vectors in the chunks of an axis of the underlying array, for the graph of a pass."""
        if is_dask(block):
            return block
        chunks = self.passes.array.chunks["ij".index(axis)]
        return da.from_array(block, chunks=(chunks, (block.shape[1],)), name=False)

    def lazy_dot(self, block: Floats) -> da.Array:
        """`dot`, to be computed in some pass, in double precision and with a vector as one column."""
        return self.lazy_product(self._spread(block[:, None] if block.ndim == 1 else block, self._inner))

    def lazy_product(self, block: da.Array) -> da.Array:
        """The lazy product, in double precision, with a lazy block of columns in the chunks of the inner axis."""
        products = da.blockwise(
            partial(tasks.product, across=self._across), "ijk", self.passes.held, "ij", block, f"{self._inner}k",
            align_arrays=False, adjust_chunks={self._inner: 1}, dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        return products.sum(axis=0 if self._across else 1, split_every=SPLIT)

    def lazy_with_products(self, indices: Indices) -> tuple[da.Array, da.Array, Indices]:
        """Lazy dense columns in increasing order, their products with all columns, and how to restore their order."""
        if self.passes.array.numblocks[0 if self._across else 1] > 1:
            lazy, order, _ = self.lazy_columns(indices)
            return lazy, self.T.lazy_product(lazy), order
        # One task does both where a chunk has all that it takes, so that chunks never go from worker to worker
        ordered, order = np.sort(indices), np.argsort(np.argsort(indices, kind="stable"))
        lazy, images = self._pairs(
            partial(tasks.extracted_with_product, indices=ordered, across=self._across), indices.size, self.dtype
        )
        return lazy, images, order

    def _pairs(
        self,
        function: Callable[..., tuple[Floats, Floats]],
        width: int,
        dtype: Any = np.float64,
        *,
        vectors: tuple[Any, ...] = (),
    ) -> tuple[da.Array, da.Array]:
        """Lazily, what a function of a chunk gives for its outer axis, and the sum of what it gives for the inner."""
        pairs = da.blockwise(
            function, "ij", self.passes.held, "ij", *vectors, align_arrays=False, dtype=object,
            meta=np.empty((0, 0), dtype=object),
        )  # fmt: skip
        outer = da.blockwise(
            partial(part_of, at=0), f"{self._outer}k", pairs, "ij", new_axes={"k": width}, concatenate=None,
            dtype=dtype, meta=NO_META,
        )  # fmt: skip
        inner = da.blockwise(
            partial(part_of, at=1), "ijk", pairs, "ij", new_axes={"k": width}, adjust_chunks={self._outer: 1},
            dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        return outer, inner.sum(axis=1 if self._across else 0, split_every=SPLIT)

    def row_sketch(self) -> Doubles:
        """Three sums of the squared norms of the rows, with weights by which rows can be told apart."""
        m = self.passes.array.shape[0]
        angles = da.arange(m, chunks=(self.passes.array.chunks[0],), dtype=np.float64)[:, None] * np.arange(1.0, 4.0)
        lazy = (self.passes.row_totals[:, :1] * (2.0 + da.cos(angles))).sum(axis=0, split_every=SPLIT)
        return np.asarray(self.passes.compute(lazy, part=0.0)[0])

    def there_and_back(self, vector: Floats, basis: da.Array, coefficients: Floats) -> tuple[da.Array, da.Array]:
        """Lazily, x = M y - U c, one column in the chunks of rows, and M'x, for a vector y and a basis U in them."""
        work = partial(tasks.there_and_back, coefficients=coefficients)
        y = self._spread(vector[:, None], "j")
        if self.passes.array.numblocks[1] == 1:
            return self._pairs(work, 1, vectors=(y, "jk", basis, "il"))
        product = self.lazy_product(y)
        x = by_rows(partial(tasks.less, coefficients=coefficients), product, basis, width=1)
        return x, self.T.lazy_product(x)

    def lazy_columns(self, indices: Indices) -> tuple[da.Array, Indices, float]:
        """Lazy dense columns in increasing order, how to restore their order, and which part of the data they read."""
        return gathered(self.passes.held, indices, self._across)


def lazy_squared_residual(matrix: ChunkedMatrix, W: da.Array, H: Floats) -> float:
    """||M - W H||_F^2, in the unit of the products, for a Dask array W in the unit of the matrix."""
    left = W.rechunk((matrix.passes.array.chunks[0], -1))
    shift = np.zeros(H.shape[0], dtype=np.intp)
    if matrix.exponent:  # columns of W of size one: their squares are safe
        shift = np.frexp(abs(left).max(axis=0).compute())[1]
        left = left.map_blocks(_shifted, shift, dtype=np.float64, meta=NO_META)
    squared = matrix.squared_residual(left, np.ldexp(H, (shift - matrix.exponent)[:, None]))
    if not np.isfinite(squared):
        raise ValueError("W must be finite; got NaN or infinity.")
    return squared


def _shifted(block: Floats, shift: Indices) -> Floats:
    return np.ldexp(block, -shift)


def _like(product: Floats, operand: Floats) -> Floats:
    """A product as the operand came: in its precision, a vector if it was one."""
    return np.asarray(product[:, 0] if operand.ndim == 1 else product, dtype=operand.dtype)

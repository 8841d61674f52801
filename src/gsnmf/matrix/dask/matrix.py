"""A matrix in the chunks of a Dask array, dense or SciPy sparse: each request is one pass over them.

Chunks are read again in every pass (`gsnmf.matrix.dask.passes`). An array that fits in the memory of all workers
together is best persisted first (``matrix = matrix.persist()``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from scipy import linalg

from gsnmf.matrix.dask import tasks
from gsnmf.matrix.dask.arrays import (
    chunks_at,
    gather,
    gathered,
    left_factor,
    located,
    map_chunks_of_rows,
    strongest_rows,
)
from gsnmf.matrix.dask.gram_projection import GramSide
from gsnmf.matrix.dask.passes import NO_META, SPLIT, Passes, by_rows, part_of, sum_by_rows
from gsnmf.matrix.dask.projection import ChunkedColumns, ChunkedRows
from gsnmf.matrix.projection import Projection, Side
from gsnmf.matrix.protocol import SKETCHES, Matrix, WithTranspose, sketch_vectors
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

_INDEPENDENT = 1e-4
"""Gram products solve for columns if each keeps more than this fraction of its length after the ones before it."""

_IN_DRIVER = 1 << 30
"""Bytes of vectors with one entry per row that may be held in memory to save passes."""


class ChunkedMatrix(WithTranspose, Matrix):
    """A Dask array with known chunks. The first request triggers the first pass, which checks the entries.

    Attributes
    ----------
    passes : Passes
        The array, the findings of its first pass, and how often it was read.
    """

    in_memory = False

    def __init__(self, array: da.Array, name: str = "matrix") -> None:
        self.passes = Passes(array, name)
        self.shape = (array.shape[0], array.shape[1])
        self.dtype = self.passes.dtype
        self._is_turned = False

    @property
    def data(self) -> da.Array:  # noqa: D102
        return self.passes.array.T if self._is_turned else self.passes.array

    @property
    def exponent(self) -> int:  # noqa: D102
        return self.passes.exponent

    if TYPE_CHECKING:

        @property
        def T(self) -> ChunkedMatrix:
            """The transpose."""

    def _transposed(self) -> ChunkedMatrix:
        transpose = object.__new__(ChunkedMatrix)
        transpose.passes, transpose.dtype, transpose.shape = self.passes, self.dtype, self.shape[::-1]
        transpose._is_turned = not self._is_turned
        return transpose

    def dot(self, block: Floats) -> Floats:  # noqa: D102
        if block.size == 0:
            return np.empty((self.shape[0], 0), dtype=block.dtype)
        return _like(self.passes.compute(self.lazy_dot(block))[0], block)

    def columns(self, indices: Indices) -> Floats:  # noqa: D102
        if indices.size == 0:
            return np.empty((self.shape[0], 0), dtype=self.dtype, order="F")
        lazy, order, part = self.lazy_columns(indices)
        return np.asfortranarray(self.passes.compute(lazy, part=part)[0][:, order])

    def raw_columns(self, indices: Indices) -> Floats:  # noqa: D102
        return gather(self.passes.array, indices, transposed=self._is_turned)

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
        if not self._is_turned:
            return self.passes.column_totals
        return np.asarray(self.passes.compute(self.passes.row_totals, part=0.0)[0])

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return float(self.passes.column_totals[:, 0].sum())

    def squared_residual(self, W: Floats, H: Floats) -> float:  # noqa: D102
        if self._is_turned:
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
        blocks, local, order = located(indices, self.passes.array.chunks[0 if self._is_turned else 1])
        widths = tuple(part.size for part in local)
        right = da.from_array(H.T[np.argsort(order)], chunks=(widths, -1), name=False)
        chosen = da.from_array(np.concatenate(local), chunks=(widths,), name=False)
        norms = da.blockwise(
            partial(tasks.residual_norms, transposed=self._is_turned), "ij",
            chunks_at(self.passes.held, blocks, self._is_turned), "ij", chosen, self._inner,
            self._spread(W, self._outer), f"{self._outer}k", right, f"{self._inner}k", concatenate=True,
            align_arrays=False, adjust_chunks={self._outer: 1, self._inner: widths}, dtype=np.float64, meta=NO_META,
        )  # fmt: skip
        part = blocks.size / len(self.passes.array.chunks[0 if self._is_turned else 1])
        total = norms.sum(axis=1 if self._is_turned else 0, split_every=SPLIT)
        return np.asarray(self.passes.compute(total, part=part)[0][order])

    def orthonormal_columns(self, indices: Indices) -> tuple[Any, Doubles]:
        """Q and R of the columns at ``indices`` scaled to unit length, C = QR; Q stays with the chunks of long columns.

        The diagonal of R is not negative.
        """
        lengths = np.sqrt(self.squared_column_norms[indices])
        if self._is_turned:
            return tasks.orthonormal(self.columns(indices).astype(np.float64) / lengths)
        lazy, order, part = self.lazy_columns(indices)
        width = indices.size
        prepare = partial(tasks.scaled_columns, order=order, lengths=lengths)
        (columns,), _ = self.passes.run(keep=(by_rows(prepare, lazy, width=width),), part=part)
        # QR of each chunk, then of all their triangles: the orthogonal factor of a chunk is the product of both
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
        """Lazily, squared norms of the rows of M - W H that a lazy mask marks; zero elsewhere."""
        right = self._spread(np.ascontiguousarray(H.T), "j")
        return da.blockwise(
            tasks.row_residual_norms, "ij", self.passes.held, "ij", rows, "i", W, "ik", right, "jk",
            concatenate=True, align_arrays=False, adjust_chunks={"j": 1}, dtype=np.float64, meta=NO_META,
        ).sum(axis=1, split_every=SPLIT)  # fmt: skip

    def reduced(self, indices: Indices) -> tuple[Doubles, Doubles]:  # noqa: D102
        lengths = np.sqrt(self.squared_column_norms[indices])
        images = self.gram_rows(indices) / lengths[:, None]
        with contextlib.suppress(linalg.LinAlgError):
            lower = linalg.cholesky(images[:, indices] / lengths, lower=True)
            if lower.diagonal().min() > _INDEPENDENT:  # Gram products have kept at least half of their digits
                targets = linalg.solve_triangular(lower, images, lower=True, check_finite=False)
                return np.ascontiguousarray(lower.T), np.ascontiguousarray(targets.T)
        orthogonal, triangle = self.orthonormal_columns(indices)
        return triangle, np.ascontiguousarray(self.T.dot(orthogonal), dtype=np.float64)

    def squared_distance(self, W: Floats, H: Floats) -> float:  # noqa: D102
        if self._is_turned:
            return self.T.squared_distance(H.T, W.T)
        chunks = (self.passes.array.chunks[0], -1)
        left: Any = W.rechunk(chunks) if isinstance(W, da.Array) else da.from_array(W, chunks=chunks)
        shift = np.zeros(H.shape[0], dtype=np.intp)
        if self.exponent:  # scale the columns of W to size one: their squares are safe
            shift = np.frexp(abs(left).max(axis=0).compute())[1]
            left = left.map_blocks(_shifted, shift, dtype=np.float64, meta=NO_META)
        squared = self.squared_residual(left, np.ldexp(H, (shift - self.exponent)[:, None]))
        if not np.isfinite(squared):
            raise ValueError("W must be finite; got NaN or infinity.")
        return squared

    def projection(self, capacity: int, axes: Sequence[Axis]) -> Projection:  # noqa: D102
        upright = self.T if self._is_turned else self
        if len(axes) == 2:
            columns, rows = ChunkedColumns(upright, capacity), ChunkedRows(upright, capacity)
            own: dict[Axis, Side] = {"columns": columns, "rows": rows}
            return Projection({"columns": rows, "rows": columns} if self._is_turned else own)
        side = self if axes[0] == "columns" else self.T
        too_long = 8 * side.shape[1] * (capacity + 4) > _IN_DRIVER
        rows_stay = side._is_turned and too_long
        return Projection({axes[0]: ChunkedRows(upright, capacity) if rows_stay else GramSide(side, capacity)})

    def row_product(self, block: Floats) -> da.Array:  # noqa: D102
        return self.passes.run(keep=(self.lazy_dot(block),))[0][0]

    def map_rows(self, function: Callable[..., Floats], width: int, *, shared: tuple[Floats, ...] = ()) -> da.Array:  # noqa: D102
        return map_chunks_of_rows(self.passes.array, function, width, shared=shared, name=self.passes.name)

    def sum_over_rows(self, function: Callable[..., Doubles], *arrays: Any, shape: tuple[int, ...]) -> Doubles:  # noqa: D102
        return np.asarray(self.passes.compute(sum_by_rows(function, *arrays, shape=shape), part=0.0)[0])

    def products_and_sums(self, block: Any, other: Any) -> tuple[Floats, Doubles]:  # noqa: D102
        return self.passes.compute(self.T.lazy_product(block), other.sum(axis=0, dtype=np.float64))

    def chosen(self, columns: Indices, rows: Indices) -> tuple[da.Array, Doubles, Floats]:  # noqa: D102
        lazy_columns, lazy_images, _ = self.lazy_with_products(columns)
        lazy_rows, order, _ = self.T.lazy_columns(rows)
        (kept,), (images, found) = self.passes.run(keep=(lazy_columns,), fetch=(lazy_images, lazy_rows))
        return kept, images, found[:, order]

    def left_factor(self, columns: Indices, row_weights: Any) -> Any:  # noqa: D102
        return left_factor(self.passes.array, columns, row_weights)

    def strongest_rows(self, W: Any, count: int) -> list[tuple[Indices, Floats]]:  # noqa: D102
        return strongest_rows(W, count)

    @property
    def _outer(self) -> str:
        """Letter of the rows of this orientation in the underlying array, whose axes are i and j."""
        return "j" if self._is_turned else "i"

    @property
    def _inner(self) -> str:
        return "i" if self._is_turned else "j"

    def _spread(self, block: Any, axis: str) -> da.Array:
        """A block of vectors, cut like an axis of the underlying array, for the graph of a pass."""
        if isinstance(block, da.Array):
            return block
        chunks = self.passes.array.chunks["ij".index(axis)]
        return da.from_array(block, chunks=(chunks, (block.shape[1],)), name=False)

    def lazy_dot(self, block: Floats) -> da.Array:
        """`dot` as a lazy array, in double precision; a vector becomes one column."""
        return self.lazy_product(self._spread(block[:, None] if block.ndim == 1 else block, self._inner))

    def lazy_product(self, block: da.Array) -> da.Array:
        """The lazy product, in double precision, with a lazy block of columns cut like the inner axis."""
        products = da.blockwise(
            partial(tasks.product, transposed=self._is_turned), "ijk", self.passes.held, "ij",
            block, f"{self._inner}k", align_arrays=False, adjust_chunks={self._inner: 1},
            dtype=np.float64, meta=np.empty((0, 0, 0)),
        )  # fmt: skip
        return products.sum(axis=0 if self._is_turned else 1, split_every=SPLIT)

    def lazy_with_products(self, indices: Indices) -> tuple[da.Array, da.Array, Indices]:
        """Lazy dense columns in increasing order, their products with all columns, and how to restore their order."""
        if self.passes.array.numblocks[0 if self._is_turned else 1] > 1:
            lazy, order, _ = self.lazy_columns(indices)
            return lazy, self.T.lazy_product(lazy), order
        # One task does both if a chunk has everything it takes, so chunks never travel between workers
        ordered, order = np.sort(indices), np.argsort(np.argsort(indices, kind="stable"))
        lazy, images = self._pairs(
            partial(tasks.extracted_with_product, indices=ordered, transposed=self._is_turned),
            indices.size,
            self.dtype,
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
        """Lazily, a chunk function's results for the outer axis, and the sum of its results for the inner axis."""
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
        return outer, inner.sum(axis=1 if self._is_turned else 0, split_every=SPLIT)

    def sketch(self) -> Doubles:  # noqa: D102
        if self._is_turned:
            return self.T._bilinear("columns", "rows")
        return self._bilinear("rows", "columns")

    def _bilinear(self, left: Axis, right: Axis) -> Doubles:
        """Products x'My of a matrix that is not transposed, for the vectors of a sketch along these axes."""
        (m, n), of_rows = self.shape, self.passes.array.chunks[0]
        positions = da.arange(m, chunks=(of_rows,), dtype=np.int64)
        products = self.lazy_dot(sketch_vectors(np.arange(n), right))
        work = partial(tasks.sketch, axis=left)
        return np.asarray(self.passes.compute(sum_by_rows(work, products, positions, shape=(SKETCHES,)))[0])

    def there_and_back(self, vector: Floats, basis: da.Array, coefficients: Floats) -> tuple[da.Array, da.Array]:
        """Lazily, x = M y - U c in the chunks of the rows, and M'x, for a vector y and a basis U in the same chunks."""
        work = partial(tasks.there_and_back, coefficients=coefficients)
        y = self._spread(vector[:, None], "j")
        if self.passes.array.numblocks[1] == 1:
            return self._pairs(work, 1, vectors=(y, "jk", basis, "il"))
        product = self.lazy_product(y)
        x = by_rows(partial(tasks.without_basis, coefficients=coefficients), product, basis, width=1)
        return x, self.T.lazy_product(x)

    def lazy_columns(self, indices: Indices) -> tuple[da.Array, Indices, float]:
        """Lazy dense columns in increasing order, how to restore their order, and the fraction of the data read."""
        return gathered(self.passes.held, indices, self._is_turned)


def _shifted(block: Floats, shift: Indices) -> Floats:
    return np.ldexp(block, -shift)


def _like(product: Floats, operand: Floats) -> Floats:
    """A product in the form of its operand: the same precision, and a vector if the operand was one."""
    return np.asarray(product[:, 0] if operand.ndim == 1 else product, dtype=operand.dtype)

r"""The residual R = (I - U U^T) M (I - V V^T) of a matrix in chunks of rows; the driver holds only what is short.

V, M'U and the norms of the columns have one entry per column of M and are in memory. U and the norms of the rows stay
with the chunks, as Dask arrays. A step sends vectors with one entry per column to the chunks, and gets such vectors and
a few numbers back.

For a column p, one pass gives :math:`x = (I - U U^T) M y` of :math:`y = (I - V V^T) e_p` and :math:`M^T x`, from which
u and :math:`g = R^T u`, and another :math:`h = R g`. For a row q, which is read first, one pass gives :math:`g = R v`
of its normalised residual v and :math:`M^T g`. Norms that have lost their digits are computed again in two passes.

A chunk can make its part of a vector orthogonal to U without asking the others, because the driver knows :math:`U^T M y
= (M^T U)^T y`. What rounding leaves is summed over the chunks and subtracted after the pass, from the product too:
:math:`M^T (x - U c) = M^T x - M^T U\, c`, in which c is so small that nothing cancels.

If a column or row must be chosen although those before it explain it completely, its vector in the basis is zero.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from gsnmf.matrix.dask.passes import by_rows, side_by_side, sum_by_rows
from gsnmf.matrix.dask.tasks import without_basis
from gsnmf.matrix.projection import ROUNDING, Norms, ResidualNorms, Side, State, orthogonalised, tie_factor
from gsnmf.support.arrays import Doubles, Flags, Indices

if TYPE_CHECKING:
    from gsnmf.matrix.dask.matrix import ChunkedMatrix


class ChunkedColumns(ResidualNorms):
    """The columns of the matrix, their residual norms, and the basis U of the chosen ones, in chunks of rows."""

    state = ("image",)
    matrix: ChunkedMatrix
    other: ChunkedRows

    def __init__(self, matrix: ChunkedMatrix, capacity: int) -> None:
        super().__init__(matrix, capacity)
        self.basis = _no_columns(matrix)
        self._image = np.empty((matrix.shape[1], capacity), order="F")

    @property
    def image(self) -> Doubles:
        """M'U, n x size."""
        return self._image[:, : self.size]

    @property
    def dimension(self) -> int:
        """Dimension of the span of the chosen columns."""
        return int(np.count_nonzero(self.image.any(axis=0)))

    def choose(self, index: int) -> None:
        """Project both sides on the orthogonal complement of the residual column ``index``."""
        other = self.other
        u, image = self._direction(index)
        g = orthogonalised(image, other.basis)
        h = _orthogonal(self.matrix.lazy_dot(g), self.basis, self.image.T @ g)
        grown = side_by_side(self.basis, u)
        (grown, h), (inside,) = self.matrix.passes.run(keep=(grown, h), fetch=(_inner_products(self.basis, h),))
        other.reduce(by_rows(partial(_row_reductions, left=inside[:-1], squared=float(g @ g)), grown, h))
        self.basis = grown
        self._image[:, self.size] = image
        self._norms.reduce(np.square(g))
        self.norms[index] = 0.0
        self.size += 1

    def rebuild(self, indices: Indices, others_before: Indices) -> None:
        """Compute U again, in one pass, for chosen columns and the number of rows chosen before each."""
        if indices.size == 0:
            return
        pairs = zip(indices, others_before, strict=True)
        Y = np.column_stack([self._orthogonal_unit(index, self.other.basis[:, :count]) for index, count in pairs])
        (X,), _ = self.matrix.passes.run(keep=(self.matrix.lazy_dot(Y),))
        for k in range(indices.size):
            x = _orthogonal(X[:, k : k + 1], self.basis, self.image[:, :k].T @ Y[:, k])
            (x,), (inside,) = self.matrix.passes.run(keep=(x,), fetch=(_inner_products(self.basis, x),), part=0.0)
            u = _normalised(x, self.basis, inside, self._zero * self._norms.initial[indices[k]])[0]
            (self.basis,), _ = self.matrix.passes.run(keep=(side_by_side(self.basis, u),), part=0.0)

    def _direction(self, index: int) -> tuple[da.Array, Doubles]:
        """The normalised residual column u, lazily, and M'u; zeros if nothing is left of the column."""
        x, inside, back = _there_and_back(self.matrix, self._orthogonal_unit(index, self.other.basis), self)
        u, length = _normalised(x, self.basis, inside, self._zero * self._norms.initial[index])
        return u, (back - self.image @ inside[:-1]) / length

    def _orthogonal_unit(self, index: int, basis: Doubles) -> Doubles:
        """(I - V V') e_p."""
        unit = np.zeros(self.matrix.shape[1])
        unit[index] = 1.0
        return np.asarray(orthogonalised(unit, basis), dtype=np.float64)

    def _recompute(self, indices: Indices) -> None:
        other = self.other
        Z, lengths = _refreshed(self.matrix, self, other)
        coordinates = other.basis[indices].T
        W = side_by_side(Z, self.basis)
        H = np.vstack([coordinates, self.image[indices].T - (self.image.T @ other.basis) @ coordinates])
        squared = self.matrix.residual_norms(indices, W, H)
        magnitude = self._norms.initial[indices] + np.abs(coordinates.T) @ lengths
        self._norms.set(indices, squared, self._zero * magnitude)


class ChunkedRows(Side):
    """The rows of the matrix, their residual norms in chunks, and the basis V of the chosen ones."""

    other: ChunkedColumns | None

    def __init__(self, matrix: ChunkedMatrix, capacity: int) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self.capacity = min(capacity, n)
        self._basis = np.empty((n, capacity), order="F")
        self._norms = by_rows(partial(_fresh_norms, dtype=matrix.dtype), matrix.passes.row_totals)
        self._tie = tie_factor(matrix.dtype)
        self._zero = ROUNDING * float(np.finfo(matrix.dtype).eps) * np.sqrt(max(m, n))
        self._found = 0.0

    @property
    def basis(self) -> Doubles:
        """V, n x size."""
        return self._basis[:, : self.size]

    def norm(self, index: int) -> float:
        """Squared residual norm of the row that `farthest` found."""
        return self._found

    def farthest(self) -> int | None:
        """First index of the largest residual norm, certain to rounding; None if every residual is zero."""
        if np.count_nonzero(self.basis.any(axis=0)) == self.capacity:
            return None
        while True:
            seen = self._numbers(self._norms, partial(_summary, tie=self._tie), width=5)
            (self._norms,), (numbers,) = self.matrix.passes.run(keep=(self._norms,), fetch=(seen,), part=0.0)
            certain, possible = numbers[:, :2].max(axis=0)
            if possible < certain:
                return self._first(numbers[:, 2:], certain) if certain > 0 else None
            self._recompute(partial(_doubtful, largest=certain))

    def exclude(self, indices: Indices) -> None:
        """Rule these rows out."""
        for index in indices:
            self._norms = by_rows(_cleared, self._norms, self._mark(int(index)))

    def choose(self, index: int) -> None:
        """Project both sides on the orthogonal complement of the residual row ``index``."""
        other = self.other
        v = self._direction(index)
        if other is None:
            (g,), _ = self.matrix.passes.run(keep=(self.matrix.lazy_dot(v),))
        else:
            g, inside, back = _there_and_back(self.matrix, v, other)
            left = inside[:-1]
            g = _orthogonal(g, other.basis, left)
            h = orthogonalised(back - other.image @ left, self.basis)
            other._norms.reduce(2.0 * v * h - np.square(v) * (inside[-1] - left @ left))
        self.reduce(by_rows(_squared, g), index)
        self._basis[:, self.size] = v
        self.size += 1

    def reduce(self, squares: da.Array, chosen: int | None = None) -> None:
        """Subtract ``squares`` from the norms, and rule the chosen row out."""
        self._norms = by_rows(_reduced, self._norms, squares, self._mark(chosen))

    def stored(self) -> State:
        """Everything that must be remembered to go on; the norms are computed again."""
        return {"basis": self.basis}

    def restore(self, stored: State) -> None:
        """Go on from what `stored` gave, once `rebuild` was called."""
        self.size = stored["basis"].shape[1]
        self.basis[...] = stored["basis"]

    def rebuild(self, indices: Indices, others_before: Indices) -> None:
        """Compute all norms again, in two passes."""
        if self.size or (self.other is not None and self.other.size):
            self._recompute(_everywhere)
        for index in indices:
            self._norms = by_rows(_cleared, self._norms, self._mark(int(index)))

    def _mark(self, index: int | None) -> da.Array:
        """One number per chunk: the position of a row in it, or -1."""
        sizes = self.matrix.passes.array.chunks[0]
        places = np.full(len(sizes), -1)
        if index is not None:
            ends = np.cumsum(sizes)
            owner = int(np.searchsorted(ends, index, side="right"))
            places[owner] = index - (ends[owner] - sizes[owner])
        return da.from_array(places, chunks=1, name=False)

    def _first(self, found: Doubles, largest: float) -> int:
        """Position of the first norm equal to the largest, from the largest of each chunk and where it first occurs."""
        threshold = self._tie * largest
        chunk = int(np.argmax(found[:, 0] >= threshold))
        reached, place, self._found = found[chunk]
        if reached < largest:  # nearly as large, so the first one equal to it may be too small
            lazy = self._numbers(self._norms.blocks[chunk], partial(_first_above, threshold=threshold), width=2)
            place, self._found = self.matrix.passes.compute(lazy, part=0.0)[0][0]
        return int(sum(self.matrix.passes.array.chunks[0][:chunk]) + place)

    @staticmethod
    def _numbers(norms: da.Array, function: Any, width: int) -> da.Array:
        """Lazily, some numbers for each chunk."""
        return da.blockwise(
            function, "ik", norms, "i", new_axes={"k": width}, adjust_chunks={"i": 1}, dtype=np.float64,
            meta=np.empty((0, 0)),
        )  # fmt: skip

    def _direction(self, index: int) -> Doubles:
        """The normalised residual row; zeros if nothing is left of the row."""
        other = self.other
        row, _, part = self.matrix.T.lazy_columns(np.array([index]))
        if other is None or other.size == 0:
            found = self.matrix.passes.compute(row, part=part)[0][:, 0].astype(np.float64)
            residual = orthogonalised(found, self.basis)
        else:
            read, coordinates = self.matrix.passes.compute(row, other.basis[index], part=part)
            found = read[:, 0].astype(np.float64)
            residual = orthogonalised(found - other.image @ coordinates, self.basis)
        length = np.linalg.norm(residual)
        return np.asarray(residual / (length if length > self._zero * np.linalg.norm(found) else np.inf))

    def _recompute(self, wanted: Any) -> None:
        """Compute norms again from the residuals themselves, for the rows that a function of the norms picks."""
        other = self.other
        mask = by_rows(wanted, self._norms)
        Z, _ = _refreshed(self.matrix, other, self)
        if other is None:
            squared = self.matrix.row_residual_norms(mask, Z, self.basis.T)
            renewed = by_rows(partial(_renewed, zero=self._zero), self._norms, mask, squared)
        else:
            W = side_by_side(Z, other.basis)
            H = np.vstack([self.basis.T, orthogonalised(other.image, self.basis).T])
            squared = self.matrix.row_residual_norms(mask, W, H)
            work = partial(_renewed, zero=self._zero, lengths=np.linalg.norm(other.image, axis=0))
            renewed = by_rows(work, self._norms, mask, squared, other.basis)
        (self._norms,), _ = self.matrix.passes.run(keep=(renewed,))


def _there_and_back(
    matrix: ChunkedMatrix, vector: Doubles, columns: ChunkedColumns
) -> tuple[da.Array, Doubles, Doubles]:
    """X = M y - U (M'U)'y, its inner products with U and itself, and M'x, in one pass."""
    x, back = matrix.there_and_back(vector, columns.basis, columns.image.T @ vector)
    (x,), (inside, back) = matrix.passes.run(keep=(x,), fetch=(_inner_products(columns.basis, x), back))
    return x, inside, back[:, 0]


def _refreshed(matrix: ChunkedMatrix, columns: ChunkedColumns | None, rows: ChunkedRows) -> tuple[da.Array, Doubles]:
    """M V, the lengths of its columns, and M'U as accurately as the matrix allows, in one pass."""
    Z = matrix.lazy_dot(rows.basis) if rows.size else _no_columns(matrix)
    wanted = [sum_by_rows(_column_squares, Z, shape=(rows.size + 1,))]
    if columns is not None and columns.size:
        wanted.append(matrix.T.lazy_product(columns.basis))
    (Z,), (squares, *images) = matrix.passes.run(keep=(Z,), fetch=tuple(wanted))
    if columns is not None and images:
        columns.image[...] = images[0]
    return Z, np.sqrt(squares[:-1])


def _no_columns(matrix: ChunkedMatrix) -> da.Array:
    """An array without columns, with the rows of the matrix in the same chunks."""
    return da.zeros((matrix.shape[0], 0), chunks=(matrix.passes.array.chunks[0], (0,)))


def _orthogonal(block: da.Array, basis: da.Array, coefficients: Doubles) -> da.Array:
    """Lazily, one column minus its part in a basis, whose coefficients are known."""
    return by_rows(partial(without_basis, coefficients=coefficients), block, basis, width=1)


def _normalised(x: da.Array, basis: da.Array, inside: Doubles, zero_below: float) -> tuple[da.Array, float]:
    """Lazily, a column made orthogonal to a basis and divided by its length, from its `_inner_products`.

    Also returns the length, which counts as infinite if it is only rounding: the column is then zero.
    """
    left = inside[:-1]
    length = float(np.sqrt(max(0.0, inside[-1] - left @ left)))
    length = length if length > zero_below else np.inf
    return by_rows(partial(without_basis, coefficients=left, length=length), x, basis, width=1), length


def _inner_products(basis: da.Array, column: da.Array) -> da.Array:
    """Lazily, the inner products of a column with a basis and, last, with itself."""
    return sum_by_rows(_products_with, basis, column, shape=(basis.shape[1] + 1,))


def _products_with(basis: Doubles, column: Doubles) -> Doubles:
    return np.append(basis.T @ column[:, 0], np.vdot(column, column))


def _column_squares(block: Doubles) -> Doubles:
    return np.append(np.einsum("ij,ij->j", block, block), 0.0)


def _row_reductions(grown: Doubles, h: Doubles, *, left: Doubles, squared: float) -> Doubles:
    u = grown[:, -1]
    return np.asarray(2.0 * u * (h[:, 0] - grown[:, :-1] @ left) - np.square(u) * squared)


def _squared(column: Doubles) -> Doubles:
    return np.square(column[:, 0])


def _fresh_norms(totals: Doubles, *, dtype: np.dtype[np.floating]) -> Norms:
    return Norms.of(np.ascontiguousarray(totals[:, 0]), dtype)


def _summary(norms: Norms, *, tie: float) -> Doubles:
    """The largest certain norm, the largest possible norm, the largest norm, and the first position equal to it."""
    largest = float(norms.squared.max(initial=0.0))
    first = _first_above(norms, threshold=tie * largest)[0] if norms.squared.size else (0.0, 0.0)
    return np.array([[*norms.largest(), largest, *first]])


def _first_above(norms: Norms, *, threshold: float) -> Doubles:
    place = int(np.argmax(norms.squared >= threshold))
    return np.array([[place, norms.squared[place]]])


def _doubtful(norms: Norms, *, largest: float) -> Flags:
    return norms.doubtful(largest)


def _everywhere(norms: Norms) -> Flags:
    return norms.squared > 0


def _reduced(norms: Norms, squares: Doubles, chosen: Indices) -> Norms:
    changed = norms.copy()
    changed.reduce(squares)
    return _cleared(changed, chosen)


def _cleared(norms: Norms, chosen: Indices) -> Norms:
    changed = norms.copy()
    changed.squared[chosen[chosen >= 0]] = 0.0
    return changed


def _renewed(
    norms: Norms,
    mask: Flags,
    squared: Doubles,
    basis: Doubles | None = None,
    *,
    zero: float,
    lengths: Doubles | None = None,
) -> Norms:
    """Norms of which some are computed again, from terms as large as the row and its part in the basis."""
    changed = norms.copy()
    at = np.flatnonzero(mask)
    magnitude = norms.initial[at]
    if basis is not None and lengths is not None:
        magnitude = magnitude + np.abs(basis[at]) @ lengths
    changed.set(at, squared[at], zero * magnitude)
    return changed

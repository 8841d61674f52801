"""What an algorithm may ask of a matrix.

An algorithm never looks at a matrix itself. It asks for products, norms and blocks of columns, and asks the transpose
for the same of the rows. So every algorithm is written once, for columns, and holds for rows and for every kind of
matrix: dense, sparse, in chunks on disk or on a cluster, or whatever else implements `Matrix`.

Squares and fourth powers, which scores are made of, must neither overflow nor vanish. A matrix whose largest entry is
extreme is therefore held in another unit, a power of two, which rounds nothing. Everything that the library returns
(indices, weights, relative errors) is the same in every unit; what is returned in the unit of the data comes from
`Matrix.raw_columns`.

Some matrices are too long for arrays with one entry per row to be held in one place. Such arrays stay with the data:
they are made by `row_product` and `map_rows`, and what is needed of them is summed by `sum_over_rows`. For a matrix in
memory these are ordinary NumPy arrays and an ordinary function call.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.hashing import numbers_at
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

if TYPE_CHECKING:
    from gsnmf.matrix.projection import Projection

BLOCK_BYTES = 1 << 25
"""Working memory for explicit blocks of a residual, in bytes."""

_SAFE_EXPONENT = {np.dtype(np.float32): 20, np.dtype(np.float64): 60}
"""Entries up to two to this power have fourth powers, and sums of many of them, far from overflow and underflow."""

SKETCHES = 4
"""How many numbers the sketch of a matrix has."""


class WithTranspose:
    """Keeps the transpose once it was asked for, without a reference cycle.

    The transpose refers back weakly, so that a matrix is freed as soon as nothing else refers to it. A transpose that
    outlives its matrix makes another one when it is asked for.
    """

    _transpose: Any = None

    @property
    def T(self) -> Any:
        """The transpose, sharing all memory."""
        known = self._transpose() if isinstance(self._transpose, ref) else self._transpose
        if known is None:
            known = self._transposed()
            known._transpose = ref(self)
            self._transpose = known
        return known

    def _transposed(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the transpose, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_transpose"}


class Matrix(ABC):
    """An m x n matrix, nonnegative and finite; ``.T`` is its transpose.

    `gsnmf.matrix.in_memory.InMemoryMatrix` implements most of this from a few products: a new kind of matrix in
    memory needs one small class.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.floating[Any]]
    """Precision of the entries, single or double."""
    in_memory: bool
    """Whether a column or a row can be read by itself. If not, every request reads the whole matrix, so that
    algorithms prefer one extra product over one extra request, and arrays with one entry per row stay with the data."""

    @property
    @abstractmethod
    def data(self) -> Any:
        """The matrix as it was given, after its check."""

    @property
    @abstractmethod
    def exponent(self) -> int:
        """The matrix is held in units of two to this power."""

    @property
    def n_stored(self) -> int:
        """Number of entries that a product reads: all of a dense matrix, the nonzeros of a sparse one."""
        return self.shape[0] * self.shape[1]

    def many_products(self) -> AbstractContextManager[None]:
        """Enter this around many products: it keeps BLAS to one thread if its threads would slow them down."""
        return nullcontext()

    @property
    @abstractmethod
    def T(self) -> Matrix:
        """The transpose, sharing all memory."""

    def along(self, axis: Axis) -> Matrix:
        """The matrix whose columns are the columns, or the rows, of this one."""
        return self if axis == "columns" else self.T

    @abstractmethod
    def dot(self, block: Floats) -> Floats:
        """Product with a dense vector of length n or a dense n x k block, in the precision of the block."""

    @abstractmethod
    def columns(self, indices: Indices) -> Floats:
        """The columns at ``indices`` as a dense m x k block, in Fortran order."""

    @abstractmethod
    def raw_columns(self, indices: Indices) -> Floats:
        """The columns at ``indices`` as a dense m x k block, in the unit of the data."""

    @abstractmethod
    def gram_rows(self, indices: Indices) -> Doubles:
        """The rows ``indices`` of M'M, a dense k x n block in double precision."""

    @abstractmethod
    def gram(self, indices: Indices) -> Doubles:
        """C'C for the columns C at increasing ``indices``, k x k in double precision."""

    @abstractmethod
    def with_products(self, indices: Indices) -> tuple[Floats, Doubles]:
        """The columns C at ``indices`` as `columns` gives them, and M'C, n x k in double precision, in one pass."""

    @abstractmethod
    def reduced(self, indices: Indices) -> tuple[Doubles, Doubles]:
        """R and M'Q of a factorization C = QR of the columns at ``indices``, which are not zero, at unit length."""

    @cached_property
    @abstractmethod
    def squared_column_norms(self) -> Doubles:
        """Squared Euclidean norm of every column, accumulated in double precision."""

    @cached_property
    @abstractmethod
    def column_sums(self) -> Doubles:
        """Sum (l1 norm) of every column."""

    @cached_property
    def squared_norm(self) -> float:
        """||M||_F^2."""
        return float(self.squared_column_norms.sum())

    @property
    def norm(self) -> float:
        """||M||_F in the unit of the data; infinite if it exceeds the largest float."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(math.sqrt(self.squared_norm), self.exponent))

    @abstractmethod
    def sketch(self) -> Doubles:
        """Products x'My for `SKETCHES` pairs of fixed vectors, `sketch_vectors`, in the unit of the held matrix."""

    def inner(self, W: Floats, H: Floats) -> float:
        """<M, W H> for dense factors of shape (m, k) and (k, n), without forming their product."""
        if W.shape[1] == 0:
            return 0.0
        return float(np.einsum("ik,ik->", self.dot(H.T), W, dtype=np.float64))

    @abstractmethod
    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2 for factors of shape (m, k) and (k, n), in the unit in which the matrix is held."""

    @abstractmethod
    def squared_distance(self, W: Floats, H: Floats) -> float:
        """`squared_residual` for factors of any sign whose product is in the unit of the data.

        The result is in the unit in which the matrix is held, as `squared_norm` is.
        """

    @abstractmethod
    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> Doubles:
        """Squared norms of the columns of M[:, indices] - W H, for dense factors of shape (m, k) and (k, size)."""

    def block_residuals(self, W: Floats, H: Floats, row_blocks: Indices, column_blocks: Indices) -> Doubles:
        """||M - W H||_F^2 within every block of rows and columns, which sum to `squared_residual`.

        ``row_blocks`` and ``column_blocks`` hold the number of the block, from 0 on, of each row and column.
        """
        of_rows, of_columns = membership(row_blocks), membership(column_blocks)
        total = np.zeros((of_rows.shape[1], of_columns.shape[1]))
        for rows in self._row_blocks():
            part = np.arange(*rows.indices(self.shape[0]))
            squares = np.square(self.T.columns(part).T - W[part] @ H, dtype=np.float64)
            total += of_rows[part].T @ (squares @ of_columns)
        return total

    def _row_blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK_BYTES // (self.shape[1] * self.dtype.itemsize))
        return (slice(start, start + step) for start in range(0, self.shape[0], step))

    @abstractmethod
    def projection(self, capacity: int, axes: Sequence[Axis]) -> Projection:
        """The residual after projections on up to ``capacity`` columns and rows, chosen along ``axes``."""

    @abstractmethod
    def row_product(self, block: Floats) -> Any:
        """M times a dense n x k block in double precision, as an array that stays with the data."""

    @abstractmethod
    def map_rows(self, function: Callable[..., Floats], width: int, *, shared: tuple[Floats, ...] = ()) -> Any:
        """Apply ``function(rows, *shared)`` to one part of the rows after another; it gives ``width`` numbers per row.

        The result stays with the data. It is computed when it is asked for, unless the matrix is in memory.
        """

    @abstractmethod
    def sum_over_rows(self, function: Callable[..., Doubles], *arrays: Any, shape: tuple[int, ...]) -> Doubles:
        """Sum of what a function gives, of ``shape``, for the same rows of arrays that stay with the data."""

    @abstractmethod
    def products_and_sums(self, block: Any, other: Any) -> tuple[Floats, Doubles]:
        """M'B and the column sums of another array, both of which stay with the data, in one pass."""

    @abstractmethod
    def chosen(self, columns: Indices, rows: Indices) -> tuple[Any, Doubles, Floats]:
        """Columns C as an array that stays with the data, M'C, and rows as an n x k block, in one pass.

        C and M'C are in the order of ``columns``, which increase.
        """

    @abstractmethod
    def left_factor(self, columns: Indices, row_weights: Any) -> Any:
        """[M[:, columns], row_weights] in the unit of the data, as an array that stays with the data."""

    @abstractmethod
    def strongest_rows(self, W: Any, count: int) -> list[tuple[Indices, Floats]]:
        """Positions and values of the largest positive entries of each column of an array that stays with the data."""


class Residual(ABC):
    """E = M - W H, and its products with the columns of M; ``.T`` gives the same for the transposes."""

    matrix: Matrix

    @property
    @abstractmethod
    def T(self) -> Residual:
        """The transpose."""

    @abstractmethod
    def cross(self, indices: Indices) -> Floats:
        """The rows ``indices`` of M'E, a dense k x n block."""

    @cached_property
    @abstractmethod
    def squared_norm(self) -> float:
        """||E||_F^2."""

    @cached_property
    @abstractmethod
    def inner(self) -> float:
        """<E, M>."""

    def cross_blocks(
        self, memory: int = BLOCK_BYTES, indices: Indices | None = None
    ) -> Iterator[tuple[Indices, Floats]]:
        """The rows ``indices`` of M'E, or all, as pairs of indices and rows, each block within ``memory`` bytes."""
        n = self.matrix.shape[1]
        wanted = np.arange(n) if indices is None else indices
        step = max(1, memory // (8 * n))
        for start in range(0, wanted.size, step):
            block = wanted[start : start + step]
            yield block, self.cross(block)


def sketch_vectors(positions: Any, axis: Axis) -> Doubles:
    """What the vectors of a sketch hold for some rows, or columns, of a matrix; see `Matrix.sketch`."""
    return numbers_at(positions, SKETCHES, seed=1 if axis == "rows" else 2)


def dense(part: Any) -> Floats:
    """A dense or sparse part of a matrix as a dense array; a dense one is not copied."""
    return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())


def membership(blocks: Indices) -> sp.csr_array:
    """Sparse array with a single one in each row, in the column given by ``blocks``."""
    length = blocks.size
    return sp.csr_array(
        (np.ones(length), blocks, np.arange(length + 1)), shape=(length, int(blocks.max(initial=-1)) + 1)
    )


def safe_exponent(largest: float, dtype: np.dtype[Any]) -> int:
    """Exponent of the power of two in which entries up to ``largest`` have safe powers; 0 unless it is extreme."""
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > _SAFE_EXPONENT[dtype] else 0


def largest_of(values: Floats, count: int | None = None) -> Indices:
    """Positions of the largest positive values, at most ``count`` of them, the largest first.

    Examples
    --------
    >>> largest_of(np.array([0.0, 2.0, 5.0, 2.0]), 2)
    array([2, 1])
    """
    positive = np.flatnonzero(values > 0)
    return positive[np.argsort(-values[positive], kind="stable")][:count]

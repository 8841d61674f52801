"""A matrix in memory, built on a few products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf._kernels.orthogonal import orthogonal_factors
from gsnmf.matrix.projection import ResidualProjection, ResidualSide
from gsnmf.matrix.protocol import BLOCK_BYTES, Matrix, Residual, dense, largest_of, sketch_vectors
from gsnmf.support.arrays import Axis, Doubles, Floats, Indices

_CANCELLED = 1e-10
"""A difference of Gram products below this fraction of its terms has lost too many digits."""


class InMemoryMatrix(Matrix):
    """A matrix in memory; a subclass provides shape, dtype, data, T, dot, columns, norms and sums.

    Everything else follows from these. Dense and sparse matrices override what they can do faster.
    """

    in_memory = True
    exponent = 0

    @property
    @abstractmethod
    def T(self) -> InMemoryMatrix:
        """The transpose, sharing all memory."""

    def raw_columns(self, indices: Indices) -> Floats:  # noqa: D102
        return np.ldexp(self.columns(indices), self.exponent)

    def in_one_order(self) -> InMemoryMatrix:
        """The same matrix, so that products round alike however the entries were given; a copy if need be."""
        return self

    def submatrix(self, indices: Indices) -> Floats | sp.csc_array:
        """The columns at increasing ``indices``, sparse if the matrix is. All columns of a dense one are not copied."""
        return self.columns(indices)

    def gram_rows(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self.columns(indices).astype(np.float64, copy=False)
        return np.ascontiguousarray(self.T.dot(chosen).T, dtype=np.float64)

    def gram(self, indices: Indices) -> Doubles:  # noqa: D102
        chosen = self.submatrix(indices).astype(np.float64, copy=False)
        return np.asarray(dense(chosen.T @ chosen), dtype=np.float64)

    def with_products(self, indices: Indices) -> tuple[Floats, Doubles]:  # noqa: D102
        return self.columns(indices), self.gram_rows(indices).T

    def reduced(self, indices: Indices) -> tuple[Doubles, Doubles]:  # noqa: D102
        lengths = np.sqrt(self.squared_column_norms[indices])
        block = np.divide(self.columns(indices), lengths, dtype=np.float64)
        orthogonal, triangle = orthogonal_factors(block, overwrite=True)
        return triangle, np.ascontiguousarray(self.T.dot(orthogonal), dtype=np.float64)

    def sketch(self) -> Doubles:  # noqa: D102
        m, n = self.shape
        products = self.dot(sketch_vectors(np.arange(n), "columns"))
        return np.asarray(np.einsum("ik,ik->k", sketch_vectors(np.arange(m), "rows"), products))

    def residual(self, W: Floats, H: Floats) -> Residual:
        """E = M - W H for dense factors of shape (m, k) and (k, n)."""
        return ImplicitResidual(self, W, H)

    def squared_residual(self, W: Floats, H: Floats) -> float:
        """||M - W H||_F^2 by Gram products or, if these cancel, from the residual itself, in blocks of rows."""
        W, H = W.astype(np.float64, copy=False), H.astype(np.float64, copy=False)
        explained = float(np.vdot(W.T @ W, H @ H.T)) if W.shape[1] else 0.0
        squared = self.squared_norm - 2.0 * self.inner(W, H) + explained
        if squared > _CANCELLED * max(self.squared_norm, explained):
            return squared
        return self._explicit_squared_residual(W, H)

    def _explicit_squared_residual(self, W: Floats, H: Floats) -> float:
        total = 0.0
        for rows in self._row_blocks():
            residual = self.T.columns(np.arange(*rows.indices(self.shape[0]))).T - W[rows] @ H
            total += float(np.vdot(residual, residual))
        return total

    def squared_distance(self, W: Floats, H: Floats) -> float:  # noqa: D102
        shift = np.frexp(np.abs(W).max(axis=0, initial=0.0))[1]  # columns of W of size one: their squares are safe
        return self.squared_residual(np.ldexp(W, -shift), np.ldexp(H, (shift - self.exponent)[:, None]))

    def residual_norms(self, indices: Indices, W: Floats, H: Floats) -> Doubles:  # noqa: D102
        norms = np.empty(indices.size)
        step = max(1, BLOCK_BYTES // (self.shape[0] * self.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = slice(start, start + step)
            residual = self.columns(indices[part]) - W @ H[:, part]
            norms[part] = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
        return norms

    def projection(self, capacity: int, axes: Sequence[Axis]) -> ResidualProjection:  # noqa: D102
        return ResidualProjection({axis: ResidualSide(self.along(axis), capacity) for axis in axes})

    def row_product(self, block: Floats) -> Any:  # noqa: D102
        return np.ascontiguousarray(self.dot(block.astype(np.float64, copy=False)))

    def map_rows(self, function: Callable[..., Floats], width: int, *, shared: tuple[Floats, ...] = ()) -> Any:  # noqa: D102
        return function(self, *shared)

    def sum_over_rows(self, function: Callable[..., Doubles], *arrays: Any, shape: tuple[int, ...]) -> Doubles:  # noqa: D102
        return function(*arrays)

    def products_and_sums(self, block: Any, other: Any) -> tuple[Floats, Doubles]:  # noqa: D102
        return self.T.dot(block), other.sum(axis=0, dtype=np.float64)

    def chosen(self, columns: Indices, rows: Indices) -> tuple[Any, Doubles, Floats]:  # noqa: D102
        return *self.with_products(columns), self.T.columns(rows)

    def left_factor(self, columns: Indices, row_weights: Any) -> Any:  # noqa: D102
        return np.hstack([self.raw_columns(columns), row_weights])

    def strongest_rows(self, W: Any, count: int) -> list[tuple[Indices, Floats]]:  # noqa: D102
        found = [(largest_of(column, count), column) for column in W.T]
        return [(positions, column[positions]) for positions, column in found]


class ImplicitResidual(Residual):
    """A residual held as the matrix and the two factors."""

    def __init__(self, matrix: InMemoryMatrix, W: Floats, H: Floats) -> None:
        self.matrix: InMemoryMatrix = matrix
        self.W = W
        self.H = H

    @property
    def T(self) -> ImplicitResidual:  # noqa: D102
        return ImplicitResidual(self.matrix.T, self.H.T, self.W.T)

    @cached_property
    def _image(self) -> Floats:
        """M'W."""
        return self.matrix.T.dot(self.W)

    def cross(self, indices: Indices) -> Floats:  # noqa: D102
        block = self.matrix.gram_rows(indices)
        if self.W.shape[1]:
            block -= self._image[indices] @ self.H
        return block

    @cached_property
    def squared_norm(self) -> float:  # noqa: D102
        return self.matrix.squared_residual(self.W, self.H)

    @cached_property
    def inner(self) -> float:  # noqa: D102
        return self.matrix.squared_norm - self.matrix.inner(self.W, self.H)

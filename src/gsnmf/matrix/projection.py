r"""The residual of a matrix after projections, R = (I - U U^T) M (I - V V^T). Its norms are known; it is never formed.

U has one orthonormal vector for each chosen column, V one for each chosen row. Choosing a column with normalised
residual u, with :math:`g = R^T u` and :math:`h = R g`, takes :math:`g_j^2` from the squared norm of residual column j
and :math:`2 u_i h_i - u_i^2 \|g\|^2` from that of row i: two products with M, and O((m + n) r) memory.

A `Projection` has a side for each axis to choose from. `ResidualSide` is the side for matrices in memory.

Repeated subtraction loses digits. So once a norm has fallen far below the value at which it was last computed, it is
computed again from the residual column itself before it decides anything, as in LAPACK's pivoted QR (`Norms`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import proxy

import numpy as np

from gsnmf.matrix.protocol import BLOCK_BYTES, Matrix
from gsnmf.support.arrays import Axis, Doubles, Flags, Floats, Indices

State = dict[str, Any]
"""Arrays by name: everything that must be remembered to go on."""

Picks = Iterable[tuple[Axis, int]]
"""Chosen columns and rows, in the order of choice."""

_OF_NORMS = ("squared", "error_bound", "unreliable_below")


ROUNDING = 10.0
"""A residual below this times eps times the root of the dimension is rounding, not data."""

TIE = 64.0
"""Norms closer than this times eps count as equal, and the first index wins."""


def tie_factor(dtype: np.dtype[np.floating]) -> float:
    """Norms above this fraction of the largest count as equal to it."""
    return 1.0 - TIE * float(np.finfo(dtype).eps)


@dataclass
class Norms:
    """Squared norms of residual columns.

    Attributes
    ----------
    squared : array
        The norms; zero for columns that are ruled out.
    initial : array
        Norms of the columns themselves, not squared.
    error_bound, unreliable_below : array
        By how much a norm may be wrong, and where that begins to matter.
    eps : float
        Machine epsilon of the matrix's type.
    slack : float
        Bound on how much larger the errors of reductions are than those of products.
    """

    squared: Doubles
    initial: Doubles
    error_bound: Doubles
    unreliable_below: Doubles
    eps: float
    slack: float

    @classmethod
    def of(cls, squared: Doubles, dtype: np.dtype[np.floating], slack: float = 1.0) -> Norms:
        """Norms of columns before anything is chosen."""
        empty = np.empty(squared.size), np.empty(squared.size)
        norms = cls(squared.copy(), np.sqrt(squared), *empty, float(np.finfo(dtype).eps), slack)
        norms._trust(np.arange(squared.size))
        return norms

    def copy(self) -> Norms:
        """A copy that can be changed independently."""
        copies = {name: getattr(self, name).copy() for name in ("squared", "error_bound", "unreliable_below")}
        return replace(self, **copies)

    def largest(self) -> tuple[float, float]:
        """The largest certain norm, and the largest value that an uncertain one may have."""
        suspect = self._suspect()
        largest_certain = float(np.max(self.squared, where=~suspect, initial=0.0))
        return largest_certain, float(np.max(self.squared + self.error_bound, where=suspect, initial=-1.0))

    def doubtful(self, largest: float) -> Flags:
        """Uncertain norms that may be as large as the given one."""
        return self._suspect() & (self.squared + self.error_bound >= largest)

    def reduce(self, squares: Doubles) -> None:
        """Subtract ``squares`` from the norms. What falls to zero is not trusted as zero until it is recomputed."""
        alive = self.squared > 0
        tiny = np.finfo(np.float64).tiny
        np.subtract(self.squared, squares, out=self.squared, where=alive)
        np.maximum(self.squared, tiny, out=self.squared, where=alive)

    def set(self, indices: Indices, squared: Doubles, zero_below: Doubles) -> None:
        """Replace norms by ones computed from residuals, with the given rounding errors."""
        self.squared[indices] = np.where(squared <= np.square(zero_below), 0.0, squared)
        self._trust(indices)

    def _suspect(self) -> Flags:
        return np.asarray((self.squared > 0) & (self.squared < self.unreliable_below))

    def _trust(self, indices: Indices) -> None:
        """Set how far norms just computed may be reduced before their rounding errors show.

        A reduction by g_j^2 is wrong by about g_j eps |M_j|, so all those since the norm was computed add up to
        eps |M_j| |R_j|, with R_j as it was then. It may reach the root of eps, or ten times the error that computing
        the norm anew would leave.
        """
        squared, initial = self.squared[indices], self.initial[indices]
        scale = initial * np.sqrt(squared)
        self.error_bound[indices] = 100.0 * self.slack * self.eps * scale
        self.unreliable_below[indices] = np.minimum(0.01 * squared, np.sqrt(self.eps) * scale)


class Side(ABC):
    """The residual columns of a matrix, or the residual rows, which are the columns of its transpose."""

    other: Any = None
    """The side of the other axis, of the same kind, unless only one axis is chosen from."""

    @abstractmethod
    def farthest(self) -> int | None:
        """First index of the largest residual norm, certain to rounding; None if every residual is zero."""

    @abstractmethod
    def norm(self, index: int) -> float:
        """Squared residual norm of the index that `farthest` found last."""

    @abstractmethod
    def exclude(self, indices: Indices) -> None:
        """Rule these out: `farthest` never finds them."""

    @abstractmethod
    def choose(self, index: int) -> None:
        """Project both sides on the orthogonal complement of the residual at ``index``."""

    @abstractmethod
    def stored(self) -> State:
        """Everything that must be remembered to go on, apart from the indices."""

    @abstractmethod
    def restore(self, stored: State) -> None:
        """Go on from what `stored` gave, once `rebuild` was called."""

    @abstractmethod
    def rebuild(self, indices: Indices, others_before: Indices) -> None:
        """Compute again, for the chosen ``indices``, what is too long to be stored.

        ``others_before`` says how many of the other axis were chosen before each.
        """


class Projection:
    """What is left of a matrix after projections on chosen columns and rows."""

    def __init__(self, sides: Mapping[Axis, Side]) -> None:
        self._sides = dict(sides)
        if len(self._sides) == 2:
            columns, rows = self._sides["columns"], self._sides["rows"]
            columns.other, rows.other = proxy(rows), proxy(columns)  # no cycle, which would keep the matrix alive

    def farthest(self, axis: Axis) -> int | None:
        """First index of the largest residual along an axis; None if every residual is zero, up to rounding."""
        return self._sides[axis].farthest()

    def norm(self, axis: Axis, index: int) -> float:
        """Squared norm of the residual that `farthest` found last along this axis."""
        return self._sides[axis].norm(index)

    def exclude(self, axis: Axis, indices: Indices) -> None:
        """Never find these columns or rows again."""
        if indices.size:
            self._sides[axis].exclude(indices)

    def choose(self, axis: Axis, index: int) -> None:
        """Project on the orthogonal complement of the residual of a column or row."""
        self._sides[axis].choose(index)

    def stored(self) -> State:
        """Everything that must be remembered to go on, apart from the picks."""
        return {f"{axis}.{name}": value for axis, side in self._sides.items() for name, value in side.stored().items()}

    def restore(self, stored: State, picks: Picks) -> None:
        """Go on from what `stored` gave after these picks."""
        picked = list(picks)
        for axis, side in self._sides.items():
            prefix = f"{axis}."
            side.restore({name.removeprefix(prefix): v for name, v in stored.items() if name.startswith(prefix)})
        for axis, side in self._sides.items():
            own = np.array([picked_axis == axis for picked_axis, _ in picked], dtype=bool)
            indices = np.array([index for _, index in picked], dtype=np.intp)
            side.rebuild(indices[own], np.cumsum(~own)[own])


def orthogonalised(block: Floats, basis: Floats) -> Floats:
    """(I - U U^T) block, applied twice: once leaves a part of U as large as the block's rounding (Kahan)."""
    remainder = block - basis @ (basis.T @ block)
    remainder -= basis @ (basis.T @ remainder)
    return remainder


def _fill(array: Floats, values: Floats) -> None:
    """Put values into an array of the same shape, without broadcasting."""
    if array.shape != values.shape:
        raise ValueError(f"an array must have shape {array.shape}; got {values.shape}")
    array[...] = values


class ResidualNorms(Side):
    """Squared residual norms of the columns of an m x n matrix.

    ``state`` names the arrays that have one entry, or column, for each chosen column of the matrix.
    """

    state: tuple[str, ...]

    def __init__(self, matrix: Matrix, capacity: int, slack: float = 1.0) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self.capacity = min(capacity, m)
        self._norms = Norms.of(matrix.squared_column_norms, matrix.dtype, slack)
        self._tie = tie_factor(matrix.dtype)
        self._zero = ROUNDING * self._norms.eps * np.sqrt(max(m, n))

    @abstractmethod
    def _recompute(self, indices: Indices) -> None:
        """Compute residual norms from the residuals themselves."""

    @property
    def norms(self) -> Doubles:
        """Squared residual norms of the columns."""
        return self._norms.squared

    def norm(self, index: int) -> float:  # noqa: D102
        return float(self.norms[index])

    def exclude(self, indices: Indices) -> None:  # noqa: D102
        self.norms[indices] = 0.0

    def stored(self) -> State:  # noqa: D102
        return {name: getattr(self, name) for name in self.state} | {
            name: getattr(self._norms, name) for name in _OF_NORMS
        }

    def restore(self, stored: State) -> None:  # noqa: D102
        self.size = stored[self.state[0]].shape[-1]
        for name in self.state:
            _fill(getattr(self, name), stored[name])
        for name in _OF_NORMS:
            _fill(getattr(self._norms, name), stored[name])

    def rebuild(self, indices: Indices, others_before: Indices) -> None:
        """Do nothing: everything is stored."""

    @property
    def dimension(self) -> int:
        """Dimension of the span of the chosen columns."""
        return self.size

    def farthest(self) -> int | None:  # noqa: D102
        if self.dimension == self.capacity:
            return None
        while True:
            certain, possible = self._norms.largest()
            if possible < certain:
                return int(np.argmax(self.norms >= self._tie * certain)) if certain > 0 else None
            self._recompute(np.flatnonzero(self._norms.doubtful(certain)))


class ResidualSide(ResidualNorms):
    """The columns of an m x n matrix in memory, their residual norms, and the basis of the chosen ones.

    ``basis`` is U, ``image`` is M^T U; the other side holds V and M V.
    """

    state = ("basis", "image")
    other: ResidualSide | None

    def __init__(self, matrix: Matrix, capacity: int) -> None:
        super().__init__(matrix, capacity)
        (m, n), size, dtype = matrix.shape, self.capacity, matrix.dtype
        self._basis = np.empty((m, size), dtype=dtype, order="F")
        self._image = np.empty((n, size), dtype=dtype, order="F")

    @property
    def basis(self) -> Floats:
        """Orthonormal vectors of the chosen columns, m x size."""
        return self._basis[:, : self.size]

    @property
    def image(self) -> Floats:
        """M^T times the basis, n x size."""
        return self._image[:, : self.size]

    def gain(self, index: int) -> float:
        """By how much choosing ``index`` would lower the squared norm of the residual."""
        u = self._residual(np.array([index]))[:, 0]
        squared = float(np.dot(u, u))
        if squared <= (self._zero * self._norms.initial[index]) ** 2:
            return 0.0
        g = self.matrix.T.dot(u / np.sqrt(squared).astype(u.dtype))
        if self.other is not None:
            g = orthogonalised(g, self.other.basis)
        return float(np.dot(g, g))

    def choose(self, index: int) -> None:  # noqa: D102
        u = self._residual(np.array([index]))[:, 0]
        length = np.linalg.norm(u)
        if length > self._zero * self._norms.initial[index]:  # not so if what is included has explained it
            u /= length
            self._add(u)
        self.norms[index] = 0.0

    def direction(self, index: int) -> Floats:
        """The residual at ``index``, of unit length."""
        u = self._residual(np.array([index]))[:, 0]
        u /= np.linalg.norm(u)
        return u

    def project(self, vector: Floats) -> bool:
        """Project on the orthogonal complement of any vector; return whether anything of the vector was left."""
        u = orthogonalised(vector, self.basis)
        length = np.linalg.norm(u)
        if length <= self._zero * np.linalg.norm(vector):
            return False
        self._add(u / length)
        return True

    def _add(self, u: Floats) -> None:
        """Add to the basis a unit vector that is orthogonal to it."""
        image = g = self.matrix.T.dot(u)
        if self.other is not None:
            g = orthogonalised(image, self.other.basis)
            h = orthogonalised(self.matrix.dot(g), self.basis)
            self.other._norms.reduce(2.0 * u.astype(np.float64) * h - np.square(u, dtype=np.float64) * np.dot(g, g))
        self._basis[:, self.size] = u
        self._image[:, self.size] = image
        self._norms.reduce(np.square(g, dtype=np.float64))
        self.size += 1

    def _residual(self, indices: Indices) -> Floats:
        """Residual columns, orthogonal to the basis to working precision."""
        block = self.matrix.columns(indices)
        if self.other is not None and self.other.size:
            block -= self.other.image @ self.other.basis[indices].T
        return orthogonalised(block, self.basis)

    def _recompute(self, indices: Indices) -> None:
        step = max(1, BLOCK_BYTES // (self.matrix.shape[0] * self.matrix.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = indices[start : start + step]
            residual = self._residual(part)
            norms = np.einsum("ij,ij->j", residual, residual, dtype=np.float64)
            self._norms.set(part, norms, self._zero * self._magnitude(part))

    def _magnitude(self, indices: Indices) -> Doubles:
        """Size of the terms whose difference is a residual column; its rounding error is eps times this."""
        magnitude = self._norms.initial[indices]
        if self.other is None or not self.other.size:
            return magnitude
        lengths = np.linalg.norm(self.other.image, axis=0)
        return np.asarray(magnitude + np.abs(self.other.basis[indices]) @ lengths)


class ResidualProjection(Projection):
    """The projection of a matrix in memory, which can also predict what a choice would gain."""

    _sides: dict[Axis, ResidualSide]  # type: ignore[assignment]

    def gain(self, axis: Axis, index: int) -> float:
        """By how much choosing a column or row would lower the squared norm of the residual."""
        return self._sides[axis].gain(index)

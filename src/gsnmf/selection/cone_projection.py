# mypy: disallow-untyped-decorators=False
r"""Residuals of all columns of a matrix on the cone, or on the convex hull, of those chosen so far.

With an orthonormal basis Q of the chosen columns, C = Q R, every column splits into :math:`M_j = Q t_j + o_j`, and

.. math:: \|M_j - C h\|^2 = \|t_j - R h\|^2 + \|o_j\|^2 .

A problem in h is thus one of the size of the chosen columns, whatever the number of rows; choosing a column costs one
product with the matrix, which gives the new entry of every :math:`t_j`. Neither squares the condition of C, as its Gram
matrix would, nor is a residual ever formed, except of the few columns of which the norm is in doubt.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from gsnmf.kernels.nonnegative import _append, _project, _slope, _solve, _subtract
from gsnmf.matrices.projection import orthogonalised
from gsnmf.matrices.protocol import BLOCK_BYTES, Matrix
from gsnmf.matrices.residual_norms import ROUNDING, TIE
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices


class ReducedColumns:
    """The columns of an m x n matrix in a basis of those chosen, and their residuals.

    Attributes
    ----------
    size : int
        Number k of chosen columns.
    lengths : array of length n
        Norms of the columns.
    outside : array of length n
        Squared norms of the o_j.
    open : bool array of length n
        Columns that are neither chosen nor reproduced, up to rounding.
    """

    def __init__(self, matrix: Matrix, capacity: int) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.size = 0
        self._basis = np.zeros((m, capacity), dtype=matrix.dtype, order="F")
        self._targets = np.zeros((n, capacity))
        self._inside = np.zeros((n, capacity))
        self._triangle = np.zeros((capacity, capacity))
        self.outside = matrix.squared_column_norms.copy()
        self.lengths = np.sqrt(self.outside)
        self.open = self.outside > 0
        self._reference = self.outside.copy()  # what ``outside`` was when it was last computed, and not only reduced
        self._eps = float(np.finfo(matrix.dtype).eps)
        self._zero = ROUNDING * self._eps * math.sqrt(max(m, n))

    @property
    def basis(self) -> Floats:
        """Q, shape (m, k); a column is zero where the chosen one depends on those before it."""
        return self._basis[:, : self.size]

    @property
    def targets(self) -> Doubles:
        """t_j in row j, shape (n, k)."""
        return self._targets[:, : self.size]

    @property
    def inside(self) -> Doubles:
        """t_j - R h_j in row j, shape (n, k); a view to be written to."""
        return self._inside[:, : self.size]

    @property
    def triangle(self) -> Doubles:
        """R, upper triangular, shape (k, k)."""
        return self._triangle[: self.size, : self.size]

    @property
    def squared_residuals(self) -> Doubles:
        """||M_j - C h_j||^2 of every column."""
        return np.asarray(self.outside + np.einsum("jk,jk->j", self.inside, self.inside))

    @property
    def rounding(self) -> Doubles:
        """Residuals of the columns closer to each other than this are equal."""
        return np.asarray(TIE * self._eps * self.lengths)

    def append(self, index: int) -> None:
        """Choose a column: extend the basis and the coordinates. Its weight in the others is zero as yet."""
        k = self.size
        self._triangle[:k, k] = self._targets[index, :k]
        residual = orthogonalised(self.matrix.columns(np.array([index]))[:, 0], self.basis)
        length = float(np.linalg.norm(residual))
        if length > self._zero * self.lengths[index]:
            residual = orthogonalised(residual / length, self.basis)  # a short residual is not orthogonal enough
            residual /= np.linalg.norm(residual)
            image = self.matrix.T.dot(residual).astype(np.float64, copy=False)
            self._basis[:, k] = residual
            self._triangle[k, k] = image[index]
            self._targets[:, k] = self._inside[:, k] = image
            self.outside -= np.square(image)
            np.maximum(self.outside, 0.0, out=self.outside)
        self.outside[index] = self._reference[index] = 0.0
        self._inside[index] = 0.0
        self.open[index] = False
        self.size += 1

    def farthest(self) -> int | None:
        """Index of the largest residual; None if every residual is zero, up to rounding.

        Among equal residuals it is the longest column, and among these the first: a longest column is a vertex even
        where a whole face of the hull is equally far away.
        """
        while True:
            squared = self.squared_residuals
            suspect = self.open & (self.outside < 0.01 * self._reference)
            suspect &= squared < math.sqrt(self._eps) * self.lengths * np.sqrt(self._reference)
            certain = self.open & ~suspect
            self.open[certain] = squared[certain] > np.square(self._zero * self.lengths[certain])
            largest = float(np.max(squared, where=self.open & ~suspect, initial=0.0))
            suspects = np.flatnonzero(suspect)
            bound = 100.0 * self._eps * self.lengths[suspects] * np.sqrt(self._reference[suspects])
            suspects = suspects[squared[suspects] + bound >= largest]
            if suspects.size:
                self._recompute(suspects)
            elif largest > 0:
                distances = np.sqrt(squared)
                equal = self.open & (distances + self.rounding >= math.sqrt(largest))
                return first_of_largest(self.lengths, equal, self._eps)
            else:
                return None

    def outer(self, indices: Indices) -> Floats:
        """The parts o_j of columns outside the span, a dense m x b block."""
        return orthogonalised(self.matrix.columns(indices), self.basis)

    def residuals(self, indices: Indices) -> Floats:
        """Explicit residual columns M_j - C h_j, a dense m x b block."""
        block = self.outer(indices)
        block += self.basis @ self.inside[indices].T.astype(block.dtype)
        return block

    def is_zero(self, index: int, residual: Floats) -> bool:
        """Whether a residual column is only rounding; if so, the column is closed."""
        if float(np.linalg.norm(residual)) <= self._zero * self.lengths[index]:
            self.open[index] = False
        return not self.open[index]

    def _recompute(self, indices: Indices) -> None:
        step = max(1, BLOCK_BYTES // (self.matrix.shape[0] * self.matrix.dtype.itemsize))
        for start in range(0, indices.size, step):
            part = indices[start : start + step]
            block = self.outer(part)
            norms = np.einsum("ij,ij->j", block, block, dtype=np.float64)
            norms[norms <= np.square(self._zero * self.lengths[part])] = 0.0
            self.outside[part] = self._reference[part] = norms


def first_of_largest(values: Doubles, among: Flags, eps: float) -> int:
    """First index of the largest value, up to rounding, among some that are not none."""
    largest = np.max(values, where=among, initial=0.0)
    return int(np.argmax(among & (values >= (1.0 - TIE * eps) * largest)))


@numba.njit(parallel=True, cache=True, fastmath=True)
def project_on_hull(X: Doubles, residuals: Doubles, multipliers: Doubles, columns: Doubles, targets: Doubles) -> None:
    r"""Turn each row x of X in place into weights of the point nearest to its target in a convex hull.

    Minimises :math:`\|t - \sum_i x_i r_i\|` over x >= 0 with sum one. Row i of ``columns`` is the point r_i, with zeros
    after entry i and in entry 0; the first is thus the origin, and there is at least one more. On entry each x solves
    the problem for the points with positive weights, as it does when it is all origin. ``residuals`` and
    ``multipliers`` receive t less the nearest point, and the multiplier of the sum.

    The active-set method of Wolfe: the point with the steepest slope enters, the problem is solved on the affine hull
    of the points with positive weights, and weights that become negative on the way leave. It ends with slopes of at
    most those of the points with positive weights, up to rounding, after finitely many steps. Points that are affinely
    independent are linearly independent once the same coordinate is appended to all, so that a Cholesky factor of their
    inner products plus a constant is enough; the solutions are refined with the points themselves.

    References
    ----------
    P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976), doi:10.1007/BF01580381.
    """
    n, r = X.shape
    gram = columns @ columns.T
    shortest, longest = gram[1, 1], gram[1, 1]
    for i in range(1, r):
        shortest, longest = min(shortest, gram[i, i]), max(longest, gram[i, i])
    gram += shortest
    n_chunks = min(n, 64)
    for chunk in numba.prange(n_chunks):
        lower, buffers, indices = np.empty((r, r)), np.empty((4, r)), np.empty(r, dtype=np.int64)
        for j in range(chunk * n // n_chunks, (chunk + 1) * n // n_chunks):
            squared = 0.0
            for k in range(r):
                squared += targets[j, k] * targets[j, k]
            threshold = 1e-15 * r * math.sqrt(squared * longest)
            multipliers[j] = _nearest_in_hull(
                X[j], columns, gram, targets[j], threshold, residuals[j], lower, buffers, indices
            )


@numba.njit(cache=True, fastmath=True)
def _nearest_in_hull(
    x: Doubles,
    columns: Doubles,
    gram: Doubles,
    target: Doubles,
    threshold: float,
    residual: Doubles,
    lower: Doubles,
    buffers: Doubles,
    indices: NDArray[np.int64],
) -> float:
    """Wolfe's method from a feasible x; returns the slope that the points with positive weight have in common."""
    r = x.size
    z, slopes = buffers[0], buffers[3]
    blocked = np.zeros(r, dtype=np.bool_)
    size = _start(x, gram, lower, indices)
    for a in range(size):
        z[a] = x[indices[a]]
    _subtract(columns, indices, size, target, z, residual)
    level = 0.0
    for _ in range(10 * r + 10):
        level = 0.0
        for i in range(r):
            slopes[i] = _slope(columns, i, residual)
            level += x[i] * slopes[i]
        entering, steepest = -1, level + threshold
        for i in range(r):
            if slopes[i] > steepest and x[i] == 0.0 and not blocked[i]:
                entering, steepest = i, slopes[i]
        if entering < 0:
            break
        if not _append(gram, entering, lower, indices, size):  # it depends on the others: only rounding made its slope
            blocked[entering] = True
            continue
        size += 1
        blocked[:] = False
        while True:
            _nearest_in_affine_hull(columns, indices, size, target, residual, lower, buffers)
            step, leaving = 1.0, -1
            for a in range(size):
                i = indices[a]
                if z[a] <= 0.0 and x[i] <= step * (x[i] - z[a]):
                    step, leaving = x[i] / (x[i] - z[a]), i
            for a in range(size):
                i = indices[a]
                x[i] = z[a] if leaving < 0 else max(0.0, x[i] + step * (z[a] - x[i]))
            if leaving < 0:
                break
            x[leaving] = 0.0
            if x[entering] == 0.0:  # entered and left at once: rounding again
                blocked[entering] = True
            size = _without_zeros(x, gram, lower, indices, size)
    return level


@numba.njit(cache=True, fastmath=True)
def _nearest_in_affine_hull(
    columns: Doubles,
    indices: NDArray[np.int64],
    size: int,
    target: Doubles,
    residual: Doubles,
    lower: Doubles,
    buffers: Doubles,
) -> None:
    """Weights z with sum one of the point nearest to the target, and the residual, refined until it is rounding."""
    z, correction, ones = buffers[0], buffers[1], buffers[2]
    z[:size], ones[:size] = 0.0, 1.0
    residual[:] = target
    _solve(lower, size, ones)
    total, weight = 0.0, 0.0
    for a in range(size):
        weight += ones[a]
    for _ in range(6):
        _project(columns, indices, size, residual, correction)
        _solve(lower, size, correction)
        shift = 1.0 - total
        for a in range(size):
            shift -= correction[a]
        shift /= weight
        total, largest, change = 0.0, 0.0, 0.0
        for a in range(size):
            update = correction[a] + shift * ones[a]
            z[a] += update
            total += z[a]
            largest, change = max(largest, abs(z[a])), max(change, abs(update))
        _subtract(columns, indices, size, target, z, residual)
        if change <= 1e-12 * largest:
            break


@numba.njit(cache=True, fastmath=True)
def _start(x: Doubles, gram: Doubles, lower: Doubles, indices: NDArray[np.int64]) -> int:
    """Factor of the points with positive weight, and their number; only the origin if they depend on each other."""
    size = 0
    for i in range(x.size):
        if x[i] > 0.0:
            if not _append(gram, i, lower, indices, size):
                x[:] = 0.0
                x[0] = 1.0
                _append(gram, 0, lower, indices, 0)
                return 1
            size += 1
    return size


@numba.njit(cache=True, fastmath=True)
def _without_zeros(x: Doubles, gram: Doubles, lower: Doubles, indices: NDArray[np.int64], size: int) -> int:
    """Take the points without weight from the Cholesky factor, of which the rows before the first of them stay."""
    kept = 0
    for a in range(size):
        i = indices[a]
        if x[i] > 0.0 and (a == kept or _append(gram, i, lower, indices, kept)):
            kept += 1
        else:
            x[i] = 0.0
    return kept

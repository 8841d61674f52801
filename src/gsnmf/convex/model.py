r"""The convex model of generalized separable NMF, on a working set of columns and rows.

.. math:: \min_{X, Y} \; \tfrac12 \|M - M X - Y M\|_F^2 + \lambda \left( \Phi(X) + \Phi(Y^T) \right)

with a penalty :math:`\Phi` of `gsnmf.convex.penalties` on the rows of X (n x n) and on the columns of Y (m x m);
without Y it is the model of separable NMF. Most rows of X are zero at the solution, so only those of a *working set*
are held: X is k x n and Y, kept transposed, k' x m.

For any residual E the scores :math:`s_i` of the columns and rows (`Penalty.scores` of :math:`M_i^T E`) give a lower
bound on the optimum (`Penalty.dual_bound`), and a row of X outside the working set can help only if its score exceeds
lambda. The bound of the current residual certifies a solution; the scores choose what enters the working set.

As in the paper, a dimensionless number sets the strength lambda of the penalty,

.. math:: \lambda = \tilde\lambda \, \|M - M X_0 - Y_0 M\|_F^2 / (2 r),

with the columns and rows of GSPA and their weights as the start (X0, Y0).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from gsnmf.constraints import Limits
from gsnmf.convex.penalties import TRACE, Penalty, scaled_weights
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.protocol import BLOCK_BYTES, Residual
from gsnmf.records import Record, Selection
from gsnmf.selection.successive_projection import generalized_successive_projection, successive_projection
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Flags, Floats, Indices
from gsnmf.support.reasons import StopReason
from gsnmf.weights import solve_weights

_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
"""Error, relative to ||M||^2, of products with a residual, which are differences of products with M."""

_DEPENDENT = 1e-12
"""Eigenvalues of a Gram matrix below this fraction of the largest count as zero."""

_SMALLEST_ERROR = 1e-4
"""Smallest relative error for which lambda is computed; a smaller one would drown in rounding."""


@dataclass(frozen=True)
class ConvexModel:
    """The problem: a matrix, lambda, a penalty, the axes that may be chosen from, and what must not be chosen."""

    matrix: InMemoryMatrix
    strength: float
    penalty: Penalty = TRACE
    axes: Axes = COLUMNS_AND_ROWS
    limits: Limits | None = None

    def scores(
        self, residual: Residual, memory: int = BLOCK_BYTES, pools: tuple[Indices, Indices] | None = None
    ) -> tuple[Floats, Floats]:
        """Scores of all columns and of all rows, in blocks within ``memory`` bytes; no rows if they are not chosen.

        With ``pools``, only these columns and rows are scored. All others, like excluded ones, get -inf.
        """
        columns, rows = pools or (None, None)
        by_column = self._side_scores(residual, memory, columns)
        by_row = self._side_scores(residual.T, memory, rows) if "rows" in self.axes else np.empty(0)
        if self.limits is not None:
            by_column[self.limits.excluded_columns] = -np.inf
            by_row[self.limits.excluded_rows[: by_row.size]] = -np.inf
        return by_column, by_row

    def _side_scores(self, residual: Residual, memory: int, pool: Indices | None) -> Floats:
        weights = scaled_weights(residual.matrix.column_sums, np.dtype(np.float64))
        scores = np.full(residual.matrix.shape[1], -np.inf)
        for indices, block in residual.cross_blocks(memory, pool):
            scores[indices] = self.penalty.scores(block.astype(np.float64, copy=False), indices, weights)
        return scores

    def dual_bound(self, residual: Residual, scores: tuple[Floats, Floats]) -> float:
        """Lower bound on the optimum, from any residual and its scores, minus what rounding may have added."""
        everything = np.concatenate(scores)
        slack = _ROUNDING * self.matrix.squared_norm
        return self.penalty.dual_bound(everything, residual.inner - slack, residual.squared_norm + slack, self.strength)


@dataclass(frozen=True, eq=False, repr=False)
class ConvexSolution(Record):
    """A solution of the convex model with its certificate.

    Attributes
    ----------
    columns, rows : int arrays
        Indices of the nonzero rows of X and columns of Y.
    X : array, shape (len(columns), n)
        The nonzero rows of X.
    Y : array, shape (m, len(rows))
        The nonzero columns of Y.
    strength : float
        lambda.
    objective, lower_bound : float
        The value reached and a proved bound on the optimum.
    residual_norm : float
        ||M - M X - Y M||_F.
    n_iterations : int
    converged : bool
        Whether the relative gap met the tolerance.
    stop_reason : StopReason

    Examples
    --------
    >>> from gsnmf.convex import solve_convex
    >>> solution = solve_convex([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> solution.converged, bool(solution.lower_bound <= solution.objective)
    (True, True)
    """

    columns: Indices
    rows: Indices
    X: Floats
    Y: Floats
    strength: float
    objective: float
    lower_bound: float
    residual_norm: float
    n_iterations: int
    converged: bool
    stop_reason: StopReason

    @property
    def gap(self) -> float:
        """Relative duality gap, (objective - lower_bound) / objective."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0

    @property
    def column_diagonal(self) -> Floats:
        """X_ii of ``columns``."""
        return self.X[np.arange(self.columns.size), self.columns]

    @property
    def row_diagonal(self) -> Floats:
        """Y_ll of ``rows``."""
        return self.Y[self.rows, np.arange(self.rows.size)]

    @property
    def is_trivial(self) -> bool:
        """Whether X is about a I and Y about (1 - a) I: such a solution explains every matrix and says nothing."""
        a, b = self.column_diagonal.sum() / self.X.shape[1], self.row_diagonal.sum() / self.Y.shape[0]
        if a + b < 0.95:
            return False
        on_diagonal = np.sum(self.column_diagonal**2) + np.sum(self.row_diagonal**2)
        off_diagonal = np.sum(self.X**2) + np.sum(self.Y**2) - on_diagonal
        return bool(off_diagonal < 0.05 * on_diagonal)

    def __repr__(self) -> str:
        return (
            f"ConvexSolution: {self.columns.size} nonzero rows of X and {self.rows.size} nonzero columns of Y, "
            f"relative gap {self.gap:.1e}, {self.stop_reason}"
        )


@dataclass(frozen=True)
class Start:
    """Columns and rows of a fast method, their weights, and the error that they leave."""

    columns: Indices
    rows: Indices
    X: Floats
    Y: Floats
    relative_error: float
    squared_norm: float

    @classmethod
    def of(cls, matrix: InMemoryMatrix, rank: int, axes: Axes, known: Selection | None = None) -> Start:
        """GSPA, or SPA if only one axis may be chosen from, and its weights; ``known`` is its selection, if known."""
        if known is None and "rows" in axes:
            known = generalized_successive_projection(matrix, rank)
        elif known is None:
            known = successive_projection(matrix, rank, axis="columns")
        weights = solve_weights(matrix, known.columns, known.rows)
        return cls(
            columns=known.columns,
            rows=known.rows,
            X=weights.column_weights.astype(np.float64),
            Y=weights.row_weights.astype(np.float64),
            relative_error=weights.relative_error,
            squared_norm=matrix.squared_norm,
        )

    @property
    def squared_error(self) -> float:
        """The residual of the start, or the smallest one that a lambda can be computed for."""
        return max(self.relative_error, _SMALLEST_ERROR) ** 2 * self.squared_norm

    def strength(self, relative: float, rank: int) -> float:
        """The lambda of a lambda~; positive unless the matrix is zero."""
        return relative * self.squared_error / (2 * rank)


class Side:
    """The working set of columns, at unit length, with their rows of X and what the solver needs to know of them.

    Columns A = M_K D^-1 at unit length go with D X instead of X. The rows of the matrix are the side of its transpose.
    """

    def __init__(self, matrix: InMemoryMatrix) -> None:
        m, n = matrix.shape
        self.matrix = matrix
        self.weights = scaled_weights(matrix.column_sums, np.dtype(np.float64))
        self.indices: Indices = np.empty(0, dtype=np.intp)
        self.lengths: Floats = np.empty(0)
        self.vectors: Floats = np.empty((0, m))
        """A', the columns of the working set."""
        self.products: Floats = np.empty((0, n))
        """A'M."""
        self.X: Floats = np.empty((0, n))
        """Feasible."""
        self.dual: Floats = np.empty((0, n))
        """Multiplier of the constraint that the free weights equal X, in units of the solver's stiffness."""
        self.free: Floats = np.empty((0, n))
        """Weights without constraints, which the multiplier drives to X."""
        self.slopes: Floats = np.empty((0, n))
        """A'E for the residual E of the free weights."""
        self._decompose()

    def extend(self, indices: Indices, X: Floats | None = None, dual: Floats | None = None) -> None:
        """Add columns, with their rows of X and of the multiplier, or with zeros."""
        if indices.size == 0:
            return
        lengths = np.sqrt(self.matrix.squared_column_norms[indices])
        vectors = np.ascontiguousarray(self.matrix.columns(indices).T, dtype=np.float64)
        zeros = np.zeros((indices.size, self.matrix.shape[1]))
        scaled = zeros if X is None else X * lengths[:, None]
        self.indices = np.concatenate([self.indices, indices])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.vectors = np.vstack([self.vectors, vectors / lengths[:, None]])
        self.products = np.vstack([self.products, self.matrix.gram_rows(indices) / lengths[:, None]])
        self.X = np.vstack([self.X, scaled])
        self.dual = np.vstack([self.dual, zeros if dual is None else dual])
        self._decompose()

    def copy(self) -> Side:
        """A copy of the state. Arrays that a step replaces but never changes are shared."""
        other = copy.copy(self)
        other.dual = self.dual.copy()
        return other

    def keep(self, mask: Flags) -> None:
        """Drop the other columns."""
        if mask.all():
            return
        self.indices, self.lengths = self.indices[mask], self.lengths[mask]
        self.vectors, self.products = self.vectors[mask], self.products[mask]
        self.X, self.dual = self.X[mask], self.dual[mask]
        self._decompose()

    @property
    def unscaled(self) -> Floats:
        """X for the columns at their original length."""
        return self.X / self.lengths[:, None]

    def gradient(self, other: Side) -> Floats:
        """A'E for the residual E of the feasible X and of the other side's."""
        gradient = self.gram @ self.X
        np.subtract(self.products, gradient, out=gradient)
        if other.indices.size:
            gradient -= (self.vectors @ other.X.T) @ other.vectors
        return gradient

    def prepare(self, other: Side, stiffness: float) -> None:
        """What `free_weights` needs that depends on the other side's basis and on the stiffness."""
        self.damping = 1.0 / (1.0 + self.spectrum / stiffness)
        self._matched = self.rotation.T @ (self.products @ other.basis.T)
        self._start = (self.rotation * self.damping) @ (self.rotation.T @ self.products)
        self._pull = (self.rotation * (self.spectrum * self.damping)) @ self.rotation.T

    def _decompose(self) -> None:
        """A'A = Q S Q', and the orthonormal basis S^-1/2 Q'A' of the columns."""
        self.gram = self.products[:, self.indices] / self.lengths
        spectrum, self.rotation = linalg.eigh(self.gram) if self.indices.size else (self.lengths, self.gram)
        self.spectrum = np.where(spectrum > _DEPENDENT * spectrum.max(initial=0.0), spectrum, 0.0)
        inverse = np.divide(1.0, np.sqrt(self.spectrum), where=self.spectrum > 0, out=np.zeros_like(spectrum))
        self.basis = (self.rotation * inverse).T @ self.vectors

    def free_weights(self, other: Side, target: Floats, own: Floats, its: Floats, stiffness: float) -> None:
        """Set the free weights near ``target``, and their slopes.

        ``own`` and ``its`` are the targets of this side and of the other, each in its own eigenvectors and in the
        basis of the other.
        """
        spectrum, its_spectrum = self.spectrum[:, None], other.spectrum
        own_part = self._matched - spectrum * own
        joint_part = own_part - np.sqrt(spectrum) * its.T * np.sqrt(its_spectrum)
        joint_part /= 1.0 + (spectrum + its_spectrum) / stiffness
        joint_part -= own_part * self.damping[:, None]
        self.slopes = self._start - self._pull @ target
        self.slopes += (self.rotation @ joint_part) @ other.basis
        self.free = target + self.slopes / stiffness

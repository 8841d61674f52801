r"""Factors of a few members each on both sides, with their weights: the state that the search for members improves.

.. math:: M \approx C P^T + Q R^T, \qquad C = M A, \quad R = M^T B^T,

where A and B' have a few positive entries per column. Every operation here lowers the error or leaves it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from gsnmf.constraints import Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.result import Factorization
from gsnmf.search.descent import descend_jointly
from gsnmf.search.member_fits import MixedSide, Mixture, Pool
from gsnmf.search.work import Work
from gsnmf.support.arrays import Doubles, Flags
from gsnmf.weights.joint import JointProblem, solve_joint

_CG_OPERATIONS = 15.0
"""Approximate number of products with the Gram matrices in one iteration of the weight solver."""
_GATHERED = 6.0
"""Multiplications of dense matrices in the time of one multiplication with a stored entry of a sparse matrix."""
_SCORED = 50.0
"""Multiplications in the time that scoring one column or row as a member of one factor takes, per member."""
_LARGE = 1 << 19
"""Weights from which the sweeps of one model are shared among threads."""


@dataclass(frozen=True)
class Space:
    """The matrix, its columns and rows as possible members, and the work that may be spent on choosing them."""

    matrix: InMemoryMatrix
    columns: Pool
    rows: Pool
    limits: Limits
    work: Work

    @classmethod
    def of(cls, matrix: InMemoryMatrix, limits: Limits, work: Work) -> Space:
        """All columns and rows of a matrix that the limits allow."""
        columns, rows = Pool.of(matrix, limits.excluded_columns), Pool.of(matrix.T, limits.excluded_rows)
        return cls(matrix, columns, rows, limits, work)

    def products(self, width: int) -> None:
        """Count products of the matrix with this many vectors."""
        self.work.products(min(_GATHERED * self.matrix.n_stored, float(np.prod(self.matrix.shape))) * width)

    def scores(self, count: int) -> None:
        """Count scores of all columns and rows as members, this many times."""
        self.work.scores(_SCORED * count * sum(self.matrix.shape))


@dataclass
class MixedModel:
    """Mixtures of columns and of rows, and their weights, for factors of unit length.

    Attributes
    ----------
    space : Space
    left, right : MixedSide
        Mixtures of columns C, shape (m, r1), and of rows R, shape (n, r2).
    P, Q : arrays, shape (n, r1) and (m, r2)
        Their weights.
    squared_error : float
    optimality : float
        Relative violation of the optimality conditions of the weights.
    n_iterations : int
        Iterations of the last solve for the weights.
    """

    space: Space
    left: MixedSide
    right: MixedSide
    P: Doubles
    Q: Doubles
    squared_error: float = np.inf
    optimality: float = np.inf
    n_iterations: int = 0

    @classmethod
    def of(
        cls, space: Space, columns: list[Mixture], rows: list[Mixture], fixed: Flags, P: Doubles, Q: Doubles
    ) -> MixedModel:
        """The model with these mixtures; ``P`` and ``Q`` are their weights, for factors of any length."""
        left = MixedSide(space.columns, columns, fixed[: len(columns)])
        right = MixedSide(space.rows, rows, fixed[len(columns) :])
        lengths = [
            np.array([np.linalg.norm(mixture.weights) for mixture in given])
            / np.array([np.linalg.norm(mixture.weights) for mixture in side.mixtures])
            for side, given in ((left, columns), (right, rows))
        ]
        return cls(space, left, right, np.ascontiguousarray(P * lengths[0]), np.ascontiguousarray(Q * lengths[1]))

    @property
    def size(self) -> int:
        """Number of factors."""
        return len(self.left.mixtures) + len(self.right.mixtures)

    @property
    def fixed(self) -> Flags:
        """Which factors, columns first, must not change."""
        return np.concatenate([self.left.fixed, self.right.fixed])

    def copy(self) -> MixedModel:
        """The same model, which can change independently."""
        memo = {id(self.space): self.space, id(self.left.pool): self.left.pool, id(self.right.pool): self.right.pool}
        return deepcopy(self, memo)

    def factors(self) -> tuple[Doubles, Doubles]:
        """W = [C, Q] and H = [P'; R'], shape (m, r) and (r, n)."""
        return np.hstack([self.left.vectors, self.Q]), np.vstack([self.P.T, self.right.vectors.T])

    def problem(self) -> JointProblem:
        """The problem of the weights."""
        C, R = self.left.vectors, self.right.vectors
        return JointProblem(
            C=C,
            R=R,
            gram_C=C.T @ C,
            gram_R=R.T @ R,
            linear_P=-self.left.images,
            linear_Q=-self.right.images,
            column_lengths=np.ones(C.shape[1]),
            row_lengths=np.ones(R.shape[1]),
            squared_norm=self.space.matrix.squared_norm,
        )

    def solve(self, tolerance: float, max_iterations: int) -> None:
        """Improve the weights in place."""
        found = solve_joint(self.problem(), self.P, self.Q, tolerance, max_iterations)
        self.squared_error, self.optimality, self.n_iterations = found
        entries = sum(self.space.matrix.shape) * self.size**2
        self.space.work.products(entries * _CG_OPERATIONS * max(1, self.n_iterations))

    def descend(self, max_rounds: int, tolerance: float) -> None:
        """Improve the weights in place by coordinate descent: most of what `solve` gains, in a fraction of its time."""
        threads = self.P.size + self.Q.size >= _LARGE
        self.squared_error, operations = descend_jointly(
            self.problem(),
            self.P,
            self.Q,
            squared_error=np.inf,
            goal=np.inf,
            max_rounds=max_rounds,
            tolerance=tolerance,
            threads=threads,
        )
        self.space.work.descents(operations)

    def improve(self, most: int) -> None:
        """Bring all mixtures closer to what the weights ask for, in place."""
        self.left.improve(self.P, self.attraction_of_columns(), most)
        self.right.improve(self.Q, self.attraction_of_rows(), most)
        self.space.scores(most * self.size)

    def largest_gain(self, most: int) -> float:
        """The largest relative decrease of the squared error by adding or exchanging one member of one factor."""
        gain = max(
            self.left.largest_gain(self.P, self.attraction_of_columns(), most),
            self.right.largest_gain(self.Q, self.attraction_of_rows(), most),
        )
        return gain / self.squared_error if self.squared_error > 0 else 0.0

    def attraction_of_columns(self) -> Doubles:
        """M'(M - Q R')P."""
        return _attraction(self.space, self.space.matrix, self.P, self.Q, self.right.vectors)

    def attraction_of_rows(self) -> Doubles:
        """M(M' - P C')Q."""
        return _attraction(self.space, self.space.matrix.T, self.Q, self.P, self.left.vectors)


def model_of(result: Factorization, space: Space) -> tuple[MixedModel, Flags]:
    """The nonzero factors of a result as mixtures with their weights, and which factors these are.

    A factor that is one included column, or row, is fixed.
    """
    sides = (
        (space.matrix, space.limits.included_columns, result.members[: result.columns.size]),
        (space.matrix.T, space.limits.included_rows, result.members[result.columns.size :]),
    )
    mixtures: list[list[Mixture]] = []
    used, fixed = [], []
    for matrix, included, pairs in sides:
        nonzero = [bool(matrix.squared_column_norms[members].any()) for members, _ in pairs]
        used += nonzero
        mixtures.append(
            [Mixture(m, s.astype(np.float64)) for (m, s), is_there in zip(pairs, nonzero, strict=True) if is_there]
        )
        fixed += [own.members.size == 1 and bool(np.isin(own.members, included)[0]) for own in mixtures[-1]]
    kept = np.array(used, dtype=np.bool_)
    P = result.column_weights[kept[: result.columns.size]].T.astype(np.float64)
    Q = result.row_weights[:, kept[result.columns.size :]].astype(np.float64)
    return MixedModel.of(space, mixtures[0], mixtures[1], np.array(fixed, dtype=np.bool_), P, Q), kept


def _attraction(space: Space, matrix: InMemoryMatrix, weights: Doubles, others: Doubles, vectors: Doubles) -> Doubles:
    """M'(M - Q R')P in two block products, for weights P, and others Q of vectors R."""
    if not weights.shape[1]:
        return np.empty_like(weights)
    image = matrix.dot(weights)
    if others.shape[1]:
        image = image - others @ (vectors.T @ weights)
    space.products(2 * weights.shape[1])
    return np.asarray(matrix.T.dot(np.ascontiguousarray(image)), dtype=np.float64)

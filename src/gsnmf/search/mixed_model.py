r"""Factors of a few members each on both sides, with their weights: the state that the search for members improves.

.. math:: M \approx C P^T + Q R^T, \qquad C = M A, \quad R = M^T B^T,

where A and B' have a few positive entries per column. Every operation here lowers the error or leaves it.

With the weights P of the factors C fixed, the squared error as a function of the mixture a_k alone is

.. math:: \|M - C P^T - Q R^T\|_F^2 = \text{const} + \|P_k\|^2 \, \|M a_k - t_k\|^2, \qquad
    t_k = \frac{(M - \sum_{l \ne k} C_l P_l^T - Q R^T)\, P_k}{\|P_k\|^2} .

So a mixture a_k that comes closer to t_k lowers the error itself. Only the products of t_k with the columns of M are
needed,

.. math:: \|P_k\|^2\, M^T t_k = M^T M P_k - (M^T Q)(R^T P_k) - \sum_{l \ne k} (M^T C_l)(P_l^T P_k),

and the products with M are shared by all factors: a factor that changes only changes its own M'C_k.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gsnmf._kernels.members import best_change, member_weights
from gsnmf.constraints import Limits
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.records import Weights
from gsnmf.search.effort import Work, nominal_seconds
from gsnmf.search.state import descend_jointly
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.weights.joint import JointProblem, Side, solve_joint

_GRAM_BYTES = 1 << 28
"""Memory for rows of M'M that are kept for the next round."""
_ROUNDING = 1e-12
"""A change must lower the distance by more than this fraction of what the factor explains."""
_CHANGES = 2
"""Largest number of changes of one factor in one round, per member."""
_CG_OPERATIONS = 15.0
"""Approximate number of products with the Gram matrices in one iteration of the weight solver."""
_GATHERED = 6.0
"""Multiplications of dense matrices in the time of one multiplication with a stored entry of a sparse matrix."""
_SCORED = 50.0
"""Multiplications in the time that scoring one column or row as a member of one factor takes, per member."""
_LARGE = 1 << 19
"""Weights from which the sweeps of one model are shared among threads."""


class GramRows:
    """Rows of M'M, kept until memory is short; the least recently used go first."""

    def __init__(self, matrix: InMemoryMatrix) -> None:
        self._matrix = matrix
        self._capacity = max(1, _GRAM_BYTES // (8 * max(1, matrix.shape[1])))
        self._rows: OrderedDict[int, Doubles] = OrderedDict()

    def at(self, indices: Indices) -> Doubles:
        """The rows at ``indices``, shape (q, n)."""
        return np.array(self._found(indices)).reshape(indices.size, self._matrix.shape[1])

    def among(self, indices: Indices) -> Doubles:
        """The rows at ``indices`` in the columns at ``indices``, shape (q, q)."""
        return np.array([row[indices] for row in self._found(indices)]).reshape(indices.size, indices.size)

    def _found(self, indices: Indices) -> list[Doubles]:
        wanted = indices.tolist()
        missing = [j for j in dict.fromkeys(wanted) if j not in self._rows]
        if missing:
            self._rows.update(zip(missing, self._matrix.gram_rows(np.array(missing, dtype=np.intp)), strict=True))
        for j in wanted:
            self._rows.move_to_end(j)
        rows = [self._rows[j] for j in wanted]
        while len(self._rows) > self._capacity:
            self._rows.popitem(last=False)
        return rows


@dataclass
class Mixture:
    """One factor: its members, and their positive weights."""

    members: Indices
    weights: Doubles

    @classmethod
    def empty(cls) -> Mixture:
        """No members yet."""
        return cls(np.empty(0, dtype=np.intp), np.empty(0))


@dataclass(frozen=True)
class Pool:
    """The columns of a matrix as possible members of mixtures.

    Attributes
    ----------
    matrix : InMemoryMatrix, shape (m, n)
    allowed : bool array of length n
        Which columns may become members.
    gram_rows : GramRows
    """

    matrix: InMemoryMatrix
    allowed: Flags
    gram_rows: GramRows = field(repr=False)

    @classmethod
    def of(cls, matrix: InMemoryMatrix, excluded: Flags | None) -> Pool:
        """All columns that are not excluded."""
        allowed = np.ones(matrix.shape[1], dtype=np.bool_) if excluded is None else ~excluded
        return cls(matrix, allowed, GramRows(matrix))

    def explained(self, mixture: Mixture, linear: Doubles) -> float:
        """2 b'x - x'Gx: by how much the mixture lowers the squared distance from the target with products b."""
        gram = self.gram_rows.among(mixture.members)
        return float(2.0 * linear[mixture.members] @ mixture.weights - mixture.weights @ gram @ mixture.weights)

    def refitted(self, members: Indices, linear: Doubles) -> Mixture:
        """The best weights of these members; members without weight are dropped."""
        weights = member_weights(self.gram_rows.among(members), linear[members])
        used = weights > 0
        return Mixture(members[used], weights[used])

    def changed(self, mixture: Mixture, linear: Doubles, most: int, least: float) -> tuple[Mixture, float]:
        """The mixture after the best change of one member, or unchanged if none explains more than ``least``."""
        position, index, explained = self._best_change(mixture, linear, most, least + _ROUNDING * abs(least))
        if position < 0:
            return mixture, least
        members = np.append(np.delete(mixture.members, slice(position, position + 1)), index)
        return self.refitted(members, linear), explained

    def exchanges(self, mixture: Mixture, linear: Doubles, count: int) -> list[tuple[int, int, Mixture]]:
        """The best exchanges of one member for a column that is not a member, best first, each column once.

        Each is the member that leaves, the column that enters, and the mixture with the best weights.
        """
        open_to = replace(self, allowed=self.allowed.copy())
        found: list[tuple[int, int, Mixture]] = []
        open_to.allowed[mixture.members] = False
        while len(found) < count:
            position, index, _ = open_to._best_change(mixture, linear, mixture.members.size, 0.0)
            if position < 0:
                break
            open_to.allowed[index] = False
            changed = self.refitted(np.append(np.delete(mixture.members, position), index), linear)
            if index in changed.members:
                found.append((int(mixture.members[position]), int(index), changed))
        return found

    def _best_change(self, mixture: Mixture, linear: Doubles, most: int, least: float) -> tuple[int, int, float]:
        rows, diagonal = self.gram_rows.at(mixture.members), self.matrix.squared_column_norms
        return best_change(mixture.members, rows, diagonal, linear, self.allowed, most, least)

    def closest(self, mixture: Mixture, linear: Doubles, most: int) -> Mixture:
        """Members and weights closer to a target: the best change of one member, as long as one helps."""
        found = self.refitted(mixture.members, linear)
        explained = self.explained(found, linear)
        for _ in range(_CHANGES * most):
            better, explained = self.changed(found, linear, most, explained)
            if better is found:
                break
            found = better
        return found


class MixedSide:
    """The factors of one side with their weights: mixtures of columns of a matrix, or of rows if it is the transpose.

    Parameters
    ----------
    pool : Pool
        Of the matrix M, shape (m, n).
    mixtures : list of r mixtures
    fixed : bool array of length r
        Which factors must not change.
    weights : array, shape (n, r)
        Weights P of the factors at their given length.

    Attributes
    ----------
    vectors : array, shape (m, r)
        C = M A, columns of unit length.
    images : array, shape (n, r)
        M'C.
    """

    def __init__(self, pool: Pool, mixtures: list[Mixture], fixed: Flags, weights: Doubles) -> None:
        self.pool, self.mixtures, self.fixed = pool, list(mixtures), fixed
        m, n = pool.matrix.shape
        self.vectors, self.images = np.empty((m, len(mixtures))), np.empty((n, len(mixtures)))
        for k, mixture in enumerate(mixtures):
            self._replace(k, mixture)
        self.weights = np.ascontiguousarray(weights * self._normalize())

    @property
    def size(self) -> int:
        """Number of factors."""
        return len(self.mixtures)

    @property
    def problem_side(self) -> Side:
        """The factors with their products, for the problem of the weights."""
        return Side(self.vectors, self.vectors.T @ self.vectors, -self.images, np.ones(self.size))

    @property
    def sums(self) -> Doubles:
        """Sums of the weights of the members of each mixture."""
        return np.array([mixture.weights.sum() for mixture in self.mixtures])

    def improve(self, attraction: Doubles, most: int) -> None:
        """Bring every factor closer to what it should be, in place, with at most ``most`` members each.

        ``attraction`` is M'(M - Q R')P, shape (n, r), the part of the targets' products that does not depend on these
        factors. The weights are scaled, because the factors keep unit length.
        """
        for k, linear in self.targets(attraction):
            mixture = self.mixtures[k]
            before = self.pool.explained(mixture, linear)
            found = self.pool.closest(mixture, linear, most)
            if found.members.size and self.pool.explained(found, linear) > before + _ROUNDING * abs(before):
                self._replace(k, found)
        self.weights *= self._normalize()

    def largest_gain(self, attraction: Doubles, most: int) -> float:
        """The largest decrease of the squared error from adding or exchanging one member of one factor.

        The weights P stay, and the members of the factor get their best weights before and after.
        """
        largest = 0.0
        for k, linear in self.targets(attraction):
            refitted = self.pool.refitted(self.mixtures[k].members, linear)
            before = self.pool.explained(refitted, linear)
            after = self.pool.changed(refitted, linear, most, before)[1]
            largest = max(largest, float(self.weights[:, k] @ self.weights[:, k]) * (after - before))
        return largest

    def targets(self, attraction: Doubles) -> Iterator[tuple[int, Doubles]]:
        """Factors that may change, each with M't_k, one entry per column; a factor without weights has no target.

        The iteration sees a factor as it is when its turn comes.
        """
        gram = self.weights.T @ self.weights
        rest = np.ascontiguousarray((attraction - self.images @ gram).T)
        for k in np.flatnonzero((np.diag(gram) > 0) & ~self.fixed):
            image = self.images[:, k].copy()
            yield int(k), rest[k] / gram[k, k] + image
            image -= self.images[:, k]
            if image.any():  # the factor changed
                rest[k + 1 :] += np.outer(gram[k + 1 :, k], image)

    def of_unit_length(self, mixture: Mixture) -> tuple[Doubles, Doubles]:
        """The vector of a mixture, at unit length, and its products with all columns."""
        vector, image = self._vector(mixture)
        length = float(np.linalg.norm(vector))
        return vector / length, image / length

    def _vector(self, mixture: Mixture) -> tuple[Doubles, Doubles]:
        chosen = self.pool.matrix.columns(mixture.members).astype(np.float64, copy=False)
        return chosen @ mixture.weights, mixture.weights @ self.pool.gram_rows.at(mixture.members)

    def _replace(self, k: int, mixture: Mixture) -> None:
        self.mixtures[k] = mixture
        self.vectors[:, k], self.images[:, k] = self._vector(mixture)

    def _normalize(self) -> Doubles:
        """Scale all factors to unit length, and return what their lengths were."""
        lengths = np.asarray(np.linalg.norm(self.vectors, axis=0))
        self.vectors /= lengths
        self.images /= lengths
        self.mixtures = [
            Mixture(mixture.members, mixture.weights / length)
            for mixture, length in zip(self.mixtures, lengths, strict=True)
        ]
        return lengths


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

    def count_products(self, width: int) -> None:
        """Count products of the matrix with this many vectors."""
        operations = min(_GATHERED * self.matrix.n_stored, float(np.prod(self.matrix.shape))) * width
        self.work.spent += nominal_seconds(products=operations)

    def count_scores(self, count: int) -> None:
        """Count scores of all columns and rows as members, this many times."""
        self.work.spent += nominal_seconds(scores=_SCORED * count * sum(self.matrix.shape))


@dataclass
class MixedModel:
    """Mixtures of columns and of rows, and their weights, for factors of unit length.

    Attributes
    ----------
    space : Space
    columns, rows : MixedSide
        Mixtures of columns C, shape (m, r1), with weights P, shape (n, r1); of rows R, shape (n, r2), with weights Q,
        shape (m, r2).
    squared_error : float
    optimality : float
        Relative violation of the optimality conditions of the weights.
    n_iterations : int
        Iterations of the last solve for the weights.
    """

    space: Space
    columns: MixedSide
    rows: MixedSide
    squared_error: float = np.inf
    optimality: float = np.inf
    n_iterations: int = 0

    @classmethod
    def of(
        cls, space: Space, columns: list[Mixture], rows: list[Mixture], fixed: Flags, P: Doubles, Q: Doubles
    ) -> MixedModel:
        """The model with these mixtures; ``P`` and ``Q`` are their weights, for factors of any length."""
        left = MixedSide(space.columns, columns, fixed[: len(columns)], P)
        return cls(space, left, MixedSide(space.rows, rows, fixed[len(columns) :], Q))

    @classmethod
    def of_result(
        cls, members: list[tuple[Indices, Floats]], weights: Weights, space: Space
    ) -> tuple[MixedModel, Flags]:
        """The nonzero factors of a result as mixtures with their weights, and which factors these are.

        A factor that is one included column, or row, is fixed.
        """
        r1 = weights.column_weights.shape[0]
        sides = (
            (space.matrix, space.limits.included_columns, members[:r1]),
            (space.matrix.T, space.limits.included_rows, members[r1:]),
        )
        mixtures: list[list[Mixture]] = []
        used, fixed = [], []
        for matrix, included, pairs in sides:
            nonzero = [bool(matrix.squared_column_norms[own].any()) for own, _ in pairs]
            used += nonzero
            mixtures.append(
                [Mixture(m, s.astype(np.float64)) for (m, s), is_there in zip(pairs, nonzero, strict=True) if is_there]
            )
            fixed += [own.members.size == 1 and bool(np.isin(own.members, included)[0]) for own in mixtures[-1]]
        kept = np.array(used, dtype=np.bool_)
        P = weights.column_weights[kept[:r1]].T.astype(np.float64)
        Q = weights.row_weights[:, kept[r1:]].astype(np.float64)
        return cls.of(space, mixtures[0], mixtures[1], np.array(fixed, dtype=np.bool_), P, Q), kept

    @property
    def size(self) -> int:
        """Number of factors."""
        return self.columns.size + self.rows.size

    @property
    def fixed(self) -> Flags:
        """Which factors, columns first, must not change."""
        return np.concatenate([self.columns.fixed, self.rows.fixed])

    @property
    def sides(self) -> tuple[tuple[MixedSide, MixedSide], tuple[MixedSide, MixedSide]]:
        """Each side with the other one."""
        return (self.columns, self.rows), (self.rows, self.columns)

    def factors(self) -> tuple[Doubles, Doubles]:
        """W = [C, Q] and H = [P'; R'], shape (m, r) and (r, n)."""
        W = np.hstack([self.columns.vectors, self.rows.weights])
        return W, np.vstack([self.columns.weights.T, self.rows.vectors.T])

    def problem(self) -> JointProblem:
        """The problem of the weights."""
        return JointProblem(self.columns.problem_side, self.rows.problem_side, self.space.matrix.squared_norm)

    def solve(self, tolerance: float, max_iterations: int) -> None:
        """Improve the weights in place."""
        found = solve_joint(self.problem(), self.columns.weights, self.rows.weights, tolerance, max_iterations)
        self.squared_error, self.optimality, self.n_iterations = found
        operations = sum(self.space.matrix.shape) * self.size**2 * _CG_OPERATIONS * max(1, self.n_iterations)
        self.space.work.spent += nominal_seconds(products=operations)

    def descend(self, max_rounds: int, tolerance: float) -> None:
        """Improve the weights in place by coordinate descent: most of what `solve` gains, in a fraction of its time."""
        P, Q = self.columns.weights, self.rows.weights
        threads = P.size + Q.size >= _LARGE
        self.squared_error, operations = descend_jointly(
            self.problem(), P, Q, max_rounds=max_rounds, tolerance=tolerance, threads=threads
        )
        self.space.work.spent += nominal_seconds(descents=operations)

    def improve(self, most: int) -> None:
        """Bring all mixtures closer to what the weights ask for, in place."""
        for side, other in self.sides:
            side.improve(self.attraction(side, other), most)
        self.space.count_scores(most * self.size)

    def largest_gain(self, most: int) -> float:
        """The largest relative decrease of the squared error by adding or exchanging one member of one factor."""
        gain = max(side.largest_gain(self.attraction(side, other), most) for side, other in self.sides)
        return gain / self.squared_error if self.squared_error > 0 else 0.0

    def attraction(self, side: MixedSide, other: MixedSide) -> Doubles:
        """M'(M - Q R')P for the weights P of a side, and the other side's R with weights Q, in two block products."""
        if not side.size:
            return np.empty_like(side.weights)
        matrix = side.pool.matrix
        image = matrix.dot(side.weights)
        if other.size:
            image = image - other.weights @ (other.vectors.T @ side.weights)
        self.space.count_products(2 * side.size)
        return np.asarray(matrix.T.dot(np.ascontiguousarray(image)), dtype=np.float64)

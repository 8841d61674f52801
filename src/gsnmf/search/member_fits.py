r"""Mixtures of a few columns as factors: what a factor should be, given the others, and the members that come closest.

With the weights P of r factors C = M A fixed, the squared error as a function of the mixture a_k alone is

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
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.support.arrays import Doubles, Flags, Indices

_GRAM_BYTES = 1 << 28
"""Memory for rows of M'M that are kept for the next round."""
_ROUNDING = 1e-12
"""A change must lower the distance by more than this fraction of what the factor explains."""
_CHANGES = 2
"""Largest number of changes of one factor in one round, per member."""


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


@dataclass
class MixedSide:
    """The factors of one side: mixtures of columns of a matrix, or of rows if it is the transpose.

    Attributes
    ----------
    pool : Pool
        Of the matrix M, shape (m, n).
    mixtures : list of r mixtures
    fixed : bool array of length r
        Which factors must not change.
    vectors : array, shape (m, r)
        C = M A, columns of unit length.
    images : array, shape (n, r)
        M'C.
    """

    pool: Pool
    mixtures: list[Mixture]
    fixed: Flags
    vectors: Doubles = field(init=False)
    images: Doubles = field(init=False)

    def __post_init__(self) -> None:
        m, n = self.pool.matrix.shape
        self.vectors, self.images = np.empty((m, len(self.mixtures))), np.empty((n, len(self.mixtures)))
        for k, mixture in enumerate(self.mixtures):
            self._replace(k, mixture)
        self._normalize()

    def improve(self, weights: Doubles, attraction: Doubles, most: int) -> None:
        """Bring every factor closer to what it should be, in place, with at most ``most`` members each.

        Parameters
        ----------
        weights : array, shape (n, r)
            P; scaled in place, because the factors keep unit length.
        attraction : array, shape (n, r)
            M'(M - Q R')P, the part of the targets' products that does not depend on these factors.
        most : int
        """
        for k, linear in self.targets(weights, attraction):
            mixture = self.mixtures[k]
            before = self.pool.explained(mixture, linear)
            found = self.pool.closest(mixture, linear, most)
            if found.members.size and self.pool.explained(found, linear) > before + _ROUNDING * abs(before):
                self._replace(k, found)
        weights *= self._normalize()

    def largest_gain(self, weights: Doubles, attraction: Doubles, most: int) -> float:
        """The largest decrease of the squared error from adding or exchanging one member of one factor.

        The weights P stay, and the members of the factor get their best weights before and after.
        """
        largest = 0.0
        for k, linear in self.targets(weights, attraction):
            refitted = self.pool.refitted(self.mixtures[k].members, linear)
            before = self.pool.explained(refitted, linear)
            after = self.pool.changed(refitted, linear, most, before)[1]
            largest = max(largest, float(weights[:, k] @ weights[:, k]) * (after - before))
        return largest

    def targets(self, weights: Doubles, attraction: Doubles) -> Iterator[tuple[int, Doubles]]:
        """Factors that may change, each with M't_k, one entry per column; a factor without weights has no target.

        The iteration sees a factor as it is when its turn comes.
        """
        gram = weights.T @ weights
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

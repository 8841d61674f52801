"""A selection with weights, as the factorization W H that it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.protocol import dense
from gsnmf.search.candidates import Fit
from gsnmf.support.arrays import Axis, Doubles, Vectors
from gsnmf.weights.joint import JointProblem

_LARGE = 1 << 21
"""Above this number of entries in both factors, the threads share one trial, and trials are made one by one."""

_SPARSE_ENTRY = 12
"""Bytes of a stored entry: its value and its index."""


@dataclass(frozen=True)
class Fitted:
    """A selection with its weights and the products of its columns and rows."""

    fit: Fit
    problem: JointProblem

    @property
    def squared_error(self) -> float:
        """Squared error of these weights."""
        return self.fit.squared_error

    @property
    def size(self) -> int:
        """Total number of columns and rows."""
        return self.fit.columns.size + self.fit.rows.size

    @property
    def n_factor_entries(self) -> int:
        """Entries of both factors together."""
        return int(self.size * (self.fit.P.shape[0] + self.fit.Q.shape[0]))

    @property
    def large(self) -> bool:
        """Whether one trial keeps all threads busy, and several at a time would take too much memory."""
        return self.n_factor_entries >= _LARGE

    @property
    def n_bytes(self) -> int:
        """Memory of the weights and of the products."""
        problem = self.problem
        vectors = sum(_SPARSE_ENTRY * V.nnz if sp.issparse(V) else V.nbytes for V in (problem.C, problem.R))
        arrays = (self.fit.P, self.fit.Q, problem.linear_P, problem.linear_Q)
        return int(vectors + sum(array.nbytes for array in arrays))

    @property
    def left(self) -> Doubles:
        """W, shape (m, r)."""
        return np.hstack([dense(self.problem.C), self.fit.Q])

    @property
    def right(self) -> Doubles:
        """H, shape (r, n)."""
        return np.vstack([self.fit.P.T, dense(self.problem.R).T])

    def across(self, axis: Axis) -> tuple[Vectors, Vectors]:
        """The other side of all factors along an axis, column factors first: weights or rows for columns."""
        return (self.fit.P, self.problem.R) if axis == "columns" else (self.problem.C, self.fit.Q)

    def identity(self, position: int) -> tuple[Axis, int]:
        """Axis and index of a factor; columns come first."""
        n_columns = self.fit.columns.size
        if position < n_columns:
            return "columns", int(self.fit.columns[position])
        return "rows", int(self.fit.rows[position - n_columns])

    def identities(self) -> list[tuple[Axis, int]]:
        """Axes and indices of all factors."""
        return [self.identity(position) for position in range(self.size)]


def by_error(fitted: Fitted) -> float:
    """The key that sorts selections by their errors."""
    return fitted.squared_error

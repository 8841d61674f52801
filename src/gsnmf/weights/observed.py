r"""Nonnegative weights of chosen columns and rows, fitted to observed entries only.

.. math:: \min_{P_1 \ge 0,\; P_2 \ge 0} \; \tfrac12 \sum_{(i,j) \text{ observed}}
    w_{ij} \bigl(M - C P_1 - P_2 R\bigr)_{ij}^2

C and R are the chosen columns and rows of the completed matrix, because those of the matrix itself have holes. Every
column of the matrix now has its own Gram matrix, from the rows of C at its observed entries. With columns alone, or
rows alone, there is one small problem per column (row), solved exactly. Both together are solved by the projected
conjugate gradients of `gsnmf.weights.joint`, whose products run over the observed entries.

Each weight is scaled so that its second derivative is one. With this scaling the violation of the optimality conditions
is defined as in `gsnmf.weights.optimality`; without holes it is the same number.

The holes of the chosen columns and rows are first filled by a low-rank completion. Once C and R are chosen, these holes
are unknowns like the weights: the unobserved entries of C and P2 for given P1 and R, the unobserved entries of R and P1
for given C and P2. `solve_anchored` alternates between the two, which never raises the error on observed entries, and
predicts held-out entries better than the completion alone, especially if much is missing. In every hole the value of
the completion counts as much as one observed entry: otherwise holes that few entries determine could take any value.
Where a chosen column and a chosen row cross, the completion stays, because C and R must agree there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gsnmf._kernels.observed_entries import (
    descend_observed,
    nonnegative_rows,
    residuals,
    row_grams,
    row_slopes,
    sweep_with_grams,
)
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.weights.joint import Quadratic, solve_joint
from gsnmf.weights.optimality import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, ratio, relative_violation

_LEAST_SHOWN = 1e-4
"""If the observed entries of a sample hold less than this fraction of a component's squared length, its coefficient is
zero: fitted to so little, it would predict absurd values elsewhere."""

_ROUNDS = 3
"""Rounds in which holes are filled; more lower the error on observed entries further but predict no better."""
_SWEEPS = 3
"""Sweeps of coordinate descent over one factor before the other."""
_ROUGH = 1e-2
"""Tolerance of the weights from which the filling starts; better ones fill no better."""
_TRUST = 1.0
"""Weight of the completion in a hole, relative to an observed entry."""


def solve_observed_weights(
    observed: Observed,
    C: Floats,
    R: Floats,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
) -> Weights:
    """Weights of given columns and rows on observed entries, without a warning if they have not converged.

    Parameters
    ----------
    observed : Observed, shape (m, n)
    C : array, shape (m, r1)
        Chosen columns without holes; r1 may be zero.
    R : array, shape (r2, n)
        Chosen rows without holes; r2 may be zero.
    tolerance, max_iterations : float and int
        As for `gsnmf.fit_weights`; with columns alone or rows alone the weights are exact in any case.
    start : pair of arrays, shape (r1, n) and (m, r2), optional
        Nonnegative weights to start from. The result is never worse.

    Returns
    -------
    Weights
        ``relative_error`` is the weighted error on observed entries over their weighted norm.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix.input import observe
    >>> M = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, 6.0], [1.0, 2.0, 3.0]])
    >>> column, no_rows = np.array([[1.0], [2.0], [1.0]]), np.empty((0, 3))
    >>> weights = solve_observed_weights(observe(M, missing_values=np.nan), column, no_rows)
    >>> weights.column_weights.round(6)
    array([[1., 2., 3.]])
    """
    columns, rows = (np.ascontiguousarray(vectors, dtype=np.float64) for vectors in (C, R.T))
    (m, n), r1, r2 = observed.shape, columns.shape[1], rows.shape[1]
    P, Q = np.zeros((n, r1)), np.zeros((m, r2))
    n_iterations, optimality, violations = 1, math.inf, np.zeros(0)
    if r1 and r2:
        problem = ObservedProblem(observed, columns, rows)
        P, Q = problem.start(start)
        with single_threaded_blas():
            _, optimality, n_iterations = solve_joint(problem, P, Q, tolerance, max_iterations)
        P, Q = problem.plain(P, Q)
    elif r1:
        P, violations = nonnegative_rows(observed.T.entries, columns)
    else:
        Q, violations = nonnegative_rows(observed.entries, rows)
    left, right = np.hstack([columns, Q]), np.hstack([P, rows])
    squared_error = observed.weighted_squares(residuals(observed.entries, left, right))
    if not (r1 and r2):
        violated = math.sqrt(float(violations.sum()))
        optimality = relative_violation(violated, squared_error, observed.squared_norm)
    relative_error = ratio(math.sqrt(squared_error), math.sqrt(observed.squared_norm))
    column_weights = np.ascontiguousarray(P.T, dtype=observed.dtype)
    row_weights = Q.astype(observed.dtype, copy=False)
    return Weights(column_weights, row_weights, relative_error, optimality, n_iterations, optimality <= tolerance)


def observed_coefficients(observed: Observed, components: Floats) -> Doubles:
    r"""Exact nonnegative coefficients of every row for given components H, fitted to the row's observed entries.

    Solves :math:`\min_{W \ge 0} \sum_{(i,j) \text{ observed}} w_{ij} (M - W H)_{ij}^2`; a row without an observed entry
    gets zeros. This is how new samples with holes are transformed. The coefficient of a component is zero if the row's
    observed entries hold less than 1e-4 of its squared length.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix.input import observe
    >>> samples = observe([[np.nan, 4.0], [3.0, np.nan]], missing_values=np.nan)
    >>> observed_coefficients(samples, np.array([[1.0, 2.0]]))
    array([[2.],
           [3.]])
    """
    F = np.ascontiguousarray(components.T, dtype=np.float64)
    return nonnegative_rows(observed.entries, F, _LEAST_SHOWN)[0]


class ObservedProblem(Quadratic):
    """The joint problem on observed entries.

    A weight that no observed entry depends on stays zero.

    Parameters
    ----------
    observed : Observed, shape (m, n)
    C : array, shape (m, r1)
    R : array, shape (n, r2)
        The chosen rows, transposed.

    Notes
    -----
    A product with the second derivative costs O(e (r1 + r2)) for e observed entries. The Gram matrices for coordinate
    descent take n r1^2 + m r2^2 numbers.
    """

    def __init__(self, observed: Observed, C: Doubles, R: Doubles) -> None:
        self.squared_norm = observed.squared_norm
        self._columns, self._rows = _ObservedSide(observed.T, C), _ObservedSide(observed, R)

    @cached_property
    def linear(self) -> tuple[Doubles, Doubles]:
        """Gradient at zero."""
        return self.gradient(np.zeros_like(self._columns.units), np.zeros_like(self._rows.units))

    def start(self, weights: tuple[Floats, Floats] | None) -> tuple[Doubles, Doubles]:
        """Weights in the units of the problem; zeros if there are none."""
        if weights is None:
            return np.zeros_like(self._columns.units), np.zeros_like(self._rows.units)
        P = np.multiply(weights[0].T, self._columns.lengths, dtype=np.float64, order="C")
        return P, np.multiply(weights[1], self._rows.lengths, dtype=np.float64, order="C")

    def plain(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Weights in the units of the chosen columns and rows."""
        return P * self._columns.units, Q * self._rows.units

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if that is given."""
        left, right = self._factors(P, Q)
        in_P = self._columns.slopes(right, left, with_values=False)
        in_Q = self._rows.slopes(left, right, with_values=False)
        if out is None:
            return in_P, in_Q
        out[0][...], out[1][...] = in_P, in_Q
        return out

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Gradient of the objective."""
        left, right = self._factors(P, Q)
        return self._columns.slopes(right, left), self._rows.slopes(left, right)

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""
        for _ in range(n_sweeps):
            left, right = self._factors(P, Q)
            sweep_with_grams(P, self._columns.slopes(right, left), self._columns.grams)
            left, right = self._factors(P, Q)
            sweep_with_grams(Q, self._rows.slopes(left, right), self._rows.grams)

    def _factors(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """[C, P2] and [P1', R'], whose product is the approximation."""
        plain_P, plain_Q = self.plain(P, Q)
        return np.hstack([self._columns.vectors, plain_Q]), np.hstack([plain_P, self._rows.vectors])


class _ObservedSide:
    """Chosen rows R of a matrix, transposed, with one Gram matrix per row of it; its transpose gives the columns."""

    def __init__(self, observed: Observed, vectors: Doubles) -> None:
        self._entries = observed.entries
        self.vectors = vectors
        self.grams, self.lengths = row_grams(self._entries, vectors)
        self.units = np.divide(1.0, self.lengths, out=np.zeros_like(self.lengths), where=self.lengths > 0)

    def slopes(self, own: Doubles, others: Doubles, *, with_values: bool = True) -> Doubles:
        """Gradient in the weights, given the factors of rows and of columns; without the values of the matrix, H x."""
        return row_slopes(self._entries, own, others, self.vectors, with_values=with_values) * self.units


@dataclass(frozen=True)
class Anchored:
    """Weights of chosen columns and rows, and the columns and rows without holes."""

    weights: Weights
    columns: Floats
    """m x r1."""
    rows: Floats
    """r2 x n."""


def solve_anchored(
    observed: Observed,
    source: InMemoryMatrix,
    columns: Indices,
    rows: Indices,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    start: tuple[Floats, Floats] | None = None,
) -> Anchored:
    """Weights on observed entries, with the holes of chosen columns and rows filled by the factorization.

    ``source`` is the completed matrix, whose values fill these holes at first.
    """
    C, R = source.raw_columns(columns), source.T.raw_columns(rows).T
    options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
    if observed.share < 1.0:
        rough = options | {"tolerance": max(tolerance, _ROUGH)}
        weights = solve_observed_weights(observed, C, R, **rough, start=start)
        C, R, start = _fill_anchors(observed, columns, rows, C, R, (weights.column_weights, weights.row_weights))
        C, R = C.astype(observed.dtype, copy=False), R.astype(observed.dtype, copy=False)
    return Anchored(solve_observed_weights(observed, C, R, **options, start=start), C, R)


def _fill_anchors(
    observed: Observed, columns: Indices, rows: Indices, C: Floats, R: Floats, start: tuple[Floats, Floats]
) -> tuple[Doubles, Doubles, tuple[Doubles, Doubles]]:
    """Fill the holes of chosen columns C, m x r1, and rows R, r2 x n, by the factorization.

    C and R come with their holes filled by a completion, and with weights to start from. Returns C, R and their
    weights.
    """
    (m, n), r1, r2 = observed.shape, columns.size, rows.size
    left = np.hstack([C, start[1]]).astype(np.float64, order="C")  # compiled for one memory order alone
    right = np.hstack([start[0].T, R.T]).astype(np.float64, order="C")
    free_left = np.hstack([_unobserved_columns(observed, columns), np.ones((m, r2), dtype=bool)])
    free_right = np.hstack([np.ones((n, r1), dtype=bool), _unobserved_columns(observed.T, rows)])
    free_left[rows, :r1] = False
    free_right[columns, r1:] = False
    priors = left.copy(), right.copy()
    trust = np.zeros(left.shape), np.zeros(right.shape)
    trust[0][:, :r1] = trust[1][:, r1:] = _TRUST * observed.mean_weight
    for _ in range(_ROUNDS):
        descend_observed(observed.entries, right, left, _SWEEPS, free_left, priors[0], trust[0])
        descend_observed(observed.T.entries, left, right, _SWEEPS, free_right, priors[1], trust[1])
    return left[:, :r1], right[:, r1:].T, (right[:, :r1].T, left[:, r1:])


def _unobserved_columns(observed: Observed, columns: Indices) -> Flags:
    """Where the columns at ``columns`` have no observed entry, one row per row of the matrix."""
    flags = np.ones((observed.shape[0], columns.size), dtype=bool)
    turned = observed.T.values
    for k, j in enumerate(columns):
        flags[turned.indices[turned.indptr[j] : turned.indptr[j + 1]], k] = False
    return flags

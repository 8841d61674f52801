r"""Nonnegative weights of chosen columns and rows, fitted to observed entries only.

.. math:: \min_{P_1 \ge 0,\; P_2 \ge 0} \; \tfrac12 \sum_{(i,j) \text{ observed}}
    w_{ij} \bigl(M - C P_1 - P_2 R\bigr)_{ij}^2

C and R are the chosen columns and rows of the completed matrix, because those of the matrix itself have holes. Every
column of the matrix now has its own Gram matrix, from the rows of C at its observed entries. With columns alone, or
rows alone, there is one small problem per column (row), solved exactly. Both together are solved by the projected
conjugate gradients of `gsnmf.weights.joint`, whose products run over the observed entries.

Each weight is scaled so that its second derivative is one. With this scaling the violation of the optimality conditions
is defined as in `gsnmf.weights.optimality`; without holes it is the same number.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from gsnmf._kernels.observed_entries import nonnegative_rows, residuals, row_grams, row_slopes, sweep_rows
from gsnmf._parallel import single_threaded_blas
from gsnmf.matrix.observed import Observed
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Floats
from gsnmf.weights.joint import solve_joint
from gsnmf.weights.optimality import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, ratio, relative_violation

_LEAST_SHOWN = 1e-4
"""If the observed entries of a sample hold less than this fraction of a component's squared length, its coefficient is
zero: fitted to so little, it would predict absurd values elsewhere."""


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
    columns = np.ascontiguousarray(C, dtype=np.float64)
    basis = np.ascontiguousarray(R.T, dtype=np.float64)
    if columns.shape[1] and basis.shape[1]:
        P, Q, optimality, n_iterations = _both(observed, columns, basis, tolerance, max_iterations, start)
    else:
        P, Q, optimality = _one_side(observed, columns, basis)
        n_iterations = 1
    squared_error = _squared_error(observed, columns, basis, P, Q)
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


def _one_side(observed: Observed, C: Doubles, basis: Doubles) -> tuple[Doubles, Doubles, float]:
    m, n = observed.shape
    P, Q = np.zeros((n, C.shape[1])), np.zeros((m, basis.shape[1]))
    if C.shape[1]:
        P, violations = nonnegative_rows(observed.T.entries, C)
    else:
        Q, violations = nonnegative_rows(observed.entries, basis)
    violated = math.sqrt(float(violations.sum()))
    squared_error = _squared_error(observed, C, basis, P, Q)
    return P, Q, relative_violation(violated, squared_error, observed.squared_norm)


def _both(
    observed: Observed,
    C: Doubles,
    basis: Doubles,
    tolerance: float,
    max_iterations: int,
    start: tuple[Floats, Floats] | None,
) -> tuple[Doubles, Doubles, float, int]:
    problem = ObservedProblem(observed, C, basis)
    P, Q = problem.start(start)
    with single_threaded_blas():
        _, optimality, n_iterations = solve_joint(problem, P, Q, tolerance, max_iterations)
    return *problem.plain(P, Q), optimality, n_iterations


def _squared_error(observed: Observed, C: Doubles, basis: Doubles, P: Doubles, Q: Doubles) -> float:
    return observed.weighted_squares(residuals(observed.entries, _beside(C, Q), _beside(P, basis)))


def _beside(first: Doubles, second: Doubles) -> Doubles:
    return np.concatenate([first, second], axis=1)


class ObservedProblem:
    """The joint problem on observed entries, as a `gsnmf.weights.joint.Quadratic`.

    Its variables are P (n x r1) and Q (m x r2), the transposed column weights and the row weights, each multiplied by
    the square root of its own second derivative. A weight that no observed entry depends on stays zero.

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
        self._by_rows, self._by_columns = observed.entries, observed.T.entries
        self._C, self._R = C, R
        self.squared_norm = observed.squared_norm
        self._grams_P, self._lengths_P = row_grams(self._by_columns, C)
        self._grams_Q, self._lengths_Q = row_grams(self._by_rows, R)
        self._units_P, self._units_Q = _inverse(self._lengths_P), _inverse(self._lengths_Q)

    def start(self, weights: tuple[Floats, Floats] | None) -> tuple[Doubles, Doubles]:
        """Weights in the units of the problem; zeros if there are none."""
        if weights is None:
            return np.zeros_like(self._units_P), np.zeros_like(self._units_Q)
        P = np.multiply(weights[0].T, self._lengths_P, dtype=np.float64, order="C")
        return P, np.multiply(weights[1], self._lengths_Q, dtype=np.float64, order="C")

    def plain(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Weights in the units of the chosen columns and rows."""
        return P * self._units_P, Q * self._units_Q

    @cached_property
    def _linear(self) -> tuple[Doubles, Doubles]:
        """Gradient at zero."""
        return self.gradient(np.zeros_like(self._units_P), np.zeros_like(self._units_Q))

    def hessian(self, P: Doubles, Q: Doubles, out: tuple[Doubles, Doubles] | None = None) -> tuple[Doubles, Doubles]:
        """Second derivative applied to a direction, written to ``out`` if that is given."""
        in_P, in_Q = self._slopes(P, Q, with_values=False)
        if out is None:
            return in_P, in_Q
        out[0][...], out[1][...] = in_P, in_Q
        return out

    def gradient(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """Gradient of the objective."""
        return self._slopes(P, Q, with_values=True)

    def squared_error(self, P: Doubles, Q: Doubles, gradient: tuple[Doubles, Doubles]) -> float:
        """Weighted squared error on observed entries, from the gradient at the same point."""
        value = sum(float(np.vdot(X, g + b)) for X, g, b in zip((P, Q), gradient, self._linear, strict=True))
        return max(0.0, self.squared_norm + value)

    def sweep(self, P: Doubles, Q: Doubles, n_sweeps: int) -> None:
        """Coordinate descent on P and on Q in turn, in place."""
        for _ in range(n_sweeps):
            sweep_rows(P, self._slopes_of_P(*self._factors(P, Q), with_values=True), self._grams_P)
            sweep_rows(Q, self._slopes_of_Q(*self._factors(P, Q), with_values=True), self._grams_Q)

    def parts(self, joined: Doubles) -> tuple[Doubles, Doubles]:
        """Views of one joined vector as P and as Q."""
        middle = self._units_P.size
        return joined[:middle].reshape(self._units_P.shape), joined[middle:].reshape(self._units_Q.shape)

    def _factors(self, P: Doubles, Q: Doubles) -> tuple[Doubles, Doubles]:
        """[C, P2] and [P1', R'], whose product is the approximation."""
        plain_P, plain_Q = self.plain(P, Q)
        return _beside(self._C, plain_Q), _beside(plain_P, self._R)

    def _slopes(self, P: Doubles, Q: Doubles, *, with_values: bool) -> tuple[Doubles, Doubles]:
        factors = self._factors(P, Q)
        return (
            self._slopes_of_P(*factors, with_values=with_values),
            self._slopes_of_Q(*factors, with_values=with_values),
        )

    def _slopes_of_P(self, left: Doubles, right: Doubles, *, with_values: bool) -> Doubles:
        return row_slopes(self._by_columns, right, left, self._C, with_values=with_values) * self._units_P

    def _slopes_of_Q(self, left: Doubles, right: Doubles, *, with_values: bool) -> Doubles:
        return row_slopes(self._by_rows, left, right, self._R, with_values=with_values) * self._units_Q


def _inverse(lengths: Doubles) -> Doubles:
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)

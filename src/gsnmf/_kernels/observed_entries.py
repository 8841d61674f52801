r"""Loops over the observed entries of a matrix: sums, small problems, and residuals.

The entries are given by rows, as `Entries`. Each row i of the matrix is a least-squares problem of its own,

.. math:: \min_x \; \tfrac12 \sum_{j \text{ observed}} w_{ij} (m_{ij} - x^T f_j)^2 ,

in which f_j is row j of a factor F. Which j take part differs from row to row, so every row has its own Gram matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles, Flags, Floats

_ridge_rows, _row_grams = Loop(native.ridge_rows), Loop(native.row_grams)
_nonnegative_rows, _simplex_rows = Loop(native.nonnegative_observed_rows), Loop(native.simplex_observed_rows)
_sweep_rows, _descend_rows = Loop(native.sweep_rows_with_grams), Loop(native.descend_observed_rows)
_residuals, _slopes = Loop(native.observed_residuals), Loop(native.observed_slopes)

ALL_FREE = np.ones((0, 0), dtype=bool)
NO_PRIOR = np.ones((0, 0))
"""Stand for "all unknowns are free" and "none has a prior value" where an array would have a number for each."""


class Entries(NamedTuple):
    """Observed entries by rows, as in a CSR array; stored zeros are entries like any other."""

    indptr: NDArray[np.integer[Any]]
    indices: NDArray[np.integer[Any]]
    values: Floats
    weights: Floats
    """One positive weight per entry; empty if all of them are one."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.indptr.size) - 1

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The four arrays in the types of the kernels: one type of indices, and one of values and weights."""
        index = np.promote_types(np.promote_types(self.indptr.dtype, self.indices.dtype), np.int32)
        value = np.promote_types(self.values.dtype, np.float32)
        pointers = (np.ascontiguousarray(array, dtype=index) for array in (self.indptr, self.indices))
        return (*pointers, *(np.ascontiguousarray(array, dtype=value) for array in (self.values, self.weights)))


def ridge_rows(entries: Entries, F: Doubles, ridge: float) -> Doubles:
    """The minimiser x of each row's problem with ``ridge`` / 2 |x|^2 added to it, one per row.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 2]), np.array([2.0, 4.0]), np.empty(0))
    >>> ridge_rows(entries, np.array([[1.0], [9.0], [2.0]]), 1e-12).round(6)
    array([[2.]])
    """
    X = np.zeros((entries.n_rows, F.shape[1]))
    _ridge_rows(*entries.arrays, _doubles(F), ridge, X, work=entries.values.size * F.shape[1] ** 2)
    return X


def nonnegative_rows(entries: Entries, F: Doubles, least: float = 0.0) -> tuple[Doubles, Doubles]:
    """The minimiser x >= 0 of each row's problem, and the squared violation of its optimality conditions.

    Each unknown is scaled so that its second derivative is one. An unknown is zero if F is zero at all observed entries
    of the row, or if these entries hold less than the fraction ``least`` of the squared length of its column of F.

    Notes
    -----
    Block principal pivoting on the Gram matrix of the row; where it meets dependent columns, the active-set method of
    Lawson and Hanson on its Cholesky factor. The memory does not grow with the number of rows.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 1]), np.array([3.0, 1.0]), np.empty(0))
    >>> nonnegative_rows(entries, np.array([[1.0, -1.0], [0.0, 1.0], [5.0, 5.0]]))[0]
    array([[4., 1.]])
    """
    X, violations = np.zeros((entries.n_rows, F.shape[1])), np.zeros(entries.n_rows)
    shown = least * np.square(F).sum(axis=0)
    if entries.weights.size:
        shown *= float(entries.weights.mean(dtype=np.float64))
    _nonnegative_rows(*entries.arrays, _doubles(F), shown, X, violations, work=entries.values.size * F.shape[1] ** 2)
    return X, violations


def simplex_rows(entries: Entries, F: Doubles) -> Doubles:
    """The minimiser x of each row's problem over x >= 0 with sum one; the first vertex for a row without entries.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 2]), np.array([1.0, 3.0]), np.empty(0))
    >>> simplex_rows(entries, np.array([[0.0, 2.0], [7.0, 7.0], [2.0, 4.0]]))
    array([[0.5, 0.5]])
    """
    X = np.zeros((entries.n_rows, F.shape[1]))
    _simplex_rows(*entries.arrays, _doubles(F), X, work=entries.values.size * F.shape[1] ** 2)
    return X


def row_grams(entries: Entries, F: Doubles) -> tuple[Doubles, Doubles]:
    """The Gram matrix of each row's problem, scaled to a unit diagonal, and the square roots of the original diagonals.

    Where a diagonal entry is zero, so are its row and column.
    """
    r = F.shape[1]
    grams, lengths = np.zeros((entries.n_rows, r, r)), np.zeros((entries.n_rows, r))
    _row_grams(*entries.arrays, _doubles(F), grams, lengths, work=entries.values.size * r**2)
    return grams, lengths


def sweep_with_grams(X: Doubles, slopes: Doubles, grams: Doubles) -> None:
    """One sweep of coordinate descent over x >= 0 for each row of X, in place; ``slopes`` are the gradients at X."""
    _sweep_rows(X, slopes, grams, work=grams.size)


def residuals(entries: Entries, A: Doubles, B: Doubles) -> Doubles:
    """m_ij - a_i . b_j at every observed entry, for factors with one row per row and per column of the matrix.

    Examples
    --------
    >>> entries = Entries(np.array([0, 1]), np.array([1]), np.array([7.0]), np.empty(0))
    >>> residuals(entries, np.array([[2.0]]), np.array([[5.0], [3.0]]))
    array([1.])
    """
    left = np.empty(entries.values.size)
    _residuals(*entries.arrays, _doubles(A), _doubles(B), left, work=2 * left.size * A.shape[1])
    return left


def row_slopes(entries: Entries, A: Doubles, B: Doubles, F: Doubles, *, with_values: bool) -> Doubles:
    """Sum over the observed entries of each row of w_ij (a_i . b_j - m_ij) f_j; without m_ij unless ``with_values``."""
    slopes = np.zeros((entries.n_rows, F.shape[1]))
    work = 2 * entries.values.size * (A.shape[1] + F.shape[1])
    _slopes(*entries.arrays, *map(_doubles, (A, B, F)), with_values, slopes, work=work)
    return slopes


def descend_observed(
    entries: Entries,
    F: Doubles,
    X: Doubles,
    n_sweeps: int,
    free: Flags = ALL_FREE,
    prior: Doubles = NO_PRIOR,
    weights: Doubles = NO_PRIOR,
) -> Doubles:
    """Sweeps of coordinate descent over x >= 0 on each row's problem, from the rows of X and in place.

    With a prior, half of sum_k v_k (x_k - p_k)^2 is added to the problem of a row.

    Parameters
    ----------
    entries : Entries
    F : array, shape (n, r)
    X : array, shape (m, r)
        Nonnegative. The error of no row rises.
    n_sweeps : int
    free : bool array, shape (m, r)
        Which unknowns may change.
    prior, weights : arrays, shape (m, r)
        p and v, nonnegative.

    Returns
    -------
    array, shape (m,)
        Squared violation of the optimality conditions of each row before the sweeps, over the free unknowns, each
        scaled so that its second derivative is one.

    Examples
    --------
    >>> entries = Entries(np.array([0, 2]), np.array([0, 1]), np.array([3.0, 1.0]), np.empty(0))
    >>> X = np.array([[1.0, 1.0]])
    >>> _ = descend_observed(entries, np.eye(2), X, 1, np.array([[True, False]]))
    >>> X
    array([[3., 1.]])
    """
    violations = np.zeros(X.shape[0])
    penalty = np.ascontiguousarray(prior), np.ascontiguousarray(weights)
    work = entries.values.size * F.shape[1] ** 2
    _descend_rows(
        *entries.arrays, _doubles(F), X, n_sweeps, np.ascontiguousarray(free), *penalty, violations, work=work
    )
    return violations


def _doubles(array: Floats) -> Doubles:
    return np.ascontiguousarray(array, dtype=np.float64)

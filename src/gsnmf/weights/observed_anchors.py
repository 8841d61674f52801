r"""The holes of chosen columns and rows, filled by the factorization itself.

A low-rank completion fills the holes before anything is chosen. Once columns C and rows R are chosen, their holes are
unknowns like the weights: the entries of C that are not observed and P2 for given P1 and R, the entries of R that are
not observed and P1 for given C and P2. The completion still has a say: in every hole its value counts as much as one
observed entry, because otherwise holes that few entries determine could take any value. Alternating between the two
steps never raises the error on observed entries, and predicts held-out entries better than the completion alone,
especially if much is missing. Where a chosen column and a chosen row cross, the completion stays: C and R must agree
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gsnmf._kernels.observed_descent import descend_rows
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.records import Weights
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.weights.observed import solve_observed_weights
from gsnmf.weights.optimality import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE

_ROUNDS = 3
"""More rounds lower the error on observed entries further but predict no better."""

_SWEEPS = 3

_ROUGH = 1e-2
"""Tolerance of the weights from which the filling starts; better ones fill no better."""

_TRUST = 1.0
"""Weight of the completion in a hole, relative to an observed entry."""


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
    if observed.share == 1.0:
        return Anchored(solve_observed_weights(observed, C, R, **options, start=start), C, R)
    weights = solve_observed_weights(
        observed, C, R, tolerance=max(tolerance, _ROUGH), max_iterations=max_iterations, start=start
    )
    C, R, start = fill_anchors(observed, columns, rows, C, R, (weights.column_weights, weights.row_weights))
    C, R = C.astype(observed.dtype, copy=False), R.astype(observed.dtype, copy=False)
    return Anchored(solve_observed_weights(observed, C, R, **options, start=start), C, R)


def fill_anchors(
    observed: Observed, columns: Indices, rows: Indices, C: Floats, R: Floats, start: tuple[Floats, Floats]
) -> tuple[Doubles, Doubles, tuple[Doubles, Doubles]]:
    """Chosen columns and rows with their holes filled by the factorization, and the weights that belong to them.

    Parameters
    ----------
    observed : Observed, shape (m, n)
    columns, rows : int arrays of length r1 and r2
    C : array, shape (m, r1)
        The columns, with their holes filled by a completion.
    R : array, shape (r2, n)
    start : pair of arrays, shape (r1, n) and (m, r2)
        Weights to start from.

    Returns
    -------
    C, R : arrays
    weights : pair of arrays
    """
    (m, n), r1, r2 = observed.shape, columns.size, rows.size
    left = np.hstack([C, start[1]]).astype(np.float64, order="C")  # compiled for one memory order alone
    right = np.hstack([start[0].T, R.T]).astype(np.float64, order="C")
    free_left = np.hstack([unobserved_columns(observed, columns), np.ones((m, r2), dtype=bool)])
    free_right = np.hstack([np.ones((n, r1), dtype=bool), unobserved_columns(observed.T, rows)])
    free_left[rows, :r1] = False
    free_right[columns, r1:] = False
    priors = left.copy(), right.copy()
    trust = np.zeros(left.shape), np.zeros(right.shape)
    trust[0][:, :r1] = trust[1][:, r1:] = _TRUST * observed.mean_weight
    for _ in range(_ROUNDS):
        descend_rows(observed.entries, right, left, _SWEEPS, free_left, priors[0], trust[0])
        descend_rows(observed.T.entries, left, right, _SWEEPS, free_right, priors[1], trust[1])
    return left[:, :r1], right[:, r1:].T, (right[:, :r1].T, left[:, r1:])


def unobserved_columns(observed: Observed, columns: Indices) -> Flags:
    """Where the columns at ``columns`` have no observed entry, one row per row of the matrix."""
    flags = np.ones((observed.shape[0], columns.size), dtype=bool)
    turned = observed.T.values
    for k, j in enumerate(columns):
        flags[turned.indices[turned.indptr[j] : turned.indptr[j + 1]], k] = False
    return flags

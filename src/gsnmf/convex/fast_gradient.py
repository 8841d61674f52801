r"""GS-FGM, the paper's fast gradient method (Algorithms 1 and 2), on the whole of X and Y.

.. math:: \min_{X \in \Omega_1, Y \in \Omega_2} \tfrac12 \|M - M X - Y M\|_F^2 + \lambda (\mathrm{tr} X + \mathrm{tr} Y)

by Nesterov's method with step 1 / L, :math:`L = 2 \sigma_{\max}(M)^2`, from the columns and rows of GSPA and their
weights. Without Y it is FGNSR (Gillis and Luce 2018), with half that L. This is the reference method: n^2 + m^2
variables and O(mn(m + n)) operations per iteration, for dimensions up to about a thousand. `gsnmf.convex.solve`
solves the same problem faster and with a certificate.

Departures from the paper:

- Unless ``as_printed``, the method stops when the mean change of the objective over ten iterations is small relative to
  its first change. The printed rule, the change in one iteration relative to the objective, ends at once from a good
  start, because the objective oscillates with the momentum.
- The printed rule takes the absolute value of the change. Without it, it would stop at the first decrease.
- lambda takes the square of the residual norm of the start. Without it, lambda would depend on the unit of M and give
  the trivial solution.
- Omega caps only the diagonal at one.

References
----------
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
N. Gillis, R. Luce, A fast gradient method for nonnegative sparse regression with self-dictionary, IEEE Trans. Image
Process. 27 (2018), doi:10.1109/TIP.2017.2753400.
"""

from __future__ import annotations

import math

import numpy as np

from gsnmf.convex.model import ConvexModel, ConvexSolution
from gsnmf.convex.penalties import project
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Floats, Indices
from gsnmf.support.reasons import StopReason

_FIRST_MOMENTUM = 0.05
_FLAT = 10
"""Iterations over which the change of the objective is averaged."""
_COPIES = 5
"""Arrays of the size of X and Y that are alive at once."""


def memory_needed(shape: tuple[int, int], axes: Axes = COLUMNS_AND_ROWS) -> int:
    """Bytes that the method takes for a matrix of this shape."""
    m, n = shape
    return 8 * _COPIES * (n * n + (m * m if "rows" in axes else 0))


def fast_gradient(
    model: ConvexModel,
    columns: Indices,
    rows: Indices,
    X: Floats,
    Y: Floats,
    *,
    tolerance: float = 1e-4,
    max_iterations: int = 1000,
    as_printed: bool = False,
) -> ConvexSolution:
    """Run the method from rows ``X`` (k x n) and columns ``Y`` (m x k') of the start.

    Stops when the iterates, or the objective on average, change by less than ``tolerance`` of their first change; with
    ``as_printed``, when the objective changes by less than ``tolerance`` of itself.
    """
    matrix = model.matrix
    m, n = matrix.shape
    M = matrix.columns(np.arange(n)).astype(np.float64, copy=False)
    sums = matrix.column_sums, matrix.T.column_sums
    curvature = (2.0 if "rows" in model.axes else 1.0) * float(np.linalg.norm(M, 2)) ** 2
    step = 1.0 / curvature if curvature > 0.0 else 0.0
    X_now: Floats = np.zeros((n, n))
    Y_now: Floats = np.zeros((m, m) if "rows" in model.axes else (0, 0))
    X_now[columns] = X
    if "rows" in model.axes:
        Y_now[:, rows] = Y
    X_old, Y_old, momentum = X_now, Y_now, _FIRST_MOMENTUM
    objectives: list[float] = []
    first_change, iteration, stop_reason = math.nan, 0, StopReason.MAX_ITERATIONS_REACHED
    while iteration < max_iterations:
        iteration += 1
        residual = _residual(M, X_now, Y_now)
        objectives.append(_objective(model, residual, X_now, Y_now))
        X_new = X_now + step * (M.T @ residual)
        X_new[np.diag_indices(n)] -= step * model.strength
        project(X_new, sums[0], out=X_new)
        Y_new = Y_now
        if "rows" in model.axes:
            Y_new = (Y_now + step * (residual @ M.T)).T
            Y_new[np.diag_indices(m)] -= step * model.strength
            Y_new = project(Y_new, sums[1]).T
        change = math.hypot(np.linalg.norm(X_new - X_old), np.linalg.norm(Y_new - Y_old))
        following = 0.5 * (math.sqrt(momentum**4 + 4.0 * momentum**2) - momentum**2)
        beta = momentum * (1.0 - momentum) / (momentum**2 + following)
        momentum = following
        X_now, Y_now = X_new + beta * (X_new - X_old), Y_new + beta * (Y_new - Y_old)
        X_old, Y_old = X_new, Y_new
        if iteration == 1:
            first_change = change
        elif change <= tolerance * first_change or _flat(objectives, tolerance, as_printed):
            stop_reason = StopReason.TOLERANCE_REACHED
            break
    return _solution(model, M, X_old, Y_old, iteration, stop_reason)


def _residual(M: Floats, X: Floats, Y: Floats) -> Floats:
    residual = M - M @ X
    return residual - Y @ M if Y.size else residual


def _objective(model: ConvexModel, residual: Floats, X: Floats, Y: Floats) -> float:
    return 0.5 * float(np.vdot(residual, residual)) + model.strength * float(np.trace(X) + np.trace(Y))


def _flat(objectives: list[float], tolerance: float, as_printed: bool) -> bool:
    if as_printed:
        return abs(objectives[-1] - objectives[-2]) <= tolerance * objectives[-2]
    if len(objectives) <= _FLAT:
        return False
    mean_change = float(np.abs(np.diff(objectives[-1 - _FLAT :])).mean())
    return mean_change <= tolerance * abs(objectives[1] - objectives[0])


def _solution(
    model: ConvexModel, M: Floats, X: Floats, Y: Floats, n_iterations: int, stop_reason: StopReason
) -> ConvexSolution:
    columns, rows = np.flatnonzero(X.any(axis=1)), np.flatnonzero(Y.any(axis=0))
    W = np.hstack([M[:, columns], Y[:, rows]]) if Y.size else M[:, columns]
    H = np.vstack([X[columns], M[rows]])
    residual = model.matrix.residual(W, H)
    objective = 0.5 * residual.squared_norm + model.strength * float(np.trace(X) + np.trace(Y))
    return ConvexSolution(
        columns=columns,
        rows=rows,
        X=X[columns],
        Y=Y[:, rows] if Y.size else np.empty((M.shape[0], 0)),
        strength=model.strength,
        objective=objective,
        lower_bound=model.dual_bound(residual, model.scores(residual)),
        residual_norm=math.sqrt(residual.squared_norm),
        n_iterations=n_iterations,
        converged=stop_reason == StopReason.TOLERANCE_REACHED,
        stop_reason=stop_reason,
    )

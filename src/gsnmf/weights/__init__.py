r"""Nonnegative weights of chosen columns and rows, solved to a tolerance on the optimality conditions.

For chosen columns C = M(:, columns) and rows R = M(rows, :) the weights solve the convex problem

.. math:: \min_{P_1 \ge 0,\; P_2 \ge 0} \; \tfrac12 \|M - C P_1 - P_2 R\|_F^2 .

With one side only, it is nonnegative least squares, one small problem per column, solved exactly (`one_sided`). With
both sides it is singular, and projected conjugate gradients (`joint`) solve it until the violation of the optimality
conditions (`optimality`) is below the tolerance. `observed` fits weights to observed entries only, `sum_to_one` finds
weights that sum to one.
"""

from gsnmf.weights.one_sided import coefficients_for, cone_weights, remaining_weights, row_weights_for
from gsnmf.weights.optimality import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE
from gsnmf.weights.solver import solve_weights, warn_unless_converged

__all__ = [
    "DEFAULT_MAX_ITERATIONS",
    "DEFAULT_TOLERANCE",
    "coefficients_for",
    "cone_weights",
    "remaining_weights",
    "row_weights_for",
    "solve_weights",
    "warn_unless_converged",
]

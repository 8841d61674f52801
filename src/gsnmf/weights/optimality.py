r"""How far weights are from the optimality conditions of their problem.

Columns of C and rows of R are taken with unit length, which makes the violation of the optimality conditions,

.. math:: \| P - \max(0, P - \nabla f(P)) \|_F \,/\, \max(\|M - C P_1 - P_2 R\|_F,\; 10^{-3} \|M\|_F),

a dimensionless number.
"""

from __future__ import annotations

import numpy as np

from gsnmf.support.arrays import Doubles

DEFAULT_TOLERANCE = 1e-4
DEFAULT_MAX_ITERATIONS = 1000
"""A limit on the time; a warning says if it was reached."""

SMALL_RESIDUAL = 1e-3
"""The violation is relative to the residual or, if that is larger, to this fraction of the matrix."""

CANCELLED = 1e-8
"""Squared relative errors below this are computed from the residual itself: Gram products lose their digits there."""


def violation(X: Doubles, gradient: Doubles) -> float:
    """The numerator above: P - max(0, P - g) is min(P, g)."""
    return float(np.linalg.norm(np.minimum(X, gradient)))


def relative_violation(violated: float, squared_error: float, squared_norm: float) -> float:
    """A violation relative to its scale."""
    return ratio(violated, max(np.sqrt(squared_error), SMALL_RESIDUAL * np.sqrt(squared_norm)))


def ratio(value: float, scale: float) -> float:
    """``value / scale``, and 0 where the scale is zero."""
    return float(value / scale) if scale > 0 else 0.0

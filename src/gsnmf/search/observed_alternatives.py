"""Alternatives for a matrix with holes: found on the filled matrix, compared on the observed entries."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from gsnmf.constraints import Constraints
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.observed import Observed
from gsnmf.records import Alternative
from gsnmf.result import Factorization
from gsnmf.search.alternatives import substitutes
from gsnmf.weights.observed import solve_observed_weights
from gsnmf.weights.observed_anchors import solve_anchored

_TRIED = 2
"""How many substitutes are fitted to the observed entries for each requested one."""
_TOLERANCE = 1e-3
_QUICK_ITERATIONS = 3


def observed_substitutes(
    result: Factorization, *, count: int, quick: bool, observed: Observed, constraints: Constraints | None = None
) -> list[Alternative]:
    """The best substitutes for every chosen column and row, with their errors on the observed entries.

    Parameters
    ----------
    result : Factorization
        Its ``source`` is the matrix with its holes filled.
    count : int
        Largest number of substitutes per factor.
    quick : bool
        Leave the holes of chosen columns and rows as they are, and fit weights for a few iterations only.
    observed : Observed
        The entries that the result was fitted to.
    constraints : Constraints, optional

    Returns
    -------
    list of Alternative
        Columns first, each with its substitutes by increasing error.
    """
    on_filled = substitutes(result, count=count if quick else _TRIED * count, quick=quick, constraints=constraints)
    fitted = (_fitted(result, one, observed, quick) for one in on_filled)
    found: list[Alternative] = []
    for _, group in groupby(fitted, key=lambda one: one.factor):
        found += sorted(group, key=lambda one: one.relative_error)[:count]
    return found


def _fitted(result: Factorization, one: Alternative, observed: Observed, quick: bool) -> Alternative:
    """The alternative with its error on the observed entries."""
    source = result.source
    assert isinstance(source, InMemoryMatrix)  # data with holes is in memory
    columns, rows = result.columns.copy(), result.rows.copy()
    P, Q = result.column_weights.copy(), result.row_weights.copy()
    if one.axis == "columns":
        columns[one.factor], P[one.factor] = one.index, 0.0
    else:
        place = one.factor - columns.size
        rows[place], Q[:, place] = one.index, 0.0
    if quick:
        C, R = source.raw_columns(columns), source.T.raw_columns(rows).T
        weights = solve_observed_weights(
            observed, C, R, tolerance=_TOLERANCE, max_iterations=_QUICK_ITERATIONS, start=(P, Q)
        )
    else:
        weights = solve_anchored(observed, source, columns, rows, tolerance=_TOLERANCE, start=(P, Q)).weights
    return replace(one, relative_error=weights.relative_error)

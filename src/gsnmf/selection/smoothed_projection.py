r"""Smoothed successive projection: SPA in which each choice is the mean of a few columns (rows), SSPA.

If every factor occurs several times, with different noise, the mean of its copies is closer to it than any single one.
A step takes the residual :math:`u = P^\perp M(:, c)` that is longest, the p columns with the largest products
:math:`u^T M(:, j)`, which are the copies of one factor as far as the noise allows, and projects on the orthogonal
complement of their mean. With p = 1 it is SPA.

As in SPA the residual is never formed: a step is two products with M.

References
----------
N. Nadisic, N. Gillis, C. Kervazo, Smoothed separable nonnegative matrix factorization, arXiv:2110.05528 (2021).
"""

from __future__ import annotations

import numpy as np

from gsnmf.matrix.projection import ResidualSide
from gsnmf.matrix.protocol import Matrix, largest_of
from gsnmf.results import Choice, Mixtures, Selection
from gsnmf.selection.constraints import Limits
from gsnmf.support.arrays import Axis, Indices


def smoothed_choice(matrix: Matrix, rank: int, *, axis: Axis, members: int, limits: Limits | None = None) -> Choice:
    """SSPA: ``rank`` means of ``members`` columns, or rows, each.

    With ``limits`` it starts from the included indices, each a factor of its own, and ignores the excluded ones.

    Examples
    --------
    Two factors, each occurring twice:

    >>> from gsnmf.matrix import wrap
    >>> matrix = wrap(np.array([[2.0, 2.1, 0.0, 0.0], [0.0, 0.0, 1.0, 1.1]]))
    >>> smoothed_choice(matrix, 2, axis="columns", members=2).mixtures.column_mixture.toarray().T
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5]])
    """
    side = matrix.along(axis)
    groups = smoothed_groups(side, rank, members, _of_axis(limits, axis))
    pairs = [(group, np.ones(group.size)) for group in groups]
    columns, rows = (pairs, []) if axis == "columns" else ([], pairs)
    mixtures = Mixtures.of(columns, rows, matrix.shape, members, dtype=matrix.dtype)
    selection = Selection.of_indices(mixtures.leading_columns, mixtures.leading_rows, f"smooth-spa-{axis}", rank)
    return Choice(selection, mixtures=mixtures if members > 1 else None)


def smoothed_groups(
    matrix: Matrix, rank: int, members: int, limits: tuple[Indices, Indices] | None = None
) -> list[Indices]:
    """Columns whose means are the factors, the most extreme first; fewer than ``rank`` if they explain everything.

    ``limits`` are the included columns and the excluded ones.
    """
    side = ResidualSide(matrix, rank)
    included, excluded = limits or (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
    side.exclude(excluded)
    groups = [np.array([j]) for j in included]
    for group in groups:
        side.project(matrix.columns(group)[:, 0])
    while len(groups) < rank and (farthest := side.farthest()) is not None:
        products = np.asarray(matrix.T.dot(side.direction(farthest)), dtype=np.float64)
        products[excluded] = -np.inf
        products[farthest] = np.inf  # even if rounding has left nothing of its product
        group = largest_of(products, members)
        group = group[products[group] > 0]
        if not side.project(matrix.columns(group).mean(axis=1)):
            break
        groups.append(group)
    return groups


def _of_axis(limits: Limits | None, axis: Axis) -> tuple[Indices, Indices] | None:
    return None if limits is None else (limits.included(axis), np.flatnonzero(limits.excluded(axis)))

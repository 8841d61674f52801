r"""Successive projection: SPA, SPA*, smoothed SPA and the generalized successive projection algorithm, GSPA.

GSPA chooses at each step the column p or row q with the largest residual,

.. math:: n \|R(:, p)\|_2^2 \ge m \|R(q, :)\|_2^2 \quad\text{or not,}

and projects the columns (rows) of the residual R on the orthogonal complement of the chosen one. SPA is the case in
which only one axis may be chosen, SPA* runs SPA once on each axis.

The residual is never formed (`gsnmf.matrix.projection`): a step is two products with M, one for SPA, and the
whole costs O(nnz(M) r + (m + n) r^2) with O((m + n) r) memory. For a Dask array, vectors with one entry per row stay
with the chunks (`gsnmf.matrix.dask`) or are not needed.

Smoothed SPA, SSPA, makes each factor the mean of a few columns. If every factor occurs several times, with different
noise, the mean of its copies is closer to it than any single one. A step takes the residual :math:`u = P^\perp M(:, c)`
that is longest and the p columns with the largest products :math:`u^T M(:, j)`, which are the copies of one factor as
far as the noise allows, and projects on the orthogonal complement of their mean.

References
----------
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
M. Araujo et al., The successive projections algorithm for variable selection, Chemometrics and Intelligent
Laboratory Systems 57 (2001), doi:10.1016/S0169-7439(01)00119-8.
N. Gillis, S. Vavasis, Fast and robust recursive algorithms for separable NMF, IEEE TPAMI 36 (2014),
doi:10.1109/TPAMI.2013.226.
N. Nadisic, N. Gillis, C. Kervazo, Smoothed separable nonnegative matrix factorization, arXiv:2110.05528 (2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gsnmf.constraints import Limits
from gsnmf.matrix.projection import Projection, ResidualSide, tie_factor
from gsnmf.matrix.protocol import Matrix, largest_of
from gsnmf.matrix.validation import check_count
from gsnmf.records import Choice, Mixtures, Selection
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axes, Axis, Doubles, Indices

if TYPE_CHECKING:
    from gsnmf.checkpoint import Checkpoint

_Picks = list[tuple[Axis, int]]

_CANDIDATES = 4
"""`largest_and_farthest` projects among this many times as many columns as requested."""


def successive_projection(
    matrix: Matrix, rank: int, *, axis: Axis, checkpoint: Checkpoint | None = None, limits: Limits | None = None
) -> Selection:
    """SPA: choose ``rank`` columns, or rows, each the farthest from the span of those before it.

    Recovers the columns K of any matrix M = M[:, K] H with M[:, K] of full rank, H nonnegative with the identity
    among its columns, and column sums of H at most one. With ``limits`` it starts from the included indices and ignores
    the excluded ones.
    """
    projection = matrix.projection(rank, (axis,))
    picks = _begun(projection, (axis,), checkpoint, limits)
    while len(picks) < rank and (best := projection.farthest(axis)) is not None:
        _choose(projection, picks, (axis, best), rank, checkpoint)
    return Selection.of(picks, f"spa-{axis}", rank)


def successive_projection_both(
    matrix: Matrix, n_columns: int, n_rows: int, *, limits: Limits | None = None
) -> Selection:
    """SPA*: ``n_columns`` columns by SPA, and ``n_rows`` rows by SPA, independently of each other."""
    columns = successive_projection(matrix, n_columns, axis="columns", limits=limits).columns
    rows = successive_projection(matrix, n_rows, axis="rows", limits=limits).rows
    return Selection.of_indices(columns, rows, "spa-both", n_columns + n_rows)


def generalized_successive_projection(
    matrix: Matrix, rank: int, *, checkpoint: Checkpoint | None = None, limits: Limits | None = None
) -> Selection:
    """GSPA (Algorithm 3 of the paper): choose ``rank`` columns and rows together.

    A heuristic: unlike SPA it can miss even without noise (Example 1 of the paper). It is meant for matrices whose
    columns have equal sums and whose rows have equal sums; see `gsnmf.scale`. With ``limits`` it starts from the
    included indices, ignores the excluded ones, and takes the larger of column and row only if either choice leaves
    room for what is still required.
    """
    m, n = matrix.shape
    projection = matrix.projection(rank, COLUMNS_AND_ROWS)
    picks = _begun(projection, COLUMNS_AND_ROWS, checkpoint, limits)
    tie = tie_factor(matrix.dtype)
    while len(picks) < rank:
        n_columns = sum(axis == "columns" for axis, _ in picks)
        axes = COLUMNS_AND_ROWS if limits is None else limits.open_axes(n_columns, len(picks) - n_columns)
        found = {axis: projection.farthest(axis) for axis in axes}
        if None in found.values():  # the residual is zero on both sides at once, up to rounding
            break
        best = {axis: index for axis, index in found.items() if index is not None}
        if len(best) == 2:
            by_column = n * projection.norm("columns", best["columns"]) >= tie * m * projection.norm(
                "rows", best["rows"]
            )
            best = {"columns": best["columns"]} if by_column else {"rows": best["rows"]}
        (pick,) = best.items()
        _choose(projection, picks, pick, rank, checkpoint)
    return Selection.of(picks, "gspa", rank)


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
    named = (limits.included(axis), np.flatnonzero(limits.excluded(axis))) if limits is not None else None
    groups = smoothed_groups(side, rank, members, named)
    pairs = [(group, np.ones(group.size)) for group in groups]
    columns, rows = (pairs, []) if axis == "columns" else ([], pairs)
    mixtures = Mixtures.of(columns, rows, matrix.shape, members, dtype=matrix.dtype)
    selection = Selection.of_indices(mixtures.leading_columns, mixtures.leading_rows, f"smooth-spa-{axis}", rank)
    return Choice(selection, mixtures=mixtures if members > 1 else None)


def smoothed_groups(
    matrix: Matrix, rank: int, members: int, named: tuple[Indices, Indices] | None = None
) -> list[Indices]:
    """Columns whose means are the factors, the most extreme first; fewer than ``rank`` if they explain everything.

    ``named`` are the included columns and the excluded ones.
    """
    side = ResidualSide(matrix, rank)
    included, excluded = named or (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
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


def largest_and_farthest(matrix: Matrix, n: int, *, axis: Axis = "columns") -> Indices:
    """At most ``n`` nonzero columns (or rows): half by successive projection, the rest by the largest norms.

    Returns
    -------
    int array
        Distinct, in increasing order; fewer than ``n`` only if there are no more nonzero ones.

    Notes
    -----
    Successive projection is run on the 4 n largest columns and costs their Gram matrix and O(n^3). It is that of all
    columns as long as no residual that it chooses is smaller than the largest column left out.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.matrix import wrap
    >>> largest_and_farthest(wrap(np.array([[9.0, 8, 0, 7], [0, 0, 1, 0]])), 2)
    array([0, 1])
    """
    n = check_count(n, "n")
    side = matrix.along(axis)
    by_norm = np.argsort(-side.squared_column_norms, kind="stable")[: np.count_nonzero(side.squared_column_norms)]
    if by_norm.size <= n:
        return np.sort(by_norm)
    candidates = np.sort(by_norm[: _CANDIDATES * n])
    farthest = candidates[_farthest(side.gram(candidates), float(np.finfo(side.dtype).eps), n // 2)]
    largest = by_norm[~np.isin(by_norm, farthest)]
    return np.sort(np.concatenate([farthest, largest[: n - farthest.size]]))


def _choose(
    projection: Projection, picks: _Picks, pick: tuple[Axis, int], rank: int, checkpoint: Checkpoint | None
) -> None:
    projection.choose(*pick)
    picks.append(pick)
    if checkpoint is not None:
        checkpoint.save(picks, projection.stored(), last=len(picks) == rank)


def _begun(projection: Projection, axes: Axes, checkpoint: Checkpoint | None, limits: Limits | None) -> _Picks:
    """The initial choices: those made before an interruption, or the included ones."""
    found = None if checkpoint is None else checkpoint.load()
    picks: _Picks = []
    if checkpoint is not None and found is not None:
        picks, state = found
        with checkpoint.sound():
            projection.restore(state, picks)
    if limits is None:
        return picks
    for axis in axes:
        projection.exclude(axis, np.flatnonzero(limits.excluded(axis)))
        for index in [] if found is not None else limits.included(axis).tolist():
            projection.choose(axis, index)
            picks.append((axis, index))
    return picks


def _farthest(gram: Doubles, eps: float, n: int) -> list[int]:
    """At most ``n`` columns by successive projection, as the pivots of a Cholesky factorization of their Gram matrix.

    Its vectors have one entry per column, not per row. It stops early once Gram products have lost their digits.
    """
    residual = gram.diagonal().copy()
    zero = residual.size * eps * float(residual.max())
    factor = np.empty((n, residual.size))
    chosen: list[int] = []
    for k in range(n):
        pivot = int(np.argmax(residual))
        if residual[pivot] <= zero:
            break
        row = (gram[pivot] - factor[:k, pivot] @ factor[:k]) / np.sqrt(residual[pivot])
        residual -= np.square(row)
        residual[pivot] = 0.0
        factor[k] = row
        chosen.append(pivot)
    return chosen

r"""Successive projection: SPA, SPA* and the generalized successive projection algorithm, GSPA.

GSPA chooses at each step the column p or row q with the largest residual,

.. math:: n \|R(:, p)\|_2^2 \ge m \|R(q, :)\|_2^2 \quad\text{or not,}

and projects the columns (rows) of the residual R on the orthogonal complement of the chosen one. SPA is the case in
which only one axis may be chosen, SPA* runs SPA once on each axis.

The residual is never formed (`gsnmf.matrices.projection`): a step is two products with M, one for SPA, and the
whole costs O(nnz(M) r + (m + n) r^2) with O((m + n) r) memory. Of a Dask array, what is as long as it has rows stays
with its chunks (`gsnmf.matrices.chunked`), or is not needed at all.

References
----------
J. Pan, N. Gillis, Generalized separable nonnegative matrix factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.
M. Araujo et al., The successive projections algorithm for variable selection, Chemometrics and Intelligent
Laboratory Systems 57 (2001), doi:10.1016/S0169-7439(01)00119-8.
N. Gillis, S. Vavasis, Fast and robust recursive algorithms for separable NMF, IEEE TPAMI 36 (2014),
doi:10.1109/TPAMI.2013.226.
"""

from __future__ import annotations

from gsnmf.matrices.projection import Projection
from gsnmf.matrices.protocol import Matrix
from gsnmf.matrices.residual_norms import tie_factor
from gsnmf.results import Selection
from gsnmf.results.checkpoint import Checkpoint
from gsnmf.support.arrays import Axis

_Picks = list[tuple[Axis, int]]


def successive_projection(matrix: Matrix, rank: int, *, axis: Axis, checkpoint: Checkpoint | None = None) -> Selection:
    """SPA: choose ``rank`` columns, or rows, each the farthest from the span of those before it.

    Recovers the columns K of any matrix M = M[:, K] H with M[:, K] of full rank, H nonnegative with the identity
    among its columns, and column sums of H at most one.
    """
    projection = matrix.projection(rank, (axis,))
    picks = _resumed(projection, checkpoint)
    while len(picks) < rank and (best := projection.farthest(axis)) is not None:
        _choose(projection, picks, (axis, best), rank, checkpoint)
    return Selection.of(picks, f"spa-{axis}", rank)


def successive_projection_both(matrix: Matrix, n_columns: int, n_rows: int) -> Selection:
    """SPA*: ``n_columns`` columns by SPA, and ``n_rows`` rows by SPA, independently of each other."""
    columns = successive_projection(matrix, n_columns, axis="columns").columns
    rows = successive_projection(matrix, n_rows, axis="rows").rows
    return Selection.of_indices(columns, rows, "spa-both", n_columns + n_rows)


def generalized_successive_projection(matrix: Matrix, rank: int, *, checkpoint: Checkpoint | None = None) -> Selection:
    """GSPA (Algorithm 3 of the paper): choose ``rank`` columns and rows together.

    A heuristic: unlike SPA it can miss even without noise (Example 1 of the paper). It is meant for matrices whose
    columns have equal sums and whose rows have equal sums; see `gsnmf.scale`.
    """
    m, n = matrix.shape
    projection = matrix.projection(rank, ("columns", "rows"))
    picks = _resumed(projection, checkpoint)
    tie = tie_factor(matrix.dtype)
    while len(picks) < rank:
        p, q = projection.farthest("columns"), projection.farthest("rows")
        if p is None or q is None:  # the residual is zero on both sides at once, up to rounding
            break
        by_column = n * projection.norm("columns", p) >= tie * m * projection.norm("rows", q)
        _choose(projection, picks, ("columns", p) if by_column else ("rows", q), rank, checkpoint)
    return Selection.of(picks, "gspa", rank)


def _choose(
    projection: Projection, picks: _Picks, pick: tuple[Axis, int], rank: int, checkpoint: Checkpoint | None
) -> None:
    projection.choose(*pick)
    picks.append(pick)
    if checkpoint is not None:
        checkpoint.save(picks, projection.stored(), last=len(picks) == rank)


def _resumed(projection: Projection, checkpoint: Checkpoint | None) -> _Picks:
    """What was chosen before an interruption; the projection is brought to where it was then."""
    found = None if checkpoint is None else checkpoint.load()
    if checkpoint is None or found is None:
        return []
    picks, state = found
    with checkpoint.sound():
        projection.restore(state, picks)
    return picks

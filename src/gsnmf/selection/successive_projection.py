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

from typing import Any, Literal

import numpy as np

from gsnmf.matrices.projection import ResidualSide
from gsnmf.matrices.protocol import Matrix
from gsnmf.matrices.residual_norms import tie_factor
from gsnmf.results.checkpoint import Checkpoint, State
from gsnmf.results.records import Selection, StopReason


def successive_projection(
    matrix: Matrix, rank: int, *, axis: Literal["columns", "rows"], checkpoint: Checkpoint | None = None
) -> Selection:
    """SPA: choose ``rank`` columns, or rows, each the farthest from the span of those before it.

    Recovers the columns K of any matrix M = M[:, K] H with M[:, K] of full rank, H nonnegative with the identity
    among its columns, and column sums of H at most one.
    """
    side = _side(matrix, rank, axis)
    chosen: list[int] = []
    if checkpoint is not None and (stored := checkpoint.load()) is not None:
        picks = stored.pop("picks")
        chosen = picks.tolist()
        side.restore(stored)
        side.rebuild(picks, None)
    while len(chosen) < rank and (best := side.farthest(None)) is not None:
        side.choose(best, None)
        chosen.append(best)
        if checkpoint is not None:
            checkpoint.save({"picks": np.array(chosen, dtype=np.intp), **side.stored()}, last=len(chosen) == rank)
    indices, none = np.array(chosen, dtype=np.intp), np.empty(0, dtype=np.intp)
    if axis == "columns":
        return Selection(indices, none, "c" * indices.size, "spa-columns", _stop_reason(indices.size, rank))
    return Selection(none, indices, "r" * indices.size, "spa-rows", _stop_reason(indices.size, rank))


def successive_projection_both(matrix: Matrix, n_columns: int, n_rows: int) -> Selection:
    """SPA*: ``n_columns`` columns by SPA, and ``n_rows`` rows by SPA, independently of each other."""
    columns = successive_projection(matrix, n_columns, axis="columns").columns
    rows = successive_projection(matrix, n_rows, axis="rows").rows
    order = "c" * columns.size + "r" * rows.size
    return Selection(columns, rows, order, "spa-both", _stop_reason(len(order), n_columns + n_rows))


def generalized_successive_projection(matrix: Matrix, rank: int, *, checkpoint: Checkpoint | None = None) -> Selection:
    """GSPA (Algorithm 3 of the paper): choose ``rank`` columns and rows together.

    A heuristic: unlike SPA it can miss even without noise (Example 1 of the paper). It is meant for matrices whose
    columns have equal sums and whose rows have equal sums; see `gsnmf.matrices.scaling.scale`.
    """
    m, n = matrix.shape
    columns, rows = _both_sides(matrix, rank)
    sides = {"c": columns, "r": rows}
    picks: list[tuple[str, int]] = []
    if checkpoint is not None and (stored := checkpoint.load()) is not None:
        picks = _restore(sides, stored)
    tie = tie_factor(matrix.dtype)
    while len(picks) < rank:
        p, q = columns.farthest(rows), rows.farthest(columns)
        if p is None or q is None:  # the residual is zero on both sides at once, up to rounding
            break
        if n * columns.norm(p) >= tie * m * rows.norm(q):
            columns.choose(p, rows)
            picks.append(("c", p))
        else:
            rows.choose(q, columns)
            picks.append(("r", q))
        if checkpoint is not None:
            checkpoint.save(_stored(sides, picks), last=len(picks) == rank)
    chosen = {axis: np.array([i for letter, i in picks if letter == axis], dtype=np.intp) for axis in "cr"}
    order = "".join(letter for letter, _ in picks)
    return Selection(chosen["c"], chosen["r"], order, "gspa", _stop_reason(len(order), rank))


_IN_DRIVER = 1 << 30
"""Bytes of vectors as long as a Dask array has rows that may be in memory, if that saves passes."""


def _side(matrix: Matrix, rank: int, axis: Literal["columns", "rows"]) -> Any:
    if not matrix.out_of_core:
        return ResidualSide(matrix if axis == "columns" else matrix.T, rank)
    from gsnmf.matrices.chunked.gram_projection import GramSide
    from gsnmf.matrices.chunked.matrix import ChunkedMatrix
    from gsnmf.matrices.chunked.projection import ChunkedRows

    assert isinstance(matrix, ChunkedMatrix)
    if axis == "columns":
        return GramSide(matrix, rank)
    in_driver = 8 * matrix.shape[0] * (rank + 4)
    return GramSide(matrix.T, rank) if in_driver <= _IN_DRIVER else ChunkedRows(matrix, rank)


def _both_sides(matrix: Matrix, rank: int) -> tuple[Any, Any]:
    if not matrix.out_of_core:
        return ResidualSide(matrix, rank), ResidualSide(matrix.T, rank)
    from gsnmf.matrices.chunked.matrix import ChunkedMatrix
    from gsnmf.matrices.chunked.projection import ChunkedColumns, ChunkedRows

    assert isinstance(matrix, ChunkedMatrix)
    return ChunkedColumns(matrix, rank), ChunkedRows(matrix, rank)


def _stored(sides: dict[str, Any], picks: list[tuple[str, int]]) -> State:
    state: State = {"order": np.array([letter for letter, _ in picks]), "picks": np.array([i for _, i in picks])}
    for letter, side in sides.items():
        state.update({f"{letter}.{name}": array for name, array in side.stored().items()})
    return state


def _restore(sides: dict[str, Any], stored: State) -> list[tuple[str, int]]:
    for letter, side in sides.items():
        side.restore({name[2:]: array for name, array in stored.items() if name.startswith(f"{letter}.")})
    order, indices = stored["order"], stored["picks"]
    is_column = order == "c"
    sides["c"].rebuild(indices[is_column], np.cumsum(~is_column)[is_column], sides["r"])
    sides["r"].rebuild(indices[~is_column], sides["c"])
    return list(zip(order.tolist(), indices.tolist(), strict=True))


def _stop_reason(n_chosen: int, rank: int) -> StopReason:
    return "rank reached" if n_chosen == rank else "residual is zero"

r"""Pursuit that scores few candidates: the same choices as `gsnmf.search.pursuit`, from bounds on most scores.

The score of candidate column j is :math:`\|(M_j^T E)_+\| / \|M_j\|`, with the residual :math:`E = M - C P^T - Q R^T`.
When a column or row is added and all weights are fitted again, most weights fall and the residual rises by at most
:math:`C (P - P')_+^T + (Q - Q')_+ R^T`. So no score rises by more than

.. math:: \frac{1}{\|M_j\|} \left( \|(M_j^T C) (P - P')_+^T\| + \|(M_j^T (Q - Q')_+) R^T\| \right) ,

two norms that follow from k x k products. A candidate is scored again only while its bound is above the best score so
far. Its products with the matrix are computed when it is first scored, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gsnmf._parallel import single_threaded_blas
from gsnmf.constraints import Limits
from gsnmf.matrix import InMemoryMatrix
from gsnmf.search.candidates import Candidates, Fit, candidate_indices
from gsnmf.search.pursuit import ROUNDING
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Axis, Doubles, Indices

_BATCH = 16
"""How many candidates are scored at a time."""
_BLOCK_BYTES = 1 << 27
"""How many entries of products are formed at a time."""
_LOOSE = 1.0 + 1e-9
"""Safety factor of the bounds, which covers rounding."""


def lazy_pursuit(matrix: InMemoryMatrix, rank: int, limits: Limits | None = None) -> Iterator[Fit]:
    """Fits with one more index each, up to ``rank`` indices or until nothing is left to explain.

    With ``limits``, the included indices come first, one after another.
    """
    none = np.empty(0, dtype=np.intp)
    chosen = Candidates(matrix, none, none)
    sides: dict[Axis, _Side] = {
        "columns": _Side(matrix, candidate_indices(matrix, "columns", limits)),
        "rows": _Side(matrix.T, candidate_indices(matrix, "rows", limits)),
    }
    state = _State.of(chosen, chosen.empty())
    first = [] if limits is None else _included(limits)
    with single_threaded_blas():
        while state.size < rank and state.fit.squared_error > ROUNDING * matrix.squared_norm:
            axes = COLUMNS_AND_ROWS if limits is None else limits.open_axes(state.n_columns, state.n_rows)
            best = first.pop(0) if first else _best(sides, state, axes)
            if best is None:
                return
            axis, index = best
            (chosen.columns if axis == "columns" else chosen.rows).extend(np.array([index]))
            grown = chosen.extended(state.fit, axis, index)
            before, state = state, _State.of(chosen, chosen.fit(grown.columns, grown.rows, grown.P, grown.Q))
            sides["columns"].loosen(before, state)
            sides["rows"].loosen(before.T, state.T)
            yield state.fit


@dataclass(frozen=True)
class _State:
    """A fit in the units of the matrix: M ~ C P' + Q R'. The transpose swaps the two sides."""

    fit: Fit
    columns: Indices
    rows: Indices
    C: Doubles
    P: Doubles
    Q: Doubles
    R: Doubles

    @classmethod
    def of(cls, chosen: Candidates, fit: Fit) -> _State:
        at_columns, at_rows = chosen.columns.positions(fit.columns), chosen.rows.positions(fit.rows)
        return cls(
            fit,
            fit.columns,
            fit.rows,
            C=chosen.columns.vectors.as_columns(at_columns),
            P=fit.P / chosen.columns.lengths[at_columns],
            Q=fit.Q / chosen.rows.lengths[at_rows],
            R=chosen.rows.vectors.as_columns(at_rows),
        )

    @property
    def T(self) -> _State:
        return _State(self.fit, self.rows, self.columns, self.R, self.Q, self.P, self.C)

    @property
    def n_columns(self) -> int:
        return self.fit.columns.size

    @property
    def n_rows(self) -> int:
        return self.fit.rows.size

    @property
    def size(self) -> int:
        return self.n_columns + self.n_rows


class _Side:
    """Candidate columns of a matrix with bounds on their scores; the candidate rows are those of its transpose."""

    def __init__(self, matrix: InMemoryMatrix, indices: Indices) -> None:
        self.matrix = matrix
        self.indices = indices[matrix.squared_column_norms[indices] > 0]
        self.lengths = np.sqrt(matrix.squared_column_norms[self.indices])
        self._vectors = matrix.submatrix(self.indices).T
        self._products: dict[int, Doubles] = {}
        self.bounds = np.empty(self.indices.size)
        step = max(1, _BLOCK_BYTES // (8 * matrix.shape[1]))
        for start in range(0, self.indices.size, step):
            part = slice(start, start + step)
            self.bounds[part] = np.linalg.norm(matrix.gram_rows(self.indices[part]), axis=1)
        self.bounds *= _LOOSE / np.where(self.lengths > 0, self.lengths, 1.0)

    def loosen(self, before: _State, after: _State) -> None:
        """Raise all bounds by what the residual may have gained."""
        falls_P = np.maximum(0.0, before.P - after.P[:, : before.P.shape[1]])
        falls_Q = np.maximum(0.0, before.Q - after.Q[:, : before.Q.shape[1]])
        for weights, gram in (
            (self._dot(before.C), falls_P.T @ falls_P),
            (self._dot(falls_Q), before.R.T @ before.R),
        ):
            squares = np.einsum("jk,jk->j", weights @ gram, weights)
            self.bounds += _LOOSE * np.sqrt(np.maximum(squares, 0.0)) / self.lengths

    def score(self, places: Indices, state: _State) -> Doubles:
        """Scores of candidates, which are their new bounds; minus infinity for those already chosen."""
        self._remember(places)
        products = np.array([self._products[int(place)] for place in places])
        slopes = products - products[:, state.columns] @ state.P.T
        slopes -= self._dot(state.Q, places) @ state.R.T
        scores = np.linalg.norm(np.maximum(slopes, 0.0), axis=1) / self.lengths[places]
        scores[np.isin(self.indices[places], state.columns)] = -np.inf
        self.bounds[places] = _LOOSE * scores
        return np.asarray(scores)

    def _remember(self, places: Indices) -> None:
        new = np.array([place for place in places if int(place) not in self._products], dtype=np.intp)
        if new.size:
            self._products.update(zip(new.tolist(), self.matrix.gram_rows(self.indices[new]), strict=True))

    def _dot(self, block: Doubles, places: Indices | slice = slice(None)) -> Doubles:
        return np.asarray(self._vectors[places] @ block, dtype=np.float64)


def _best(sides: dict[Axis, _Side], state: _State, axes: tuple[Axis, ...]) -> tuple[Axis, int] | None:
    """The candidate with the largest score, as axis and index; None if no score is above zero."""
    best: tuple[float, Axis, int] | None = None
    for axis in axes:
        side = sides[axis]
        order = np.argsort(-side.bounds, kind="stable")
        for start in range(0, order.size, _BATCH):
            places = order[start : start + _BATCH]
            if best is not None and side.bounds[places[0]] < best[0]:
                break
            scores = side.score(places, state if axis == "columns" else state.T)
            top = int(np.argmax(scores))
            if scores[top] > (best[0] if best else 0.0):
                best = float(scores[top]), axis, int(side.indices[places[top]])
    return None if best is None else best[1:]


def _included(limits: Limits) -> list[tuple[Axis, int]]:
    """The indices that are always chosen, columns first."""
    columns: list[tuple[Axis, int]] = [("columns", int(j)) for j in limits.included_columns]
    return columns + [("rows", int(i)) for i in limits.included_rows]

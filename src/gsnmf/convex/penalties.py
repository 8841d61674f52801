r"""Penalties that make rows of X (and columns of Y) vanish: small objects used by the convex solver.

Each is a sum over rows, lambda times

- ``trace``: :math:`X_{ii}`, with :math:`0 \le X_{ij} \le (w_j / w_i) X_{ii}` and :math:`X_{ii} \le 1` (the set Omega);
- ``group-2``: :math:`\|X(i, :)\|_2`, with X nonnegative (Elhamifar, Sapiro, Vidal 2012);
- ``group-inf``: :math:`\|X(i, :)\|_\infty`, with X nonnegative (Esser et al. 2012).

A penalty gives the solver four things: the step that lowers it (`shrink`), the score of a row, which says how much the
row could still lower the objective, its value, and a lower bound on the optimum from the scores.

References
----------
E. Elhamifar, G. Sapiro, R. Vidal, See all by looking at a few, CVPR 2012, doi:10.1109/CVPR.2012.6247852.
E. Esser et al., A convex model for nonnegative matrix factorization and dimensionality reduction on physical space,
IEEE Trans. Image Process. 21 (2012), doi:10.1109/TIP.2012.2190081.
N. Gillis, R. Luce, Robust near-separable nonnegative matrix factorization using linear optimization, JMLR 15 (2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gsnmf._kernels.compilation import compiled
from gsnmf._kernels.loops import loop
from gsnmf.convex.projection import OPERATIONS_PER_ENTRY, project_rows
from gsnmf.support.arrays import Floats, Indices

_TRACE, _GROUP_2, _GROUP_INF = 0, 1, 2


@dataclass(frozen=True)
class Penalty:
    """A penalty on rows; ``kind`` is its number in the compiled kernels."""

    name: str
    kind: int

    @property
    def capped(self) -> bool:
        """Whether a row is bounded by one; its dual condition may then be violated at a price."""
        return self.kind == _TRACE

    def shrink(self, X: Floats, thresholds: Floats, indices: Indices, weights: Floats) -> None:
        """Minimise |z - x|^2 / 2 + threshold penalty(z) over z for each row x of X, in place."""
        work = OPERATIONS_PER_ENTRY * X.size
        if self.kind == _TRACE:
            X[np.arange(indices.size), indices] -= thresholds
            project_rows(X, weights, indices, X, work=work)
        else:
            _shrink_norms(X, thresholds, self.kind, work=work)

    def scores(self, slopes: Floats, indices: Indices, weights: Floats) -> Floats:
        """The dual norm of each row of ``slopes`` = M_i'E. A row can help only if it exceeds lambda."""
        scores = np.empty(slopes.shape[0])
        work = OPERATIONS_PER_ENTRY * slopes.size
        if self.kind == _TRACE:
            _trace_scores(slopes, indices, weights, scores, work=work)
        else:
            _norm_scores(slopes, self.kind, scores, work=work)
        return scores

    def value(self, X: Floats, indices: Indices) -> float:
        """The penalty, without lambda."""
        if self.kind == _TRACE:
            return float(X[np.arange(indices.size), indices].sum())
        return float(np.linalg.norm(X, axis=1, ord=2 if self.kind == _GROUP_2 else np.inf).sum())

    def dual_bound(self, scores: Floats, inner: float, squared_norm: float, strength: float) -> float:
        r"""A lower bound on the optimum from the residual E times the best factor t.

        .. math:: D(t) = t \langle E, M \rangle - \tfrac{t^2}{2} \|E\|^2 + \sum_i \min(0, \lambda - t s_i)

        for the trace, and without the sum but with all :math:`t s_i \le \lambda` for the norms.
        """
        if squared_norm <= 0.0 or inner <= 0.0:
            return 0.0
        positive = np.sort(scores[scores > 0.0])[::-1]
        if not self.capped:
            t = inner / squared_norm
            if positive.size:
                t = min(t, strength / float(positive[0]))
            return t * inner - 0.5 * t * t * squared_norm
        # D is concave; its slope falls by s_i where t passes lambda / s_i
        breaks = strength / positive
        drops = np.cumsum(positive)
        passed = int(np.searchsorted(-(inner - squared_norm * breaks - drops), 0.0))
        upper = breaks[passed] if passed < breaks.size else np.inf
        slope = inner - (drops[passed - 1] if passed else 0.0)
        t = max(0.0, min(upper, slope / squared_norm))
        return float(t * inner - 0.5 * t * t * squared_norm + np.minimum(0.0, strength - t * positive).sum())


TRACE = Penalty("trace", _TRACE)
GROUP_2 = Penalty("group-2", _GROUP_2)
GROUP_INF = Penalty("group-inf", _GROUP_INF)

PENALTIES = {penalty.name: penalty for penalty in (TRACE, GROUP_2, GROUP_INF)}


@loop()
def _shrink_norms(X: Floats, thresholds: Floats, kind: int, first: int, stride: int) -> None:
    for i in range(first, X.shape[0], stride):
        if kind == _GROUP_2:
            _shrink_norm(X[i], thresholds[i])
        else:
            _shrink_maximum(X[i], thresholds[i])


@compiled(inner=True)
def _shrink_norm(row: Floats, threshold: float) -> None:
    """Minimise |z - row|^2 / 2 + threshold |z|_2 over z >= 0, in place."""
    squared = 0.0
    for j in range(row.size):
        row[j] = max(row[j], 0.0)
        squared += row[j] * row[j]
    norm = math.sqrt(squared)
    factor = 1.0 - threshold / norm if norm > threshold else 0.0
    for j in range(row.size):
        row[j] *= factor


@compiled(inner=True)
def _shrink_maximum(row: Floats, threshold: float) -> None:
    """Minimise |z - row|^2 / 2 + threshold max(z) over z >= 0, in place: cut at the level that removes threshold."""
    total = 0.0
    for j in range(row.size):
        row[j] = max(row[j], 0.0)
        total += row[j]
    if total <= threshold:
        for j in range(row.size):
            row[j] = 0.0
        return
    level = 0.0
    for _ in range(row.size):  # Newton on a convex, decreasing, piecewise linear function: monotone and finite
        above, count = 0.0, 0
        for j in range(row.size):
            if row[j] > level:
                above += row[j]
                count += 1
        if count == 0:  # the level is the maximum, to rounding
            break
        better = (above - threshold) / count
        if better <= level:
            break
        level = better
    for j in range(row.size):
        row[j] = min(row[j], level)


@loop(reordered=True)
def _trace_scores(slopes: Floats, indices: Indices, weights: Floats, scores: Floats, first: int, stride: int) -> None:
    for i in range(first, scores.size, stride):
        row, own, total = slopes[i], float(weights[indices[i]]), 0.0
        for j in range(row.size):
            total += weights[j] * max(0.0, row[j])
        diagonal = float(row[indices[i]])
        scores[i] = (total - own * max(0.0, diagonal)) / own + diagonal if own > 0.0 else -math.inf


@loop(reordered=True)
def _norm_scores(slopes: Floats, kind: int, scores: Floats, first: int, stride: int) -> None:
    for i in range(first, scores.size, stride):
        row, total = slopes[i], 0.0
        for j in range(row.size):
            value = max(0.0, row[j])
            total += value * value if kind == _GROUP_2 else value
        scores[i] = math.sqrt(total) if kind == _GROUP_2 else total

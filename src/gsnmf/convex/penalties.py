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

from dataclasses import dataclass

import numpy as np

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.convex.projection import OPERATIONS_PER_ENTRY, project_rows
from gsnmf.support.arrays import Floats, Indices

_shrink_euclidean, _shrink_maximum = Loop(native.shrink_euclidean_rows), Loop(native.shrink_maximum_rows)
_trace_scores, _group_scores = Loop(native.trace_score_rows), Loop(native.group_score_rows)


@dataclass(frozen=True)
class Penalty:
    """A penalty on rows: ``trace``, ``group-2`` or ``group-inf``."""

    name: str

    @property
    def capped(self) -> bool:
        """Whether a row is bounded by one; its dual condition may then be violated at a price."""
        return self.name == "trace"

    def shrink(self, X: Floats, thresholds: Floats, indices: Indices, weights: Floats) -> None:
        """Minimise |z - x|^2 / 2 + threshold penalty(z) over z for each row x of X, in place."""
        work = OPERATIONS_PER_ENTRY * X.size
        if self.name == "trace":
            X[np.arange(indices.size), indices] -= thresholds
            project_rows(X, weights, indices, X, work=work)
        else:
            shrink = _shrink_euclidean if self.name == "group-2" else _shrink_maximum
            shrink(X, np.ascontiguousarray(thresholds, dtype=X.dtype), work=work)

    def scores(self, slopes: Floats, indices: Indices, weights: Floats) -> Floats:
        """The dual norm of each row of ``slopes`` = M_i'E. A row can help only if it exceeds lambda."""
        scores = np.empty(slopes.shape[0])
        slopes, work = np.ascontiguousarray(slopes), OPERATIONS_PER_ENTRY * slopes.size
        if self.name == "trace":
            _trace_scores(slopes, indices, weights.astype(slopes.dtype, copy=False), scores, work=work)
        else:
            _group_scores(slopes, self.name == "group-2", scores, work=work)
        return scores

    def value(self, X: Floats, indices: Indices) -> float:
        """The penalty, without lambda."""
        if self.name == "trace":
            return float(X[np.arange(indices.size), indices].sum())
        return float(np.linalg.norm(X, axis=1, ord=2 if self.name == "group-2" else np.inf).sum())

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


TRACE = Penalty("trace")
GROUP_2 = Penalty("group-2")
GROUP_INF = Penalty("group-inf")

PENALTIES = {penalty.name: penalty for penalty in (TRACE, GROUP_2, GROUP_INF)}

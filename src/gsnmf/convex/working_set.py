"""Accelerated gradient steps on a working set, stopped by the duality gap.

The solver keeps the rows of X and columns of Y in a working set and takes accelerated proximal gradient steps on them
(on Gram products, each row with a step of its own length; the momentum lives on when the working set changes). The dual
scores of the residual say which columns and rows to add, and when to stop. Memory is O(k (m + n)) for a working set of
size k, against n^2 + m^2 for the whole of X and Y.

Block coordinate descent, the other natural choice, needs about as many sweeps as this needs steps, and its sweeps
cannot be matrix products.

References
----------
A. Beck, M. Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sci. 2 (2009),
doi:10.1137/080716542.
B. O'Donoghue, E. Candes, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15 (2015),
doi:10.1007/s10208-013-9150-3.
"""

from __future__ import annotations

import logging
import math

import numpy as np

from gsnmf.convex.model import ConvexModel, Side
from gsnmf.products import Products, Residual
from gsnmf.results import ConvexSolution
from gsnmf.validation import Floats, Indices
from gsnmf.weights import single_threaded_blas

_log = logging.getLogger(__name__)
_Array = Floats

_CHECK = 10
"""Steps between two looks at the gap over the working set."""
_MAX_STEPS = 100
"""Steps on one working set before it is looked at again."""
_FEWEST_ADDED = 20
DEFAULT_MEMORY = 2 << 30


class WorkingSetSolver:
    """Solves the model for one lambda after another, each from the solution before, sharing all products."""

    def __init__(
        self, matrix: Products, *, with_rows: bool = True, memory: int = DEFAULT_MEMORY, max_steps: int = 5000
    ) -> None:
        self.columns = Side(matrix)
        self.rows = Side(matrix.T)
        self.with_rows = with_rows
        self.matrix = matrix
        self.memory = memory
        self.max_steps = max_steps
        self._momentum = 1.0
        m, n = matrix.shape
        self.max_size = max(2, int(memory // (8 * 4 * (m + n))))

    def start(self, columns: Indices, rows: Indices, X: _Array | None = None, Y: _Array | None = None) -> None:
        """Begin with these columns and rows, and with these weights of theirs (Y transposed)."""
        self.columns.extend(columns, X)
        if self.with_rows:
            self.rows.extend(rows, Y)

    def solve(self, model: ConvexModel, tolerance: float) -> ConvexSolution:
        """Minimise to a relative duality gap of ``tolerance``."""
        with single_threaded_blas():
            return self._solve(model, tolerance)

    def _solve(self, model: ConvexModel, tolerance: float) -> ConvexSolution:
        for side in self._sides():
            model.penalty.shrink(side.X, np.zeros(side.indices.size), side.indices, side.weights)  # make it feasible
            side.previous = side.X
        self._momentum = 1.0
        n_steps, lower, gap = 0, 0.0, 1.0
        while True:
            n_steps += self._descend(model, max(0.3 * tolerance, 0.2 * gap))
            residual = self._residual(self.columns.X, self.rows.X)
            scores = model.scores(residual, self._score_memory())
            objective = 0.5 * residual.squared_norm + model.strength * self._penalty_value(model)
            lower = max(lower, model.dual_bound(residual, scores))
            gap = (objective - lower) / objective if objective > 0 else 0.0
            _log.info("steps %d, working set %d + %d, gap %.2e", n_steps, *self._sizes(), gap)
            reason = self._stop_reason(gap, tolerance, n_steps)
            if reason:
                return self._solution(model, objective, lower, residual, n_steps, reason)
            if self._exchange(model, scores) == 0 and sum(self._sizes()) >= self.max_size:
                return self._solution(model, objective, lower, residual, n_steps, "working set exceeds the memory")

    def _sides(self) -> list[Side]:
        return [self.columns, self.rows] if self.with_rows else [self.columns]

    def _sizes(self) -> tuple[int, int]:
        return self.columns.indices.size, self.rows.indices.size

    def _score_memory(self) -> int:
        return max(1 << 24, min(1 << 28, self.memory // 4))

    def _stop_reason(self, gap: float, tolerance: float, n_steps: int) -> str:
        if gap <= tolerance:
            return "gap reached"
        if n_steps >= self.max_steps:
            return "max_steps reached"
        return ""

    def _residual(self, X: _Array, Y: _Array) -> Residual:
        W = np.hstack([self.columns.vectors.T, Y.T])
        H = np.vstack([X, self.rows.vectors])
        return self.matrix.residual(W, H)

    def _penalty_value(self, model: ConvexModel) -> float:
        return sum(model.penalty.value(side.X, side.indices) for side in self._sides())

    def _descend(self, model: ConvexModel, tolerance: float) -> int:
        """Accelerated steps until the gap over the working set is below ``tolerance``; how many."""
        pair = (self.columns, self.rows)
        scale = sum(side.spread for side in pair)  # bounds the Hessian in the metric of the squared lengths
        steps = [1.0 / (scale * side.squared_lengths) for side in pair]
        for n_steps in range(1, _MAX_STEPS + 1):
            momentum = self._next_momentum()
            ahead = [side.X + momentum * (side.X - side.previous) for side in pair]
            slopes = self._slopes(ahead[0], ahead[1])
            turned = 0.0
            for side, y, slope, step in zip(pair, ahead, slopes, steps, strict=True):
                slope *= step[:, None]
                slope += y
                model.penalty.shrink(slope, model.strength * step, side.indices, side.weights)
                side.previous, side.X = side.X, slope
                turned += float(np.einsum("ij,ij,i->", y - side.X, side.X - side.previous, 1.0 / step))
            if turned > 0.0:  # the momentum points uphill: start it again (O'Donoghue and Candes 2015)
                self._momentum = 1.0
            if n_steps % _CHECK == 0:
                objective, lower = self._evaluate(model)
                if objective - lower <= tolerance * objective:
                    break
        return n_steps

    def _next_momentum(self) -> float:
        before = self._momentum
        self._momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * before * before))
        return (before - 1.0) / self._momentum

    def _slopes(self, X: _Array, Y: _Array) -> tuple[_Array, _Array]:
        return self.columns.slopes(X, self.rows, Y), self.rows.slopes(Y, self.columns, X)

    def _evaluate(self, model: ConvexModel) -> tuple[float, float]:
        """Objective, and lower bound on the optimum over the working set."""
        fitted, inner, scores = 0.0, self.matrix.squared_norm, []
        pair = (self.columns, self.rows)
        for side, slopes in zip(pair, self._slopes(self.columns.X, self.rows.X), strict=True):
            fitted += float(np.vdot(slopes, side.X))
            inner -= float(np.vdot(side.products, side.X))
            scores.append(model.penalty.scores(slopes, side.indices, side.weights))
        squared_norm = max(0.0, inner - fitted)
        objective = 0.5 * squared_norm + model.strength * self._penalty_value(model)
        return objective, model.penalty.dual_bound(np.concatenate(scores), inner, squared_norm, model.strength)

    def _exchange(self, model: ConvexModel, scores: tuple[_Array, _Array]) -> int:
        """Drop what is zero and not needed, add what the scores ask for, the most promising first; how many."""
        excess = np.concatenate(scores) - model.strength
        n = self.columns.matrix.shape[1]
        for side, offset in zip(self._sides(), (0, n), strict=False):
            side.keep(side.X.any(axis=1) | (excess[offset + side.indices] > 0))
            excess[offset + side.indices] = -np.inf
        size = sum(self._sizes())
        limit = min(max(_FEWEST_ADDED, size), self.max_size - size)
        best = np.argsort(-excess, kind="stable")[: max(0, limit)]
        best = best[excess[best] > 0]
        self.columns.extend(best[best < n])
        self.rows.extend(best[best >= n] - n)
        return int(best.size)

    def _solution(
        self, model: ConvexModel, objective: float, lower: float, residual: Residual, n_steps: int, reason: str
    ) -> ConvexSolution:
        used = [side.X.any(axis=1) for side in (self.columns, self.rows)]
        return ConvexSolution(
            columns=self.columns.indices[used[0]],
            rows=self.rows.indices[used[1]],
            X=self.columns.X[used[0]],
            Y=np.ascontiguousarray(self.rows.X[used[1]].T),
            strength=model.strength,
            objective=objective,
            lower_bound=lower,
            residual_norm=float(np.sqrt(residual.squared_norm)),
            n_iterations=n_steps,
            converged=reason == "gap reached",
            stop_reason=reason,
        )

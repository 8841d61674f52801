"""What a careful expert would do at this size: several starts, exchanges, and the best by the true error.

Starts are the successive projections on columns, on rows and on both, pursuit, on small matrices the convex model,
which is the one that recovers where the others fail, and with the largest effort the conical hulls of columns and of
rows. The best are improved by exchanges until none helps or the budget is spent: a number of exchanges that follows
from the effort and the size, for about so many seconds on a laptop, so that the result is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from gsnmf.convex.selection import convex_selection
from gsnmf.kernels.threads import single_threaded_blas
from gsnmf.matrices import InMemoryMatrix, Matrix
from gsnmf.results import Choice, Selection
from gsnmf.search.candidates import Candidates, Fit, candidate_pool
from gsnmf.search.exchange import refine
from gsnmf.search.pursuit import pursuit_path
from gsnmf.search.starting_weights import starting_weights
from gsnmf.selection.successive_projection import (
    generalized_successive_projection,
    successive_projection,
    successive_projection_both,
)
from gsnmf.selection.xray import xray

Effort = Literal["fast", "balanced", "best"]

_EXACT = 1e-12
"""A squared error below this part of the matrix leaves nothing to improve."""

_SHORTEST_EXCHANGE = 0.008
"""Seconds that an exchange takes on a small matrix, where calls cost more than arithmetic."""

_SCORES_A_SECOND = 7e7
"""Matrix of a candidate and a column or row that a pursuit scores in a second, its fits included."""


@dataclass(frozen=True)
class _Budget:
    """What an effort stands for."""

    seconds: float
    """For exchanges, on an ordinary machine."""
    candidates: int
    """Candidates a side."""
    n_refined: int
    """Starts that are improved by exchanges."""
    convex_entries: int
    """Largest number of entries of a matrix for which the convex model is solved."""
    hulls: bool
    """Whether conical hulls are starts too."""


_BUDGETS: dict[str, _Budget] = {
    "fast": _Budget(seconds=0.3, candidates=100, n_refined=1, convex_entries=0, hulls=False),
    "balanced": _Budget(seconds=6.0, candidates=500, n_refined=2, convex_entries=50_000, hulls=False),
    "best": _Budget(seconds=100.0, candidates=1500, n_refined=7, convex_entries=200_000, hulls=True),
}


_Method = Callable[[Any, int], Selection]

_PROJECTIONS: tuple[_Method, ...] = (
    partial(successive_projection, axis="rows"),
    partial(successive_projection, axis="columns"),
    generalized_successive_projection,
)
_CONVEX: _Method = partial(convex_selection, warn=False)
"""A start like any other, certified or not."""
_HULLS: tuple[_Method, ...] = (
    partial(xray, rule="dist", axis="rows"),
    partial(xray, rule="greedy", axis="rows"),
    partial(xray, rule="greedy", axis="columns"),
)


def check_effort(effort: Any) -> Effort:
    """Return ``effort``, or say what is allowed."""
    if effort not in _BUDGETS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, _BUDGETS))}; got {effort!r}.")
    return cast("Effort", effort)


def automatic_choice(matrix: Matrix, rank: int | tuple[int, int], effort: Effort = "balanced") -> Choice:
    """The best selection that the effort affords; a pair (n_columns, n_rows) fixes how many of each."""
    budget = _BUDGETS[check_effort(effort)]
    small = matrix.shape[0] * matrix.shape[1] <= budget.convex_entries
    if not isinstance(rank, int):
        if small and isinstance(matrix, InMemoryMatrix):
            return Choice(convex_selection(matrix, rank, method="auto", warn=False))
        return Choice(successive_projection_both(matrix, *rank).named("auto"))
    n_exchanges = budget.seconds / _exchange_seconds(matrix.shape, budget.candidates, rank)
    pursued = effort != "fast"
    candidates = candidate_pool(matrix, _n_candidates(matrix.shape, budget, rank) if n_exchanges >= 1 or pursued else 0)
    methods: list[_Method] = [*_PROJECTIONS]
    if isinstance(matrix, InMemoryMatrix):  # the others would read the data for every score
        methods += [*([_CONVEX] if small else []), *(_HULLS if budget.hulls else [])]
    fits = _starts(candidates, rank, methods, with_pursuit=pursued)
    best = fits[0]
    for fit in fits[: budget.n_refined]:
        if best.squared_error > _EXACT * matrix.squared_norm:
            refined = refine(candidates, fit, max_exchanges=n_exchanges / budget.n_refined)
            best = min(best, refined, key=lambda f: f.squared_error)
    selection = Selection.of_indices(best.columns, best.rows, "auto", rank)
    return Choice(selection, starting_weights(matrix, best))


def _n_candidates(shape: tuple[int, int], budget: _Budget, rank: int) -> int:
    """Candidates a side; fewer than usual where a pursuit among them would take longer than all exchanges."""
    affordable = budget.seconds * _SCORES_A_SECOND / (rank * sum(shape))
    return max(rank, min(budget.candidates, int(affordable)))


def _exchange_seconds(shape: tuple[int, int], n_candidates: int, rank: int) -> float:
    """About how long one exchange takes: the fits of its trials, which are never free, and the scores of candidates."""
    m, n = shape
    fits = 1000.0 * (m + n) * rank**2
    scores = 4.0 * rank * (min(n_candidates, n) * n + min(n_candidates, m) * m)
    return _SHORTEST_EXCHANGE + (fits + scores) / 5e9


def _starts(candidates: Candidates, rank: int, methods: list[_Method], *, with_pursuit: bool) -> list[Fit]:
    """Fitted starts, the best first."""
    matrix = candidates.matrix
    fits, seen = [], set()
    for choose in methods:
        selection = choose(matrix, rank)
        identity = frozenset(selection.columns.tolist()), frozenset(selection.rows.tolist())
        if identity in seen:
            continue
        seen.add(identity)
        candidates.include(selection.columns, selection.rows)
        with single_threaded_blas():
            fits.append(candidates.fit(selection.columns, selection.rows))
        if fits[-1].squared_error <= _EXACT * matrix.squared_norm:
            return fits[-1:]
    if with_pursuit:
        fits.extend(list(pursuit_path(candidates, rank))[-1:])
    return sorted(fits, key=lambda fit: fit.squared_error)

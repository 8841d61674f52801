"""What another division into columns and rows would cost: quality for numbers of each around a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.validation import check_count
from gsnmf.model_selection.stability import refittable
from gsnmf.objectives import objective_of
from gsnmf.records import Record
from gsnmf.result import Factorization
from gsnmf.search.candidates import candidate_pool
from gsnmf.search.effort import Work
from gsnmf.search.exchange import grow, improve
from gsnmf.search.state import State, by_error
from gsnmf.search.trials import Trials
from gsnmf.support.arrays import COLUMNS_AND_ROWS, Doubles, Indices
from gsnmf.support.formatting import ShownAsTable, Table, columns_and_rows, percent
from gsnmf.support.optional import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CANDIDATES = 100
"""Number of candidate columns, and of candidate rows."""
_WORK = 0.2
"""Nominal seconds of the exchanges at each pair of numbers."""
_ROUNDS = 12
"""Rounds of coordinate descent after a column or row was added or dropped."""
_FAILURES = 24
"""Exchanges in a row that may fail."""


@dataclass(frozen=True, eq=False, repr=False)
class SplitProfile(ShownAsTable, Record):
    """Quality over the numbers of columns and rows.

    Attributes
    ----------
    n_columns, n_rows : int arrays
        The numbers that were tried.
    qualities : array, shape (len(n_columns), len(n_rows))
        Quality of a quick search with these numbers of columns and rows.
    chosen : pair of int
        The numbers of the result.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> matrix = planted((20, 15), 2, 1, random_state=0).matrix
    >>> result = gsnmf.factorize(matrix, (2, 1), effort="fast")
    >>> sides = gsnmf.split_profile(result)
    >>> sides.chosen
    (2, 1)
    """

    n_columns: Indices
    n_rows: Indices
    qualities: Doubles
    chosen: tuple[int, int]

    @property
    def table(self) -> Table:
        """One row per pair of numbers."""
        rows = tuple(
            (int(c), int(r), int(c + r), float(self.qualities[i, j]))
            for i, c in enumerate(self.n_columns)
            for j, r in enumerate(self.n_rows)
        )
        return Table(("columns", "rows", "rank", "quality"), rows, self.sentence)

    @property
    def sentence(self) -> str:
        """The best and the worst division of the rank of the result, in words."""
        rank = sum(self.chosen)
        same = [
            (float(self.qualities[i, j]), int(c), int(r))
            for i, c in enumerate(self.n_columns)
            for j, r in enumerate(self.n_rows)
            if c + r == rank
        ]
        (best, *at_best), (worst, *at_worst) = max(same), min(same)
        shown = f"{columns_and_rows(*at_best)} have a quality of {percent(best)}"
        return f"Of {rank} in all, {shown}, {columns_and_rows(*at_worst)} of {percent(worst)}."

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The map as a picture, the result in bold.

        Parameters
        ----------
        ax : Axes, optional
            The axes to draw on; new ones by default.
        """
        axes = axes_or_new(ax, "SplitProfile.plot")
        image = axes.imshow(self.qualities, cmap="Blues", origin="lower", aspect="auto")
        axes.set_xticks(range(self.n_rows.size), [str(r) for r in self.n_rows])
        axes.set_yticks(range(self.n_columns.size), [str(c) for c in self.n_columns])
        middle = (self.qualities.min() + self.qualities.max()) / 2
        for (i, j), quality in np.ndenumerate(self.qualities):
            is_chosen = (int(self.n_columns[i]), int(self.n_rows[j])) == self.chosen
            axes.text(
                j, i, f"{quality:.1%}", ha="center", va="center", color="white" if quality > middle else "black",
                weight="bold" if is_chosen else "normal",
            )  # fmt: skip
        axes.set_xlabel("rows")
        axes.set_ylabel("columns")
        axes.figure.colorbar(image, ax=axes, label="quality")
        return axes

    def __repr__(self) -> str:
        return f"SplitProfile: {self.sentence}"


def split_profile(result: Factorization, *, width: int = 2) -> SplitProfile:
    """Quality over the numbers of columns and rows around those of a result.

    Parameters
    ----------
    result : Factorization
        One with single columns and rows of a matrix in memory, without missing entries and without sums to one.
    width : int
        How many more and fewer columns, and rows, to try.

    Returns
    -------
    SplitProfile

    Notes
    -----
    Each selection starts from a neighbour, the first from the result, and is improved by a few exchanges that keep its
    numbers. All share the products of the candidates. What was included and excluded stays so; how many columns and
    rows were asked for does not matter. Qualities count rows and columns with the weights that they have in the result.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> data = planted((60, 50), n_columns=3, n_rows=2, noise_level=0.05, random_state=0)
    >>> found = gsnmf.split_profile(gsnmf.factorize(data.matrix, 5), width=1)
    >>> found.qualities.shape, found.chosen
    ((3, 3), (3, 2))
    """
    problem = refittable(result, "split_profile")
    if problem.sum_to_one:
        raise ValueError("split_profile needs columns and rows; results whose weights sum to one have rows alone.")
    if isinstance(problem.matrix, Observed):
        raise ValueError("split_profile needs a matrix without missing entries and without weights of entries.")
    chosen = result.columns.size, result.rows.size
    if sum(chosen) == 0:
        raise ValueError("split_profile needs a result that has chosen something.")
    reach = check_count(width, "width")
    constraints = replace(problem.constraints or Constraints(), at_least=(0, 0), at_most=None)
    limits = constraints.resolve(problem.matrix.shape, sum(chosen))
    columns, rows = (
        np.arange(
            max(limits.included(axis).size, number - reach),
            min(int((~limits.excluded(axis)).sum()), number + reach) + 1,
        )
        for axis, number in zip(COLUMNS_AND_ROWS, chosen, strict=True)
    )
    matrix = objective_of(problem, sum(chosen)).source
    candidates = candidate_pool(matrix, _CANDIDATES, limits)
    candidates.include(result.columns, result.rows)
    start, _ = candidates.state(result.columns, result.rows).solved(tolerance=1e-3, max_iterations=100)
    qualities = np.zeros((columns.size, rows.size))
    for (c, r), state in _states(Trials(candidates, limits, Work(float("inf"))), constraints, start, columns, rows):
        qualities[c - columns[0], r - rows[0]] = 1.0 - np.sqrt(max(0.0, state.squared_error) / matrix.squared_norm)
    return SplitProfile(columns, rows, qualities, chosen)


def _states(
    trials: Trials, constraints: Constraints, start: State, columns: Indices, rows: Indices
) -> Iterable[tuple[tuple[int, int], State]]:
    """A good selection for every pair of numbers, from the start outwards."""
    center = start.columns.size, start.rows.size
    pairs = [(int(c), int(r)) for c in columns for r in rows if c + r > 0]
    pairs.sort(key=lambda pair: abs(pair[0] - center[0]) + abs(pair[1] - center[1]))
    found: dict[tuple[int, int], State] = {}
    with trials.running():
        for pair in pairs:
            trials.limits = constraints.resolve(trials.candidates.matrix.shape, pair)
            neighbours = [
                found[other] for other in found if sum(abs(a - b) for a, b in zip(pair, other, strict=True)) == 1
            ]
            starts = [_resized(trials, one, pair) for one in neighbours] or [start]
            best = min(starts, key=by_error)
            best = improve(trials, best, trials.work.spent + _WORK, _FAILURES)[0]
            found[pair] = trials.polish(best)
    return found.items()


def _resized(trials: Trials, state: State, pair: tuple[int, int]) -> State:
    """A neighbour with one column or row fewer or more."""
    is_column = np.arange(state.size) < state.columns.size
    for extra, side in ((state.columns.size > pair[0], is_column), (state.rows.size > pair[1], ~is_column)):
        if extra:
            worths = np.where(side, trials.worths(state), np.inf)
            worths[trials.fixed(state)] = np.inf
            state = trials.candidates.without(state, [int(np.argmin(worths))])
            break
    return trials.descend(grow(trials, state), _ROUNDS)

r"""How many columns and rows: as many as help to predict entries that were left out.

The error on the whole matrix falls with every added column and row, even when only noise is left. The error on
entries that the factorization has not seen does not. So a tenth of the entries is left out, and they are predicted from
the others. This is repeated with other entries.

Leaving out whole rows and columns would not work: it leaves out the very ones that should be chosen.

One effect remains. Chosen columns and rows carry their own noise into every prediction, and more of them average it
out: with much noise, a first row beside ten columns predicts better than the columns alone, although it explains
nothing. So noise is removed before columns and rows are chosen: `gsnmf.model_selection.held_out_entries` fits a matrix
of low rank to the entries that are not left out. Its columns and rows are combinations of all columns and rows of the
data, in which noise is already averaged. Factorizations of all ranks are found on this matrix, each from its neighbour,
and their products are compared with the left-out entries. What another column or row gains is then structure. The
indices that were chosen on the whole matrix are tried too, and kept where they fit the low-rank matrix better: this
guards against poor searches, and left-out entries influence at most which of several good selections is taken.

The error e(k) of rank k falls up to the right rank and stays where it is afterwards. The recommended rank minimises

.. math:: e(k)^2 + 2 k g e^* \min(e^*, 1 - e^*) , \qquad e^* = \min_k e(k) :

each column or row must lower the error by more than a fraction g of the smallest error or of what is explained,
whichever is smaller; either counts as at least one percent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.constraints import Constraints
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.completion import complete, filled
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.validation import check_count, check_positive
from gsnmf.model_selection.held_out_entries import LeftOut, denoised, leave_out
from gsnmf.model_selection.rank_search import SMALLEST_ERROR, RankSearch, Repeat
from gsnmf.problem import Problem
from gsnmf.records import Record
from gsnmf.search.automatic import check_included
from gsnmf.search.effort import Effort, check_effort
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.formatting import ShownAsTable, Table, percent
from gsnmf.support.optional import axes_or_new
from gsnmf.support.progress import Progress, logger, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USUAL_RANKS = range(2, 31)
"""The ranks that are tried by default."""
_REPEATS: dict[Effort, int] = {"fast": 3, "balanced": 5, "best": 5}


@dataclass(frozen=True, eq=False, repr=False)
class RankChoice(ShownAsTable, Record):
    """The ranks that were tried, what each is worth, and the one that is recommended.

    Attributes
    ----------
    rank : int
        The recommended rank.
    reason : str
        Why, in words.
    ranks : int array
        All ranks that were tried, in increasing order; the other arrays have one entry for each.
    qualities : array
        Quality of a quick search, one minus the relative error on the whole matrix.
    errors : array
        Relative error on entries that were left out, predicted without the noise of the chosen columns and rows.
    standard_errors : array
        Standard error of the difference between this error and that of the recommended rank (0 there).
    stabilities : array
        Agreement of the factors that were found with different entries left out, from 0 to 1: see
        `gsnmf.model_selection.stability.agreement`.
    n_columns : int array
        How many of the indices were columns, on the whole matrix.
    rank_seconds : array
        Seconds spent on each rank.
    seconds : float
        Total seconds spent.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> matrix = planted((40, 30), 2, 1, noise_level=0.02, random_state=0).matrix
    >>> choice = gsnmf.choose_rank(matrix, [2, 3, 4], n_repeats=1)
    >>> choice.ranks, choice.rank
    (array([2, 3, 4]), 3)
    """

    rank: int
    reason: str
    ranks: Indices
    qualities: Doubles
    errors: Doubles
    standard_errors: Doubles
    stabilities: Doubles
    n_columns: Indices
    rank_seconds: Doubles = field(compare=False)
    seconds: float = field(compare=False)

    @property
    def table(self) -> Table:
        """One row per rank."""
        header = ("rank", "columns", "quality", "left-out error", "standard error", "stability", "seconds")
        columns = (
            self.ranks, self.n_columns, self.qualities, self.errors, self.standard_errors, self.stabilities,
            self.rank_seconds,
        )  # fmt: skip
        return Table(header, tuple(zip(*(column.tolist() for column in columns), strict=True)), self.reason)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Error on left-out entries, error on the whole matrix and stability over the ranks.

        Parameters
        ----------
        ax : Axes, optional
            The axes to draw on; new ones by default.
        """
        axes = axes_or_new(ax, "RankChoice.plot")
        axes.errorbar(
            self.ranks, self.errors, self.standard_errors, color="tab:blue", marker=".", label="left-out entries"
        )
        axes.plot(self.ranks, 1.0 - self.qualities, color="tab:gray", marker=".", label="whole matrix")
        axes.plot(self.ranks, self.stabilities, color="tab:green", linestyle=":", label="stability")
        axes.axvline(self.rank, color="tab:blue", linewidth=0.8)
        axes.annotate(
            f"rank {self.rank}", (self.rank, 1.0), xycoords=("data", "axes fraction"),
            xytext=(4, -4), textcoords="offset points", va="top", color="tab:blue",
        )  # fmt: skip
        axes.set_xlabel("rank: columns and rows in all")
        axes.set_ylabel("relative error; stability")
        axes.set_ylim(bottom=0.0)
        axes.legend(frameon=False)
        return axes

    def __repr__(self) -> str:
        return f"RankChoice: rank {self.rank} of {self.ranks[0]} to {self.ranks[-1]}. {self.reason}"


def choose_rank(
    matrix: Any,
    ranks: Iterable[int] = USUAL_RANKS,
    *,
    n_repeats: int | None = None,
    left_out: float = 0.1,
    least_gain: float = 0.006,
    effort: Effort = "balanced",
    constraints: Constraints | None = None,
    random_state: int | np.random.Generator = 0,
    progress: Progress = None,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
) -> RankChoice:
    r"""Recommend how many columns and rows to explain a matrix by.

    Entries are left out, noise is removed from the others, and factorizations of all ranks are found. The recommended
    rank predicts the left-out entries well, without columns or rows that hardly help.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse array, shape (m, n)
        Finite and nonnegative.
    ranks : ints
        The ranks to try. Those above the smaller dimension of the matrix are left out.
    n_repeats : int, optional
        How often to leave out entries, different ones each time: by default three times with effort "fast", otherwise
        five times.
    left_out : float
        Share of the entries that is left out each time; for a sparse matrix, of the stored entries, along with zeros.
    least_gain : float
        By how much each column or row must lower the error on left-out entries, as a fraction of the smallest error or
        of what is explained, whichever is smaller.
    effort : {"fast", "balanced", "best"}
        How thoroughly to search for columns and rows of each rank.
    constraints : gsnmf.Constraints, optional
        As for `gsnmf.factorize`. For instance, ``at_most=(1000, 0)`` allows columns only.
    random_state : int or numpy.random.Generator
        Which entries are left out.
    progress : True or callable, optional
        As for `gsnmf.factorize`.
    missing_values, entry_weights, negative
        As for `gsnmf.factorize`. Observed entries are then left out, and all errors are those of observed entries, with
        their weights.

    Returns
    -------
    RankChoice

    Notes
    -----
    All ranks share the low-rank matrix and the products of the candidates, and each selection starts from the one of
    the rank before. All ranks together cost about as much as one to eight factorizations of the largest rank. A sparse
    matrix stays sparse.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> data = planted((60, 50), n_columns=3, n_rows=2, noise_level=0.05, random_state=0)
    >>> gsnmf.choose_rank(data.matrix, range(2, 9)).rank
    5
    """
    began = time.perf_counter()
    problem = Problem.of(
        matrix,
        missing_values=missing_values,
        entry_weights=entry_weights,
        negative=negative,
        constraints=constraints,
    )
    problem.warn()
    held = problem.matrix
    if not isinstance(held, InMemoryMatrix | Observed):
        raise ValueError(
            "choose_rank needs a matrix in memory; got a Dask array. Choose the rank for some of its rows, "
            "matrix[:k].compute()."
        )
    tried = _checked_ranks(ranks, held.shape)
    check_effort(effort)
    repeats = _REPEATS[effort] if n_repeats is None else check_count(n_repeats, "n_repeats")
    share = _checked_share(left_out, repeats)
    gain = check_positive(least_gain, "least_gain")
    if held.squared_norm == 0.0:
        raise ValueError("matrix must have an entry above zero: for a zero matrix, no rank is better than another.")
    _check_enough_entries(held, repeats)
    parts = []
    for part in leave_out(held, share, repeats, np.random.default_rng(random_state)):
        parts.append(Repeat(LeftOut(part.values, part.weights), denoised(part, tried[-1])))
        del part  # with its copy of the matrix; two factors stand for it
    rank_of_completion = int(np.median([part.low_rank.rank for part in parts]))
    source = filled(held, complete(held, rank_of_completion)) if isinstance(held, Observed) else held
    if constraints is not None:
        check_included(source, constraints.resolve(source.shape, tried[0]))
    search = RankSearch(held, source, tried, parts, effort, constraints)
    with reported(progress):
        search.every_rank()
        search.around_the_bend(partial(_recommended, np.array(tried), least_gain=gain))
    choice = _chosen(search, gain, began)
    logger.info("%s", choice)
    return choice


def _chosen(search: RankSearch, least_gain: float, began: float) -> RankChoice:
    """The recommendation, and what each rank is worth."""
    ranks, errors = search.ranks, search.errors()
    best = _recommended(np.array(ranks), errors, least_gain)
    sums = [search.sums(rank) for rank in ranks]
    doubts = [max(_doubt(a, b) for a, b in zip(one, sums[best], strict=True)) for one in sums]
    return RankChoice(
        rank=ranks[best],
        reason=_reason(ranks, errors, best),
        ranks=np.array(ranks, dtype=np.intp),
        qualities=np.array([search.quality(rank) for rank in ranks]),
        errors=errors,
        standard_errors=np.array(doubts) / (2.0 * search.norm * np.where(errors > 0, errors, 1.0)),
        stabilities=np.array([search.stability(rank) for rank in ranks]),
        n_columns=np.array([search.whole[rank].state.columns.size for rank in ranks], dtype=np.intp),
        rank_seconds=np.array([search.seconds(rank) for rank in ranks]),
        seconds=time.perf_counter() - began,
    )


def _recommended(ranks: Indices, errors: Doubles, least_gain: float) -> int:
    """Position of the rank that minimises the criterion in the module's docstring."""
    least = max(SMALLEST_ERROR, float(errors.min()))
    price = 2.0 * least_gain * least * max(SMALLEST_ERROR, min(least, 1.0 - least))
    return int(np.argmin(errors**2 + price * ranks))


def _doubt(sums: Doubles, others: Doubles) -> float:
    """Standard error of the difference of two sums over rows, taken as a sample of all possible rows."""
    return float(np.sqrt(sums.size) * np.std(sums - others))


def _reason(ranks: list[int], errors: Doubles, best: int) -> str:
    """Why this rank."""
    error, least = percent(float(errors[best])), percent(float(errors.min()))
    gain = f"More of them hardly lower it: the smallest error of all ranks tried is {least}."
    if best == 0:
        return f"At rank {ranks[0]}, the smallest tried, the error on left-out entries is {error}. {gain}"
    fallen = (
        f"The error on left-out entries falls from {percent(float(errors[0]))} at rank {ranks[0]} to {error} at rank"
    )
    if best == len(ranks) - 1:
        return f"{fallen} {ranks[best]}, the largest tried, and is still falling: try larger ranks."
    return f"{fallen} {ranks[best]}. {gain}"


def _checked_ranks(ranks: Any, shape: tuple[int, int]) -> list[int]:
    """The ranks that fit the matrix, in increasing order."""
    most = min(shape)
    if isinstance(ranks, range):  # its end may be far above the size of the matrix
        smallest = min(ranks, default=1) if len(ranks) < 2 else min(ranks[0], ranks[-1])
        fitting = [rank for rank in range(check_count(smallest, "every one of ranks"), most + 1) if rank in ranks]
    else:
        try:
            fitting = sorted({rank for each in ranks if (rank := check_count(each, "every one of ranks")) <= most})
        except TypeError:
            raise TypeError(f"ranks must be integers, such as range(2, 31); got {ranks!r}.") from None
    if not fitting:
        raise ValueError(f"ranks must have one in [1, {most}] for a matrix of shape {shape}; got {ranks!r}.")
    return fitting


def _checked_share(left_out: Any, repeats: int) -> float:
    share = check_positive(left_out, "left_out")
    if share * repeats > 1.0 or share > 0.5:
        raise ValueError(
            f"left_out must be at most {min(0.5, 1.0 / repeats):.3g} with n_repeats={repeats}, so that different "
            f"entries are left out each time; got {left_out!r}."
        )
    return share


def _check_enough_entries(held: InMemoryMatrix | Observed, repeats: int) -> None:
    entries = held.values.nnz if isinstance(held, Observed) else held.n_stored
    if entries < repeats:
        raise ValueError(
            f"choose_rank needs at least n_repeats={repeats} entries to leave out; got a matrix with {entries}."
        )

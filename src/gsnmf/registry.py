"""The methods that choose columns and rows, by the names that ``method=`` takes.

A method is one function in one file of `gsnmf.selection`, `gsnmf.convex` or `gsnmf.search`, and one entry here. The
documentation's table, the command line's help and the checks of ranks and matrices follow from the entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gsnmf.constraints import Limits
from gsnmf.convex.exact import exact_selection
from gsnmf.convex.penalties import GROUP_2, GROUP_INF, TRACE
from gsnmf.convex.selection import convex_selection, fast_gradient_selection
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.validation import check_count, check_positive, check_rank, check_rank_pair
from gsnmf.records import Choice, Selection
from gsnmf.search.automatic import automatic_search
from gsnmf.search.effort import Effort, check_effort, check_time_limit
from gsnmf.search.pursuit import pursuit
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import (
    generalized_successive_projection,
    smoothed_choice,
    successive_projection,
    successive_projection_both,
)
from gsnmf.selection.xray import xray
from gsnmf.support.arrays import COLUMNS_ALONE, COLUMNS_AND_ROWS, Axes, Axis
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE

if TYPE_CHECKING:
    from gsnmf.checkpoint import Checkpoint

Rank = int | tuple[int, int]
"""How many columns and rows in all, or a pair (n_columns, n_rows)."""


class Ranks(StrEnum):
    """The ranks that a method takes."""

    NUMBER = "number"
    PAIR = "pair"
    EITHER = "either"


@dataclass(frozen=True)
class Task:
    """What a method is asked for.

    Attributes
    ----------
    rank : int, or pair (n_columns, n_rows)
        As the method takes it.
    effort : {"fast", "balanced", "best"}
        What a search may spend.
    checkpoint : Checkpoint or None
        The file from which a method that is resumable goes on.
    limits : Limits or None
        What must and must not be chosen.
    time_limit : float or None
        Seconds after which a search returns the best so far.
    members : int
        How many columns (or rows) a factor may mix, for methods that make mixtures.
    """

    rank: Rank
    effort: Effort = "balanced"
    checkpoint: Checkpoint | None = None
    limits: Limits | None = None
    time_limit: float | None = None
    members: int = 1


@dataclass(frozen=True)
class Plan:
    """How an answer is searched for, which does not change the question.

    Attributes
    ----------
    method : str
        The name of a method; see `find_method`.
    effort : {"fast", "balanced", "best"}
        What a search may spend.
    scale : bool
        Whether columns and rows are chosen on the matrix scaled to equal sums.
    tolerance, max_iterations : float and int
        For the weights.
    checkpoint : path or None
        The file from which a method that is resumable goes on.
    time_limit : float or None
        Seconds after which a search returns the best so far.
    """

    method: str = "auto"
    effort: Effort = "balanced"
    scale: bool = False
    tolerance: float = DEFAULT_TOLERANCE
    max_iterations: int = DEFAULT_MAX_ITERATIONS
    checkpoint: str | os.PathLike[str] | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        method = find_method(self.method)
        object.__setattr__(self, "method", method.name)  # also where a shorter name was given
        if self.checkpoint is not None:
            method.check_resumable()
        if self.time_limit is not None:
            check_time_limit(self.time_limit)
            method.check_timed()
        check_effort(self.effort)
        check_positive(self.tolerance, "tolerance")
        check_count(self.max_iterations, "max_iterations")

    @property
    def repeatable(self) -> Plan:
        """The plan without what belongs to one run: its file and its time."""
        return replace(self, checkpoint=None, time_limit=None)


Chooser = Callable[[Matrix, Task], Choice]


@dataclass(frozen=True)
class Method:
    """A way to choose columns and rows of a matrix.

    Attributes
    ----------
    name : str
        What ``method=`` takes.
    title : str
        The method in words.
    choose : callable
        From a matrix and a ``Task`` to a ``Choice``.
    guarantee : str
        What is known about its answer.
    cost : str
        Operations, for an m x n matrix and rank r.
    reference : str
        DOI of the publication.
    axes : tuple of {"columns", "rows"}
        What it chooses from.
    ranks : Ranks
        Whether the rank is a number, a pair (n_columns, n_rows), or may be either.
    out_of_core : bool
        Whether it takes a Dask array.
    resumable : bool
        Whether it takes a checkpoint.
    constrained : bool
        Whether it obeys constraints.
    timed : bool
        Whether it is a search that obeys a time limit and logs its progress.
    alias : str
        A shorter name, if there is one.
    remark : str
        What it chooses, in words, if ``axes`` does not say enough.

    Examples
    --------
    >>> import gsnmf
    >>> {method.name: method.axes for method in gsnmf.methods()}["spa-rows"]
    ('rows',)
    """

    name: str
    title: str
    choose: Chooser
    guarantee: str
    cost: str
    reference: str
    axes: Axes = COLUMNS_AND_ROWS
    ranks: Ranks = Ranks.NUMBER
    out_of_core: bool = False
    resumable: bool = False
    constrained: bool = False
    timed: bool = False
    alias: str = ""
    remark: str = ""

    @property
    def selects(self) -> str:
        """What it chooses, in words."""
        return self.remark or (self.axes[0] if len(self.axes) == 1 else "columns and rows together")

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and, if there is one, its shorter name."""
        return (self.name, self.alias) if self.alias else (self.name,)

    @property
    def chooses_columns_alone(self) -> bool:
        """Whether it can be asked for columns and no rows."""
        return self.axes == COLUMNS_ALONE or (self.axes == COLUMNS_AND_ROWS and self.ranks != Ranks.NUMBER)

    def check_resumable(self) -> None:
        """Say which methods take a checkpoint if this one does not."""
        if not self.resumable:
            raise ValueError(f"method must be one of {_listed('resumable')} with a checkpoint; got {self.name!r}.")

    def check_constrained(self) -> None:
        """Say which methods obey constraints if this one does not."""
        if not self.constrained:
            raise ValueError(f"method must be one of {_listed('constrained')} with constraints; got {self.name!r}.")

    def check_timed(self) -> None:
        """Say which methods obey a time limit if this one does not."""
        if not self.timed:
            raise ValueError(f"method must be one of {_listed('timed')} with a time limit; got {self.name!r}.")

    def check_place(self, in_memory: bool) -> None:
        """Say which methods take a matrix that is not in memory if this one does not."""
        if not in_memory and not self.out_of_core:
            raise ValueError(
                f"method must be one of {_listed('out_of_core')} for a Dask array; got {self.name!r}, which needs the "
                "matrix in memory: pass matrix.compute() if it fits."
            )

    def checked_rank(self, rank: Any, shape: tuple[int, int], *, name: str = "rank") -> Rank:
        """The rank as the method takes it, or an error that says what is allowed."""
        is_pair = isinstance(rank, (tuple, list, np.ndarray))
        if self.ranks == Ranks.PAIR or (self.ranks == Ranks.EITHER and is_pair):
            return check_rank_pair(rank, shape, name=name)
        return check_rank(rank, shape, name=name)


def _listed(field: str) -> str:
    return ", ".join(repr(method.name) for method in METHODS if getattr(method, field))


def _resumably(choose: Callable[..., Selection]) -> Chooser:
    """A method that takes a number, a checkpoint, and limits."""
    return lambda matrix, task: Choice(choose(matrix, task.rank, checkpoint=task.checkpoint, limits=task.limits))


def _in_memory(choose: Callable[..., Selection]) -> Chooser:
    """A method that takes a number, or a pair, and needs the matrix in memory."""

    def chosen(matrix: Matrix, task: Task) -> Choice:
        assert isinstance(matrix, InMemoryMatrix)  # as `check_place` has made sure
        return Choice(choose(matrix, task.rank))

    return chosen


def _within_limits(choose: Callable[..., Selection]) -> Chooser:
    """A method that takes a number and limits, and needs the matrix in memory."""
    return lambda matrix, task: Choice(choose(matrix, task.rank, limits=task.limits))


def _smoothed(axis: Axis) -> Chooser:
    """Means of several columns, or rows."""

    def chosen(matrix: Matrix, task: Task) -> Choice:
        assert isinstance(task.rank, int)
        return smoothed_choice(matrix, task.rank, axis=axis, members=task.members, limits=task.limits)

    return chosen


def _both_sides(matrix: Matrix, task: Task) -> Choice:
    assert isinstance(task.rank, tuple)
    return Choice(successive_projection_both(matrix, *task.rank, limits=task.limits))


def _automatic(matrix: Matrix, task: Task) -> Choice:
    found = automatic_search(matrix, task.rank, task.effort, limits=task.limits, time_limit=task.time_limit)
    return Choice(found.selection, found.state.plain_weights, found.record)


def _pursuit(matrix: Matrix, task: Task) -> Choice:
    assert isinstance(task.rank, int)
    return pursuit(matrix, task.rank, task.limits)


_MODEL = "10.1109/TPAMI.2019.2956046"
_AXES: tuple[Axis, Axis] = ("columns", "rows")

METHODS: tuple[Method, ...] = (
    Method(
        name="auto",
        title="several starts, exchanges and perturbations",
        choose=_automatic,
        guarantee="never worse than any of its starts or than with less effort; `result.search` records what it did",
        cost="as the effort allows: about 1 s, 10 s or minutes",
        reference=_MODEL,
        ranks=Ranks.EITHER,
        out_of_core=True,
        constrained=True,
        timed=True,
    ),
    Method(
        name="convex",
        title="convex model on a working set",
        choose=_within_limits(convex_selection),
        guarantee="optimum of the convex model to a certified duality gap; finds planted columns and rows under noise",
        cost="O((m + n) k^2) per step for a working set of size k, O(mn(m + n)) for the certificate",
        reference=_MODEL,
        ranks=Ranks.EITHER,
        constrained=True,
    ),
    Method(
        name="gs-fgm",
        title="convex model by the paper's fast gradient method",
        choose=_in_memory(fast_gradient_selection),
        guarantee="as convex, without the certificate",
        cost="O(mn(m + n)) per step, memory O(m^2 + n^2)",
        reference=_MODEL,
        ranks=Ranks.EITHER,
    ),
    Method(
        name="pursuit",
        title="pursuit",
        choose=_pursuit,
        guarantee="each choice has the largest guaranteed decrease of the error; nested in the rank",
        cost="O(c (m + n) r) per choice for c candidates",
        reference="",
        out_of_core=True,
        constrained=True,
    ),
    Method(
        name="gspa",
        title="generalized successive projection",
        choose=_resumably(generalized_successive_projection),
        guarantee="heuristic; meant for matrices with equal row sums and equal column sums",
        cost="O(nnz r)",
        reference=_MODEL,
        out_of_core=True,
        resumable=True,
        constrained=True,
    ),
    *(
        Method(
            name=f"spa-{axis}",
            title=f"successive projection on {axis}",
            choose=_resumably(partial(successive_projection, axis=axis)),
            guarantee=f"exact on separable {kind} whose {axis} have equal sums, robust to noise",
            cost="O(nnz r)",
            reference="10.1109/TPAMI.2013.226",
            axes=(axis,),
            out_of_core=True,
            resumable=True,
            constrained=True,
        )
        for axis, kind in zip(_AXES, ("matrices", "transposes"), strict=True)
    ),
    *(
        Method(
            name=f"smooth-spa-{axis}",
            title=f"successive projection on {axis}, each the mean of `members` {axis}",
            choose=_smoothed(axis),
            guarantee=f"as spa-{axis}, and closer to factors that occur several times with noise",
            cost="O(nnz r)",
            reference="10.48550/arXiv.2110.05528",
            axes=(axis,),
            constrained=True,
            remark=f"means of {axis}",
        )
        for axis in _AXES
    ),
    Method(
        name="spa-both",
        title="successive projection on columns and on rows",
        choose=_both_sides,
        guarantee="heuristic",
        cost="O(nnz r)",
        reference=_MODEL,
        ranks=Ranks.PAIR,
        out_of_core=True,
        constrained=True,
        remark="a given number of columns and of rows, independently",
    ),
    *(
        Method(
            name=f"{name}-{axis}",
            title=f"{title} on {axis}",
            choose=_within_limits(partial(run, axis=axis)),
            guarantee=guarantee,
            cost="O(nnz r + n r^3)",
            reference=reference,
            axes=(axis,),
            constrained=True,
            alias=name if axis == "columns" else "",
        )
        for axis in _AXES
        for name, title, run, guarantee, reference in (
            (
                "snpa",
                "successive nonnegative projection",
                successive_nonnegative_projection,
                "exact on separable matrices with equal sums, even rank-deficient ones; robust to noise",
                "10.1137/130946782",
            ),
            (
                "xray",
                "fast conical hull",
                xray,
                "exact on separable matrices",
                "10.48550/arXiv.1210.1190",
            ),
        )
    ),
    Method(
        name="fgnsr",
        title="convex model on columns alone by the fast gradient method",
        choose=_in_memory(partial(fast_gradient_selection, axes=COLUMNS_ALONE, method="fgnsr")),
        guarantee="recovers the columns of near-separable matrices",
        cost="O(mn^2) per step, memory O(n^2)",
        reference="10.1109/TIP.2017.2753400",
        axes=COLUMNS_ALONE,
    ),
    *(
        Method(
            name=name,
            title=f"convex model on columns alone, {words}",
            choose=_in_memory(partial(convex_selection, penalty=penalty, axes=COLUMNS_ALONE, method=name)),
            guarantee="optimum of the convex model to a certified duality gap",
            cost="O(n k^2) per step for a working set of size k, O(mn^2) for the certificate",
            reference=reference,
            axes=COLUMNS_ALONE,
        )
        for name, words, penalty, reference in (
            ("separable-trace", "trace penalty", TRACE, "10.1109/TIP.2017.2753400"),
            ("separable-2", "row norms q = 2", GROUP_2, "10.1109/CVPR.2012.6247852"),
            ("separable-inf", "row norms q = infinity", GROUP_INF, "10.1109/TIP.2012.2190081"),
        )
    ),
    Method(
        name="exact",
        title="smallest exact decomposition by mixed-integer programming",
        choose=_in_memory(exact_selection),
        guarantee="proved smallest; for matrices that are exactly generalized separable",
        cost="exponential; n^2 + m^2 variables",
        reference=_MODEL,
        ranks=Ranks.EITHER,
        remark="columns and rows together, at most as many as requested",
    ),
)


def methods() -> tuple[Method, ...]:
    """Every method that `gsnmf.select` and `gsnmf.factorize` know.

    Returns
    -------
    tuple of Method
        Each with what it chooses, what is known about its answer, and its cost.

    Examples
    --------
    >>> import gsnmf
    >>> [method.name for method in gsnmf.methods()][:2]
    ['auto', 'convex']
    """
    return METHODS


def find_method(name: Any) -> Method:
    """The method of that name, or an error that lists all names."""
    for method in METHODS:
        if name in method.names:
            return method
    names = ", ".join(repr(name) for method in METHODS for name in method.names)
    raise ValueError(f"method must be one of {names}; got {name!r}.")

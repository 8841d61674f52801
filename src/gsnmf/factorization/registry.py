"""The methods that choose columns and rows, by the names that ``method=`` takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from gsnmf.convex.exact import solve_exact
from gsnmf.convex.penalties import GROUP_2, GROUP_INF, TRACE, Penalty
from gsnmf.convex.selection import convex_selection, fast_gradient_selection
from gsnmf.matrices.checks import check_rank, check_rank_pair
from gsnmf.matrices.protocol import Matrix
from gsnmf.results.checkpoint import Checkpoint
from gsnmf.results.records import Selection
from gsnmf.search.automatic import automatic_selection
from gsnmf.search.pursuit import pursuit
from gsnmf.selection.successive_nonnegative import successive_nonnegative_projection
from gsnmf.selection.successive_projection import (
    generalized_successive_projection,
    successive_projection,
    successive_projection_both,
)
from gsnmf.selection.xray import xray


@dataclass(frozen=True)
class Method:
    """A way to choose columns and rows of a matrix.

    Attributes
    ----------
    name : str
        What ``method=`` takes.
    title : str
        The method in words.
    selects : str
        What it chooses.
    guarantee : str
        What is known about its answer.
    cost : str
        Operations, for an m x n matrix and rank r.
    reference : str
        DOI of the publication.
    rank : {"number", "pair", "either"}
        Whether the rank is a number, a pair (n_columns, n_rows), or may be either.
    out_of_core : bool
        Whether it takes a Dask array.
    resumable : bool
        Whether it takes a checkpoint.
    """

    name: str
    title: str
    selects: str
    guarantee: str
    cost: str
    reference: str
    rank: Literal["number", "pair", "either"]
    run: Callable[..., Selection]
    out_of_core: bool = False
    resumable: bool = False

    def __call__(self, matrix: Matrix, rank: Any, checkpoint: str | os.PathLike[str] | None = None) -> Selection:
        """Check the rank and choose, or go on choosing from a checkpoint."""
        self.check_place(matrix.out_of_core)
        checked = self.checked_rank(rank, matrix.shape)
        if checkpoint is None:
            return self.run(matrix, checked)
        self.check_resumable()
        assert isinstance(checked, int)
        return self.run(matrix, checked, checkpoint=Checkpoint(checkpoint, matrix, self.name, checked))

    def check_resumable(self) -> None:
        """Say which methods take a checkpoint if this one does not."""
        if not self.resumable:
            names = ", ".join(repr(method.name) for method in _METHODS if method.resumable)
            raise ValueError(f"method must be one of {names} with a checkpoint; got {self.name!r}.")

    def check_place(self, out_of_core: bool) -> None:
        """Say which methods take a matrix that is not in memory if this one does not."""
        if out_of_core and not self.out_of_core:
            names = ", ".join(repr(method.name) for method in _METHODS if method.out_of_core)
            raise ValueError(
                f"method must be one of {names} for a Dask array; got {self.name!r}, which needs the matrix in "
                "memory: pass matrix.compute() if it fits."
            )

    def checked_rank(self, rank: Any, shape: tuple[int, int], *, name: str = "rank") -> int | tuple[int, int]:
        """The rank as the method takes it, or an error that says what is allowed."""
        as_pair = self.rank == "pair" or (self.rank == "either" and isinstance(rank, (tuple, list, np.ndarray)))
        return check_rank_pair(rank, shape, name=name) if as_pair else check_rank(rank, shape, name=name)


def _separable(name: str, penalty: Penalty) -> Callable[[Matrix, int], Selection]:
    return lambda matrix, rank: convex_selection(matrix, rank, penalty=penalty, with_rows=False, method=name)


def _exact_selection(matrix: Matrix, rank: int | tuple[int, int]) -> Selection:
    whole = matrix.columns(np.arange(matrix.shape[1]))
    solution = solve_exact(whole, max_rank=rank) if isinstance(rank, int) else solve_exact(whole, pair=rank)
    if not solution.found:
        raise ValueError(
            f"the matrix has no exact decomposition of rank {rank}: at least {solution.lower_bound} columns and rows "
            "are needed; use method='convex' or 'auto' for an approximate one."
        )
    order = "c" * solution.columns.size + "r" * solution.rows.size
    size = rank if isinstance(rank, int) else sum(rank)
    return Selection(
        solution.columns, solution.rows, order, "exact", "rank reached" if len(order) == size else "residual is zero"
    )


_AXES: tuple[tuple[Literal["columns", "rows"], str], ...] = (("columns", ""), ("rows", "-rows"))

_MODEL = "10.1109/TPAMI.2019.2956046"

AUTO = Method(
    name="auto",
    title="several starts and exchanges",
    selects="columns and rows together",
    guarantee="the best of all starts by the true error; no single exchange improves it if time allowed",
    cost="as the effort allows: about 1 s, 10 s or minutes",
    reference=_MODEL,
    rank="either",
    run=automatic_selection,
    out_of_core=True,
)

_METHODS = (
    AUTO,
    Method(
        name="convex",
        title="convex model on a working set",
        selects="columns and rows together",
        guarantee="optimum of the convex model to a certified duality gap; finds planted columns and rows under noise",
        cost="O((m + n) k^2) a step for a working set of size k, O(mn(m + n)) for the certificate",
        reference=_MODEL,
        rank="either",
        run=convex_selection,
    ),
    Method(
        name="gs-fgm",
        title="convex model by the paper's fast gradient method",
        selects="columns and rows together",
        guarantee="as convex, without the certificate",
        cost="O(mn(m + n)) a step, memory O(m^2 + n^2)",
        reference=_MODEL,
        rank="either",
        run=fast_gradient_selection,
    ),
    Method(
        name="pursuit",
        title="pursuit",
        selects="columns and rows together",
        guarantee="each choice has the largest guaranteed decrease of the error; nested in the rank",
        cost="O(c (m + n) r) a choice for c candidates",
        reference="",
        rank="number",
        run=pursuit,
        out_of_core=True,
    ),
    Method(
        name="gspa",
        title="generalized successive projection",
        selects="columns and rows together",
        guarantee="heuristic; meant for matrices with equal row sums and equal column sums",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2019.2956046",
        rank="number",
        run=generalized_successive_projection,
        out_of_core=True,
        resumable=True,
    ),
    Method(
        name="spa-columns",
        title="successive projection on columns",
        selects="columns",
        guarantee="exact on separable matrices whose columns have equal sums, robust to noise",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2013.226",
        rank="number",
        run=partial(successive_projection, axis="columns"),
        out_of_core=True,
        resumable=True,
    ),
    Method(
        name="spa-rows",
        title="successive projection on rows",
        selects="rows",
        guarantee="exact on separable transposes whose rows have equal sums, robust to noise",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2013.226",
        rank="number",
        run=partial(successive_projection, axis="rows"),
        out_of_core=True,
        resumable=True,
    ),
    Method(
        name="spa-both",
        title="successive projection on columns and on rows",
        selects="a given number of columns and of rows, independently",
        guarantee="heuristic",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2019.2956046",
        rank="pair",
        run=lambda matrix, pair: successive_projection_both(matrix, *pair),
        out_of_core=True,
    ),
    *(
        Method(
            name=f"{name}{suffix}",
            title=f"{title} on {axis}",
            selects=axis,
            guarantee=guarantee,
            cost="O(nnz r + n r^3)",
            reference=reference,
            rank="number",
            run=partial(run, axis=axis),
        )
        for axis, suffix in _AXES
        for name, title, run, guarantee, reference in (
            (
                "snpa",
                "successive nonnegative projection",
                successive_nonnegative_projection,
                "exact on separable matrices with equal sums, also of deficient rank; robust to noise",
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
        selects="columns",
        guarantee="recovers the columns of near-separable matrices",
        cost="O(mn^2) a step, memory O(n^2)",
        reference="10.1109/TIP.2017.2753400",
        rank="number",
        run=lambda matrix, rank: fast_gradient_selection(matrix, rank, with_rows=False, method="fgnsr"),
    ),
    *(
        Method(
            name=name,
            title=f"convex model on columns alone, {words}",
            selects="columns",
            guarantee="optimum of the convex model to a certified duality gap",
            cost="O(n k^2) a step for a working set of size k, O(mn^2) for the certificate",
            reference=reference,
            rank="number",
            run=_separable(name, penalty),
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
        selects="columns and rows together, at most as many as asked",
        guarantee="proved smallest; for matrices that are exactly generalized separable",
        cost="exponential; n^2 + m^2 variables",
        reference=_MODEL,
        rank="either",
        run=_exact_selection,
    ),
)


def methods() -> tuple[Method, ...]:
    """Every method that `gsnmf.select` and `gsnmf.factorize` know.

    Examples
    --------
    >>> import gsnmf
    >>> [method.name for method in gsnmf.methods()][:2]
    ['auto', 'convex']
    """
    return _METHODS


def find_method(name: str) -> Method:
    """The method of that name."""
    for method in _METHODS:
        if method.name == name:
            return method
    names = ", ".join(repr(method.name) for method in _METHODS)
    raise ValueError(f"method must be one of {names}; got {name!r}.")

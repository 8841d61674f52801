"""The methods that choose columns and rows, by the names that ``method=`` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gsnmf.products import Products
from gsnmf.results import Selection
from gsnmf.selection.successive_projection import (
    generalized_successive_projection,
    successive_projection,
    successive_projection_both,
)
from gsnmf.validation import check_rank, check_rank_pair


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
    needs_pair : bool
        Whether the rank must be a pair (n_columns, n_rows).
    """

    name: str
    title: str
    selects: str
    guarantee: str
    cost: str
    reference: str
    needs_pair: bool
    run: Callable[[Products, Any], Selection]

    def __call__(self, matrix: Products, rank: Any) -> Selection:
        """Check the rank and choose."""
        checked = check_rank_pair(rank, matrix.shape) if self.needs_pair else check_rank(rank, matrix.shape)
        return self.run(matrix, checked)


_GSPA = Method(
    name="gspa",
    title="generalized successive projection",
    selects="columns and rows together",
    guarantee="heuristic; meant for matrices with equal row sums and equal column sums",
    cost="O(nnz r)",
    reference="10.1109/TPAMI.2019.2956046",
    needs_pair=False,
    run=generalized_successive_projection,
)

_METHODS = (
    _GSPA,
    Method(
        name="spa-columns",
        title="successive projection on columns",
        selects="columns",
        guarantee="exact on separable matrices whose columns have equal sums, robust to noise",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2013.226",
        needs_pair=False,
        run=lambda matrix, rank: successive_projection(matrix, rank, axis="columns"),
    ),
    Method(
        name="spa-rows",
        title="successive projection on rows",
        selects="rows",
        guarantee="exact on separable transposes whose rows have equal sums, robust to noise",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2013.226",
        needs_pair=False,
        run=lambda matrix, rank: successive_projection(matrix, rank, axis="rows"),
    ),
    Method(
        name="spa-both",
        title="successive projection on columns and on rows",
        selects="a given number of columns and of rows, independently",
        guarantee="heuristic",
        cost="O(nnz r)",
        reference="10.1109/TPAMI.2019.2956046",
        needs_pair=True,
        run=lambda matrix, pair: successive_projection_both(matrix, *pair),
    ),
)


def methods() -> tuple[Method, ...]:
    """Every method that `gsnmf.select` and `gsnmf.factorize` know.

    Examples
    --------
    >>> import gsnmf
    >>> [method.name for method in gsnmf.methods()][:2]
    ['gspa', 'spa-columns']
    """
    return _METHODS


def find_method(name: str) -> Method:
    """The method of that name; ``"auto"`` is the one recommended for general use."""
    if name == "auto":
        return _GSPA
    for method in _METHODS:
        if method.name == name:
            return method
    names = ", ".join(repr(method.name) for method in _METHODS)
    raise ValueError(f"method must be 'auto' or one of {names}; got {name!r}.")

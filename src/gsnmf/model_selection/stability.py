"""How stable the chosen columns and rows are: how often they would be chosen again.

The matrix is changed in three ways, each on its own and many times, and factorized again:

- rows are resampled: each counts as often as it is drawn in m draws with replacement, and rows that are not drawn
  disappear, except the chosen ones, which nothing else could replace;
- columns are resampled in the same way;
- noise of the size of the residual is added, to the stored entries of a sparse matrix.

A chosen column has come back if it, or a column nearly parallel to it, is chosen again. Its factor can come back
without it: another column or a row may then stand for the same factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from gsnmf.constraints import Constraints
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.validation import check_count
from gsnmf.model_selection.input import matrix_of
from gsnmf.problem import Problem
from gsnmf.records import Record
from gsnmf.registry import Plan, Ranks, find_method
from gsnmf.result import Factorization
from gsnmf.solve import solve
from gsnmf.support.arrays import Axis, Doubles, Flags, Floats, Indices, RawMatrix
from gsnmf.support.formatting import ShownAsTable, Table, percent
from gsnmf.support.progress import Progress, log_progress, muted, reported

Change = Literal["rows resampled", "columns resampled", "noise added"]
CHANGES: tuple[Change, ...] = get_args(Change)

DOUBTFUL = 0.5
"""A factor that comes back less often than this is marked as doubtful."""

_PARALLEL = 0.95
"""Smallest cosine at which one column or row counts as another."""
_TOLERANCE, _MAX_ITERATIONS = 1e-2, 50
"""Tolerance for the weights of refits, which only serve to compare factors."""


@dataclass(frozen=True, eq=False, repr=False)
class Stability(ShownAsTable, Record):
    """How often each chosen column and row came back when the matrix was changed a little.

    Attributes
    ----------
    columns, rows : int arrays
        What was chosen.
    frequencies : array, shape (3, r)
        One row for each of rows resampled, columns resampled and noise added; one column per chosen column, then per
        chosen row.
    agreements : array of length 3
        Mean agreement of all factors with those of the changed matrices, from 0 to 1: see
        `gsnmf.model_selection.stability.agreement`.
    n_repeats : int
        Refits for each of the three.
    similarities : array, shape (3, r)
        Mean similarity of each factor to its match in the refits, from 0 to 1, whatever stands for the match.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> matrix = planted((20, 15), 2, 1, random_state=0).matrix
    >>> result = gsnmf.factorize(matrix, 3, effort="fast")
    >>> gsnmf.stability(matrix, result, n_repeats=2).frequencies.shape
    (3, 3)
    """

    columns: Indices
    rows: Indices
    frequencies: Doubles
    agreements: Doubles
    n_repeats: int
    similarities: Doubles

    @property
    def overall(self) -> Doubles:
        """Mean of the three frequencies of each chosen column, then of each chosen row."""
        return np.asarray(self.frequencies.mean(axis=0))

    @property
    def similarity(self) -> Doubles:
        """Mean of the three similarities of each factor."""
        return np.asarray(self.similarities.mean(axis=0))

    @property
    def doubtful(self) -> Flags:
        """Which of them come back too rarely."""
        return np.asarray(self.overall < DOUBTFUL)

    @property
    def table(self) -> Table:
        """One row per chosen column, then per chosen row."""
        chosen = [("column", int(j)) for j in self.columns] + [("row", int(i)) for i in self.rows]
        rows = tuple(
            (*one, *(float(f) for f in frequencies), float(mean), "doubtful" if doubt else "")
            for one, frequencies, mean, doubt in zip(
                chosen, self.frequencies.T, self.overall, self.doubtful, strict=True
            )
        )
        return Table(("kind", "index", *CHANGES, "overall", "mark"), rows, repr(self))

    def __repr__(self) -> str:
        agreements = ", ".join(f"{change} {percent(a)}" for change, a in zip(CHANGES, self.agreements, strict=True))
        doubtful = int(self.doubtful.sum())
        return f"Stability of {self.overall.size} factors, {doubtful} doubtful; agreement with {agreements}"


def stability(
    matrix: Any,
    result: Factorization,
    *,
    n_repeats: int = 20,
    random_state: int | np.random.Generator = 0,
    constraints: Constraints | None = None,
    progress: Progress = None,
) -> Stability:
    """Factorize changed matrices and count how often the chosen columns and rows come back.

    Parameters
    ----------
    matrix : array-like, DataFrame or sparse array
        The matrix of the result.
    result : Factorization
        One with single columns and rows.
    n_repeats : int
        How often to resample rows, to resample columns, and to add noise.
    random_state : int or numpy.random.Generator
    constraints : gsnmf.Constraints, optional
        The constraints of the result.
    progress : True or callable, optional
        As for `gsnmf.factorize`.

    Returns
    -------
    Stability

    Notes
    -----
    The refits use the method of the result, ``"auto"`` with effort ``"fast"``.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> data = planted((60, 50), n_columns=2, n_rows=2, noise_level=0.02, random_state=0)
    >>> sure = gsnmf.stability(data.matrix, gsnmf.factorize(data.matrix, 4), n_repeats=3)
    >>> sure.overall
    array([1., 1., 1., 1.])
    """
    held = matrix_of(result, matrix, "stability")
    if not (isinstance(held.data, np.ndarray) or sp.issparse(held.data)):
        raise ValueError(f"stability needs a dense or sparse matrix; got {type(held.data).__name__}.")
    repeats = check_count(n_repeats, "n_repeats")
    rng = np.random.default_rng(random_state)
    rank, constraints, plan = _asked(result, constraints)
    known = _Known(held, result)
    frequencies, agreements, similarities = [], [], []
    with reported(progress):
        for number, change in enumerate(CHANGES):
            back, similar, agreed = np.zeros(known.size), np.zeros(known.size), 0.0
            for repeat, changed in enumerate(_changed_matrices(held, result, change, repeats, rng), 1):
                with muted():
                    refit = solve(Problem(hold(changed.data), rank, constraints), plan)
                back += known.came_back(refit)
                found = known.similarities(refit, changed)
                similar += found
                most = max(known.size, refit.selection.n_selected)
                agreed += float(found.sum()) / most if most else 1.0
                log_progress(change, number * repeats + repeat, float(len(CHANGES) * repeats), refit.quality)
            frequencies.append(back / repeats)
            agreements.append(agreed / repeats)
            similarities.append(similar / repeats)
    return Stability(
        result.columns, result.rows, np.array(frequencies), np.array(agreements), repeats, np.array(similarities)
    )


@dataclass(frozen=True)
class _Changed:
    """A changed matrix, and the factors by which its rows and columns were scaled."""

    data: RawMatrix
    row_scales: Doubles
    column_scales: Doubles


class _Known:
    """The original choice, to compare refits with."""

    def __init__(self, matrix: InMemoryMatrix, result: Factorization) -> None:
        self.matrix, self.result = matrix, result
        self.size = result.selection.n_selected
        self.left, self.right = np.asarray(result.W), np.asarray(result.H).T

    def came_back(self, refit: Factorization) -> Flags:
        """Which columns, then rows, were chosen again, themselves or a nearly parallel one."""
        columns = self._found("columns", self.result.columns, refit.columns)
        return np.concatenate([columns, self._found("rows", self.result.rows, refit.rows)])

    def _found(self, axis: Axis, known: Indices, found: Indices) -> Flags:
        if known.size == 0 or found.size == 0:
            return np.zeros(known.size, dtype=np.bool_)
        side = self.matrix.along(axis)
        cosines = unit_columns(side.columns(known)).T @ unit_columns(side.columns(found))
        same = known[:, None] == found[None, :]
        return np.asarray((same | (cosines >= _PARALLEL)).any(axis=1))

    def similarities(self, refit: Factorization, changed: _Changed) -> Doubles:
        """Similarity of each factor to its match, the original factors scaled like the changed matrix."""
        left, right = self.left * changed.row_scales[:, None], self.right * changed.column_scales[:, None]
        return matched_similarities(left, right, np.asarray(refit.W), np.asarray(refit.H).T)


def _asked(result: Factorization, constraints: Constraints | None) -> tuple[Any, Constraints | None, Plan]:
    """Rank, constraints and plan of the refits."""
    method = find_method(result.method)
    pair = result.columns.size, result.rows.size
    rank = pair if method.ranks == Ranks.PAIR else sum(pair)
    plan = Plan(
        method.name,
        "fast",
        tolerance=_TOLERANCE,
        max_iterations=_MAX_ITERATIONS,
    )
    return rank, constraints, plan


def _changed_matrices(
    matrix: InMemoryMatrix, result: Factorization, change: Change, count: int, rng: np.random.Generator
) -> Iterator[_Changed]:
    m, n = matrix.shape
    for _ in range(count):
        row_scales, column_scales = np.ones(m), np.ones(n)
        if change == "noise added":
            yield _Changed(_noisy(matrix, result, rng), row_scales, column_scales)
            continue
        if change == "rows resampled":
            row_scales = _drawn(m, result.rows, rng)
        else:
            column_scales = _drawn(n, result.columns, rng)
        yield _Changed(_scaled(matrix, row_scales, column_scales), row_scales, column_scales)


def _drawn(length: int, chosen: Indices, rng: np.random.Generator) -> Doubles:
    """Square roots of how often each index is drawn: a row drawn twice is multiplied by sqrt(2)."""
    counts = np.bincount(rng.integers(length, size=length), minlength=length)
    counts[chosen] = np.maximum(1, counts[chosen])
    return np.sqrt(counts)


def _scaled(matrix: InMemoryMatrix, row_scales: Doubles, column_scales: Doubles) -> RawMatrix:
    data = matrix.data
    if isinstance(data, np.ndarray):
        return (data * row_scales[:, None] * column_scales).astype(data.dtype, copy=False)
    scaled = sp.diags_array(row_scales) @ data @ sp.diags_array(column_scales)
    scaled = sp.csr_array(scaled, dtype=data.dtype)
    scaled.eliminate_zeros()
    return scaled


def _noisy(matrix: InMemoryMatrix, result: Factorization, rng: np.random.Generator) -> RawMatrix:
    """The matrix plus noise of the size of the residual, cut off at zero."""
    if isinstance(matrix.data, np.ndarray):
        return _with_noise(matrix.data, result.absolute_error, rng)
    noisy = sp.csr_array(matrix.data, copy=True)
    noisy.data = _with_noise(noisy.data, result.absolute_error, rng)
    noisy.eliminate_zeros()
    return noisy


def _with_noise(entries: Floats, norm: float, rng: np.random.Generator) -> Floats:
    noise = norm / np.sqrt(max(1, entries.size)) * rng.standard_normal(entries.shape)
    noisy: Floats = np.maximum(entries + noise, 0.0).astype(entries.dtype, copy=False)
    return noisy


def agreement(left: Floats, right: Floats, other_left: Floats, other_right: Floats) -> float:
    """Mean similarity of matched factors of two factorizations of the same matrix, from 0 to 1.

    A factor is a matrix of rank one, the product of a column of ``left``, m x r, and a column of ``right``, n x r. The
    similarity of two factors is the cosine of their angle. Factors are matched so that the sum of similarities is
    largest; an unmatched one counts as 0.

    Examples
    --------
    >>> eye = np.eye(3)
    >>> agreement(eye[:, :2], eye[:, :2], eye[:, 1:], eye[:, 1:])
    0.5
    """
    most = max(left.shape[1], other_left.shape[1])
    return float(matched_similarities(left, right, other_left, other_right).sum() / most) if most else 1.0


def matched_similarities(left: Floats, right: Floats, other_left: Floats, other_right: Floats) -> Doubles:
    """Similarity of each factor of the first factorization to its match in the second; see `agreement`.

    Examples
    --------
    >>> eye = np.eye(3)
    >>> matched_similarities(eye[:, :2], eye[:, :2], eye[:, 1:], eye[:, 1:])
    array([0., 1.])
    """
    similarities = unit_columns(left).T @ unit_columns(other_left)
    similarities *= unit_columns(right).T @ unit_columns(other_right)
    found = np.zeros(left.shape[1])
    own, other = linear_sum_assignment(-similarities)
    found[own] = similarities[own, other]
    return found


def unit_columns(block: Floats) -> Doubles:
    """Columns scaled to length one, in double precision; zero columns stay zero."""
    doubles = block.astype(np.float64, copy=False)
    lengths = np.linalg.norm(doubles, axis=0)
    return doubles / np.where(lengths > 0, lengths, 1.0)

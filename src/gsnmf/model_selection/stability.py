"""How stable the chosen columns and rows are: how often they would be chosen again.

The matrix is changed in three ways, each on its own and many times, and the same problem is solved again:

- rows are resampled: the weight of each row in the error is multiplied by how often it is drawn in m draws with
  replacement. Rows that are not drawn do not count, except the chosen ones, which nothing else could replace;
- columns are resampled in the same way;
- noise of the size of the residual is added, to the stored or observed entries if there are others.

A chosen column has come back if it, or a column nearly parallel to it, is chosen again. Its factor can come back
without it: another column or a row may then stand for the same factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from gsnmf.matrix.in_memory import hold
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_count
from gsnmf.problem import Problem
from gsnmf.records import Record
from gsnmf.result import Factorization
from gsnmf.solve import solve
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
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
    >>> gsnmf.stability(result, n_repeats=2).frequencies.shape
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
    result: Factorization,
    *,
    n_repeats: int = 20,
    random_state: int | np.random.Generator = 0,
    progress: Progress = None,
) -> Stability:
    """Solve the problem of a result for changed matrices and count how often the chosen columns and rows come back.

    Parameters
    ----------
    result : Factorization
        One with single columns and rows of a matrix in memory.
    n_repeats : int
        How often to resample rows, to resample columns, and to add noise.
    random_state : int or numpy.random.Generator
    progress : True or callable, optional
        As for `gsnmf.factorize`.

    Returns
    -------
    Stability

    Notes
    -----
    The refits use the method of the result, ``"auto"`` with effort ``"fast"``, and obey everything that was asked: the
    rank or the pair, constraints, weights of rows, columns and entries, and sums to one.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.datasets import planted
    >>> data = planted((60, 50), n_columns=2, n_rows=2, noise_level=0.02, random_state=0)
    >>> sure = gsnmf.stability(gsnmf.factorize(data.matrix, 4), n_repeats=3)
    >>> sure.overall
    array([1., 1., 1., 1.])
    """
    problem = refittable(result, "stability")
    repeats = check_count(n_repeats, "n_repeats")
    rng = np.random.default_rng(random_state)
    plan = replace(result.plan, effort="fast", tolerance=_TOLERANCE, max_iterations=_MAX_ITERATIONS)
    size = result.selection.n_selected
    frequencies, similarities = np.zeros((len(CHANGES), size)), np.zeros((len(CHANGES), size))
    agreements = np.zeros(len(CHANGES))
    with reported(progress):
        for number, change in enumerate(CHANGES):
            for repeat in range(1, repeats + 1):
                changed, scales = _changed(problem, result, change, rng)
                with muted():
                    refit = solve(changed, plan)
                found = _similarities(result, refit, *scales)
                frequencies[number] += _came_back(result, refit)
                similarities[number] += found
                most = max(size, refit.selection.n_selected)
                agreements[number] += float(found.sum()) / most if most else 1.0
                log_progress(change, number * repeats + repeat, float(len(CHANGES) * repeats), refit.quality)
                del changed, refit  # before the next changed matrix is made
    return Stability(
        result.columns, result.rows, frequencies / repeats, agreements / repeats, repeats, similarities / repeats
    )


def refittable(result: Factorization, caller: str) -> Problem:
    """The problem of a result with single columns and rows; errors say that ``caller`` needs it."""
    if not isinstance(result, Factorization):
        raise TypeError(f"result must be what gsnmf.factorize returns; got {type(result).__name__}.")
    if not result.problem.matrix.in_memory:
        raise ValueError(f"{caller} needs a matrix in memory; got a Dask array.")
    if result.mixtures is not None:
        raise ValueError(f"{caller} needs single columns and rows; factorize with members=1.")
    return result.problem


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
    doubles = np.asarray(block, dtype=np.float64, order="C")  # one order, so that rounding is the same in every unit
    lengths = np.linalg.norm(doubles, axis=0)
    return doubles / np.where(lengths > 0, lengths, 1.0)


def _changed(
    problem: Problem, result: Factorization, change: Change, rng: np.random.Generator
) -> tuple[Problem, tuple[Doubles, Doubles]]:
    """The problem with a changed matrix, and factors by which rows and columns count more or less than before."""
    m, n = problem.matrix.shape
    rows, columns = np.ones(m), np.ones(n)
    if change == "noise added":
        return problem.with_matrix(_noisy(problem, result, rng)), (rows, columns)
    of_rows, of_columns = problem.axis_weights
    if change == "rows resampled":
        rows = _times_drawn(m, result.rows, rng)
        of_rows = of_rows * rows
        problem = replace(problem, sample_weight=of_rows / of_rows.max())
    else:
        columns = _times_drawn(n, result.columns, rng)
        of_columns = of_columns * columns
        problem = replace(problem, feature_weight=of_columns / of_columns.max())
    return problem, (np.sqrt(rows), np.sqrt(columns))


def _times_drawn(length: int, chosen: Indices, rng: np.random.Generator) -> Doubles:
    """How often each index is drawn with replacement; each chosen one counts as drawn at least once."""
    counts = np.bincount(rng.integers(length, size=length), minlength=length)
    counts[chosen] = np.maximum(1, counts[chosen])
    return counts.astype(np.float64)


def _noisy(problem: Problem, result: Factorization, rng: np.random.Generator) -> Matrix | Observed:
    """The matrix plus noise whose weighted norm is that of the residual, cut off at zero."""
    matrix = problem.matrix
    if isinstance(matrix, Observed):
        parts = _with_noise(matrix.values.data, problem, result, rng), matrix.values.indices, matrix.values.indptr
        values = sp.csr_array(parts, shape=matrix.shape)
        return Observed(values, matrix.weights, from_dense=matrix.from_dense, missing_values=matrix.missing_values)
    if isinstance(matrix.data, np.ndarray):
        return hold(_with_noise(matrix.data, problem, result, rng))
    noisy = sp.csr_array(matrix.data, copy=True)
    noisy.data = _with_noise(noisy.data, problem, result, rng)
    noisy.eliminate_zeros()
    return hold(noisy)


def _with_noise(entries: Floats, problem: Problem, result: Factorization, rng: np.random.Generator) -> Floats:
    mean_weight = float(np.prod([weights.mean() for weights in problem.axis_weights]))
    if isinstance(problem.matrix, Observed):
        mean_weight *= problem.matrix.mean_weight
    noisy = rng.standard_normal(entries.shape)
    noisy *= result.absolute_error / np.sqrt(max(1, entries.size) * mean_weight)
    noisy += entries
    return np.maximum(noisy, 0.0, out=noisy).astype(entries.dtype, copy=False)


def _came_back(result: Factorization, refit: Factorization) -> Flags:
    """Which columns, then rows, were chosen again, themselves or a nearly parallel one."""
    columns = _chosen_again(result.source, result.columns, refit.columns)
    return np.concatenate([columns, _chosen_again(result.source.T, result.rows, refit.rows)])


def _chosen_again(matrix: Matrix, known: Indices, found: Indices) -> Flags:
    if known.size == 0 or found.size == 0:
        return np.zeros(known.size, dtype=np.bool_)
    cosines = unit_columns(matrix.columns(known)).T @ unit_columns(matrix.columns(found))
    same = known[:, None] == found[None, :]
    return np.asarray((same | (cosines >= _PARALLEL)).any(axis=1))


def _similarities(result: Factorization, refit: Factorization, rows: Doubles, columns: Doubles) -> Doubles:
    """Similarity of each factor to its match, with rows and columns scaled as they count in the refit."""
    lefts = (np.asarray(one.W) * rows[:, None] for one in (result, refit))
    rights = (np.asarray(one.H).T * columns[:, None] for one in (result, refit))
    (left, other_left), (right, other_right) = lefts, rights
    return matched_similarities(left, right, other_left, other_right)

"""The methods that the experiments compare, under one name and one signature each."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf import fit_weights, select
from gsnmf.convex.selection import fast_gradient_selection
from gsnmf.matrix import wrap_in_memory
from gsnmf.nmf import LowRankResult, hals, minimum_volume, truncated_svd
from gsnmf.support.arrays import COLUMNS_ALONE, Floats, Indices, RawMatrix
from reproduction.preselection import preselect

FACTORIZATIONS = ("nmf", "minimum-volume", "svd")
"""Methods that choose no columns and rows."""

OURS = ("convex", "auto")
REMARK = tuple(f"{family}-{way}" for family in ("snpa", "xray", "fgnsr") for way in ("both", "columns", "rows"))
"""Other separable methods, used in the three ways in which the paper uses SPA. The paper says that they do about as
well."""

LABELS = {
    "gs-fgm": "GS-FGM",
    "gspa": "GSPA",
    "spa-both": "SPA*",
    "spa-columns": "SPA-C",
    "spa-rows": "SPA-R",
    "nmf": "NMF",
    "minimum-volume": "MV-NMF",
    "svd": "SVD",
    "convex": "convex (ours)",
    "auto": "auto (ours)",
}
LABELS |= {
    name: family.upper() + {"both": "*", "columns": "-C", "rows": "-R"}[way]
    for name, (family, _, way) in ((name, name.partition("-")) for name in REMARK)
}

_ITERATIONS = 1000
"""Of NMF and minimum-volume NMF, as in the paper."""
_GIVEN_PAIR = ("convex", "spa-both")
_N_CANDIDATES = 500
"""Columns and rows that clustering preselects from documents, as in the paper."""

_Effort = Literal["fast", "balanced", "best"]


@dataclass(frozen=True)
class Outcome:
    """What a method found.

    Attributes
    ----------
    columns, rows : int arrays
        Empty for methods that choose none.
    W, H : arrays
        The factors.
    relative_error : float
    converged : bool
        Whether the weights, or the factorization, met their tolerance.
    seconds : float
        For the choice of columns and rows, or for the whole factorization.
    """

    columns: Indices
    rows: Indices
    W: Floats
    H: Floats
    relative_error: float
    converged: bool
    seconds: float


def choose(
    matrix: RawMatrix, method: str, rank: int | tuple[int, int], effort: _Effort = "balanced"
) -> tuple[Any, Any]:
    """Columns and rows by a method; a pair (n_columns, n_rows) is used where a method needs it, its sum elsewhere."""
    family, _, way = method.partition("-")
    number = rank if isinstance(rank, int) else sum(rank)
    if method == "gs-fgm":
        printed = fast_gradient_selection(wrap_in_memory(matrix), rank, as_printed=True)
        return printed.columns, printed.rows
    if family in ("snpa", "xray", "fgnsr"):
        pair = rank if isinstance(rank, tuple) else (number, number)
        n_columns, n_rows = {"both": pair, "columns": (number, 0), "rows": (0, number)}[way]
        return _separable(matrix, family, n_columns), _separable(matrix.T, family, n_rows)
    selection = select(matrix, rank if method in _GIVEN_PAIR else number, method=method, effort=effort)
    return selection.columns, selection.rows


def _separable(matrix: RawMatrix, family: str, count: int) -> Indices:
    """Columns by a method of separable NMF."""
    if count == 0:
        return np.empty(0, dtype=np.intp)
    if family == "fgnsr":  # as GS-FGM on synthetic matrices: one lambda, the largest diagonal entries
        return fast_gradient_selection(wrap_in_memory(matrix), (count, 0), axes=COLUMNS_ALONE, as_printed=True).columns
    return select(matrix, count, method=family).columns


def run_method(
    matrix: RawMatrix, method: str, rank: int | tuple[int, int], *, effort: _Effort = "balanced", seed: int = 0
) -> Outcome:
    """Choose columns and rows and fit their weights, or factorize; ``converged`` records a convergence warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.perf_counter()
        if method in FACTORIZATIONS:
            return _factorization(matrix, method, rank if isinstance(rank, int) else sum(rank), seed, begin)
        columns, rows = choose(matrix, method, rank, effort)
        return fitted(matrix, columns, rows, time.perf_counter() - begin)


def fitted(matrix: RawMatrix, columns: Indices, rows: Indices, seconds: float) -> Outcome:
    """Weights of columns and rows that took ``seconds`` to choose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights = fit_weights(matrix, columns, rows)
    return Outcome(
        columns=columns,
        rows=rows,
        W=np.hstack([_dense(matrix[:, columns]), weights.row_weights]),
        H=np.vstack([weights.column_weights, _dense(matrix[rows])]),
        relative_error=weights.relative_error,
        converged=weights.converged,
        seconds=seconds,
    )


def _dense(block: Any) -> Floats:
    return np.asarray(block if isinstance(block, np.ndarray) else block.toarray())


def _factorization(matrix: RawMatrix, method: str, rank: int, seed: int, begin: float) -> Outcome:
    result: LowRankResult
    if method == "nmf":
        result = hals(matrix, rank, max_iterations=_ITERATIONS, random_state=seed)
    elif method == "minimum-volume":
        result = minimum_volume(matrix, rank, max_iterations=_ITERATIONS, random_state=seed)
    else:
        result = truncated_svd(matrix, rank)
    seconds = time.perf_counter() - begin
    none = np.empty(0, dtype=np.intp)
    return Outcome(none, none, result.W, result.H, result.relative_error, result.converged, seconds)


def choose_among_candidates(
    matrix: RawMatrix, rank: int, *, preselected: bool
) -> tuple[dict[str, tuple[Indices, Indices, float]], float]:
    """The paper's five selections with their seconds, by method, and the seconds of the preselection.

    If ``preselected``, among 500 columns and 500 rows that stand for all (`reproduction.preselection`). SPA* takes its
    numbers of columns and rows from GS-FGM.
    """
    m, n = matrix.shape
    begin = time.perf_counter()
    rows, columns, reduced = np.arange(m), np.arange(n), matrix
    if preselected:
        held = wrap_in_memory(matrix)
        candidates = preselect(held, _N_CANDIDATES, _N_CANDIDATES)
        rows, columns, reduced = candidates.rows, candidates.columns, candidates.reduced(held)
    preselection_seconds = time.perf_counter() - begin
    found: dict[str, tuple[Indices, Indices, float]] = {}
    pair: int | tuple[int, int] = rank
    for method in ("gspa", "gs-fgm", "spa-both", "spa-columns", "spa-rows"):
        begin = time.perf_counter()
        chosen_columns, chosen_rows = choose(reduced, method, pair)
        found[method] = columns[chosen_columns], rows[chosen_rows], time.perf_counter() - begin
        if method == "gs-fgm":
            pair = chosen_columns.size, chosen_rows.size
    return found, preselection_seconds

"""The path for a matrix with holes: complete by low rank, choose on the completed matrix, fit on what is observed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.factorization.path import Request, choose, solve
from gsnmf.matrices import InMemoryMatrix, wrap
from gsnmf.matrices.completion import complete, filled
from gsnmf.matrices.observed import MissingValues, Observed, check_missing_values, observe
from gsnmf.results import Choice, Factorization
from gsnmf.support.words import columns_and_rows
from gsnmf.weights.observed import solve_observed_weights


def solve_observed(
    matrix: Any, request: Request, *, missing_values: MissingValues = None, entry_weights: Any = None
) -> Factorization:
    r"""Explain a nonnegative matrix with missing entries by a few of its own columns and rows.

    Three steps: a matrix of low rank fills the holes (`gsnmf.matrices.completion`); columns and rows are chosen on the
    filled matrix; their weights minimise the error on observed entries alone (`gsnmf.weights.observed`). Without holes
    and with equal weights it is `gsnmf.factorization.path.solve`, bit for bit.

    Notes
    -----
    A row or column without an observed entry is never chosen, and predicted as zero; a warning tells how many there
    are. Sparse data with ``"unstored"`` is never made dense: the filled matrix is held as a sparse matrix plus one of
    low rank.
    """
    observed = observed_or_none(matrix, missing_values, entry_weights)
    if observed is None:
        return solve(wrap(matrix), request)
    if request.members != 1 or request.scale:
        raise ValueError("missing entries and entry_weights need members=1 and scale=False.")
    choice, source = choose_observed(observed, request)
    C, R = source.raw_columns(choice.selection.columns), source.T.raw_columns(choice.selection.rows).T
    weights = solve_observed_weights(
        observed, C, R, tolerance=request.tolerance, max_iterations=request.max_iterations, start=choice.start
    )
    return Factorization(choice.selection, weights, source, choice.search, observed_share=observed.share)


def choose_observed(observed: Observed, request: Request) -> tuple[Choice, InMemoryMatrix]:
    """Columns and rows chosen on the completed matrix, and this matrix."""
    n_indices = request.method.checked_rank(request.rank, observed.shape)
    source = completed(observed, n_indices if isinstance(n_indices, int) else sum(n_indices))
    return choose(source, request), source


def completed(observed: Observed, rank: int) -> InMemoryMatrix:
    """The matrix with its holes filled by one of rank ``rank``; a warning tells of empty rows and columns."""
    empty_columns, empty_rows = observed.T.empty_rows.size, observed.empty_rows.size
    if empty_columns or empty_rows:
        warnings.warn(
            f"No entry is observed in {columns_and_rows(empty_columns, empty_rows)} of the matrix. Such columns and "
            "rows are not chosen, and predicted as zero; leave them out of the matrix if that is not wanted.",
            UserWarning,
            stacklevel=5,  # the caller of the public function
        )
    return filled(observed, complete(observed, rank))


def observed_or_none(matrix: Any, missing_values: MissingValues, entry_weights: Any) -> Observed | None:
    """What is observed, or None if that is everything, with equal weights."""
    kind = check_missing_values(missing_values)
    nothing_asked = kind is None or (sp.issparse(matrix) and kind == "nan" and not _stores_nan(matrix))
    if entry_weights is None and nothing_asked:
        return None
    observed = observe(matrix, missing_values=missing_values, entry_weights=entry_weights)
    return None if observed.complete else observed


def _stores_nan(matrix: Any) -> bool:
    return bool(np.isnan(sp.coo_array(matrix).data).any())

"""The path for a matrix with holes: complete by low rank, choose on the completed matrix, fit on what is observed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.factorization.path import Request, choose, solve
from gsnmf.matrices import InMemoryMatrix, wrap
from gsnmf.matrices.completion import complete, filled
from gsnmf.matrices.observed import MissingValues, Observed, check_missing_values, observe
from gsnmf.results import Choice, Factorization
from gsnmf.search.automatic import Effort
from gsnmf.support.words import columns_and_rows
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, warn_unless_converged
from gsnmf.weights.observed import solve_observed_weights


@dataclass(frozen=True, eq=False, repr=False)
class ObservedFactorization(Factorization):
    """A factorization of a matrix with holes, or with weights of its entries.

    ``relative_error`` and ``quality`` are those of the observed entries, with their weights. ``source`` and ``matrix``
    are the completed matrix, and ``W`` and ``H`` hold its columns and rows. `reconstruct` predicts the holes.

    Attributes
    ----------
    observed_share : float
        Share of the entries that are observed, in (0, 1].
    """

    observed_share: float

    def __repr__(self) -> str:
        words = super().__repr__()
        return words if self.observed_share == 1.0 else f"{words}, {100 * self.observed_share:.3g} % observed"


def factorize_observed(
    matrix: Any,
    rank: Any,
    *,
    missing_values: MissingValues = np.nan,
    entry_weights: Any = None,
    method: str = "auto",
    effort: Effort = "balanced",
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
) -> ObservedFactorization:
    r"""Explain a nonnegative matrix with missing entries by a few of its own columns and rows.

    Three steps: a matrix of low rank fills the holes (`gsnmf.matrices.completion`); columns and rows are chosen on the
    filled matrix; their weights minimise the error on observed entries alone (`gsnmf.weights.observed`).

    Parameters
    ----------
    matrix : array-like or SciPy sparse array, shape (m, n)
        What is observed of it is finite and nonnegative.
    rank : int, or pair (n_columns, n_rows)
    missing_values : NaN, "unstored" or None
        Which entries are missing: those that are NaN in a dense array, those that a sparse array does not store, or
        none.
    entry_weights : array or sparse array, shape (m, n), optional
        Nonnegative weight of every entry in the sum of squares; 0 means missing.
    method, effort, tolerance, max_iterations
        As for `gsnmf.factorize`.

    Returns
    -------
    ObservedFactorization
        Without holes and with equal weights it has the same columns, rows and weights as `gsnmf.factorize` gives, bit
        for bit.

    Notes
    -----
    A row or column without an observed entry is never chosen, and predicted as zero; a warning tells how many there
    are. Sparse data with ``"unstored"`` is never made dense: the filled matrix is held as a sparse matrix plus one of
    low rank.

    Examples
    --------
    >>> import numpy as np
    >>> from gsnmf.datasets import planted
    >>> data = planted((60, 50), 3, 2, noise_level=0.01, random_state=0)
    >>> holes = np.random.default_rng(0).random((60, 50)) < 0.3
    >>> result = factorize_observed(np.where(holes, np.nan, data.matrix), 5)
    >>> sorted(result.columns) == list(data.columns), sorted(result.rows) == list(data.rows)
    (True, True)
    >>> hidden = data.matrix[holes]
    >>> bool(np.linalg.norm(result.reconstruct()[holes] - hidden) < 0.02 * np.linalg.norm(hidden))
    True
    """
    request = Request.of(rank, method=method, effort=effort, tolerance=tolerance, max_iterations=max_iterations)
    result = solve_observed(matrix, request, missing_values=missing_values, entry_weights=entry_weights)
    warn_unless_converged(result.weights, request.tolerance)
    return result


def solve_observed(
    matrix: Any, request: Request, *, missing_values: MissingValues = None, entry_weights: Any = None
) -> ObservedFactorization:
    """`factorize_observed` for a request, without the warning about weights."""
    observed = observed_or_none(matrix, missing_values, entry_weights)
    if observed is None:
        plain = solve(wrap(matrix), request)
        return ObservedFactorization(plain.selection, plain.weights, plain.source, 1.0)
    choice, source = choose_observed(observed, request)
    C, R = source.raw_columns(choice.selection.columns), source.T.raw_columns(choice.selection.rows).T
    weights = solve_observed_weights(
        observed, C, R, tolerance=request.tolerance, max_iterations=request.max_iterations, start=choice.start
    )
    return ObservedFactorization(choice.selection, weights, source, observed.share)


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

"""What else the same rank could do: the truncated SVD bound and, on request, NMF, within a budget of work.

Neither can be stopped midway, so their work is estimated beforehand, in operations rather than seconds: the result is
the same on every machine. The bound costs a few products with the matrix; NMF can take longer than the factorization
that it is compared with, and is left out unless requested.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix import InMemoryMatrix
from gsnmf.nmf.hierarchical_least_squares import hals
from gsnmf.nmf.low_rank import truncated_svd
from gsnmf.results import Factorization
from gsnmf.support.arrays import Doubles

DEFAULT_OPERATIONS = 4e10
"""About ten seconds on a laptop, for each of the two."""

_MAX_ITERATIONS = 300
_FEWEST_ITERATIONS = 20
_LANCZOS_ROUNDS = 10
_SVD_FACTOR = 20
_SMALL = 300
"""If the smaller dimension is at most this, or the rank at least 0.3 times it, the full decomposition is computed."""


@dataclass(frozen=True)
class Comparison:
    """Truncated SVD and NMF of a matrix at the rank of a factorization."""

    svd_quality: float | None
    """The largest quality that any approximation of this rank can have; None if it was too much work, or the matrix is
    a Dask array."""
    svd_path: Doubles
    """``svd_path[k]`` is that bound for rank k; empty if it was too much work."""
    nmf_quality: float | None
    """Quality of NMF from one random start; None if it was not requested, or for the reasons above."""
    nmf_note: str = ""
    """A remark on NMF: why it was not computed although requested, or why it stopped."""
    svd_note: str = ""
    """Why there is no bound."""


TOO_MUCH_WORK = "not computed: too much work at this size"
OUT_OF_CORE = "not computed: the matrix is not held in memory"
WITH_HOLES = "not computed: entries are missing, or have weights"
NOT_ASKED = "not computed: no comparison was asked for"

NO_COMPARISON = Comparison(None, np.empty(0), None, svd_note=NOT_ASKED)
"""Stands for no comparison."""


def compare(result: Factorization, *, nmf: bool = False, max_operations: float = DEFAULT_OPERATIONS) -> Comparison:
    """Truncated SVD and, if requested, NMF of the matrix of a result, at its rank, within a budget of operations.

    Parameters
    ----------
    result : Factorization
    nmf : bool
        Compute NMF too, which can take longer than the factorization.
    max_operations : float
        Budget for each of the two; whatever would take more operations is left out.

    Examples
    --------
    >>> import gsnmf
    >>> from gsnmf.explanation.comparison import compare
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 1)
    >>> compare(result).svd_path.round(3)
    array([0.   , 0.684])
    """
    rank = result.selection.n_selected
    if not isinstance(result.source, InMemoryMatrix):
        return Comparison(None, np.empty(0), None, OUT_OF_CORE if nmf else "", OUT_OF_CORE)
    if result.observation is not None:
        return Comparison(None, np.empty(0), None, WITH_HOLES if nmf else "", WITH_HOLES)
    if rank == 0:
        return Comparison(result.quality, np.array([result.quality]), result.quality if nmf else None)
    path = _svd_path(result.source, rank, max_operations)
    nmf_quality, note = _nmf_quality(result.source, rank, max_operations) if nmf else (None, "")
    bound = float(path[-1]) if path.size else None
    return Comparison(bound, path, nmf_quality, note, TOO_MUCH_WORK if bound is None else "")


def _svd_path(matrix: InMemoryMatrix, rank: int, max_operations: float) -> Doubles:
    smaller = min(matrix.shape)
    used = min(rank, smaller)
    if _svd_operations(matrix, used) > max_operations:
        return np.empty(0)
    svd = truncated_svd(matrix, used)
    squares = svd.singular_values.astype(np.float64) ** 2
    last = svd.relative_error**2
    # each error from the last one upwards, which loses no digits
    errors = np.sqrt(last + (1.0 - last) * np.cumsum([0.0, *squares[::-1]])[::-1] / squares.sum())
    return np.concatenate([1.0 - errors, np.full(rank - used, 1.0 - errors[-1])])


def _svd_operations(matrix: InMemoryMatrix, rank: int) -> float:
    m, n = matrix.shape
    if min(m, n) <= _SMALL or rank > 0.3 * min(m, n):
        return float(_SVD_FACTOR * m * n * min(m, n))
    return float(2 * matrix.n_stored * max(2 * rank + 1, 20) * _LANCZOS_ROUNDS)


def _nmf_quality(matrix: InMemoryMatrix, rank: int, max_operations: float) -> tuple[float | None, str]:
    m, n = matrix.shape
    per_iteration = 6.0 * matrix.n_stored * rank + 4.0 * (m + n) * rank**2
    n_iterations = min(_MAX_ITERATIONS, int(max_operations / per_iteration))
    if n_iterations < _FEWEST_ITERATIONS:
        return None, TOO_MUCH_WORK
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = hals(matrix, rank, max_iterations=n_iterations, random_state=0)
    return found.quality, "" if found.converged else f"stopped after {found.n_iterations} iterations"

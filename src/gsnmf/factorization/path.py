"""The data path: matrix -> validate -> (scale) -> choose columns and rows -> weights -> Factorization."""

from __future__ import annotations

import os
from typing import Any

from gsnmf.factorization.registry import AUTO, Method, find_method
from gsnmf.matrices.checks import check_count, check_matrix, check_positive, is_dask
from gsnmf.matrices.protocol import Matrix, wrap
from gsnmf.matrices.scaling import scale as scale_matrix
from gsnmf.results.records import Factorization, Selection
from gsnmf.search.automatic import Effort, automatic_selection, check_effort
from gsnmf.support.arrays import RawMatrix
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, solve_weights, warn_unless_converged


def factorize(
    matrix: Any,
    rank: Any,
    *,
    method: str = "auto",
    effort: Effort = "balanced",
    scale: bool = False,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Factorization:
    r"""Explain a nonnegative matrix by a few of its own columns and rows.

    Chooses columns and rows, ``rank`` in all, and the nonnegative weights that minimise

    .. math:: \| M - M(:, \mathrm{columns})\, P_1 - P_2\, M(\mathrm{rows}, :) \|_F .

    Parameters
    ----------
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        Finite and nonnegative. float32 stays float32; sparse stays sparse. A Dask array, with dense or SciPy sparse
        chunks, is read chunk by chunk and never held as a whole; what is as long as it has rows (``row_weights``,
        ``W``) is then a Dask array, too, in the same chunks of rows.
    rank : int, or pair (n_columns, n_rows)
        How many columns and rows to choose in all; a pair for methods that cannot divide it themselves.
    method : str
        How to choose them: see `gsnmf.methods`.
    effort : {"fast", "balanced", "best"}
        What ``method="auto"`` may spend: about a second, ten seconds, or minutes.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`). The weights and the error
        are those of ``matrix`` itself all the same.
    tolerance : float
        On the relative violation of the optimality conditions of the weights (`gsnmf.weights`).
    max_iterations : int
        Limit on the iterations of the weights.
    checkpoint : path, optional
        A file from which an interrupted choice of the same columns and rows goes on, and which it keeps up to date;
        for the methods "gspa", "spa-columns" and "spa-rows".

    Returns
    -------
    Factorization

    Examples
    --------
    A matrix made of three of its columns and two of its rows, with a little noise:

    >>> import gsnmf
    >>> from gsnmf.datasets import fully_random
    >>> data = fully_random(0.001, shape=(60, 80), n_columns=3, n_rows=2, random_state=0)
    >>> result = gsnmf.factorize(data.matrix, 5)
    >>> sorted(result.columns) == list(data.columns), sorted(result.rows) == list(data.rows)
    (True, True)
    >>> print(f"{result.quality:.1%}")
    99.9%
    """
    tolerance = check_positive(tolerance, "tolerance")
    max_iterations = check_count(max_iterations, "max_iterations")
    checked = check_matrix(matrix, lazy=True)
    choose = _method(method, rank, checked, scale, checkpoint)
    check_effort(effort)
    held = wrap(checked)
    selection = _select(_scaled(checked) if scale else held, rank, choose, effort, checkpoint)
    weights = solve_weights(
        held,
        selection.columns,
        selection.rows,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    warn_unless_converged(weights, tolerance)
    return Factorization(
        columns=selection.columns,
        rows=selection.rows,
        column_weights=weights.column_weights,
        row_weights=weights.row_weights,
        relative_error=weights.relative_error,
        optimality=weights.optimality,
        n_iterations=weights.n_iterations,
        converged=weights.converged,
        selection=selection,
        matrix=checked,
    )


def select(
    matrix: Any,
    rank: Any,
    *,
    method: str = "auto",
    effort: Effort = "balanced",
    scale: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Selection:
    """Choose columns and rows of a nonnegative matrix, without weights; parameters as for `factorize`.

    Examples
    --------
    >>> import gsnmf
    >>> gsnmf.select([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows").rows
    array([0, 1])
    """
    checked = check_matrix(matrix, lazy=True)
    choose = _method(method, rank, checked, scale, checkpoint)
    check_effort(effort)
    return _select(_scaled(checked) if scale else wrap(checked), rank, choose, effort, checkpoint)


def _method(name: str, rank: Any, matrix: RawMatrix, scale: bool, checkpoint: object) -> Method:
    """The method of that name, if it takes such a rank and matrix: known before the data are read."""
    method = find_method(name)
    method.check_place(is_dask(matrix))
    method.checked_rank(rank, matrix.shape)
    if checkpoint is not None:
        method.check_resumable()
    if scale and is_dask(matrix):
        raise ValueError("scale must be False for a Dask array: scaling reads the data hundreds of times.")
    return method


def _scaled(matrix: RawMatrix) -> Matrix:
    return wrap(scale_matrix(matrix).matrix)


def _select(
    matrix: Matrix, rank: Any, method: Method, effort: Effort, checkpoint: str | os.PathLike[str] | None
) -> Selection:
    if method is AUTO:
        return automatic_selection(matrix, method.checked_rank(rank, matrix.shape), effort)
    return method(matrix, rank, checkpoint)

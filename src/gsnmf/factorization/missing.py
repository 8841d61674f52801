"""The path for a matrix with holes: fill it by low rank, choose on the filled matrix, fit to observed entries."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from gsnmf.factorization.path import Request, choose, choose_and_finish, solve
from gsnmf.matrix import InMemoryMatrix, Matrix
from gsnmf.matrix.completion import Completion, complete, filled, with_anchors
from gsnmf.matrix.observed import Observed
from gsnmf.records import Choice
from gsnmf.result import Factorization, Observation
from gsnmf.search.alternatives import substitutes
from gsnmf.weights.observed import solve_anchored, solve_observed_weights


def solve_held(held: Matrix | Observed, request: Request) -> Factorization:
    r"""Explain a matrix, with or without holes, by a few of its own columns and rows.

    With holes there are three steps: a low-rank matrix fills them (`gsnmf.matrix.completion`); columns and rows are
    chosen on the filled matrix; their weights, and the values in the holes of the chosen columns and rows, minimise the
    error on observed entries (`gsnmf.weights.observed`). Factors of several members are mixtures of columns and
    rows of the filled matrix.

    Notes
    -----
    A row or column without an observed entry is never chosen, and predicted as zero. Sparse data with ``"unstored"`` is
    never made dense: the filled matrix is held as a sparse matrix plus one of low rank.
    """
    if isinstance(held, Matrix):
        return solve(held, request)
    source, completion = completed(held, request)
    if request.members > 1:
        return _mixed(held, source, completion, request)
    return choose_and_finish(source, request, lambda choice: _weighted(held, source, completion, choice, request))


def choose_held(held: Matrix | Observed, request: Request) -> Choice:
    """Choose columns and rows of a matrix with or without holes."""
    return choose(held if isinstance(held, Matrix) else completed(held, request)[0], request)


def completed(observed: Observed, request: Request) -> tuple[InMemoryMatrix, Completion]:
    """The matrix with its holes filled by a matrix whose rank is the requested number of indices."""
    if request.checkpoint is not None:
        raise ValueError("checkpoint must be None with missing entries or weights of entries.")
    if request.scale and not observed.from_dense:
        raise ValueError(
            "scale must be False for a sparse array with missing entries or weights of entries: scaling needs every "
            "entry of the filled matrix. Pass a dense array with NaN if it fits in memory."
        )
    n_indices = request.method.checked_rank(request.rank, observed.shape)
    completion = complete(observed, n_indices if isinstance(n_indices, int) else sum(n_indices))
    return filled(observed, completion), completion


def observation_of(observed: Observed, completion: Completion) -> Observation:
    """What a result remembers of the data it was fitted to."""
    return Observation(
        observed.share,
        math.sqrt(observed.squared_norm),
        observed.weights is not None,
        observed.missing_values,
        (completion.left, completion.right),
    )


def _weighted(
    observed: Observed, source: InMemoryMatrix, completion: Completion, choice: Choice, request: Request
) -> Factorization:
    columns, rows = choice.selection.columns, choice.selection.rows
    found = solve_anchored(
        observed,
        source,
        columns,
        rows,
        tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        start=choice.start,
    )
    source = with_anchors(source, columns, rows, found.columns, found.rows)
    seen = replace(observation_of(observed, completion), anchors=(found.columns, found.rows))
    known = partial(substitutes, observed=observed, constraints=request.constraints)
    return Factorization(choice.selection, found.weights, source, choice.search, known, observation=seen)


def _mixed(observed: Observed, source: InMemoryMatrix, completion: Completion, request: Request) -> Factorization:
    """Mixtures found on the filled matrix, with weights fitted to observed entries."""
    try:
        on_filled = solve(source, request)
    except KeyboardInterrupt as interrupt:
        interrupt.best_so_far = None  # type: ignore[attr-defined]  # its error would be that of the filled matrix
        raise
    assert on_filled.mixtures is not None
    weights = solve_observed_weights(
        observed,
        on_filled.mixtures.mixed_columns(on_filled.source),
        on_filled.mixtures.mixed_rows(on_filled.source),
        tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        start=(on_filled.column_weights, on_filled.row_weights),
    )
    return replace(on_filled, weights=weights, observation=observation_of(observed, completion), _substitutes=None)

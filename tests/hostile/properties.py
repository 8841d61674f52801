"""Properties that every result has, whatever the matrix. Each is a function of a case that raises if it does not hold.

`test_properties` checks a few cases of each, `campaign.py` as many as there is time for.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

import gsnmf
from hostile.cases import Case
from hostile.damage import mutated

Property = Callable[[Case], None]

_EXACT = 1e-6
"""Relative error at which a search stops: then the fit counts as exact, and rounding may decide which it is."""


def holds(check: Property, case: Case) -> None:
    """Check a property of a case. It also holds if a Dask array is refused in so many words."""
    try:
        check(case)
    except (ValueError, TypeError) as error:
        if not (case.chunked and "Dask array" in str(error)):
            raise


def _factorize(matrix: Any, rank: Any, method: str, **options: Any) -> gsnmf.Factorization | None:
    """The result, or None where the method does not apply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return gsnmf.factorize(matrix, rank, method=method, effort="fast", **options)
        except ValueError as error:
            if method == "exact" or "rank must be a pair" in str(error):
                return None
            raise


def _dense(array: Any) -> np.ndarray:
    """What an array, sparse array or Dask array holds."""
    array = array.compute() if hasattr(array, "compute") else array
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array)


def _norm(M: np.ndarray) -> float:
    return float(np.linalg.norm(M)) or 1.0


def powers_of_two_change_nothing(case: Case) -> None:
    """Choices, weights and errors of a matrix and of its multiple are the same in every bit."""
    M, exponent = case.ordinary, int(case.rng.integers(-800, 900))
    M[M < 2.0**-100] = 0.0  # multiples must stay exact
    one, other = (_factorize(case.hold(X), case.rank, case.method) for X in (M, np.ldexp(M, exponent)))
    if one is not None:
        assert other is not None
        assert other.selection == one.selection, exponent
        assert other.relative_error == one.relative_error, exponent
        for name in ("column_weights", "row_weights"):
            np.testing.assert_array_equal(_dense(getattr(other, name)), _dense(getattr(one, name)), str(exponent))


def reported_error_is_the_error(case: Case) -> None:
    """The relative error is the one that the returned weights have, and the weights are nonnegative."""
    M = case.entries
    result = _factorize(case.hold(M), case.rank, case.method)
    if result is None:
        return
    unit = -int(np.frexp(M.max())[1])
    exact = np.ldexp(M.astype(np.float64), unit)
    P1, P2 = (_dense(X).astype(np.float64) for X in (result.column_weights, result.row_weights))
    error = np.linalg.norm(exact - exact[:, result.columns] @ P1 - P2 @ exact[result.rows]) / _norm(exact)
    assert abs(error - result.relative_error) <= (1e-5 if case.single else 1e-9), (error, result.relative_error)
    assert min(P1.min(initial=0.0), P2.min(initial=0.0)) >= 0


def choices_are_sound(case: Case) -> None:
    """Indices are distinct, never of zero columns or rows, and as many as the stop reason says."""
    M = case.entries
    result = _factorize(case.hold(M), case.rank, case.method)
    if result is None:
        return
    for indices, lines in ((result.columns, M.T), (result.rows, M)):
        assert np.unique(indices).size == indices.size
        assert lines[indices].any(axis=1).all()
    reached = result.selection.n_selected >= case.rank
    assert (result.stop_reason == "rank reached") == reached, result.stop_reason


def input_is_not_changed(case: Case) -> None:
    """The matrix is the same afterwards, in every bit."""
    M = case.hold(case.entries)
    before = _dense(M).copy()
    _factorize(M, case.rank, case.method)
    np.testing.assert_array_equal(_dense(M), before)


def forms_change_no_choice(case: Case) -> None:
    """The same columns and rows in every memory order and sparse format."""
    M = case.ordinary
    one, other = (_factorize(X, case.rank, case.method) for X in (np.ascontiguousarray(M), case.hold(M)))
    if one is not None:
        assert other is not None
        chosen = (one.columns.tolist(), one.rows.tolist()), (other.columns.tolist(), other.rows.tolist())
        errors = one.relative_error, other.relative_error
        tied = abs(errors[0] - errors[1]) <= 1e-6 * errors[0] + 1e-12 or max(errors) <= _EXACT
        assert chosen[0] == chosen[1] or tied, (chosen, errors)


def permuting_and_transposing_commute(case: Case) -> None:
    """Without ties, the choices for a permuted or transposed matrix are the permuted or transposed choices."""
    rng = case.rng
    m, n = case.m + case.rank, case.n + case.rank  # in one dimension all columns are parallel
    M = rng.random((m, n)) + 0.01
    method = str(rng.choice(["gspa", "pursuit"]))
    rows, columns = rng.permutation(m), rng.permutation(n)
    one = gsnmf.select(M, case.rank, method=method)
    other = gsnmf.select(M[np.ix_(rows, columns)], case.rank, method=method)
    turned = gsnmf.select(M.T, case.rank, method=method)
    assert columns[other.columns].tolist() == one.columns.tolist(), method
    assert rows[other.rows].tolist() == one.rows.tolist(), method
    if m != n:  # a square matrix has a tie between the first column and the first row
        assert (turned.rows.tolist(), turned.columns.tolist()) == (one.columns.tolist(), one.rows.tolist()), method


def weights_are_no_worse_than_alternation(case: Case) -> None:
    """Exact nonnegative least squares of one side after the other finds no better weights."""
    M, rng, (m, n) = case.ordinary, case.rng, (case.m, case.n)
    columns, rows = rng.permutation(n)[: rng.integers(0, 4)], rng.permutation(m)[: rng.integers(0, 4)]
    if columns.size + rows.size == 0:
        return
    weights = gsnmf.fit_weights(case.hold(M), columns, rows, max_iterations=5000)
    C, R = M[:, columns], M[rows]
    P1, P2 = np.zeros((columns.size, n)), np.zeros((m, rows.size))
    for _ in range(20):
        if columns.size:
            P1 = np.column_stack([nnls(C, column)[0] for column in (M - P2 @ R).T])
        if rows.size:
            P2 = np.vstack([nnls(R.T, row)[0] for row in M - C @ P1])
    alternated = float(np.linalg.norm(M - C @ P1 - P2 @ R)) / _norm(M)
    assert weights.relative_error <= alternated + 1e-3 * max(alternated, 1e-3), (weights.relative_error, alternated)


def fitting_transforms(case: Case) -> None:
    """``fit_transform`` gives what ``transform`` gives."""
    X = case.hold(case.entries)
    coefficients: Any = case.rng.choice(["refit", "model"])
    model = gsnmf.GSNMF(case.rank, method="gspa", coefficients=str(coefficients))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        W = model.fit_transform(X)
        np.testing.assert_array_equal(_dense(model.transform(X)), _dense(W))
    assert np.isfinite(_dense(W)).all()


def holes_are_not_read(case: Case) -> None:
    """The error is the one on observed entries, and no prediction is infinite or negative."""
    M, rng = case.ordinary, case.rng
    seen = rng.random(M.shape) < 0.8
    if not (M * seen).any():
        return
    result = _factorize(np.where(seen, M, np.nan), case.rank, "gspa", missing_values=np.nan)
    assert result is not None
    predicted = result.reconstruct()
    assert np.isfinite(predicted).all()
    assert predicted.min() >= 0
    error = float(np.linalg.norm((M - predicted) * seen)) / _norm(M * seen)
    assert abs(error - result.relative_error) <= 1e-6 + 1e-6 * error, (error, result.relative_error)


def entry_weights_count(case: Case) -> None:
    """The error is the weighted one, a weight of zero hides an entry, and multiples of all weights change nothing."""
    M, rng = case.ordinary, case.rng
    seen = rng.random(M.shape) < 0.8
    weights = seen * 10.0 ** rng.uniform(-3, 3, M.shape)
    if not (M * seen).any():
        return
    result = _factorize(case.hold(M), case.rank, "gspa", entry_weights=weights)
    assert result is not None
    predicted = _dense(result.reconstruct())
    assert np.isfinite(predicted).all()
    assert predicted.min() >= 0
    root = np.sqrt(weights)
    error = float(np.linalg.norm(root * (M - predicted))) / _norm(root * M)
    assert abs(error - result.relative_error) <= 1e-6 + 1e-6 * error, (error, result.relative_error)
    for other in (
        _factorize(case.hold(np.where(seen, M, 7.0)), case.rank, "gspa", entry_weights=weights),
        _factorize(case.hold(M), case.rank, "gspa", entry_weights=np.ldexp(weights, 2 * int(rng.integers(-90, 90)))),
    ):
        assert other is not None
        assert other.selection == result.selection
        assert abs(other.relative_error - result.relative_error) <= 1e-9


def negative_entries_are_zeros(case: Case) -> None:
    """``negative="clip"`` is the same as zeros in their places."""
    M = case.ordinary - 0.3
    one = _factorize(case.hold(M), case.rank, case.method, negative="clip")
    other = _factorize(case.hold(np.maximum(M, 0.0)), case.rank, case.method)
    if one is not None:
        assert other is not None
        assert one.selection == other.selection
        assert one.relative_error == other.relative_error


def mixtures_have_few_members(case: Case) -> None:
    """No factor has more members than asked for, and the reported error is the error."""
    M = case.ordinary
    if min(case.m, case.n) < 2:
        return
    result = _factorize(case.hold(M), case.rank, "gspa", members=2)
    assert result is not None
    if result.column_mixture is None or result.row_mixture is None:
        return
    A, B = _dense(result.column_mixture), _dense(result.row_mixture)
    assert (np.count_nonzero(A, axis=0) <= 2).all()
    assert (np.count_nonzero(B, axis=1) <= 2).all()
    error = float(np.linalg.norm(M - result.reconstruct())) / _norm(M)
    assert abs(error - result.relative_error) <= 1e-7, (error, result.relative_error)


def _obedient(case: Case, M: np.ndarray, rank: Any, wishes: gsnmf.Constraints) -> gsnmf.Factorization | None:
    """The factorization under constraints; None if the method refuses them."""
    try:
        return _factorize(case.hold(M), rank, case.method, constraints=wishes)
    except ValueError as error:
        if "Dask array" in str(error):
            raise
        assert "constraints" in str(error) or "zero" in str(error) or "include" in str(error), error  # noqa: PT017
        return None


def constraints_are_obeyed(case: Case) -> None:
    """What is included is chosen, what is excluded is not; or the request is refused."""
    M, rng = case.ordinary, case.rng
    column, row = int(rng.integers(case.n)), int(rng.integers(case.m))
    wishes = gsnmf.Constraints(include_columns=[column], exclude_rows=[row])
    result = _obedient(case, M, case.rank, wishes)
    if result is not None:
        assert column in result.columns
        assert row not in result.rows


def included_copies_are_chosen(case: Case) -> None:
    """Two equal columns that are both included are both chosen, and the error is the error."""
    M = case.ordinary
    M = np.hstack([M, M[:, :1]])
    wishes = gsnmf.Constraints(include_columns=[0, case.n])
    result = _obedient(case, M, max(2, case.rank), wishes)
    if result is not None:
        assert {0, case.n} <= set(result.columns.tolist())
        error = float(np.linalg.norm(M - _dense(result.reconstruct()))) / _norm(M)
        assert abs(error - result.relative_error) <= 1e-9, (error, result.relative_error)


def mixtures_sum_to_one(case: Case) -> None:
    """Weights that are to sum to one do."""
    M, rng = case.ordinary, case.rng
    rows = rng.permutation(case.m)[: case.rank]
    weights = gsnmf.fit_weights(case.hold(M), [], rows, sum_to_one="rows")
    np.testing.assert_allclose(weights.row_weights.sum(axis=1), 1.0, atol=1e-9)
    error = float(np.linalg.norm(M - weights.row_weights @ M[rows])) / _norm(M)
    assert abs(error - weights.relative_error) <= 1e-9


def a_rank_is_recommended(case: Case) -> None:
    """A recommended rank is one of those tried, and frequencies are frequencies; or the matrix is refused."""
    M = case.ordinary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            choice = gsnmf.choose_rank(case.hold(M), range(1, case.rank + 1), n_repeats=2, effort="fast")
            result = gsnmf.factorize(case.hold(M), choice.rank, method="gspa")
            repeated = gsnmf.stability(result, n_repeats=2)
        except ValueError as error:
            assert str(error)  # noqa: PT017
            return
    assert choice.rank in choice.ranks
    assert np.isfinite(choice.errors).all()
    assert ((repeated.frequencies >= 0) & (repeated.frequencies <= 1)).all()


def mutated_results_load_or_are_refused(case: Case) -> None:
    """A damaged file of a result or of a model raises `ValueError` or loads."""
    M, rng = case.rng.random((6, 5)), case.rng
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.npz")
        if case.copies:
            gsnmf.GSNMF(2, method="gspa").fit(M).save(path)
        else:
            gsnmf.save(gsnmf.factorize(M, 3, method="gspa"), path)
        path.write_bytes(mutated(path.read_bytes(), rng))
        try:
            gsnmf.GSNMF.load(path) if case.copies else gsnmf.load(path, M)
        except ValueError as error:
            assert str(path) in str(error) or "must be the one that was factorized" in str(error)  # noqa: PT017


def threads_agree(case: Case) -> None:
    """Four threads at once find what one finds."""
    M = case.hold(case.entries)
    one = _factorize(M, case.rank, case.method)
    with ThreadPoolExecutor(4) as pool:
        others = list(pool.map(lambda _: _factorize(M, case.rank, case.method), range(4)))
    if one is not None:
        assert all(other is not None and other.selection == one.selection for other in others)


QUICK: tuple[Property, ...] = (
    powers_of_two_change_nothing,
    reported_error_is_the_error,
    choices_are_sound,
    input_is_not_changed,
    forms_change_no_choice,
    permuting_and_transposing_commute,
    weights_are_no_worse_than_alternation,
    fitting_transforms,
    negative_entries_are_zeros,
    constraints_are_obeyed,
    included_copies_are_chosen,
    mixtures_sum_to_one,
    mutated_results_load_or_are_refused,
)
SLOW: tuple[Property, ...] = (
    holes_are_not_read,
    entry_weights_count,
    mixtures_have_few_members,
    a_rank_is_recommended,
    threads_agree,
)
"""Properties of which the short draw has fewer cases."""

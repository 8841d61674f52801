"""Properties that every result has, whatever the matrix; each is checked on what one seed draws.

A property is a function of a generator that raises `AssertionError` if it does not hold. `test_properties` checks a few
seeds of each, `campaign.py` as many as there is time for.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf.factorization.registry import methods

Property = Callable[[np.random.Generator], None]

_FORMS: dict[str, Callable[[Any], Any]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "every other entry": lambda M: np.repeat(np.repeat(M, 2, axis=0), 2, axis=1)[::2, ::2],
}
_QUICK = ("gspa", "spa-columns", "spa-rows", "snpa", "snpa-rows", "xray", "xray-rows", "pursuit")


def entries(rng: np.random.Generator) -> np.ndarray:
    """A small nonnegative matrix: ordinary, of low rank, sparse, constant, badly scaled, with copies and zeros."""
    m, n = (int(length) for length in rng.integers(1, 13, 2))
    kind = rng.integers(6)
    if kind == 0:
        M = rng.random((m, n))
    elif kind == 1:
        r = int(rng.integers(1, 4))
        M = rng.random((m, r)) @ rng.random((r, n))
    elif kind == 2:
        M = rng.poisson(0.7, (m, n)).astype(float)
    elif kind == 3:
        M = np.full((m, n), rng.random())
    elif kind == 4:
        M = 10.0 ** rng.uniform(-8, 8, (m, n))
    else:
        M = rng.random((m, n))[:, rng.integers(n, size=n)]
    if rng.random() < 0.3:
        M = M * (rng.random((m, 1)) < 0.7) * (rng.random((1, n)) < 0.7)
    return M


def form(rng: np.random.Generator) -> Callable[[Any], Any]:
    """One of the ways to hold a matrix."""
    return _FORMS[list(_FORMS)[rng.integers(len(_FORMS))]]


def _factorize(matrix: Any, rank: Any, method: str) -> gsnmf.Factorization | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return gsnmf.factorize(matrix, rank, method=method)
        except ValueError as error:
            if method == "exact" or "rank must be a pair" in str(error):
                return None
            raise


def _drawn_method(rng: np.random.Generator) -> str:
    every = [method.name for method in methods()]
    return str(rng.choice(_QUICK if rng.random() < 0.8 else every))


def powers_of_two_change_nothing(rng: np.random.Generator) -> None:
    """Choices, weights and errors of a matrix and of its multiple are the same in every bit."""
    M, hold, method = entries(rng), form(rng), _drawn_method(rng)
    rank, exponent = int(rng.integers(1, max(M.shape) + 1)), int(rng.integers(-900, 900))
    one, other = (_factorize(hold(X), min(rank, *M.shape), method) for X in (M, np.ldexp(M, exponent)))
    if one is not None:
        assert other is not None
        assert other.selection == one.selection, (method, exponent)
        assert other.weights == one.weights, (method, exponent)


def reported_error_is_the_error(rng: np.random.Generator) -> None:
    """The relative error is the one that the returned weights have, in double and in single precision."""
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    M, hold, method = entries(rng).astype(dtype), form(rng), _drawn_method(rng)
    result = _factorize(hold(M), min(int(rng.integers(1, 6)), *M.shape), method)
    if result is None:
        return
    exact, norm = M.astype(np.float64), float(np.linalg.norm(M.astype(np.float64)))
    P1, P2 = result.column_weights.astype(np.float64), result.row_weights.astype(np.float64)
    error = np.linalg.norm(exact - exact[:, result.columns] @ P1 - P2 @ exact[result.rows]) / (norm or 1.0)
    assert np.isfinite(result.relative_error)
    assert abs(error - result.relative_error) <= (1e-5 if dtype == np.float32 else 1e-9), (method, error)
    assert result.column_weights.min(initial=0.0) >= 0
    assert result.row_weights.min(initial=0.0) >= 0


def choices_are_sound(rng: np.random.Generator) -> None:
    """Indices are distinct, never of zero columns or rows, and as many as the stop reason says."""
    M, hold, method = entries(rng), form(rng), _drawn_method(rng)
    rank = min(int(rng.integers(1, 8)), *M.shape)
    result = _factorize(hold(M), rank, method)
    if result is None:
        return
    for indices, lines in ((result.columns, M.T), (result.rows, M)):
        assert np.unique(indices).size == indices.size, method
        assert lines[indices].any(axis=1).all(), method
    reached = result.selection.n_selected >= rank
    assert (result.stop_reason == "rank reached") == reached, (method, result.stop_reason)


def permuting_and_transposing_commute(rng: np.random.Generator) -> None:
    """The choice follows the columns and rows where no two are equally good, as in a matrix of random numbers."""
    m, n = (int(length) for length in rng.integers(3, 13, 2))
    M, rank = rng.random((m, n)), int(rng.integers(1, 4))
    method = str(rng.choice(["gspa", "pursuit"]))
    rows, columns = rng.permutation(m), rng.permutation(n)
    one = gsnmf.select(M, min(rank, m, n), method=method)
    other = gsnmf.select(M[np.ix_(rows, columns)], min(rank, m, n), method=method)
    turned = gsnmf.select(M.T, min(rank, m, n), method=method)
    assert columns[other.columns].tolist() == one.columns.tolist(), method
    assert rows[other.rows].tolist() == one.rows.tolist(), method
    assert (turned.rows.tolist(), turned.columns.tolist()) == (one.columns.tolist(), one.rows.tolist()), method


def weights_are_no_worse_than_alternation(rng: np.random.Generator) -> None:
    """Exact nonnegative least squares of one side after the other finds no better weights."""
    M, hold = entries(rng), form(rng)
    M = M / (M.max() or 1.0)
    m, n = M.shape
    columns, rows = rng.permutation(n)[: rng.integers(0, 4)], rng.permutation(m)[: rng.integers(0, 4)]
    if columns.size + rows.size == 0:
        return
    weights = gsnmf.fit_weights(hold(M), columns, rows, max_iterations=5000)
    C, R = M[:, columns], M[rows]
    P1, P2 = np.zeros((columns.size, n)), np.zeros((m, rows.size))
    for _ in range(20):
        if columns.size:
            P1 = np.column_stack([nnls(C, column)[0] for column in (M - P2 @ R).T])
        if rows.size:
            P2 = np.vstack([nnls(R.T, row)[0] for row in M - C @ P1])
    alternated = float(np.linalg.norm(M - C @ P1 - P2 @ R) / (np.linalg.norm(M) or 1.0))
    assert weights.relative_error <= alternated + 1e-3 * max(alternated, 1e-3), (weights.relative_error, alternated)


def fitting_transforms(rng: np.random.Generator) -> None:
    """``fit_transform`` gives what ``transform`` gives."""
    M, hold = entries(rng), form(rng)
    model = gsnmf.GSNMF(
        min(int(rng.integers(1, 4)), *M.shape), method="gspa", coefficients=str(rng.choice(["refit", "model"]))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = model.fit_transform(hold(M))
        np.testing.assert_array_equal(model.transform(hold(M)), W)
    assert np.isfinite(W).all()


def mutated_results_load_or_are_refused(rng: np.random.Generator) -> None:
    """A damaged file of a result raises `ValueError` or loads."""
    M = rng.random((6, 5))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.npz")
        gsnmf.save(gsnmf.factorize(M, 3, method="gspa"), path)
        whole = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 6))):
            whole[int(rng.integers(len(whole)))] = int(rng.integers(256))
        path.write_bytes(bytes(whole[: int(rng.integers(1, len(whole)))] if rng.random() < 0.2 else whole))
        try:
            gsnmf.load(path, M)
        except ValueError as error:
            assert str(path) in str(error) or "must be the one that was factorized" in str(error)  # noqa: PT017


PROPERTIES: tuple[Property, ...] = (
    powers_of_two_change_nothing,
    reported_error_is_the_error,
    choices_are_sound,
    permuting_and_transposing_commute,
    weights_are_no_worse_than_alternation,
    fitting_transforms,
    mutated_results_load_or_are_refused,
)

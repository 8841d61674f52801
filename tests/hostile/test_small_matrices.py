"""Defects that drawn inputs have found, each with the input that shows it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf.registry import methods


def _selections(matrix, ranks):
    for method in methods():
        for rank in ranks:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                try:
                    yield method.name, rank, gsnmf.select(matrix, rank, method=method.name, effort="fast")
                except (TypeError, ValueError):  # not a rank of this method, or no exact decomposition
                    continue


@pytest.mark.parametrize("seed", range(2))
def test_zero_columns_and_rows_are_never_chosen(seed):
    rng = np.random.default_rng(seed)
    m, n = (int(length) for length in rng.integers(4, 9, 2))
    M = rng.random((m, n))
    M[:, rng.random(n) < 0.4] = 0.0
    M[rng.random(m) < 0.4] = 0.0
    for method, rank, chosen in _selections(M, (min(m, n), (2, 2), (n, 0), (0, m), (n, m))):
        wanted = rank if isinstance(rank, int) else sum(rank)
        assert M[:, chosen.columns].any(axis=0).all(), method
        assert M[chosen.rows].any(axis=1).all(), method
        assert np.unique(chosen.columns).size == chosen.columns.size, method
        assert np.unique(chosen.rows).size == chosen.rows.size, method
        assert (chosen.stop_reason == "rank reached") == (chosen.n_selected == wanted), (method, rank)


def test_no_compiled_division_by_zero():
    assert gsnmf.select(np.array([[1e-7, 1e-5], [1e10, 0]]), 2, method="snpa").n_selected == 2


def test_absolute_error_of_huge_entries():
    rng = np.random.default_rng(0)
    exact = gsnmf.factorize(np.full((3, 4), 1.7e308), 1, method="gspa")
    assert exact.absolute_error == 0.0 or exact.absolute_error < 1e-14 * 1.7e308
    M = rng.random((5, 6))
    result = gsnmf.factorize(M, 2, method="gspa")
    assert result.absolute_error == pytest.approx(np.linalg.norm(M - result.reconstruct()))
    scaled = gsnmf.factorize(np.ldexp(M, 900), 2, method="gspa")
    assert scaled.absolute_error == np.ldexp(result.absolute_error, 900)


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("seed", range(10))
def test_error_of_single_precision_is_what_it_says(hold, seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9, 2)
    flat, low = np.full((m, n), rng.random()), rng.random((m, 2)) @ rng.random((2, n))
    for M in (flat, low, rng.random((m, n)) * (rng.random((m, n)) < 0.6)):
        single = M.astype(np.float32)
        columns, rows = rng.permutation(n)[: rng.integers(1, 3)], rng.permutation(m)[: rng.integers(1, 3)]
        weights = gsnmf.fit_weights(hold(single), columns, rows, tolerance=1e-3)
        exact = single.astype(np.float64)
        P1, P2 = weights.column_weights.astype(np.float64), weights.row_weights.astype(np.float64)
        error = np.linalg.norm(exact - exact[:, columns] @ P1 - P2 @ exact[rows])
        assert weights.relative_error == pytest.approx(error / (np.linalg.norm(exact) or 1.0), abs=1e-6)


_SMALLER = np.array([[1.0, 2.0, 1.0, 0.5], [0.5, 1.0, 3.0, 1.0], [2.0, 0.25, 1.0, 1.5], [1.0, 1.0, 0.125, 2.0]])
_FORMS = {"C": np.ascontiguousarray, "Fortran": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}


def _with_ties():
    """Matrices on which rounding decided: copies of columns, and symmetric ones."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        yield rng.random((6, 5))[:, rng.integers(5, size=11)]
        yield rng.poisson(0.7, (9, 7)) + 0.1
    yield _SMALLER + _SMALLER.T


@pytest.mark.parametrize("method", ["convex", "gs-fgm"])
def test_memory_order_and_format_decide_nothing(method):
    for M in _with_ties():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = {name: gsnmf.select(form(M), 3, method=method) for name, form in _FORMS.items()}
        chosen = {name: (one.columns.tolist(), one.rows.tolist()) for name, one in found.items()}
        assert all(other == chosen["C"] for other in chosen.values()), chosen


def test_including_copies_and_zeros():
    M = np.array([[1.0, 1.0, 0.0, 2.0], [2.0, 2.0, 0.0, 1.0], [3.0, 3.0, 0.0, 1.0]])
    for method in ("gspa", "spa-columns"):
        wishes = gsnmf.Constraints(include_columns=[0, 1])
        assert gsnmf.factorize(M, 3, method=method, constraints=wishes).relative_error < 1e-12
        with pytest.raises(ValueError, match="include_columns must not be zero"):
            gsnmf.factorize(M, 2, method=method, constraints=gsnmf.Constraints(include_columns=[2]))


@pytest.mark.parametrize("method", ["gspa", "spa-columns", "spa-rows"])
@pytest.mark.parametrize("chunks", [(3, -1), pytest.param((2, 2), marks=pytest.mark.long)])
def test_including_copies_in_dask_arrays(tmp_path, method, chunks):
    """Nothing is left of a copy: its residual must not be divided by its length, also on the way back from a file."""
    da = pytest.importorskip("dask.array")
    A = np.random.default_rng(0).random((5, 4))
    M = np.block([[A, A[:, :1]], [A[:1], A[:1, :1]]])
    wishes = {
        "columns": gsnmf.Constraints(include_columns=[0, 4]),
        "rows": gsnmf.Constraints(include_rows=[0, 5]),
    }
    for axis, constraints in wishes.items():
        if method.startswith("spa") and not method.endswith(axis):
            continue
        expected = gsnmf.select(M, 4, method=method, constraints=constraints)
        chunked = da.from_array(M, chunks=chunks)
        for name in (None, tmp_path / "checkpoint.npz", tmp_path / "checkpoint.npz"):
            found = gsnmf.select(chunked, 4, method=method, constraints=constraints, checkpoint=name)
            assert (found.columns.tolist(), found.rows.tolist()) == (expected.columns.tolist(), expected.rows.tolist())
        (tmp_path / "checkpoint.npz").unlink()

"""Saved results, models and checkpoints: another matrix, damage and forgery each give one `ValueError`."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.io import load_provenance
from hostile.damage import mutated

_RNG = np.random.default_rng(0)
_MATRIX = _RNG.random((9, 8))


@pytest.fixture
def result_file(tmp_path):
    gsnmf.save(gsnmf.factorize(_MATRIX, 4, method="gspa"), tmp_path / "result.npz")
    return tmp_path / "result.npz"


@pytest.fixture
def model_file(tmp_path):
    gsnmf.GSNMF(3, effort="fast").fit(_MATRIX).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture
def checkpoint_file(tmp_path):
    gsnmf.select(_MATRIX, 4, method="gspa", checkpoint=tmp_path / "checkpoint.npz")
    return tmp_path / "checkpoint.npz"


def _resume(path, matrix=_MATRIX):
    return gsnmf.select(matrix, 4, method="gspa", checkpoint=path)


def _forge(path, *, record=None, **arrays):
    """Replace arrays of an archive, and entries of its record; None removes them."""
    with np.load(path, allow_pickle=False) as archive:
        kept = dict(archive)
    if record is not None:
        known = json.loads(str(kept["record"])) | record
        kept["record"] = np.array(json.dumps({name: value for name, value in known.items() if value is not None}))
    for name, value in arrays.items():
        kept[name.replace("__", ".")] = value
    with path.open("wb") as stream:
        np.savez(stream, **{name: value for name, value in kept.items() if value is not None})


def _with_equal_norms():
    """Two matrices with the same norm of every row and every column."""
    one = np.full((9, 8), 0.5)
    one[:2, :2] = [[1.0, 2.0], [2.0, 1.0]]
    other = one.copy()
    other[:2, :2] = [[2.0, 1.0], [1.0, 2.0]]
    return one, other


@pytest.mark.parametrize("order", [np.r_[1, 0, 2:8], np.arange(8)[::-1]])
def test_columns_in_another_order_are_another_matrix(result_file, order):
    with pytest.raises(ValueError, match="other entries, or with its rows or columns in another order"):
        gsnmf.load(result_file, _MATRIX[:, order])
    with pytest.raises(ValueError, match="other entries"):
        gsnmf.load(result_file, np.random.default_rng(1).permutation(_MATRIX))


@pytest.mark.parametrize("kind", ["float32", "csr", "csc", "fortran", "dask"])
def test_the_same_matrix_in_another_form_is_recognised(result_file, kind):
    forms = {
        "float32": lambda M: M.astype(np.float32),
        "csr": sp.csr_array,
        "csc": sp.csc_array,
        "fortran": np.asfortranarray,
        "dask": lambda M: pytest.importorskip("dask.array").from_array(M, chunks=(4, 3)),
    }
    assert gsnmf.load(result_file, forms[kind](_MATRIX)).selection.n_selected == 4


def test_a_multiple_by_a_power_of_two_is_another_matrix(tmp_path):
    huge = np.ldexp(_MATRIX, 1023)  # the norm is infinite
    gsnmf.save(gsnmf.factorize(huge, 2, method="gspa"), tmp_path / "r.npz")
    assert gsnmf.load(tmp_path / "r.npz", huge).selection.n_selected == 2
    with pytest.raises(ValueError, match="must be the one that was factorized"):
        gsnmf.load(tmp_path / "r.npz", np.ldexp(huge, -1))


def test_a_checkpoint_of_a_matrix_with_equal_norms_is_refused(tmp_path):
    one, other = _with_equal_norms()
    np.testing.assert_allclose(np.linalg.norm(one, axis=0), np.linalg.norm(other, axis=0))
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1))
    _resume(tmp_path / "c.npz", one)
    with pytest.raises(ValueError, match="of another matrix: its entries are different"):
        _resume(tmp_path / "c.npz", other)


@pytest.mark.parametrize(
    "forged",
    [
        {"columns": np.array([-1, 0])},
        {"columns": np.array([0.5, 1.0])},
        {"columns": np.array([0, 99])},
        {"columns": None},
        {"column_weights": np.full((2, 8), np.nan)},
        {"row_weights": np.full((9, 2), -1.0)},
        {"row_weights": np.ones((3, 3))},
        {"row_weights": np.array([["a"]])},
        {"record": {"norm": float("nan")}},
        {"record": {"norm": "one"}},
        {"record": {"norm": None}},
        {"record": {"relative_error": float("nan")}},
        {"record": {"order": ["columns"]}},
        {"record": {"order": 3}},
        {"record": {"stop_reason": "whim"}},
        {"record": {"shape": [9]}},
        {"record": {"shape": "9x8"}},
        {"record": {"fingerprint": "x"}},
        {"record": {"version": "new"}},
        {"record": {"plan": {"method": "none"}}},
        {"record": {"constraints": {"include_columns": "a"}}},
    ],
)
def test_forged_results_are_refused(result_file, forged):
    _forge(result_file, **forged)
    with pytest.raises(ValueError, match=r"is not a result that gsnmf saved, or is damaged: .+"):
        gsnmf.load(result_file, _MATRIX)


@pytest.mark.parametrize("record", ["3", "[]", "{", '{"version": 2}'])
def test_other_records_are_refused(tmp_path, record):
    np.savez(tmp_path / "r.npz", record=np.array(record))
    for read in (lambda path: gsnmf.load(path, _MATRIX), load_provenance, gsnmf.GSNMF.load):
        with pytest.raises(ValueError, match="that gsnmf saved, or is damaged"):
            read(tmp_path / "r.npz")


@pytest.mark.parametrize(
    "forged",
    [
        {"components_": np.full((3, 8), np.nan)},
        {"components_": np.ones((2, 8))},
        {"components_": None},
        {"feature_indices_": np.array([-1])},
        {"labels_": np.full(9, 77)},
        {"group_means": np.full((3, 8), np.nan)},
        {"group_means": np.ones((2, 8))},
        {"group_means": None},
        {"record": {"largest_group": 77}},
        {"record": {"largest_group": "x"}},
        {"record": {"n_iter_": "x"}},
        {"record": {"quality_": None}},
        {"record": {"constraints": 3}},
        {"record": {"result": {"shape": [9, 8]}}},
        {"record": {"parameters": {"unknown": 1}}},
        {"record": {"order": None}},
        {"record": {"stop_reason": "whim"}},
    ],
)
def test_forged_models_are_refused(model_file, forged):
    _forge(model_file, **forged)
    with pytest.raises(ValueError, match=r"is not a model that gsnmf saved, or is damaged: .+"):
        gsnmf.GSNMF.load(model_file)


@pytest.mark.parametrize(
    "forged",
    [
        {"picks__indices": np.array([-1, 0, 1, 2])},
        {"picks__indices": np.array([0, 1])},
        {"picks__indices": np.array([0.5] * 4)},
        {"picks__indices": None},
        {"picks__axes": np.array(["sideways"] * 4)},
        {"picks__axes": np.array(3)},
        {"columns__squared": np.full(8, np.nan)},
        {"columns__squared": np.ones(5)},
        {"columns__squared": np.array(["x"])},
        {"columns__squared": None},
    ],
)
def test_forged_checkpoints_are_refused(checkpoint_file, forged):
    _forge(checkpoint_file, **forged)
    with pytest.raises(ValueError, match=r"is damaged or not a checkpoint \(.+\); delete it to begin again"):
        _resume(checkpoint_file)


@pytest.mark.parametrize("kind", ["result", "model", "checkpoint"])
def test_mutated_files_load_as_they_were_or_not_at_all(kind, request):
    path = request.getfixturevalue(f"{kind}_file")
    read = {
        "result": lambda: gsnmf.load(path, _MATRIX),
        "model": lambda: gsnmf.GSNMF.load(path),
        "checkpoint": lambda: _resume(path),
    }[kind]
    read()
    whole = path.read_bytes()
    refused = 0
    rng = np.random.default_rng(1)
    for _ in range(100):
        path.write_bytes(mutated(whole, rng))
        try:
            read()
        except ValueError as error:
            refused += 1
            assert str(path) in str(error)  # noqa: PT017
    assert refused > 50


def test_pickled_objects_are_never_executed(result_file, tmp_path):
    executed = tmp_path / "executed"

    class Payload:
        def __reduce__(self):
            return open, (str(executed), "w")

    with np.load(result_file) as archive:
        arrays = dict(archive)
    stream = io.BytesIO()
    np.save(stream, np.array([Payload()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(result_file, "w") as archive:
        for name in arrays:
            archive.writestr(f"{name}.npy", stream.getvalue())
    for read in (lambda path: gsnmf.load(path, _MATRIX), gsnmf.GSNMF.load, _resume):
        with pytest.raises(ValueError, match="allow_pickle"):
            read(result_file)
    assert not executed.exists()

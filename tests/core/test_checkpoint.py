"""An interrupted selection goes on from its checkpoint to the same end."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import checkpoint as checkpoints
from gsnmf.matrix.projection import ResidualNorms

METHODS = ["gspa", "spa-columns", "spa-rows"]


@pytest.fixture(autouse=True)
def _every_step(monkeypatch):
    monkeypatch.setattr(checkpoints, "_SHARE", 0.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "selection.npz"


def matrix_of(form, seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.random((40, 50)) * (rng.random((40, 50)) < 0.5)
    if form == "dask":
        return pytest.importorskip("dask.array").from_array(matrix, chunks=(15, 20))
    return sp.csr_array(matrix) if form == "sparse" else matrix


def before_every_search(monkeypatch, work):
    """Do something before any side looks for its farthest column or row."""
    kinds = [ResidualNorms]
    if find_spec("dask"):
        kinds.append(import_module("gsnmf.matrix.dask.projection").ChunkedRows)
    for kind in kinds:

        def farthest(self, original=kind.farthest):
            work()
            return original(self)

        monkeypatch.setattr(kind, "farthest", farthest)


def interrupt(monkeypatch, after):
    """Let the step that many steps from now fail."""
    left = after

    def fail():
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1

    before_every_search(monkeypatch, fail)


def same(a, b):
    return a.order == b.order and a.columns.tolist() == b.columns.tolist() and a.rows.tolist() == b.rows.tolist()


@pytest.mark.parametrize("form", ["dense", "sparse", "dask"])
@pytest.mark.parametrize("method", METHODS)
def test_goes_on_to_the_same_end(method, form, path, monkeypatch):
    matrix = matrix_of(form)
    expected = gsnmf.select(matrix, 12, method=method)
    with monkeypatch.context() as patch:
        interrupt(patch, after=14 if method == "gspa" else 7)
        with pytest.raises(KeyboardInterrupt):
            gsnmf.select(matrix, 12, method=method, checkpoint=path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with monkeypatch.context() as patch:
        steps = []
        before_every_search(patch, lambda: steps.append(1))
        assert same(gsnmf.select(matrix, 12, method=method, checkpoint=path), expected)
        assert len(steps) == (10 if method == "gspa" else 5)  # seven were done


@pytest.mark.parametrize("method", METHODS)
def test_a_finished_selection_is_not_repeated(method, path, monkeypatch):
    matrix = matrix_of("dense")
    expected = gsnmf.factorize(matrix, 5, method=method, checkpoint=path)
    interrupt(monkeypatch, after=0)
    again = gsnmf.factorize(matrix, 5, method=method, checkpoint=path)
    assert same(again.selection, expected.selection)
    assert again.relative_error == expected.relative_error


def test_other_chunks_are_the_same_matrix(path, monkeypatch):
    matrix = matrix_of("dask")
    with monkeypatch.context() as patch:
        interrupt(patch, after=8)
        with pytest.raises(KeyboardInterrupt):
            gsnmf.select(matrix, 9, method="gspa", checkpoint=path)
    found = gsnmf.select(matrix.rechunk((7, 50)), 9, method="gspa", checkpoint=path)
    assert same(found, gsnmf.select(matrix_of("dense"), 9, method="gspa"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "spa-columns"}, "another method: gspa instead of spa-columns"),
        ({"rank": 6}, "another rank: 5 instead of 6"),
        ({"matrix": matrix_of("dense")[:-1]}, r"another shape: \[40 50\] instead of \[39 50\]"),
        ({"matrix": matrix_of("dense").astype(np.float32)}, "another dtype: float64 instead of float32"),
        ({"matrix": matrix_of("dense", seed=1)}, "another matrix"),
        ({"matrix": matrix_of("dense")[::-1]}, "another matrix"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(change, words, path):
    arguments = {"matrix": matrix_of("dense"), "rank": 5, "method": "gspa", "checkpoint": path}
    gsnmf.select(**arguments)
    with pytest.raises(ValueError, match=rf"belongs to another selection, of {words}"):
        gsnmf.select(**(arguments | change))


def test_damaged_files_are_refused(path):
    arguments = {"matrix": matrix_of("dense"), "rank": 5, "method": "gspa", "checkpoint": path}
    gsnmf.select(**arguments)
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:-30], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is damaged or not a checkpoint .*; delete it to begin again"):
            gsnmf.select(**arguments)
    for save in (np.save, np.savez):
        with path.open("wb") as file:
            save(file, np.ones(3))
        with pytest.raises(ValueError, match="not a checkpoint"):
            gsnmf.select(**arguments)


def test_methods_without_checkpoints_say_so(path):
    with pytest.raises(ValueError, match=r"one of 'gspa', 'spa-columns', 'spa-rows' with a checkpoint; got 'auto'"):
        gsnmf.select(matrix_of("dense"), 5, checkpoint=path)
    assert not path.exists()


def test_writing_takes_a_small_share_of_the_time(path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_SHARE", 1e9)
    written = []
    replace = type(path).replace
    monkeypatch.setattr(type(path), "replace", lambda self, other: written.append(1) or replace(self, other))
    gsnmf.select(matrix_of("dense"), 12, method="gspa", checkpoint=path)
    assert len(written) == 2  # the first, and the last

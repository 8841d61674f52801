"""Results survive a round trip, and files are whole or not there."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf.datasets import planted
from gsnmf.io import load_provenance
from gsnmf.support.atomic_files import atomic_files, atomic_write


@pytest.fixture(params=[np.float64, np.float32])
def result(request):
    return gsnmf.factorize(planted((30, 20), 2, 2, random_state=0).matrix.astype(request.param), 4, method="gspa")


def test_round_trip(result, tmp_path):
    gsnmf.save(result, tmp_path / "r.npz", provenance={"who": "<é>", "numbers": [1, 2.5]})
    again = gsnmf.load(str(tmp_path / "r.npz"), result.matrix)
    for name in ("columns", "rows", "column_weights", "row_weights"):
        before, after = getattr(result, name), getattr(again, name)
        np.testing.assert_array_equal(before, after)
        assert before.dtype == after.dtype
    for name in ("relative_error", "optimality", "n_iterations", "converged", "stop_reason", "quality"):
        assert getattr(result, name) == getattr(again, name)
    assert again.selection.order == result.selection.order
    assert again.selection.method == "gspa"
    np.testing.assert_array_equal(again.reconstruct(), result.reconstruct())
    assert load_provenance(tmp_path / "r.npz") == {"who": "<é>", "numbers": [1, 2.5]}
    assert os.listdir(tmp_path) == ["r.npz"]


def test_plain_numpy_reads_it(result, tmp_path):
    gsnmf.save(result, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as archive:
        assert archive["columns"].tolist() == result.columns.tolist()
        assert json.loads(str(archive["record"]))["method"] == "gspa"


def test_the_matrix_may_come_in_another_form(result, tmp_path):
    gsnmf.save(result, tmp_path / "r.npz")
    assert gsnmf.load(tmp_path / "r.npz", sp.csr_array(result.matrix.astype(np.float32))).rows.size == result.rows.size


def test_another_matrix_is_refused(result, tmp_path):
    gsnmf.save(result, tmp_path / "r.npz")
    with pytest.raises(ValueError, match=r"of shape \(30, 20\); got shape \(20, 30\)"):
        gsnmf.load(tmp_path / "r.npz", result.matrix.T)
    with pytest.raises(ValueError, match=r"with norm .*; got one with norm"):
        gsnmf.load(tmp_path / "r.npz", result.matrix * 1.01)


def test_empty_result(tmp_path):
    empty = gsnmf.factorize(np.zeros((3, 2)), 1)
    gsnmf.save(empty, tmp_path / "r.npz")
    assert gsnmf.load(tmp_path / "r.npz", np.zeros((3, 2))).columns.size == 0


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "r.npz").write_bytes(content)
    with pytest.raises(ValueError, match="is not a result that gsnmf saved"):
        gsnmf.load(tmp_path / "r.npz", np.eye(2))


def test_other_archives_and_newer_versions_are_refused(tmp_path):
    np.savez(tmp_path / "r.npz", columns=[1])
    with pytest.raises(ValueError, match="is not a result that gsnmf saved"):
        gsnmf.load(tmp_path / "r.npz", np.eye(2))
    np.savez(tmp_path / "r.npz", record=np.array('{"format": "gsnmf result", "version": 99}'))
    with pytest.raises(ValueError, match="saved by a newer gsnmf, in version 99"):
        gsnmf.load(tmp_path / "r.npz", np.eye(2))
    with pytest.raises(FileNotFoundError):
        gsnmf.load(tmp_path / "none.npz", np.eye(2))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_fails_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "f"
    path.write_text("old", encoding="utf-8")

    def half():
        with atomic_write(path) as stream:
            stream.write(b"new")
            raise error

    with pytest.raises(BaseException) as raised:  # noqa: PT011
        half()
    assert isinstance(raised.value, (KeyboardInterrupt, OSError))
    assert (os.listdir(tmp_path), path.read_text(encoding="utf-8")) == (["f"], "old")


def test_files_have_ordinary_permissions(tmp_path):
    with atomic_write(tmp_path / "new") as stream:
        stream.write(b"x")
    (tmp_path / "usual").write_bytes(b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_several_files_are_all_there_or_none(tmp_path, monkeypatch):
    """The second file meets a full disk only when it is flushed, after the first is safe."""
    synced = []

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    def write_both():
        with atomic_files(tmp_path, "ab") as draft:
            for name in "ab":
                (draft / name).write_bytes(b"x")

    with pytest.raises(OSError, match="No space left") as raised:
        write_both()
    assert raised.value.filename == str(tmp_path)
    assert os.listdir(tmp_path) == []
    write_both()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]

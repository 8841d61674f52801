"""Files that are damaged, doubtful or pipes: one error that names the file, in a process that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.io

from gsnmf.datasets import FileError, read_matrix
from hostile.damage import ARRAY, COORDINATE, MATRIX, read_damaged, read_damaged_scenes


@pytest.mark.parametrize("text", [COORDINATE, ARRAY, COORDINATE.upper().replace("MATRIXMARKET", "MatrixMarket")])
def test_sound_matrix_market_files(tmp_path, text):
    (tmp_path / "m.mtx").write_text(text, encoding="utf-8")
    found = read_matrix(tmp_path / "m.mtx").matrix
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    expected = [[1, 3], [2, 4]] if text is ARRAY else [[0.5, 0], [0, 0], [0, 20]]
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%%MatrixMarket matrix coordinate foo general\n1 1 1\n1 1 1\n", "one of real, .*; got 'foo'"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "got 'complex'"),
        ("%%MatrixMarket vector coordinate real general\n1 1 1\n", "opens with"),
        ("", "opens with"),
        (COORDINATE.replace("0.5", "0\x005"), "entries must be numbers"),
        (COORDINATE.replace("0.5", "nan"), "entries must be numbers; got 'n'"),
        (COORDINATE.replace("3 2 2", "3 2"), "its sizes must be 3 integers"),
        (COORDINATE.replace("3 2 2", "3 -2 2"), "its sizes must be 3 integers"),
        (COORDINATE.replace("3 2 2", "3 2 200"), r"announces 200 entries, but has only \d+ bytes"),
        (COORDINATE.replace("3 2 2", "3000000000000 2 2"), "which takes .* GB; this machine has"),
        (ARRAY.replace("2 2", "90000000 90000000"), "which takes .* GB; this machine has"),
        (ARRAY.replace("2 2", "300 300"), "announces 90000 entries"),
        (ARRAY.replace("general", "symmetric").replace("2 2", "2 3"), "must be square"),
    ],
)
def test_damaged_matrix_market_files(tmp_path, text, words):
    path = tmp_path / "m.mtx"
    path.write_bytes(text.encode())
    with pytest.raises(FileError, match=words) as raised:
        read_matrix(path)
    assert str(path) in str(raised.value)


def test_mutated_files_end_no_process(tmp_path):
    assert read_damaged(tmp_path, np.random.default_rng(0), 8) == 14 * 8


@pytest.mark.long
def test_mutated_scenes_end_no_process(tmp_path):
    assert read_damaged_scenes(tmp_path, np.random.default_rng(0), 8) == 6 * 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n,2\n3,4\n5,1\n", "the first column has '' as well as '3'"),
        ("a,b\nx1,2\n3,4\n", "the first column has 'x1' as well as '3'"),
        ("x1,2\n3,4\n", "the first column has 'x1' as well as '3'"),
        (",2.5\n3,4\n", "the first cell is blank and all others are numbers"),
    ],
)
def test_a_doubtful_first_column_is_an_error(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=rf"{words}; say whether .*row_names=True"):
        read_matrix(tmp_path / "t.csv")
    assert len(read_matrix(tmp_path / "t.csv", row_names=True).row_names) >= 1


def test_a_doubtful_first_line_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,n/a\n3,4,5\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"opens with the number '1' .*header=True or header=False"):
        read_matrix(tmp_path / "t.csv")
    assert read_matrix(tmp_path / "t.csv", header=True).matrix.shape == (1, 3)


def test_the_log_says_what_was_taken_as_names(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("name,a,b\nx,1,2\n", encoding="utf-8")
    with caplog.at_level("INFO", "gsnmf"):
        read_matrix(tmp_path / "t.csv")
    assert "took the first line and the first column as names" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", ["matlab", "cluto", "mtx"])
def test_a_pipe_is_read_once(tmp_path, kind):
    whole = tmp_path / "whole"
    if kind == "matlab":
        scipy.io.savemat(whole, {"M": MATRIX}, appendmat=False)
    else:
        whole.write_text("2 3 3\n1 1.5 2 2\n3 1\n" if kind == "cluto" else COORDINATE, encoding="utf-8")
    pipe = tmp_path / f"pipe.{'mtx' if kind == 'mtx' else 'mat'}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(whole.read_bytes()), daemon=True)
    writer.start()
    found = read_matrix(pipe).matrix
    writer.join(timeout=300)
    assert not writer.is_alive()
    assert found.shape == {"matlab": (4, 3), "cluto": (2, 3), "mtx": (3, 2)}[kind]


def test_an_interrupt_of_the_imports_is_one_line():
    code = "import gsnmf.cli as cli\ndef stop(): raise KeyboardInterrupt\ncli._run = stop\ncli.main()"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stderr) == (128 + signal.SIGINT, "gsnmf: stopped\n")


def test_the_package_is_light_to_import():
    """Nothing heavy is imported before `main` can catch an interrupt."""
    code = "import sys, gsnmf.cli; print([name for name in ('numpy', 'scipy', 'typer') if name in sys.modules])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert child.stdout == "[]\n"

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

from gsnmf.datasets import read_matrix
from gsnmf.datasets.readers import FileError

_MATRIX = np.arange(12.0).reshape(4, 3)
_COORDINATE = "%%MatrixMarket matrix coordinate real general\n% made by hand\n3 2 2\n1 1 0.5\n3 2 2e1\n"
_ARRAY = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"

_READ_ALL = """
import sys
from pathlib import Path
from gsnmf.datasets import read_matrix
from gsnmf.datasets.readers import FileError
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        read_matrix(path)
    except (FileError, ValueError, TypeError):
        pass
print("done")
"""


def _read_in_child(folder):
    """Read all files of a folder in another process, so that a crash is seen."""
    child = subprocess.run([sys.executable, "-c", _READ_ALL, str(folder)], capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, (child.stdout.splitlines()[-1:], child.stderr[-2000:])
    assert child.stdout.endswith("done\n")


@pytest.mark.parametrize("text", [_COORDINATE, _ARRAY, _COORDINATE.upper().replace("MATRIXMARKET", "MatrixMarket")])
def test_sound_matrix_market_files(tmp_path, text):
    (tmp_path / "m.mtx").write_text(text)
    found = read_matrix(tmp_path / "m.mtx").matrix
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    expected = [[1, 3], [2, 4]] if text is _ARRAY else [[0.5, 0], [0, 0], [0, 20]]
    np.testing.assert_array_equal(dense, expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%%MatrixMarket matrix coordinate foo general\n1 1 1\n1 1 1\n", "one of real, .*; got 'foo'"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "got 'complex'"),
        ("%%MatrixMarket vector coordinate real general\n1 1 1\n", "opens with"),
        ("", "opens with"),
        (_COORDINATE.replace("0.5", "0\x005"), "entries must be numbers"),
        (_COORDINATE.replace("0.5", "nan"), "entries must be numbers; got 'n'"),
        (_COORDINATE.replace("3 2 2", "3 2"), "its sizes must be 3 integers"),
        (_COORDINATE.replace("3 2 2", "3 -2 2"), "its sizes must be 3 integers"),
        (_COORDINATE.replace("3 2 2", "3 2 200"), r"announces 200 entries, but has only \d+ bytes"),
        (_COORDINATE.replace("3 2 2", "3000000000000 2 2"), "which takes .* GB; this machine has"),
        (_ARRAY.replace("2 2", "90000000 90000000"), "which takes .* GB; this machine has"),
        (_ARRAY.replace("2 2", "300 300"), "announces 90000 entries"),
        (_ARRAY.replace("general", "symmetric").replace("2 2", "2 3"), "must be square"),
    ],
)
def test_damaged_matrix_market_files(tmp_path, text, words):
    path = tmp_path / "m.mtx"
    path.write_bytes(text.encode())
    with pytest.raises(FileError, match=words) as raised:
        read_matrix(path)
    assert str(path) in str(raised.value)


def _mutated(whole, rng):
    changed = bytearray(whole)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(changed)))
        piece = [b"\0", b"-", b" ", b"\n", b"9" * 18, b"e", b".", b"%", b"\xff", rng.bytes(3)][rng.integers(10)]
        if rng.random() < 0.5:
            changed[at : at + int(rng.integers(1, 4))] = piece
        else:
            changed[at:at] = piece
    return bytes(changed[: int(rng.integers(1, len(changed)))] if rng.random() < 0.1 else changed)


def test_mutated_files_end_no_process(tmp_path):
    rng = np.random.default_rng(0)
    originals, damaged = tmp_path / "originals", tmp_path / "damaged"
    originals.mkdir()
    damaged.mkdir()
    (originals / "c.mtx").write_text(_COORDINATE)
    (originals / "a.mtx").write_text(_ARRAY)
    (originals / "t.csv").write_text("name,a,b\nx,1,2\ny,3,4\n")
    (originals / "l.cluto").write_text("2 3 3\n1 1.5 2 2\n3 1\n")
    np.save(originals / "d.npy", _MATRIX)
    np.savez(originals / "z.npz", matrix=_MATRIX)
    scipy.io.savemat(originals / "m.mat", {"M": _MATRIX})
    for original in originals.iterdir():
        whole = original.read_bytes()
        for number in range(60):
            (damaged / f"{original.stem}{number:03}{original.suffix}").write_bytes(_mutated(whole, rng))
    _read_in_child(damaged)


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
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FileError, match=rf"{words}; say whether .*row_names=True"):
        read_matrix(tmp_path / "t.csv")
    assert len(read_matrix(tmp_path / "t.csv", row_names=True).row_names) >= 1


def test_a_doubtful_first_line_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,n/a\n3,4,5\n")
    with pytest.raises(FileError, match=r"opens with the number '1' .*--no-header"):
        read_matrix(tmp_path / "t.csv")
    assert read_matrix(tmp_path / "t.csv", header=True).matrix.shape == (1, 3)


def test_the_log_says_what_was_taken_as_names(tmp_path, caplog):
    (tmp_path / "t.csv").write_text("name,a,b\nx,1,2\n")
    with caplog.at_level("INFO", "gsnmf"):
        read_matrix(tmp_path / "t.csv")
    assert "took the first line and the first column as names" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", ["matlab", "cluto", "mtx"])
def test_a_pipe_is_read_once(tmp_path, kind):
    whole = tmp_path / "whole"
    if kind == "matlab":
        scipy.io.savemat(whole, {"M": _MATRIX}, appendmat=False)
    else:
        whole.write_text("2 3 3\n1 1.5 2 2\n3 1\n" if kind == "cluto" else _COORDINATE)
    pipe = tmp_path / f"pipe.{'mtx' if kind == 'mtx' else 'mat'}"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(whole.read_bytes()), daemon=True)
    writer.start()
    found = read_matrix(pipe).matrix
    writer.join(timeout=10)
    assert not writer.is_alive()
    assert found.shape == {"matlab": (4, 3), "cluto": (2, 3), "mtx": (3, 2)}[kind]


def test_an_interrupt_of_the_imports_is_one_line():
    code = "import gsnmf.cli as cli\ndef stop(): raise KeyboardInterrupt\ncli._run = stop\ncli.main()"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (child.returncode, child.stderr) == (128 + signal.SIGINT, "gsnmf: stopped\n")


def test_the_package_is_light_to_import():
    """Nothing heavy is imported before `main` can catch an interrupt."""
    code = "import sys, gsnmf.cli; print([name for name in ('numpy', 'scipy', 'typer') if name in sys.modules])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert child.stdout == "[]\n"

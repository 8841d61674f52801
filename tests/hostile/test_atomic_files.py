"""Files are complete or absent: threads, kills, full disks, and folders in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import gsnmf
from gsnmf.support.atomic_files import STALE_SECONDS, atomic_files, atomic_write

_WRITE_FOREVER = """
import sys
from gsnmf.support.atomic_files import atomic_write
number = 0
while True:
    with atomic_write(sys.argv[1]) as stream:
        for _ in range(64):
            stream.write(b"%08d" % number)
    if number == 0:
        print("begun", flush=True)
    number += 1
"""

_KILLED_AT_EVERY_STEP = """
import os, signal, sys
from pathlib import Path
from gsnmf.support.atomic_files import atomic_files

def write(folder, word):
    with atomic_files(folder, "abc") as draft:
        for name in "abc":
            (draft / name).write_bytes(word)

def killed(operation):
    def either(*arguments, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return operation(*arguments, **options)
    return either

os.fsync = lambda descriptor: None
for step in range(100):
    folder = Path(sys.argv[1], str(step))
    folder.mkdir()
    write(folder, b"old")
    child = os.fork()
    if child == 0:
        left = step
        for name in ("replace", "rename", "mkdir", "unlink", "rmdir"):
            setattr(os, name, killed(getattr(os, name)))
        write(folder, b"new")
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
"""


def test_many_threads_save_to_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # 80 of them take half a minute on a slow disk
    M = np.random.default_rng(0).random((6, 5))
    result = gsnmf.factorize(M, 2, method="gspa")
    with ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(gsnmf.save, result, tmp_path / "r.npz") for _ in range(80)]:
            done.result()
    assert os.listdir(tmp_path) == ["r.npz"]
    assert gsnmf.load(tmp_path / "r.npz", M).selection == result.selection


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_kill_at_any_moment_leaves_a_complete_file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "f"
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-c", _WRITE_FOREVER, str(path)], stdout=subprocess.PIPE)
        with child:
            assert child.stdout.readline() == b"begun\n"
            time.sleep(rng.uniform(0.0, 0.05))
            child.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert content == content[:8] * 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_set_of_files_is_never_mixed_whenever_its_writer_is_killed(tmp_path):
    subprocess.run([sys.executable, "-c", _KILLED_AT_EVERY_STEP, str(tmp_path)], check=True, timeout=300)
    folders = sorted(tmp_path.iterdir(), key=lambda folder: int(folder.name))
    assert len(folders) > 10  # the commit, three moves of old files, three of new ones, three removals
    for folder in folders:
        seen = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
        assert len(set(seen.values())) <= 1, folder.name
        committed = (folder / ".a.committed").exists()
        assert committed or set(seen) == set("abc")
        with pytest.raises(RuntimeError), atomic_files(folder, "abc"):
            raise RuntimeError  # the next writer completes what was begun, even if it then fails itself
        wanted = b"new" if committed else set(seen.values()).pop()
        assert {(folder / name).read_bytes() for name in "abc"} == {wanted}
        assert not (folder / ".a.committed").exists()
    assert sorted(os.listdir(folders[-1])) == ["a", "b", "c"]


def test_threads_that_write_one_set_take_turns(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)

    def write(word):
        with atomic_files(tmp_path, "abc") as draft:
            for name in "abc":
                (draft / name).write_bytes(word)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(write, b"%d" % number) for number in range(80)]:
            done.result()
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "other").write_text("mine", encoding="utf-8")
    (tmp_path / "a").write_text("old", encoding="utf-8")
    with atomic_files(tmp_path, "ab") as draft:
        for name in "ab":
            (draft / name).write_bytes(b"new")
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        "other": "mine",
        "a": "new",
        "b": "new",
    }


def test_stale_drafts_are_removed_and_recent_ones_kept(tmp_path):
    stale, recent = tmp_path / ".f.1-abc.draft", tmp_path / ".f.1-def.draft"
    for draft in (stale, recent):
        draft.write_bytes(b"half")
    long_ago = time.time() - 2 * STALE_SECONDS
    os.utime(stale, (long_ago, long_ago))
    with atomic_write(tmp_path / "f") as stream:
        stream.write(b"x")
    assert sorted(os.listdir(tmp_path)) == [recent.name, "f"]


def test_a_folder_in_the_way_is_found_before_the_work(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("old", encoding="utf-8")
    with pytest.raises(IsADirectoryError), atomic_files(tmp_path, "ab"):
        pytest.fail("the work has begun")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "old"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("fails_at", range(1, 8))
@pytest.mark.parametrize("old", [("a", "b", "c"), ("a", "b"), ()])
def test_a_rename_that_fails_gives_back_what_was_there(tmp_path, monkeypatch, fails_at, old):
    for name in old:
        (tmp_path / name).write_text("old", encoding="utf-8")
    calls = 0
    replace = Path.replace

    def failing(self, target):
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)

    def write():
        with atomic_files(tmp_path, "abc") as draft:
            for name in "abc":
                (draft / name).write_bytes(b"new")

    if fails_at > 4 + len(old):  # the commit, the old files aside, three new ones
        write()
        return
    with pytest.raises(OSError, match="No space left"):
        write()
    monkeypatch.undo()
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == dict.fromkeys(old, "old")

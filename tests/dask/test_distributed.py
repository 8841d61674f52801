"""A cluster of worker processes: lost workers do not change a result, and an interrupt leaves no process behind."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from benchmarks._measuring import resident_bytes
from processes import PATIENCE, all_ended, hear_interrupts, wait_until

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
Passes = pytest.importorskip("gsnmf.matrix.dask.passes").Passes

pytestmark = pytest.mark.long
SHAPE = (400, 300)
RANK = 8


def whole():
    rng = np.random.default_rng(0)
    return rng.random(SHAPE) * (rng.random(SHAPE) < 0.3)


def read(chunk, trap):
    if trap is not None:
        try:
            os.unlink(trap)
        except FileNotFoundError:
            pass  # not set yet, or another worker was in it
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return sp.csr_array(chunk)


def read_by_workers(trap=None):
    """The matrix in twelve chunks; the first worker that reads one while the file ``trap`` exists is killed."""
    array = da.from_array(whole(), chunks=(100, 150))
    return array.map_blocks(read, trap, dtype=float, meta=np.empty((0, 0)))


@contextmanager
def cluster(**options):
    # A worker that is killed takes its warnings with it. Any free port and a folder of its own: a cluster of tests that
    # run at the same time may have the usual ones. The others ask a lost worker for its results until the timeout
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(
            {"temporary-directory": folder}
            | {f"distributed.comm.timeouts.{kind}": "60s" for kind in ("connect", "tcp")}
        ),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs="CRITICAL",
            **options,
        ) as running,
        distributed.Client(running) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client():
    with cluster() as connected:
        yield connected


def worker_pids(client):
    return sorted(client.run(os.getpid, on_error="ignore").values())


def same(found, expected):
    assert found.selection.order == expected.selection.order
    np.testing.assert_array_equal(found.columns, expected.columns)
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.relative_error == pytest.approx(expected.relative_error, rel=1e-6)


@pytest.mark.usefixtures("client")
def test_a_cluster_gives_what_memory_gives():
    for method in ("gspa", "spa-columns"):
        expected = gsnmf.factorize(whole(), RANK, method=method)
        same(gsnmf.factorize(read_by_workers(), RANK, method=method), expected)


@pytest.mark.usefixtures("client")
def test_large_vectors_travel_without_a_warning():
    tall = da.ones((2_000_000, 2), chunks=(500_000, 2))
    assert gsnmf.select(tall, 1, method="gspa").n_selected == 1


def test_an_error_in_a_worker_names_the_chunk(client):
    matrix = whole()
    matrix[150, 200] = np.nan
    with pytest.raises(ValueError, match=r"chunk \(1, 1\) of matrix must be finite; got NaN at row 150, column 200"):
        gsnmf.select(da.from_array(matrix, chunks=(100, 150)), RANK, method="gspa")
    assert client.submit(int, 1).result() == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_worker_does_not_change_the_result(client, monkeypatch, tmp_path):
    expected = gsnmf.factorize(whole(), RANK, method="gspa")
    before = worker_pids(client)
    trap = tmp_path / "trap"
    traps = [trap]
    original = Passes.run

    def run(passes, **options):
        if passes.n_passes > RANK // 2 and traps:
            traps.pop().touch()  # after passes whose results were kept
        return original(passes, **options)

    monkeypatch.setattr(Passes, "run", run)
    same(gsnmf.factorize(read_by_workers(str(trap)), RANK, method="gspa"), expected)
    assert not traps
    assert not trap.exists()
    assert wait_until(lambda: len(pids := worker_pids(client)) == 2 and pids != before)  # the loss is made good


def test_memory_stays_within_the_limit_of_a_worker_on_a_matrix_of_four_times_that():
    limit, n, height = 700 * 10**6, 1000, 2000  # half of it is taken by what a worker imports; at 80 % it pauses
    m = 4 * limit // (8 * n)

    def made(block_id):
        return np.multiply.outer(1.0 + np.arange(height) % (7 + block_id[0]), 1.0 + np.arange(n) % 5)

    matrix = da.map_blocks(made, chunks=((height,) * (m // height), (n,)), dtype=float, meta=np.empty((0, 0)))
    with cluster(memory_limit=limit) as connected:
        before = worker_pids(connected)
        assert gsnmf.select(matrix, 1, method="gspa").n_selected == 1
        weights = gsnmf.fit_weights(matrix, [3], [4])
        peaks = connected.run(resident_bytes, "VmHWM").values()
        assert worker_pids(connected) == before  # none was restarted
    assert weights.relative_error < 1e-6
    assert max(peaks) < limit


# The workers never finish a chunk, so an interrupt meets a computation. It comes when the main thread waits for them:
# Python drops one that lands in a callback of the garbage collector or of the compiler
SCRIPT = """
import os, sys, threading, time
from pathlib import Path
import dask.array as da, distributed, numpy as np, gsnmf

def never_done(chunk, begun):
    begun.touch()
    time.sleep(600)
    return chunk

def waits(thread):
    frame = sys._current_frames()[thread]
    return (frame.f_code.co_filename, frame.f_code.co_name) == (threading.__file__, "wait")

def tell(begun, thread):
    while not (begun.exists() and waits(thread)):
        time.sleep(0.05)
    print("interrupt me", flush=True)

if __name__ == "__main__":
    begun = Path(sys.argv[1])
    threading.Thread(target=tell, args=(begun, threading.get_ident()), daemon=True).start()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL", local_directory=begun.parent
    ) as cluster, distributed.Client(cluster) as client:
        print(*client.run(os.getpid).values(), flush=True)
        matrix = da.ones((40, 40), chunks=10).map_blocks(never_done, begun, dtype=float, meta=np.empty((0, 0)))
        gsnmf.select(matrix, 20, method="gspa")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_an_interrupt_leaves_no_processes(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "begun")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=hear_interrupts) as process:
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        assert process.stdout.readline() == "interrupt me\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert all_ended(workers)

"""The policy on threads: who may use all cores, and what is left behind."""

import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from gsnmf import _parallel
from gsnmf._parallel import Loop, blas_threads, in_one_thread, single_threaded_blas
from processes import PATIENCE


def blas_sizes():
    return [pool["num_threads"] for pool in ThreadpoolController().info() if pool["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield blas_sizes()


class Recorder:
    """A loop that knows in how many parts it was run."""

    def __init__(self, part=lambda part, n_parts: None):
        self.loop = Loop(self.record)
        self.part = part
        self.parts = set()

    def record(self, part, n_parts):
        self.parts.add((part, n_parts))
        self.part(part, n_parts)

    def run(self, work=math.inf):
        self.parts.clear()
        self.loop(work=work)
        (n_parts,) = {n_parts for _, n_parts in self.parts}
        assert self.parts == {(part, n_parts) for part in range(n_parts)}  # nothing is left out
        return "alone" if n_parts == 1 else "shared"


class TestLoop:
    @pytest.fixture(autouse=True)
    def _two_threads(self, monkeypatch):
        monkeypatch.setenv("GSNMF_NUM_THREADS", "2")

    def test_work_decides(self):
        loop = Recorder()
        assert loop.run(_parallel.PARALLEL_WORK - 1) == "alone"
        assert loop.run(_parallel.PARALLEL_WORK) == "shared"

    def test_a_task_of_several_keeps_to_its_thread(self):
        loop = Recorder()
        with in_one_thread():
            assert loop.run() == "alone"
        assert loop.run() == "shared"

    def test_parts_keep_to_their_thread(self):
        inner = Recorder()
        assert Recorder(lambda *_: inner.run() == "alone" or 1 / 0).run() == "shared"

    @pytest.mark.parametrize(("asked", "expected"), [("1", "alone"), ("0", "alone"), ("64", "shared")])
    def test_the_environment_decides_how_many_threads(self, monkeypatch, asked, expected):
        monkeypatch.setenv("GSNMF_NUM_THREADS", asked)
        assert Recorder().run() == expected

    @pytest.mark.parametrize("asked", [None, "many"])
    def test_processors_decide_where_the_environment_does_not(self, monkeypatch, asked):
        monkeypatch.delenv("GSNMF_NUM_THREADS", raising=False)
        if asked:
            monkeypatch.setenv("GSNMF_NUM_THREADS", asked)
        monkeypatch.setattr(_parallel, "_n_processors", lambda: 7)
        assert _parallel.n_threads() == 7

    def test_threads_work_at_the_same_time(self):
        together = threading.Barrier(2, timeout=PATIENCE)
        Recorder(lambda *_: together.wait()).run()

    def test_only_one_thread_has_all_cores(self):
        inside, leave = threading.Event(), threading.Event()
        holder = Recorder(lambda *_: (inside.set(), leave.wait(PATIENCE)))
        other = Recorder()
        with ThreadPoolExecutor(1) as pool:
            staying = pool.submit(holder.run)
            assert inside.wait(PATIENCE)
            assert other.run() == "alone"
            leave.set()
            assert staying.result(PATIENCE) == "shared"
        assert other.run() == "shared"

    def test_an_error_inside_gives_the_cores_back(self):
        loop = Recorder(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loop.run()
        loop.part = lambda *_: None
        assert loop.run() == "shared"

    def test_an_interrupt_waits_for_the_parts_that_have_begun(self):
        running, main = [], threading.main_thread()

        def part(*_):
            if threading.current_thread() is main:
                raise KeyboardInterrupt
            running.append(True)
            time.sleep(0.05)
            running.pop()

        with pytest.raises(KeyboardInterrupt):
            Recorder(part).run()
        assert not running

    def test_works_while_python_ends(self):
        program = """
import atexit, sys
from gsnmf._parallel import Loop
done = []
atexit.register(lambda: (Loop(lambda part, n_parts: done.append(part))(work=1e12), print(len(done))))
"""
        environment = os.environ | {"GSNMF_NUM_THREADS": "2"}
        outcome = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert outcome.returncode == 0, outcome.stderr
        assert int(outcome.stdout) > 1


class TestBLAS:
    def test_is_left_as_it_was(self, two_blas_threads):
        with single_threaded_blas():
            assert set(blas_sizes()) == {1}
            with single_threaded_blas():
                assert set(blas_sizes()) == {1}
            assert set(blas_sizes()) == {1}
        assert blas_sizes() == two_blas_threads

    def test_is_left_as_it_was_by_many_threads(self, two_blas_threads):
        n_threads = 16
        start = threading.Barrier(n_threads)

        def enter_and_leave(seed):
            rng = np.random.default_rng(seed)
            start.wait(PATIENCE)
            for _ in range(20):
                with single_threaded_blas():
                    if set(blas_sizes()) != {1}:
                        return False
                    threading.Event().wait(rng.uniform(0, 1e-3))
            return True

        with ThreadPoolExecutor(n_threads) as pool:
            assert all(pool.map(enter_and_leave, range(n_threads)))
        assert blas_sizes() == two_blas_threads

    def test_who_leaves_first_does_not_matter(self, two_blas_threads):
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_sizes()) == {1}
        second.__exit__(None, None, None)
        assert blas_sizes() == two_blas_threads

    def test_an_error_inside_restores_it(self, two_blas_threads):
        with pytest.raises(KeyError), single_threaded_blas():
            raise KeyError
        assert blas_sizes() == two_blas_threads

    def test_keeps_its_threads_for_large_products(self, two_blas_threads):
        with blas_threads(1e12):
            assert blas_sizes() == two_blas_threads
        with blas_threads(1e3):
            assert set(blas_sizes()) == {1}

    def test_results_come_from_several_threads_at_once(self, two_blas_threads):
        import gsnmf

        matrix = np.random.default_rng(0).random((60, 50))
        expected = gsnmf.factorize(matrix, 5, method="gspa")
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: gsnmf.factorize(matrix, 5, method="gspa"), range(8)):
                assert np.array_equal(found.columns, expected.columns)
                assert found.relative_error == pytest.approx(expected.relative_error, abs=1e-12)
        assert blas_sizes() == two_blas_threads


CONCURRENT = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from gsnmf import _parallel
from gsnmf._kernels.least_squares import nonnegative_least_squares
_parallel.PARALLEL_WORK = 0
rng = np.random.default_rng(0)
R, targets = np.linalg.qr(rng.random((30, 8)))[1], rng.standard_normal((500, 8))
R = R / np.linalg.norm(R, axis=0)

def solve(_):
    X = np.zeros(targets.shape)
    nonnegative_least_squares(X, R, targets)
    return X

expected = solve(0)
with ThreadPoolExecutor(8) as pool:
    for found in pool.map(solve, range(40)):
        assert np.array_equal(found, expected)
gradient = (expected @ R.T - targets) @ R
assert np.abs(np.minimum(expected, gradient)).max() < 1e-10
print(_parallel.n_threads())
"""


@pytest.mark.parametrize("n_threads", ["1", "2", "64"])
@pytest.mark.long
def test_concurrent_calls_do_not_end_the_process(n_threads):
    environment = os.environ | {"GSNMF_NUM_THREADS": n_threads}
    outcome = subprocess.run([sys.executable, "-c", CONCURRENT], env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip() == n_threads


FORKED = """
import os, sys, warnings
import numpy as np
from gsnmf import _parallel
from gsnmf._kernels.exchange import positive_squares
warnings.simplefilter("ignore")
_parallel.PARALLEL_WORK = 0
rows = np.ones((100, 3))
assert positive_squares(rows).sum() == 300
with _parallel.single_threaded_blas():
    child = os.fork()
    if child == 0:
        with _parallel.single_threaded_blas():
            ok = positive_squares(rows).sum() == 300
        os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert positive_squares(rows).sum() == 300
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_threads_of_its_own():
    environment = os.environ | {"GSNMF_NUM_THREADS": "2"}
    outcome = subprocess.run([sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr

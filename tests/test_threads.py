"""The policy on threads: who may use all cores, and what is left behind."""

import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from gsnmf.kernels import threads
from gsnmf.kernels.threads import Loop, blas_threads, in_one_thread, single_threaded_blas
from processes import PATIENCE


def blas_sizes():
    return [pool["num_threads"] for pool in ThreadpoolController().info() if pool["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield blas_sizes()


def add_one(X):
    for i in numba.prange(X.size):
        X[i] += 1


class Recorder:
    """A loop that knows how it was run."""

    def __init__(self):
        self.loop = Loop(add_one)
        self.ways = []
        self.loop._done = math.inf
        self.loop.serial = lambda *_: self.ways.append("serial")
        self.loop.parallel = lambda *_: self.ways.append("parallel")

    def run(self, work):
        self.loop(None, work=work)
        return self.ways[-1]


class TestLoop:
    @pytest.fixture(autouse=True)
    def _two_threads(self, monkeypatch):
        monkeypatch.setattr(numba, "get_num_threads", lambda: 2)

    def test_work_decides(self):
        loop = Recorder()
        assert loop.run(threads.PARALLEL_WORK - 1) == "serial"
        assert loop.run(threads.PARALLEL_WORK) == "parallel"

    def test_the_form_for_all_cores_is_compiled_once_the_loop_has_worked_as_long(self):
        recorder = Recorder()
        recorder.loop._done = 0.0
        ways = [recorder.run(threads.PARALLEL_WORK * threads._COMPILATION / 4) for _ in range(6)]
        assert ways == ["serial"] * 4 + ["parallel"] * 2

    def test_the_form_for_all_cores_is_used_at_once_if_it_is_on_disk(self, monkeypatch):
        monkeypatch.setattr(threads, "kept_on_disk", lambda function: True)
        recorder = Recorder()
        recorder.loop._done = 0.0
        assert recorder.run(threads.PARALLEL_WORK) == "parallel"

    def test_a_task_of_several_keeps_to_its_thread(self):
        loop = Recorder()
        with in_one_thread():
            assert loop.run(1e12) == "serial"
        assert loop.run(1e12) == "parallel"

    def test_one_core_is_no_reason_for_threads(self, monkeypatch):
        monkeypatch.setattr(numba, "get_num_threads", lambda: 1)
        loop = Recorder()
        assert loop.run(1e12) == "serial"
        monkeypatch.setattr(numba, "get_num_threads", lambda: 2)
        assert loop.run(1e12) == "parallel"

    def test_only_one_thread_has_all_cores(self):
        inside, leave = threading.Event(), threading.Event()
        holder, other = Recorder(), Recorder()

        def stay(*_):
            inside.set()
            leave.wait(PATIENCE)

        holder.loop.parallel = stay
        with ThreadPoolExecutor(1) as pool:
            staying = pool.submit(holder.loop, None, work=1e12)
            assert inside.wait(PATIENCE)
            assert other.run(1e12) == "serial"
            leave.set()
            staying.result(PATIENCE)
        assert other.run(1e12) == "parallel"

    def test_an_error_inside_gives_the_cores_back(self):
        loop = Recorder()
        works, loop.loop.parallel = loop.loop.parallel, lambda *_: 1 / 0
        with pytest.raises(ZeroDivisionError):
            loop.run(1e12)
        loop.loop.parallel = works
        assert loop.run(1e12) == "parallel"


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
import numba
from gsnmf.kernels import threads
from gsnmf.kernels.least_squares import nonnegative_least_squares
threads.PARALLEL_WORK = 0
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
print(numba.get_num_threads(), numba.threading_layer() if numba.get_num_threads() > 1 else "none")
"""


@pytest.mark.parametrize(("n_threads", "layer"), [("1", "default"), ("2", "workqueue"), ("64", "default")])
@pytest.mark.long
def test_concurrent_calls_do_not_end_the_process(n_threads, layer):
    environment = os.environ | {"NUMBA_NUM_THREADS": n_threads, "NUMBA_THREADING_LAYER": layer}
    outcome = subprocess.run([sys.executable, "-c", CONCURRENT], env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    found, used = outcome.stdout.split()
    assert found == n_threads
    if layer == "workqueue" and n_threads != "1":
        assert used == layer


FORKED = """
import os, sys, warnings
import numpy as np
from gsnmf.kernels import threads
from gsnmf.kernels.reductions import positive_squares
warnings.simplefilter("ignore")
threads.PARALLEL_WORK = 0
rows = np.ones((100, 3))
assert positive_squares(rows).sum() == 300
with threads.single_threaded_blas():
    child = os.fork()
    if child == 0:
        with threads.single_threaded_blas():
            ok = positive_squares(rows).sum() == 300
        os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert positive_squares(rows).sum() == 300
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_does_without_threads():
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    outcome = subprocess.run([sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr

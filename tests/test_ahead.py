"""Kernels compiled ahead of time: which form of a kernel serves which arguments, and what happens without one."""

import inspect
import os
import pickle
import platform
import shutil
import subprocess
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite import binding

from gsnmf._kernels import ahead, reductions

ROOT = Path(__file__).parents[1]
PLANE = np.ones((4, 6))


def kernel(x, n):
    """Sum and one number more."""
    return x.sum() + n


class TestKinds:
    @pytest.mark.parametrize(
        ("array", "expected"),
        [
            (PLANE, (np.dtype("f8"), 2, "C")),
            (PLANE.T, (np.dtype("f8"), 2, "F")),
            (PLANE[::2, ::2], (np.dtype("f8"), 2, "A")),
            (PLANE[:, :1].copy(), (np.dtype("f8"), 2, "C")),  # in both orders at once
            (np.arange(3, dtype=np.int32), (np.dtype("i4"), 1, "C")),
            (np.zeros(2, dtype=np.longlong), (np.dtype("i8"), 1, "C")),
            (np.zeros(17, dtype=np.uint8)[1:].view(np.float64), (np.dtype("f8"), 1, None)),  # not aligned
        ],
    )
    def test_of_arrays_are_type_dimensions_and_order(self, array, expected):
        assert ahead.kinds([array]) == (expected,)

    def test_of_numbers_are_those_of_python(self):
        assert ahead.kinds([1, np.int64(1), 2.0, np.float64(2.0), True, np.True_]) == (
            int,
            int,
            float,
            float,
            bool,
            bool,
        )

    def test_of_anything_else_is_none(self):
        assert ahead.kinds(["text", np.float32(1.0)]) == (None, None)

    def test_of_tuples_are_those_of_their_members(self):
        assert ahead.kinds([(PLANE, 1), 2.0]) == ahead.kinds([PLANE, 1, 2.0])

    def test_are_read_back_from_a_name(self):
        kinds = ahead.kinds([PLANE, PLANE.T, np.zeros(2, dtype=bool), np.zeros(2, dtype=np.uint8), 1, 2.0, True])
        written = ahead.symbol(kernel, kinds)
        assert written.isidentifier()
        assert tuple(map(ahead._read, written.rpartition("__")[2].split("_"))) == kinds


@pytest.fixture
def library(monkeypatch):
    """A library with one form of one kernel, which gives the number of its arguments."""
    library = types.ModuleType(ahead._LIBRARY)
    library.__spec__ = ModuleSpec(ahead._LIBRARY, None)
    monkeypatch.setattr(kernel, "__module__", "gsnmf.somewhere")
    setattr(library, ahead.symbol(kernel, ahead.kinds([PLANE, 1])), lambda *arguments: len(arguments))
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setattr(ahead, "_new_enough", lambda: True)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    ahead._library.cache_clear()
    yield library
    ahead._library.cache_clear()


def by_numba():
    return numba.njit(kernel)


class TestLibrary:
    def test_forms_in_it_come_first_and_numba_compiles_the_others(self, library):
        held = ahead.AheadOfTime(kernel, by_numba)
        assert held(PLANE, 1) == 2
        assert held.signatures == []
        assert held(PLANE.T, 1) == 25.0
        assert len(held.signatures) == 1

    def test_of_other_sources_is_not_used(self, library, monkeypatch):
        assert ahead.available()
        monkeypatch.setattr(ahead, "source_stamp", lambda path: "another")
        assert ahead.AheadOfTime(kernel, by_numba)(PLANE, 1) == 25.0

    def test_is_not_used_on_older_processors(self, library, monkeypatch):
        monkeypatch.setattr(ahead, "_new_enough", lambda: False)
        assert not ahead.available()

    def test_is_not_used_where_nothing_shall_be_compiled(self, library, monkeypatch):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
        assert not ahead.available()

    def test_need_not_exist(self, library, monkeypatch):
        monkeypatch.setattr(ahead, "_LIBRARY", "gsnmf._kernels._nowhere")
        assert not ahead.available()

    def test_of_another_system_is_not_used(self, library, monkeypatch, tmp_path):
        (tmp_path / f"unreadable{EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(ahead, "_LIBRARY", "unreadable")
        assert not ahead.available()

    @pytest.mark.parametrize("missing", ["avx2", "fma", "bmi2"])
    def test_older_processors_are_those_that_lack_an_instruction(self, monkeypatch, missing):
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        features = dict.fromkeys(ahead._X86_64_V3, True)
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda: features)
        assert ahead._new_enough()
        features[missing] = False
        assert not ahead._new_enough()

    def test_other_kinds_of_machines_run_it_on_any_processor(self, monkeypatch):
        monkeypatch.setattr(platform, "machine", lambda: "arm64")
        monkeypatch.setattr(binding, "get_host_cpu_features", dict)
        assert ahead._new_enough()


class TestKernel:
    def test_other_kernels_call_what_numba_compiles(self, library):
        held = ahead.AheadOfTime(kernel, by_numba)

        @numba.njit
        def twice(x):
            return held(x, 1) + held(x, 1)

        assert twice(PLANE) == 50.0

    def test_has_the_name_and_the_text_of_its_function(self):
        held = ahead.AheadOfTime(kernel, by_numba)
        assert held.__name__ == "kernel"
        assert held.__doc__ == kernel.__doc__

    def test_is_pickled_by_name(self, monkeypatch):
        held = ahead.AheadOfTime(reductions._sum_rows.__wrapped__.py_func, by_numba)
        monkeypatch.setattr(reductions, "_sum_rows", held)
        assert pickle.loads(pickle.dumps(held)) is held


COMPARED = """
import sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[2])
from every_loop import outcomes
from gsnmf._kernels.compilation import KERNELS
from gsnmf._kernels.exchange import exchange_scores
np.savez(sys.argv[1], **{name: found for name, found in outcomes()})
compiled = {kernel.py_func.__name__ for kernel in KERNELS if kernel.signatures}
times, span = [], []
def work():
    slopes, coefficients, vectors = np.ones((2000, 2000)), np.ones((2000, 40)), np.ones((40, 2000))
    span.append(time.perf_counter())
    exchange_scores(slopes, coefficients, vectors)
    span.append(time.perf_counter())
thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    times.append(time.perf_counter())
begin, end = span
released = any(begin + (end - begin) / 4 < moment < end - (end - begin) / 4 for moment in times)
print("numba" in sys.modules, released, *compiled)
"""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None and sys.platform != "win32", reason="there is no C compiler")
def test_compiled_ahead_of_time_kernels_are_what_numba_compiles(tmp_path):
    """The whole way: compile the library, find that nothing else is compiled, and compare with Numba's results."""
    pytest.importorskip("setuptools")
    package = Path(inspect.getfile(ahead)).parents[1]
    shutil.copytree(package, tmp_path / "gsnmf", ignore=shutil.ignore_patterns("__pycache__", "_ahead.*"))
    answers = {}
    for name, folder in ("numba", package.parent), ("ahead", tmp_path):
        environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        environment |= {"GSNMF_NUM_THREADS": "1"}

        def run(*command, environment=environment):
            outcome = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
            assert outcome.returncode == 0, outcome.stderr
            return outcome.stdout

        if name == "ahead":
            assert str(tmp_path) in run(str(ROOT / "packaging" / "compile_kernels.py"))
        answer = run("-c", COMPARED, str(tmp_path / f"{name}.npz"), str(ROOT / "tests"))
        by_numba, released, *compiled = answer.split()
        assert released == "True"
        assert (by_numba == "True", bool(compiled)) == (name == "numba", name == "numba"), compiled
        with np.load(tmp_path / f"{name}.npz") as stored:
            answers[name] = dict(stored)
    assert answers["ahead"].keys() == answers["numba"].keys()
    for name, expected in answers["numba"].items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(answers["ahead"][name], expected, atol=1e-10 * scale, err_msg=name)

"""The benchmarks run and print; what they measure is not a matter for tests."""

import pickle
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import benchmarks
import gsnmf
from benchmarks import _measuring as measurement
from benchmarks import _peers as peers
from benchmarks._large_matrices import Cluster, Problem, pass_cost
from benchmarks.topics import compare_on_many, compare_on_tables, measure, simulated_documents
from gsnmf.datasets import fully_random, planted
from reproduction.matrices import DATA_VARIABLE, PaperMatrix

MEGABYTE = 10**6
ROOT = Path(__file__).parents[2]


def run(name):
    """The short version of a benchmark, in this process."""
    import_module(f"benchmarks.{name}").run(True)


@pytest.mark.long
def test_quick_run_prints_every_comparison_with_its_target():
    """From the command line, where the processes that measure memory must not run the command again."""
    command = [sys.executable, "-m", "benchmarks.selection", "--quick"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert outcome.stderr == ""
    lines = outcome.stdout.splitlines()
    expected = {
        "GSPA / explicit residual": ">= 6x",
        "SPA / pivoted QR": ">= 8x",
        "GSPA / its passes, float64": "<= 1.5x",
        "GSPA / its passes, float32": "<= 1.5x",
        "GSPA, float32 / float64": ">= 1.7x",
        "columns / reduced nnls loop": ">= 2x",
        "columns / scikit-learn": ">= 20x",
        "GSPA  ": "< 4x",
        "SPA  ": "< 4x",
        "alternation, no noise, same error": ">= 10x",
        "alternation, noise 0.1, same error": ">= 10x",
    }
    for name, target in expected.items():
        assert any(line.startswith(name) and target in line for line in lines), name
    assert sum("same picks" in line for line in lines) == 2
    assert [line.startswith("processor") for line in lines].count(True) == 1


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # of matrices so small that a search is not certified, and of other packages
@pytest.mark.parametrize("name", ["cells", "comparisons", "convex", "cores", "missing", "unmixing"])
def test_quick_runs_print_tables(name, monkeypatch, capsys):
    """Without the paper's data, which takes longer."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    run(name)
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(r"-+( +-+)+", line) for line in lines)
    assert not any("nan" in line.split() for line in lines)


@pytest.mark.parametrize("name", ["members", "quality"])
def test_missing_data_is_said_at_once(name, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=f"set {DATA_VARIABLE}"):
        run(name)


def test_measurements_are_not_benchmarks():
    names = benchmarks.available()
    assert "selection" in names
    assert not any("measuring" in name or "peers" in name for name in names)


def test_every_benchmark_has_a_run_function():
    for name in benchmarks.available():
        assert callable(import_module(f"benchmarks.{name}").run)


def test_benchmarks_are_listed():
    outcome = subprocess.run([sys.executable, "-m", "benchmarks"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert outcome.stdout.splitlines() == [f"python -m benchmarks.{name}" for name in benchmarks.available()]


def test_the_command_line_of_a_benchmark(monkeypatch):
    calls = []
    for arguments in ([], ["--quick"]):
        monkeypatch.setattr(sys, "argv", ["benchmark", *arguments])
        measurement.main(lambda quick: calls.append(quick))
    assert calls == [False, True]
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(SystemExit, match="set GSNMF_DATA"):
        measurement.main(import_module("benchmarks.quality").run)


def test_contestants_take_turns():
    calls = []
    first, second = measurement.take_turns(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert "".join(calls) == "ab" * 4  # the first time to warm up
    assert len(first.seconds) == len(second.seconds) == 3
    assert first.best <= first.median <= max(first.seconds)


def test_the_shortest_run_gives_the_result(monkeypatch):
    delays = iter([0.02, 0.0, 0.02])
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def wait():
        nonlocal now
        delay = next(delays)
        now += delay
        return delay

    waited, _ = measurement.take_turns(wait, int, repeats=3, warm_up=False)
    assert waited.result == 0.0


def test_turns_end_with_the_time_but_not_before_the_first():
    first, second = measurement.take_turns(lambda: 1, lambda: "x", repeats=3, warm_up=False, max_seconds=0.0)
    assert len(first.seconds) == len(second.seconds) == 1
    assert (first.result, second.result) == (1, "x")


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is not known there")
@pytest.mark.parametrize(("work", "expected"), [(np.sum, 50), (np.copy, 100)])
def test_peak_memory_counts_the_input_and_what_is_allocated(work, expected):
    peak = measurement.peak_memory(work, np.ones((2500, 2500)))
    assert abs(peak / MEGABYTE - expected) < 10


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is not known there")
def test_peak_memory_does_not_count_the_warm_up_nor_the_caller():
    held = np.ones(100 * MEGABYTE // 8)
    matrix = sp.random_array((3000, 3000), density=0.1, format="csc", rng=np.random.default_rng(0))
    peak = measurement.peak_memory(sp.csc_array.sum, matrix, partial(np.sum, np.eye(100)))
    assert measurement.matrix_bytes(matrix) < peak + MEGABYTE
    assert peak < measurement.matrix_bytes(matrix) + 10 * MEGABYTE < held.nbytes


def test_error_of_the_work_reaches_the_caller():
    with pytest.raises(np.linalg.LinAlgError):
        measurement.peak_memory(np.linalg.inv, np.zeros((2, 2)))


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_matrix_survives_the_file(form, tmp_path):
    matrix = sp.random_array((7, 5), density=0.4, format="csr", rng=np.random.default_rng(0))
    matrix = matrix.toarray() if form == "dense" else matrix.asformat(form)
    measurement._write(matrix, tmp_path / "matrix")
    again = measurement._read(tmp_path / "matrix")
    assert type(again) is type(matrix)
    assert abs(again - matrix).sum() == 0


def test_machine_facts_name_what_the_figures_depend_on():
    facts = measurement.machine_facts()
    assert {"processor", "system", "libraries", "BLAS", "load"} == facts.keys()
    assert "numpy " + np.__version__ in facts["libraries"]
    assert "threads" in facts["BLAS"]


def test_table_is_aligned(capsys):
    measurement.print_table("Title", ("name", "x"), [["a long name", "1"], ["b", "22"]])
    assert capsys.readouterr().out == "\nTitle\nname         x\n-----------  --\na long name  1\nb            22\n"


def test_an_interrupted_table_shows_what_was_measured(capsys):
    def rows():
        yield ["a", "1"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measurement.print_table("Title", ("name", "x"), rows())
    assert capsys.readouterr().out == "\nTitle\nname  x\n----  -\na     1\n"
    measurement.print_table("Title", ("name", "x"), iter([]))
    assert capsys.readouterr().out == ""


def test_table_for_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    measurement.print_table("Title", ("name", "x"), [["[a]", "1"]])
    out = capsys.readouterr().out
    assert "Title" in out
    assert "[a]" in out


@pytest.mark.parametrize(("value", "text"), [(12.345, "12.35 s"), (0.9999, "1000 ms"), (0.01234, "12.3 ms")])
def test_seconds(value, text):
    assert measurement.seconds(value) == text


def test_peers_can_be_sent_to_another_process():
    for peer in (peers.explicit_residual, peers.pivoted_qr, peers.reduced_nnls, peers.coordinate_descent):
        assert pickle.loads(pickle.dumps(peer)) is peer


def test_peers_find_the_weights_that_the_library_finds():
    truth = planted((40, 30), 5, 0, noise_level=0.1, random_state=0)
    expected = gsnmf.fit_weights(truth.matrix, truth.columns, []).column_weights
    np.testing.assert_allclose(peers.reduced_nnls(truth.matrix, truth.columns), expected, atol=1e-12)
    descended = peers.coordinate_descent(truth.matrix, truth.columns, 1e-10)
    np.testing.assert_allclose(descended, expected, atol=1e-5)


def test_alternation_says_whether_it_reached_the_error():
    truth = fully_random(0.1, shape=(20, 20), n_columns=3, n_rows=3, random_state=0)
    error = gsnmf.fit_weights(truth.matrix, truth.columns, truth.rows).relative_error
    search = partial(peers.alternating_nnls, truth.matrix, truth.columns, truth.rows)
    reached = search(relative_error=1.01 * error, max_seconds=np.inf)
    assert reached.reached
    assert error * (1 - 1e-4) <= reached.relative_error <= 1.01 * error
    stopped = search(relative_error=0.0, max_seconds=0.0)
    assert not stopped.reached
    assert stopped.n_rounds == 1


@pytest.mark.long
def test_quick_run_of_the_scale_benchmark_prints_slopes_and_the_plan():
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "benchmarks.scale", "--quick"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()
    for start in (
        "time grows with the entries",
        "time grows with the rank",
        "efficiency of two workers",
        "Model: 1e9 x 1e6",
    ):
        assert any(line.startswith(start) for line in lines), start
    assert any("same picks" in line for line in lines)


def test_the_model_of_a_cluster_names_what_takes_longest():
    problem = Problem(n_rows=1e7, n_columns=1e5, entries=1e9, rank=10, chunk_entries=1e7)
    cluster = Cluster(n_workers=10, threads=2, read=1e9, compute=1e-9, network=1e9)
    short, long = (pass_cost(problem, cluster, long_vectors=long) for long in (0, 10))
    assert short.bottleneck == "reading"
    assert short.seconds >= short.reading
    assert short.driver_memory == long.driver_memory
    assert short.worker_memory < long.worker_memory
    for change, bottleneck in (
        ({"compute": 1e-6}, "computing"),
        ({"network": 1e5}, "sending"),
        ({"overhead": 1.0}, "scheduling"),
    ):
        assert pass_cost(problem, replace(cluster, **change)).bottleneck == bottleneck
    assert pass_cost(problem, replace(cluster, n_workers=20)).seconds < short.seconds


def test_the_page_of_figures_names_every_benchmark():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make bench NAME=([a-z]+)`", page)) == set(benchmarks.available())


@pytest.mark.long
def test_estimator_prints_every_comparison_with_its_target(capsys):
    run("estimator")
    lines = capsys.readouterr().out.splitlines()
    for name, target in {
        "25 anchors, 25 samples": ">= 1x, no less exact",
        "50 samples": ">= 1x, no less exact",
        "import gsnmf after it": "< 0.2 s",
        "first fit of 500 x 500": "< ",
        "second fit of 500 x 500": "",
    }.items():
        assert any(line.startswith(name) and target in line for line in lines), name


def test_cells_are_compared_with_nmf(capsys):
    run("cells")
    printed = capsys.readouterr().out
    assert "gsnmf markers" in printed
    assert "NMF" in printed


def test_benchmark_measures_every_contestant():
    rng = np.random.default_rng(0)
    classes = np.arange(60) % 3 + 1
    rates = np.full((3, 30), 0.1)
    for k in range(3):
        rates[k, 10 * k : 10 * k + 10] = 2.0
    counts = rng.poisson(rates[classes - 1]).astype(float)
    outcomes = measure(PaperMatrix("planted", counts, 3, published={}, labels=classes))
    assert {"gsnmf", "gsnmf members=3", "gsnmf members=3, strongest", "NMF", "LDA", "k-means"} <= set(outcomes)
    for name in ("gsnmf", "gsnmf members=3", "NMF", "k-means"):
        assert outcomes[name].information == pytest.approx(1)
        assert outcomes[name].rand == pytest.approx(1)
    assert all(outcome.n_without == 0 for outcome in outcomes.values())


def test_simulated_documents():
    counts, classes = simulated_documents(400, 150, 4)
    assert counts.shape == (400, 150)
    assert classes.shape == (400,)
    assert 70 < counts.sum(axis=1).mean() < 150
    assert np.array_equal(counts.data, np.round(counts.data))
    frequencies = np.sort(np.asarray(counts.sum(axis=0)).ravel())
    assert frequencies[-15:].sum() > 3 * frequencies[:75].sum()  # a few words are frequent


def test_benchmark_on_many_documents(capsys):
    compare_on_many(200, 80, 2)
    printed = capsys.readouterr().out
    assert "200 simulated documents, 80 words" in printed
    assert [line.split("  ")[0] for line in printed.splitlines() if line.startswith(("GSNMF", "NMF"))] == [
        "GSNMF", "GSNMF fast", "GSNMF members=3", "GSNMF members=3 fast", "NMF",
    ]  # fmt: skip


def test_benchmark_on_other_tables(capsys):
    compare_on_tables(["iris"])
    ours, strongest = capsys.readouterr().out.splitlines()[-1].split()[2:5:2]
    assert float(ours) > float(strongest)

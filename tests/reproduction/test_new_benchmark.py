"""A new benchmark is a module with a function ``run(quick)`` in the folder of benchmarks, and nothing else."""

import runpy
import sys

import benchmarks

MODULE = '''
"""Successive projection on columns and on rows: which is faster on a wide matrix?"""

import numpy as np

import gsnmf
from benchmarks._measuring import main, print_table, seconds, take_turns


def run(quick: bool) -> None:
    """Measure and print; ``quick`` takes a small matrix."""
    matrix = np.random.default_rng(0).random((20, 60) if quick else (2000, 6000))
    columns, rows = take_turns(
        lambda: gsnmf.select(matrix, 5, method="spa-columns"),
        lambda: gsnmf.select(matrix, 5, method="spa-rows"),
        repeats=2,
    )
    line = [seconds(columns.best), seconds(rows.best), f"{rows.best / columns.best:.1f}"]
    print_table("SPA", ("columns", "rows", "ratio"), [line])


if __name__ == "__main__":
    main(run)
'''


def test_it_is_found_and_runs(tmp_path, monkeypatch, capsys):
    (tmp_path / "wide.py").write_text(MODULE)
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(tmp_path)])
    assert "wide" in benchmarks.available()
    monkeypatch.setattr(sys, "argv", ["wide", "--quick"])
    runpy.run_module("benchmarks.wide", run_name="__main__")  # python -m benchmarks.wide --quick
    printed = capsys.readouterr().out
    assert "processor" in printed
    assert "SPA" in printed

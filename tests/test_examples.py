"""Every example runs by itself and comes to a conclusion, with and without a figure."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = sorted(path for path in (Path(__file__).parents[1] / "examples").glob("*.py") if path.name[0] != "_")


def run(path, *arguments):
    command = [sys.executable, "-W", "error", str(path), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    figure = tmp_path / "deep" / "figure.png"
    can_draw = find_spec("matplotlib") is not None
    outcome = run(path, *(["--figure", figure] if can_draw else []))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    if outcome.stdout.startswith("Skipped: "):
        pytest.skip(outcome.stdout)
    assert "\nConclusion: " in outcome.stdout
    assert not can_draw or figure.read_bytes().startswith(b"\x89PNG")


def test_figures_are_optional():
    """Matplotlib is not even imported without ``--figure``, and its absence is told."""
    path = next(path for path in EXAMPLES if path.stem == "piano_recording")
    hidden = "import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = sys.argv[1:]; "
    hidden += "sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[:1] + sys.argv[2:]; "
    hidden += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", hidden, str(path), str(path.parent)]
    without = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert without.returncode == 0, without.stderr
    assert "Conclusion" in without.stdout
    wanted = subprocess.run([*command, "--figure", "x.png"], capture_output=True, text=True, timeout=300)
    assert wanted.returncode == 1
    assert wanted.stderr == "--figure needs Matplotlib: pip install matplotlib.\n"

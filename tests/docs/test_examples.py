"""Every example of the gallery runs without a warning, prints something, draws, and has a title."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.long
def test_example(path, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("agg")
    plt.close("all")
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums()
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
    printed = capsys.readouterr()
    assert printed.out
    assert printed.err == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_page(path):
    """A title as a page of the gallery needs it, sections, and only the public part of the library."""
    text = path.read_text(encoding="utf-8")
    title, line = text.splitlines()[1:3]
    assert line == "=" * len(title)
    assert text.count("\n# %%\n") >= 2
    assert text.endswith("plt.show()\n")
    for module in re.findall(r"^(?:from|import) (gsnmf[.\w]*)", text, flags=re.MULTILINE):
        assert module in ("gsnmf", "gsnmf.applications", "gsnmf.convex", "gsnmf.datasets", "gsnmf.nmf", "gsnmf.metrics")

"""Every Python example of the README runs as it stands, and prints what the comments at its end say."""

import re
from pathlib import Path

import pytest

from gsnmf.commands.methods import in_markdown

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_there_are_examples():
    assert BLOCKS
    assert len([line for line in BLOCKS[0].splitlines() if line]) == 6


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_example_runs(block, capsys):
    exec(compile(block, str(README), "exec"), {"__name__": "example"})
    captured = capsys.readouterr()
    assert captured.err == ""
    promised = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("# ")]
    assert not promised or captured.out.splitlines() == promised


def test_the_table_of_methods_is_that_of_the_library():
    assert in_markdown() in README.read_text(encoding="utf-8")

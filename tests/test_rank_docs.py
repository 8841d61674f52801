"""Every Python example of docs/rank.md runs, in order."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "rank.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_examples_run():
    assert len(BLOCKS) == 4
    names = {"__name__": "example"}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)

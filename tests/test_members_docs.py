"""The examples of docs/members.md run, in order."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "members.md"


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    names = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["mixed"].relative_error < names["single"].relative_error
    assert "factor" in capsys.readouterr().out


def test_pictures_are_there():
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / picture).is_file()

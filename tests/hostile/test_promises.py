"""Every promise in SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_every_promise_names_its_tests():
    promised = (_ROOT / "SECURITY.md").read_text(encoding="utf-8").split("## What is promised")[1].split("\n## ")[0]
    promises = promised.split("\n- **")[1:]
    assert len(promises) >= 7
    for promise in promises:
        file = None
        for path, test in re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)(?:\[\w+\])?`", promise):
            file = _ROOT / path if path else file
            assert file is not None
            assert f"def {test}(" in file.read_text(encoding="utf-8"), test
        assert file is not None, promise

"""Every page of docs/ keeps its promises: its Python examples run, in order, and its pictures and links are there.

The examples of docs/guide/large_data.md need a cluster and are run by tests/test_scaling_docs.py.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXAMPLES = {
    "guide/members": 2,
    "guide/missing": 2,
    "guide/rank": 4,
    "theory/convex": 1,
    "theory/identifiability": 4,
    "theory/successive_projection": 1,
}
"""How many examples the pages have: none may be lost to a typing error in its fence."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = DOCS / f"{name}.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == EXAMPLES[name]
    names = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).with_suffix("").as_posix())
def test_pictures_and_links_are_there(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "/gallery/" in target:
            assert (ROOT / "examples" / Path(target).name).with_suffix(".py").exists(), target
        elif "://" not in target:
            assert (page.parent / target).exists(), target

"""Run the examples of the pages in this folder and print what each prints, with its processor time.

``python docs/coming_from/measure.py [PAGE ...]``, in an environment that has gsnmf and the packages to compare with.
Every page is run twice, so that compilation and imports are not counted; the second run is shown. An example that needs
a package which is not installed is left out.
"""

import contextlib
import io
import re
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


def blocks(page: Path) -> list[str]:
    """The Python examples of a page, in order."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def missing(block: str) -> list[str]:
    """Packages that an example imports and that are not installed."""
    imported = re.findall(r"^(?:from|import) (\w+)", block, flags=re.MULTILINE)
    return [name for name in imported if find_spec(name) is None]


def measure(page: Path) -> None:
    """Run a page twice and print the second run."""
    print(f"\n=== {page.stem}", flush=True)
    for shown in (False, True):
        names: dict[str, object] = {"__name__": "example"}
        for number, block in enumerate(blocks(page)):
            if absent := missing(block):
                print(f"--- example {number}: left out without {', '.join(absent)}" if shown else "", end="\n" * shown)
                continue
            printed = io.StringIO()
            start = time.process_time()
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(block, str(page), "exec"), names)
            if shown:
                title = next((line for line in block.splitlines() if "import" not in line and line), "")
                print(f"--- example {number}: {time.process_time() - start:.2f} s of processor ({title.strip()})")
                print(printed.getvalue(), end="", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(page.stem for page in HERE.glob("*.md") if page.stem != "index"):
        measure(HERE / f"{name}.md")

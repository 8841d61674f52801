"""The README and every page of docs/ keep their promises: examples run, outputs are right, pictures and links exist.

The Python blocks of a page run in order, in one namespace and in an empty folder. A block of ``text`` that follows one
is what it prints. A block of ``console`` holds commands after ``$``, each with what it prints, or with nothing if the
page does not show it. ``<!-- needs: zarr, pyarrow -->`` on a page names what must be installed to run it. A block that
imports a package to compare with is left out where that package is not installed.
"""

import io
import re
import shlex
import warnings
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gsnmf.commands import app
from gsnmf.commands.methods import in_markdown

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
EXECUTED = {"python", "console"}
SHOWN = {"text", "sh", "bibtex", ""}
PEERS = {"archetypes", "cnmf", "pysptools", "skmatter"}


def blocks(page):
    """The fenced blocks of a page: kind, text, and whether nothing but white space is between it and the one before."""
    text = page.read_text(encoding="utf-8")
    end = 0
    for match in FENCE.finditer(text):
        yield match[1], match[2], not text[end : match.start()].strip()
        end = match.end()


def with_examples():
    """Pages with examples; together they take long, so that quick tests run those of the README alone."""
    pages = [page for page in PAGES if any(kind in EXECUTED for kind, _, _ in blocks(page))]
    return [page if page == PAGES[0] else pytest.param(page, marks=pytest.mark.long) for page in pages]


def name(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_block_is_lost_to_a_typing_error(page):
    for kind, text, _ in blocks(page):
        assert kind in EXECUTED | SHOWN or kind.startswith("{"), f"{kind}\n{text}"
    assert page.read_text(encoding="utf-8").count("\n```") % 2 == 0


@pytest.mark.parametrize("page", with_examples(), ids=name)
def test_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    for needed in re.findall(r"<!-- needs: (.*?) -->", page.read_text(encoding="utf-8")):
        for module in needed.split(", "):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    with scheduler(monkeypatch) if "DASK_SCHEDULER_ADDRESS" in page.read_text(encoding="utf-8") else nullcontext():
        names = {"__name__": "example"}
        printed = None
        for kind, text, adjacent in blocks(page):
            if kind == "python":
                printed = run_python(text, names, page) if all(map(find_spec, peers(text))) else None
            elif kind == "console":
                run_commands(text)
            elif kind == "text" and adjacent and printed is not None:
                assert printed == text
                printed = None
        if "client" in names:
            names["client"].close()


def run_python(text, names, page):
    """Run a block, and return what it prints, without white space at ends of lines."""
    with redirect_stdout(io.StringIO()) as output, warnings.catch_warnings():
        if peers(text):
            warnings.simplefilter("ignore")  # what others warn of is not for us to mend
        exec(compile(text, str(page), "exec"), names)
    return "".join(line.rstrip() + "\n" for line in output.getvalue().splitlines())


def peers(text):
    """Packages to compare with that a block imports."""
    return PEERS & set(re.findall(r"^(?:from|import) (\w+)", text, flags=re.MULTILINE))


def run_commands(text):
    """Run what follows ``$``, and compare what it prints if the block shows it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "gsnmf", command
        outcome = CliRunner().invoke(app, arguments, env={"COLUMNS": "86"})
        assert outcome.exit_code == 0, outcome.output
        if expected:
            assert [line.rstrip() for line in outcome.output.replace("\\", "/").splitlines()] == expected.splitlines()


@contextmanager
def scheduler(monkeypatch):
    """A local cluster stands for an existing one."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        yield


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pictures_and_links_are_there(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "gallery/" in target:
            example = re.sub(r"sphx_glr_|(_\d{3}|_thumb)(?=\.png)", "", Path(target).name)
            assert example == "index.rst" or (ROOT / "examples" / example).with_suffix(".py").exists(), target
        elif "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_table_of_methods_is_that_of_the_library():
    assert in_markdown() in (DOCS / "guide" / "methods.md").read_text(encoding="utf-8")


def test_the_first_result_of_the_readme_takes_five_lines():
    code = next(text for kind, text, _ in blocks(ROOT / "README.md") if kind == "python")
    assert len([line for line in code.splitlines() if line]) <= 6

"""The reference of the API is complete: every public name has a page, and every docstring says what it must."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "api" / "index.rst"
MODULES = (
    "gsnmf",
    "gsnmf.applications",
    "gsnmf.convex",
    "gsnmf.nmf",
    "gsnmf.metrics",
    "gsnmf.datasets",
    "gsnmf.plotting",
)


def listed():
    """The names of the page with the module that heads their section."""
    module = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            yield module, line.strip()


def public(module):
    """Functions and classes that a module offers: its ``__all__``, or without one what it defines."""
    package = importlib.import_module(module)
    names = getattr(package, "__all__", None) or [
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module and callable(value)
    ]
    names = [*names, *getattr(package, "_SCENES", ())]  # pictures that another layer defines
    return {name for name in names if callable(getattr(package, name))}


LISTED = list(listed())
VALUES = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, name in LISTED}
FUNCTIONS = {name: value for name, value in VALUES.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_page(module):
    assert public(module) == {name for owner, name in LISTED if owner == module}


@pytest.mark.parametrize("name", VALUES)
def test_there_is_an_example_that_runs(name):
    """``--doctest-modules`` runs the examples; here only that there is one, and not only lines that are skipped."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(VALUES[name]))
    assert [example for example in examples if not example.options.get(doctest.SKIP)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_and_returns_are_described(name):
    function = FUNCTIONS[name]
    text = inspect.getdoc(function)
    signature = inspect.signature(function)
    if signature.parameters:
        described = _section(text, "Parameters")
        for parameter in signature.parameters:
            assert re.search(rf"^(?:[\w*]+, )*\*?{parameter}\b", described, flags=re.MULTILINE), parameter
    if signature.return_annotation not in (None, "None"):
        assert _section(text, "Returns")


@pytest.mark.parametrize("name", [name for name, value in VALUES.items() if inspect.isclass(value)])
def test_public_methods_are_described(name):
    kind = VALUES[name]
    for method, value in vars(kind).items():
        if not method.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
            assert inspect.getdoc(getattr(kind, method)), method


def _section(text, title):
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-{{3,}}$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no section {title}"
    return found[1]

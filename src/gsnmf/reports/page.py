"""The page of a report: one HTML file that opens offline and loads nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gsnmf.reports.findings import UNEXPLAINED, Findings
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.formatting import counted, grouped, percent, price
from gsnmf.support.optional import import_optional
from gsnmf.support.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def render_report(findings: Findings) -> str:
    """The whole page; all names are escaped."""
    return environment().get_template("report.html").render(f=findings, version=__version__, unexplained=UNEXPLAINED)


def write_report(findings: Findings, path: str | Path) -> None:
    """Write the page to a file, completely or not at all."""
    with atomic_write(path) as stream:
        stream.write(render_report(findings).encode())


@cache
def environment() -> Environment:
    """The template environment of this package: names are escaped, and undefined variables are errors."""
    jinja2 = import_optional("jinja2", "a report", 'pip install "gsnmf[cli]"')
    environment: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gsnmf.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, counted=counted, grouped=grouped, price=price)
    return environment

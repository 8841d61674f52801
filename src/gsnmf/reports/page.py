"""The page of a report: one file of HTML that opens offline and asks nobody for anything."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gsnmf.reports import charts
from gsnmf.reports.findings import UNEXPLAINED, Findings
from gsnmf.support.version import __version__
from gsnmf.support.whole_files import whole_file
from gsnmf.support.words import counted, grouped, percent, price


def render_report(findings: Findings) -> str:
    """The whole page; every name in it is text, whatever it contains."""
    return environment().get_template("report.html").render(f=findings, version=__version__, unexplained=UNEXPLAINED)


def write_report(findings: Findings, path: str | Path) -> None:
    """Write the page to a file, which is complete or not there at all."""
    with whole_file(path) as stream:
        stream.write(render_report(findings).encode())


@cache
def environment() -> Environment:
    """What renders the templates of this package: names are escaped, and what is not given is an error."""
    environment = Environment(
        loader=PackageLoader("gsnmf.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, counted=counted, grouped=grouped, price=price)
    environment.globals.update(chart_width=charts.WIDTH, chart_height=charts.HEIGHT)
    return environment

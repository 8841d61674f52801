"""``gsnmf demo``: two factorizations of data that comes with Python and scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from gsnmf.commands.examples import Example, pixel_map
from gsnmf.commands.examples import run as run_demo
from gsnmf.commands.progress import stages
from gsnmf.commands.tables import print_factors, print_qualities
from gsnmf.reports.page import write_report


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("report"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only where the reports are.")] = False,
) -> None:
    """Factorize Python's documentation and scikit-learn's digits, and write a report on each."""
    out.mkdir(parents=True, exist_ok=True)
    with stages(quiet) as stage:
        examples = run_demo(stage)
    paths = [out / f"{example.name}.html" for example in examples]
    for example, path in zip(examples, paths, strict=True):
        write_report(example.findings, path)
    if not quiet:
        for example in examples:
            _print_example(example)
    for path in paths:
        typer.echo(path if quiet else f"Report: {path}")


def _print_example(example: Example) -> None:
    console, findings = Console(highlight=False), example.findings
    console.print(f"\n[bold]{escape(findings.title)}[/bold]\n{escape(findings.sentence)}.")
    if findings.images is None:
        print_factors(console, findings)
    else:
        shown = ", ".join(name for name, _ in findings.images.chosen)
        console.print(f"Chosen pixels:\n{pixel_map(example.result.columns)}\nChosen images: {escape(shown or 'none')}")
    print_qualities(console, findings)

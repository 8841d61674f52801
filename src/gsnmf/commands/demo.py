"""``gsnmf demo``: two factorizations of data that comes with Python and scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gsnmf.demo import Demo, Example, pixel_map
from gsnmf.demo import run as run_demo
from gsnmf.report.demo import write_demo


def demo(
    out: Annotated[Path, typer.Option(help="Directory of the report.")] = Path("report"),
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only where the report is.")] = False,
) -> None:
    """Factorize Python's documentation and scikit-learn's digits, and write a report."""
    out.mkdir(parents=True, exist_ok=True)
    result = run_demo()
    path = write_demo(result, out)
    if quiet:
        typer.echo(path)
    else:
        _print_demo(result)
        typer.echo(f"Report: {path}")


def _print_demo(result: Demo) -> None:
    console = Console(highlight=False)
    _print_heading(console, result.documents)
    factors = Table("chosen", "name", "strongest words", "strongest documents")
    for factor in result.documents.factors:
        cells = (factor.kind, factor.name, ", ".join(factor.columns), ", ".join(factor.rows))
        factors.add_row(*map(escape, cells))
    console.print(factors)
    _print_comparison(console, result.documents, "words", "documents")

    _print_heading(console, result.digits)
    chosen = result.digits.result
    shown = ", ".join(str(result.digit_labels[i]) for i in chosen.rows)
    console.print(f"Chosen pixels:\n{pixel_map(chosen.columns)}\nChosen images show: {shown or 'none chosen'}")
    _print_comparison(console, result.digits, "pixels", "images")


def _print_heading(console: Console, example: Example) -> None:
    console.print(f"\n[bold]{escape(example.title)}[/bold]\n{escape(example.about)}")


def _print_comparison(console: Console, example: Example, columns: str, rows: str) -> None:
    table = Table("method", columns, rows, "quality", "note")
    for trial in example.trials:
        counts = (str(trial.n_columns), str(trial.n_rows))
        table.add_row(escape(trial.method), *counts, _percent(trial.quality), escape(trial.note))
    table.add_row("truncated SVD", "", "", _percent(example.svd_quality), "")
    console.print(table)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

"""The commands of ``gsnmf``: they read options, call the library, and print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gsnmf import __version__, benchmarks
from gsnmf.demo import Demo, Example, pixel_map
from gsnmf.demo import run as run_demo
from gsnmf.report.demo import write_demo

app = typer.Typer(
    name="gsnmf",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; an error is one line unless ``--debug`` asks for its traceback."""
    debug = "--debug" in arguments
    try:
        code = app(args=[a for a in arguments if a != "--debug"], prog_name="gsnmf", standalone_mode=False)
    except typer.Abort:
        print("gsnmf: stopped", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        print(f"gsnmf: {_one_line(error)}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))  # 2 if typer finds the arguments wrong
    return code if isinstance(code, int) else 0


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Explain a nonnegative matrix by a few of its own rows and columns."""
    if version:
        typer.echo(f"gsnmf {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
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


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; without it they are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short version with small matrices.")] = False,
) -> None:
    """Run a benchmark."""
    if name is None:
        typer.echo("\n".join(benchmarks.available()) or "There are no benchmarks.")
        return
    if name not in benchmarks.available():
        allowed = ", ".join(benchmarks.available()) or "none"
        raise typer.BadParameter(f"NAME must be one of: {allowed}; got {name!r}.")
    benchmarks.load(name)(quick)


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


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return " ".join(message.split()) or type(error).__name__

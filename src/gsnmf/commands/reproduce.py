"""``gsnmf reproduce``: the figures and tables of the paper."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from gsnmf.commands.effects import given_options
from gsnmf.experiments import part_names
from gsnmf.experiments._page import verdicts
from gsnmf.experiments._reproduce import reproduce as run
from gsnmf.experiments._reproduce import write_docs
from gsnmf.experiments._runner import Report
from gsnmf.experiments._study import Section, Settings, Study

_COLOURS = {"holds": "green", "does not hold": "red", "cannot be checked": "yellow"}
_SECONDS_BETWEEN_LINES = 30.0
_WIDTH = 160
"""Of lines in a file."""


def reproduce(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Figures and tables by name, or all.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of results, pictures and index.md.")] = Path("reproduction"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files; else the one GSNMF_DATA names.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few trials in place of all.")] = False,
    replot: Annotated[bool, typer.Option("--replot", help="Run nothing; draw what was measured before.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Discard what was measured before.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one per core.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Also write reproduction.md, with its pictures, here.")] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names and exit.")] = False,
) -> None:
    """Reproduce figures and tables of the paper; an interrupted run goes on where it was."""
    known = part_names()
    if list_names or not names:
        others = given_options(context) - {"list_names"}
        if others:
            raise typer.BadParameter(
                "--list takes no names and no other options."
                if list_names
                else f"give the names of figures and tables, or all: {', '.join(known)}."
            )
        width = max(map(len, known))
        typer.echo("\n".join(f"{name:{width}}  {title}" for name, title in known.items()))
        return
    unknown = [name for name in names if name not in known and name != "all"]
    if unknown:
        raise typer.BadParameter(f"NAMES must be among: all, {', '.join(known)}; got {unknown[0]!r}.")
    if replot and fresh:
        raise typer.BadParameter("--replot draws what --fresh discards; give one of them.")
    if replot and workers is not None:
        raise typer.BadParameter("--workers has no effect with --replot, which runs nothing.")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    with _progress(console) as report:
        sections = run(
            list(known) if "all" in names else names,
            out,
            Settings(quick=quick, data=data),
            workers=workers or _cores(),
            replot=replot,
            fresh=fresh,
            report=report,
        )
    for _, section in sections:
        _print_section(console, section)
    if any(section.claims for _, section in sections):
        console.print(f"\nStatements of the paper: {verdicts([section for _, section in sections])}.")
    console.print(f"Page: {out / 'index.md'}")
    if docs is not None:
        console.print(f"Documentation: {write_docs(docs, sections, out)}")


class _Lines:
    """Progress as a line now and then, for output that is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, study: Study) -> Report:
        begin = last = time.monotonic()
        first: int | None = None

        def report(done: int, total: int, trial: str) -> None:
            nonlocal last, first
            now = time.monotonic()
            if first is None:
                first = done
            if done == total or now - last >= _SECONDS_BETWEEN_LINES:
                last = now
                rate = (now - begin) / (done - first) if done > first else 0.0
                left = f", about {rate * (total - done):.0f} s left" if rate and done < total else ""
                self._console.print(f"{study.name}: {done} of {total} trials, {now - begin:.0f} s{left}")

        return report


class _Bars:
    """Progress as one bar per study."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, study: Study) -> Report:
        task = self._progress.add_task(study.name, total=None)

        def report(done: int, total: int, trial: str) -> None:
            self._progress.update(task, completed=done, total=total)

        return report


@contextmanager
def _progress(console: Console) -> Iterator[_Lines | _Bars]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        yield _Bars(progress)


def _print_section(console: Console, section: Section) -> None:
    console.print(f"\n[bold]{escape(section.title)}[/bold]")
    for paragraph in section.text:
        console.print(escape(paragraph.replace("**", "")))
    for table in section.tables:
        if table.long:
            continue
        drawn = RichTable(caption=escape(table.caption), caption_justify="left")
        for title in table.header:
            drawn.add_column(escape(title), overflow="fold")
        for row in table.rows:
            drawn.add_row(*map(escape, row))
        console.print(drawn)
    for claim in section.claims:
        colour = _COLOURS[claim.verdict]
        console.print(f"[{colour}]{claim.verdict}[/{colour}]: {escape(claim.statement)}. {escape(claim.numbers)}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

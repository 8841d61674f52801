"""What commands show and write: progress on a terminal, files in a folder, and what was found."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gsnmf.support.atomic_files import atomic_files, check_targets
from gsnmf.support.progress import fraction_of, heard_by
from gsnmf.support.version import __version__


@contextmanager
def stages(quiet: bool, count: int | None = None) -> Iterator[Callable[[str], None]]:
    """Show stages: those that the library logs, and those for which the function given here is called.

    Nothing is shown if quiet or without a terminal.

    Parameters
    ----------
    quiet : bool
    count : int, optional
        Number of stages: the bar then shows how many of them are done.

    Notes
    -----
    The bar also moves within a stage, with the progress of a search. Beside it stands the last message of the library's
    logger, such as the quality so far.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = () if count is None else (TextColumn("{task.fields[step]} of {task.total}"),)
    stage, note = (TextColumn("{" + f"task.{name}" + "}", markup=False) for name in ("description", "fields[note]"))
    columns = (SpinnerColumn(), stage, BarColumn(bar_width=20), *bar, TimeElapsedColumn(), note)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Starting", total=count, note="", step=0)
        begun = 0

        def begin(stage: str) -> None:
            nonlocal begun
            total, done = (None, 0) if count is None else (count, begun)
            progress.update(task, description=stage, total=total, completed=done, note="", step=begun, refresh=True)
            begun += 1

        def listen(message: str, fraction: float | None) -> None:
            progress.update(task, note=message)
            if fraction is not None:
                total, done = (1, fraction) if count is None else (count, begun - 1 + fraction)
                progress.update(task, total=total, completed=done)

        with heard_by(_Listener(begin, listen)):
            yield begin


class _Listener(logging.Handler):
    def __init__(self, begin: Callable[[str], None], listen: Callable[[str, float | None], None]) -> None:
        super().__init__(logging.INFO)
        self._begin, self._listen = begin, listen

    def emit(self, record: logging.LogRecord) -> None:
        """Begin a stage, or pass a message on with the fraction of the work that is done."""
        if hasattr(record, "stage"):
            self._begin(record.getMessage())
        else:
            self._listen(record.getMessage(), fraction_of(record))


def check_folder(folder: Path, files: Sequence[str]) -> None:
    """Raise before the work if these files cannot be written to a folder afterwards."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(existing))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(existing))
    if folder.is_dir():
        check_targets([folder / name for name in files])


def write_files(folder: Path, contents: Mapping[str, str | Callable[[Path], None]]) -> None:
    """Write files, given their text or a function that writes to a path: all of them, or none if one fails."""
    with atomic_files(folder, list(contents)) as draft:
        for name, content in contents.items():
            if isinstance(content, str):
                (draft / name).write_bytes(content.encode())
            else:
                content(draft / name)


def json_text(summary: Mapping[str, Any], *, ascii: bool = True) -> str:
    """A summary as the text of a JSON file."""
    return json.dumps(summary, indent=2, ensure_ascii=ascii) + "\n"


def provenance(file: Path, started: float) -> dict[str, str]:
    """What is needed to make a result again."""
    known = {
        "Seconds": f"{time.perf_counter() - started:.1f}",
        "Made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gsnmf": __version__,
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "NumPy, SciPy, scikit-learn": ", ".join(version(name) for name in ("numpy", "scipy", "scikit-learn")),
    }
    if file.is_file():
        with file.open("rb") as stream:
            known["SHA-256 of the file"] = hashlib.file_digest(stream, "sha256").hexdigest()
    return known


def print_found(
    report: Path,
    summary: Mapping[str, Any],
    show: Callable[[Console], None],
    *,
    as_json: bool,
    quiet: bool,
    warnings: Sequence[str] = (),
    label: str = "Report",
) -> None:
    """Print the summary as JSON, only the path of the report, or what ``show`` prints for people with the path.

    Warnings go to standard error.
    """
    if as_json:
        typer.echo(json_text(summary), nl=False)
    elif quiet:
        typer.echo(report)
    else:
        show(Console(highlight=False))
        typer.echo(f"{label}: {report}")
    for warning in warnings:
        typer.echo(f"gsnmf: warning: {warning}", err=True)


def print_table(console: Console, header: Sequence[Any], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; markup in its cells is printed as it is."""
    table = Table(*header, title=escape(title) or None, title_justify="left")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)

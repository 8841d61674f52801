"""Shows on standard error what a long command is doing, if someone is watching."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gsnmf.support.progress import fraction_of, heard_by


@contextmanager
def stages(quiet: bool, count: int | None = None) -> Iterator[Callable[[str], None]]:
    """Show stages: those that the library logs, and those for which the function given here is called.

    Nothing is shown if quiet or without a terminal.

    Parameters
    ----------
    quiet : bool
    count : int, optional
        How many stages there will be: the bar then shows how many of them are done.

    Notes
    -----
    The bar also moves within a stage, by what a search says of its progress, and beside it stands the last message of
    the library's logger: the quality so far, or that kernels are being compiled, if they are.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from gsnmf._kernels.announcement import announced_compilation

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

        with announced_compilation(), heard_by(_Listener(begin, listen)):
            yield begin


class _Listener(logging.Handler):
    def __init__(self, begin: Callable[[str], None], listen: Callable[[str, float | None], None]) -> None:
        super().__init__(logging.INFO)
        self._begin, self._listen = begin, listen

    def emit(self, record: logging.LogRecord) -> None:
        """Begin a stage, or pass a message on with the part of the work that is done."""
        if hasattr(record, "stage"):
            self._begin(record.getMessage())
        else:
            self._listen(record.getMessage(), fraction_of(record))

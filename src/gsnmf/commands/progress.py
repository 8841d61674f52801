"""What a long command is doing, on standard error and only for people."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stages(quiet: bool, count: int | None = None) -> Iterator[Callable[[str], None]]:
    """A function that names the stage that begins; it shows nothing if quiet or if nobody looks at a terminal.

    Parameters
    ----------
    quiet : bool
    count : int, optional
        How many stages there will be: a bar then shows how many of them are done.

    Notes
    -----
    Beside the stage stands the last message of the library's logger: how far a search has come, or that kernels are
    being compiled, if they are.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from gsnmf.kernels.compilation import announced_compilation

    bar = () if count is None else (BarColumn(bar_width=20), TextColumn("{task.completed} of {task.total}"))
    stage, note = (TextColumn("{" + f"task.{name}" + "}", markup=False) for name in ("description", "fields[note]"))
    columns = (SpinnerColumn(), stage, *bar, TimeElapsedColumn(), note)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Starting", total=count, note="")
        begun = 0

        def begin(stage: str) -> None:
            nonlocal begun
            progress.update(task, description=stage, completed=begun, note="", refresh=True)
            begun += 1

        with announced_compilation(), _heard(lambda message: progress.update(task, note=message)):
            yield begin


@contextmanager
def _heard(listen: Callable[[str], None]) -> Iterator[None]:
    """Pass the messages of the library's logger on."""
    logger, handler = logging.getLogger("gsnmf"), _Listener(listen)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _Listener(logging.Handler):
    def __init__(self, listen: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._listen = listen

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a message on."""
        self._listen(record.getMessage())

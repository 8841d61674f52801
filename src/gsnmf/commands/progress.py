"""What a long command is doing, on standard error and only for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def stages(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that names the stage that begins; it shows nothing if quiet or if nobody looks at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Starting", total=None)
        yield lambda stage: progress.reset(task, description=stage)

"""The library's logger, and the progress of long computations.

Progress is a message of the logger ``"gsnmf"`` at level INFO with the attribute ``fraction``, the fraction of the work
that is done; a message with the attribute ``stage`` begins the next of several stages. A listener may draw a bar;
`Bar` draws one with plain characters. `reported` implements the option ``progress=`` of public functions.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

logger = logging.getLogger("gsnmf")

_muted = ContextVar("muted", default=False)

_WIDTH = 24
"""Characters of a full bar."""
_PAUSE = 10.0
"""Seconds between two lines of progress where a line cannot be redrawn."""


def log_progress(stage: str, done: float, total: float, quality: float) -> None:
    """Log how far a search is and what it has reached."""
    if logger.isEnabledFor(logging.INFO) and not _muted.get():
        known = {"fraction": min(1.0, done / total), "quality": quality}
        logger.info("%s: quality %.2f %%", stage, 100 * quality, extra=known)


def log_stage(name: str) -> None:
    """Log that the next of several stages begins."""
    logger.info("%s", name, extra={"stage": name})


def fraction_of(record: logging.LogRecord) -> float | None:
    """The fraction of the work that is done, if the message reports progress."""
    return getattr(record, "fraction", None)


@contextmanager
def heard_by(handler: logging.Handler) -> Iterator[None]:
    """Pass the messages of the library's logger on within the block."""
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


@contextmanager
def muted() -> Iterator[None]:
    """Log no progress within the block: for searches that are steps of a computation with its own progress."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


@dataclass(frozen=True)
class Status:
    """How far a computation is; what a function given as ``progress=`` is called with.

    Attributes
    ----------
    stage : str
        The current of several stages; empty for a computation without stages.
    message : str
        What is being done, or was found.
    fraction : float or None
        Fraction of the stage that is done, from 0 to 1, if known.
    quality : float or None
        The best quality so far, if known.
    """

    stage: str
    message: str
    fraction: float | None = None
    quality: float | None = None


Progress = bool | Callable[[Status], None] | None
"""The option ``progress=`` of public functions: True for a bar on standard error, or a function to call."""


@contextmanager
def reported(progress: Progress) -> Iterator[None]:
    """Show what this thread logs within the block as a bar on standard error (True), or pass it to a function.

    Examples
    --------
    >>> with reported(print):
    ...     log_stage("Fitting")
    ...     log_progress("balanced", 5, 10, 0.8631)
    Status(stage='Fitting', message='Fitting', fraction=None, quality=None)
    Status(stage='Fitting', message='balanced: quality 86.31 %', fraction=0.5, quality=0.8631)
    """
    if not progress:
        yield
        return
    handler = Bar(sys.stderr) if progress is True else _Caller(progress)
    caller = threading.get_ident()
    handler.addFilter(lambda record: record.thread == caller)
    with heard_by(handler):
        yield


class _Caller(logging.Handler):
    """Calls a function with the status that each message reports."""

    def __init__(self, function: Callable[[Status], None]) -> None:
        super().__init__(logging.INFO)
        self._function, self._stage = function, ""

    def emit(self, record: logging.LogRecord) -> None:
        self._stage = getattr(record, "stage", self._stage)
        quality = getattr(record, "quality", None)
        self._function(Status(self._stage, record.getMessage(), fraction_of(record), quality))


class Bar(logging.Handler):
    """Writes messages as lines and progress as a bar: redrawn in place on a terminal, an occasional line elsewhere.

    Examples
    --------
    >>> import sys
    >>> bar = Bar(sys.stdout)
    >>> record = logging.makeLogRecord({"msg": "balanced: quality 86.31 %", "fraction": 0.5})
    >>> bar.emit(record)
    [gsnmf] ############............  50 %  balanced: quality 86.31 %
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(logging.INFO)
        self._stream = stream
        self._redraws = stream.isatty()
        self._drawn = 0
        """Number of characters of the last bar, which the next line must cover."""
        self._last = -_PAUSE

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message."""
        fraction = fraction_of(record)
        if fraction is None:
            self._write(f"[gsnmf] {record.getMessage()}", "\n")
            return
        now = time.monotonic()
        if now - self._last < (0.1 if self._redraws else _PAUSE):
            return
        self._last = now
        filled = round(_WIDTH * fraction)
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._write(f"[gsnmf] {bar} {100 * fraction:3.0f} %  {record.getMessage()}", "" if self._redraws else "\n")

    def close(self) -> None:
        """End the line of a bar, if one was drawn."""
        if self._drawn:
            self._stream.write("\n")
            self._drawn = 0
        super().close()

    def _write(self, line: str, end: str) -> None:
        start = "\r" if self._drawn else ""
        self._stream.write(start + line.ljust(self._drawn) + end)
        self._stream.flush()
        self._drawn = 0 if end else len(line)

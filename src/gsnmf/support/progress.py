"""The library's logger, and the progress of long computations.

Progress is a message of the logger ``"gsnmf"`` at level INFO with the attribute ``fraction``, the fraction of the work
that is done. A listener may draw a bar; `Bar` draws one with plain characters.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

logger = logging.getLogger("gsnmf")

_WIDTH = 24
"""Characters of a full bar."""
_PAUSE = 10.0
"""Seconds between two lines of progress where a line cannot be redrawn."""


def log_progress(stage: str, done: float, total: float, quality: float) -> None:
    """Log how far a search is and what it has reached."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s: quality %.2f %%", stage, 100 * quality, extra={"fraction": min(1.0, done / total)})


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

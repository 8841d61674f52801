"""Tells when kernels are being compiled, which takes seconds the first time on a machine.

Numba keeps what it compiles on disk, beside the package or in ``NUMBA_CACHE_DIR``: later processes only load it. Before
it loads the first kernel it reads its own tables of types, a tenth of a second. That is done here, when the package is
imported, and not in the middle of the first fit.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

with contextlib.suppress(ImportError, AttributeError):  # no public interface: without it the first fit does the same
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()

logger = logging.getLogger("gsnmf")


class _Announcement(event.Listener):
    """Logs the first compilation of one of our kernels; those of other packages are not our business."""

    def __init__(self) -> None:
        self.done = False

    def on_start(self, event: event.Event) -> None:
        """Numba begins to compile a function: it was not on disk."""
        if not self.done and event.data["dispatcher"].py_func.__module__.startswith("gsnmf."):
            self.done = True
            logger.info("compiling kernels: some seconds, once on this machine; later runs load them from disk")

    def on_end(self, event: event.Event) -> None:
        """Numba has compiled a function."""


@contextmanager
def announced_compilation(verbose: int | bool = 0) -> Iterator[None]:
    """Log within the block that kernels are being compiled, if they are.

    The logger is ``"gsnmf"``, the level INFO; with ``verbose`` the records of this logger are also written to standard
    output within the block.
    """
    with event.install_listener("numba:compile", _Announcement()), _shown() if verbose else _as_it_is():
        yield


@contextmanager
def _shown() -> Iterator[None]:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("[gsnmf] %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield

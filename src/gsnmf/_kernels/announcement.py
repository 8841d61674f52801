"""Logs when kernels are being compiled, which takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from gsnmf.support.progress import Bar, heard_by, logger


@dataclass(eq=False)
class _Block:
    told: bool = False


_blocks: list[_Block] = []
"""Those in which somebody wants to know."""


def announce_compilation() -> None:
    """Log that kernels are being compiled, once for each block of `announced_compilation` that is open."""
    untold = [block for block in _blocks if not block.told]
    if untold:
        logger.info("compiling kernels: some seconds, once on this machine; later runs load them from disk")
    for block in untold:
        block.told = True


@contextmanager
def announced_compilation(verbose: int | bool = 0) -> Iterator[None]:
    """Log within the block that kernels are being compiled, if they are.

    The logger is ``"gsnmf"``, the level INFO; with ``verbose`` its messages are also written to standard output within
    the block, and progress is drawn as a bar.
    """
    block = _Block()
    with heard_by(Bar(sys.stdout)) if verbose else nullcontext():
        _blocks.append(block)
        try:
            yield
        finally:
            _blocks.remove(block)

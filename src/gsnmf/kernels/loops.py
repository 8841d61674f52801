"""Compiled loops whose parts can be done side by side, run in one thread or shared among all."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from gsnmf.kernels.compilation import compiled
from gsnmf.kernels.team import share
from gsnmf.kernels.threads import cores, small

_PARTS_PER_THREAD = 8
"""Parts take unequal time; with several parts per thread no thread waits long for the last one."""


class Loop:
    """A loop over independent items, run in one thread or in all of them.

    Only one Python thread at a time shares out a loop; others that arrive meanwhile run theirs on one core. Otherwise
    all loops would compete for the same cores.

    Parameters
    ----------
    part : function
        Does part number ``part`` of ``n_parts`` when it is called with the arguments of the loop, ``part`` and
        ``n_parts``. It releases Python's lock, changes arrays in place, and returns nothing. Most loops take every
        ``n_parts``-th row, because rows that take long are often neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> @loop()
    ... def halve(X, first, stride):
    ...     for i in range(first, X.size, stride):
    ...         X[i] /= 2
    >>> X = np.array([2.0, 4.0])
    >>> halve(X, work=X.size)
    >>> X
    array([1., 2.])
    """

    def __init__(self, part: Callable[..., None]) -> None:
        self._part = part
        update_wrapper(self, part)

    def __call__(self, *arguments: Any, work: float) -> None:
        """Run the loop, which takes about ``work`` operations."""
        n_threads = 1 if small(work) else cores.acquire()
        if n_threads == 1:
            self._part(*arguments, 0, 1)
            return
        n_parts = n_threads * _PARTS_PER_THREAD
        try:
            share(lambda part: self._part(*arguments, part, n_parts), _far_apart(n_threads), n_threads)
        finally:
            cores.release()


def loop(*, reordered: bool = False) -> Callable[[Callable[..., None]], Loop]:
    """Decorator that compiles a function and makes a `Loop` of it; ``reordered`` as in `compiled`."""
    return lambda part: Loop(compiled(reordered=reordered)(part))


def _far_apart(n_threads: int) -> list[int]:
    """The parts in an order in which threads never work on neighbours: these often share lines of the cache."""
    return [thread * _PARTS_PER_THREAD + step for step in range(_PARTS_PER_THREAD) for thread in range(n_threads)]

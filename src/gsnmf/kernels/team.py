"""Threads that share out independent pieces of work, and pieces within pieces.

Whoever hands out pieces works on them as well and never waits for a thread that has not begun. So a piece may hand out
pieces of its own: threads that have nothing else to do help with them. Results come in the order of the pieces, so they
do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from gsnmf.kernels.threads import in_one_thread, n_threads_allowed

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def share(function: Callable[[_Item], _Result], items: Sequence[_Item], n_threads: int) -> list[_Result]:
    """The results for all items, each computed in one of up to ``n_threads`` threads, of which the caller is one.

    Examples
    --------
    >>> share(abs, [-1, 2, -3], n_threads=2)
    [1, 2, 3]
    """
    results: dict[int, _Result] = {}
    waiting = deque(range(len(items)))

    def work() -> None:
        try:
            with in_one_thread():
                while (place := _taken(waiting)) is not None:
                    results[place] = function(items[place])
        finally:
            waiting.clear()  # after an error, nobody begins another item

    helpers = _helped(work, min(n_threads, len(items)) - 1, n_threads)
    try:
        work()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return [results[place] for place in range(len(items))]


class Team:
    """As many threads as a piece of work is worth; without `running`, the caller alone.

    Examples
    --------
    >>> team = Team()
    >>> with team.running(2):
    ...     team.map(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._n_threads = 1

    @contextmanager
    def running(self, most: int) -> Iterator[None]:
        """Have up to ``most`` threads within the block, the caller included."""
        before, self._n_threads = self._n_threads, max(self._n_threads, min(most, n_threads_allowed()))
        try:
            yield
        finally:
            self._n_threads = before

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """The results for all items, each computed in one thread."""
        if self._n_threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        return share(function, items, self._n_threads)


def _taken(waiting: deque[int]) -> int | None:
    """The first number, which is removed; None if there is none."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _helped(work: Callable[[], None], n_helpers: int, n_threads: int) -> list[Future[None]]:
    """Ask ``n_helpers`` of the threads that stand by to do the work."""
    try:
        return [_standing_by(n_threads).submit(work) for _ in range(n_helpers)]
    except RuntimeError:  # Python is about to end and starts no more threads: the caller works alone
        return []


@cache
def _standing_by(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads - 1, thread_name_prefix="gsnmf")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_standing_by.cache_clear)

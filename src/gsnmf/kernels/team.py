"""Threads that share out independent pieces of work, and pieces within pieces.

Whoever hands out pieces works on them as well and never waits for a thread that has not begun. So a piece may hand out
pieces of its own: threads that have nothing else to do help with them. Results come in the order of the pieces, so they
do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from threading import Condition
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
    errors: list[BaseException] = []
    waiting, crew = deque(range(len(items))), _Crew()

    def work() -> None:
        try:
            with in_one_thread():
                while (place := _taken(waiting)) is not None:
                    results[place] = function(items[place])
        finally:
            waiting.clear()  # after an error, nobody begins another item

    def help_out() -> None:
        if crew.enter():
            try:
                work()
            except BaseException as error:
                errors.append(error)
            finally:
                crew.leave()

    _ask(help_out, min(n_threads, len(items)) - 1, n_threads)
    try:
        work()
    finally:
        crew.close()
    if errors:
        raise errors[0]
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


class _Crew:
    """Those who help with the same items. Once it is closed, who comes too late does not begin."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._n_inside = 0
        self._open = True

    def enter(self) -> bool:
        """Join, unless it is closed."""
        with self._changed:
            self._n_inside += self._open
            return self._open

    def leave(self) -> None:
        """Be done."""
        with self._changed:
            self._n_inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody join any more, and wait for those inside."""
        with self._changed:
            self._open = False
            self._changed.wait_for(lambda: self._n_inside == 0)


def _ask(help_out: Callable[[], None], n_helpers: int, n_threads: int) -> None:
    """Ask some of the threads that stand by to help out."""
    with suppress(RuntimeError):  # no more threads can be started here, or Python is about to end
        for _ in range(n_helpers):
            _standing_by(n_threads).submit(help_out)


@cache
def _standing_by(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads - 1, thread_name_prefix="gsnmf")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_standing_by.cache_clear)

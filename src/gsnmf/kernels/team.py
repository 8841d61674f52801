"""A team of threads that share out independent pieces of work, and pieces within pieces.

Whoever hands out pieces works on them as well and never waits for a thread that has not begun. So a piece may hand out
pieces of its own: threads that have nothing else to do help with them. Results come in the order of the pieces, so they
do not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from gsnmf.kernels.threads import in_one_thread, n_threads_allowed

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Team:
    """Threads for independent pieces of work; without `running`, the caller alone.

    Examples
    --------
    >>> team = Team()
    >>> with team.running(2):
    ...     team.map(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._n_threads = 1

    @contextmanager
    def running(self, most: int) -> Iterator[None]:
        """Have up to ``most`` threads within the block, the caller included."""
        self._n_threads = min(most, n_threads_allowed())
        if self._n_threads == 1 or self._pool is not None:
            yield
            return
        with ThreadPoolExecutor(self._n_threads - 1) as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool, self._n_threads = None, 1

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """The results for all items, each computed in one thread."""
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: dict[int, _Result] = {}
        waiting = deque(range(len(items)))

        def work() -> None:
            try:
                with in_one_thread():
                    while (place := _taken(waiting)) is not None:
                        results[place] = function(items[place])
            finally:
                waiting.clear()  # after an error, nobody begins another item

        helpers = [self._pool.submit(work) for _ in range(min(self._n_threads, len(items)) - 1)]
        try:
            work()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
        return [results[place] for place in range(len(items))]


def _taken(waiting: deque[int]) -> int | None:
    """The first number, which is removed; None if there is none."""
    try:
        return waiting.popleft()
    except IndexError:
        return None

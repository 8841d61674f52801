"""The one thread policy: when native loops, independent items and BLAS may use more than one core.

Starting and joining threads takes time, and more of it while other programs use the cores. So a loop uses threads only
above `PARALLEL_WORK` operations, and only one Python thread at a time may use all cores. BLAS stays at one thread
around the loops (`single_threaded_blas`), because its idle threads spin and take the cores from the loops; only much
larger products are worth that (`blas_threads`). Results never depend on the number of threads.

``GSNMF_NUM_THREADS`` sets the number of threads. Default: the number of processors that this process may use, which
`joblib.cpu_count` reads from the affinity of the process and the limits of its container.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache, update_wrapper
from threading import Condition, Lock
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

PARALLEL_WORK = 1 << 21
"""Operations, about a millisecond, below which threads cost more than they save. On a core that another program uses
too, a thread may start several milliseconds late."""

_BLAS_WORK = 1 << 32
"""Multiplications in a product, times processors, above which BLAS threads gain more than they cost the loops."""

_PARTS_PER_THREAD = 8
"""Parts of a loop take unequal time; with several parts per thread, no thread waits long for the last one."""

_single_thread = ContextVar("_single_thread", default=False)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def is_small(work: float) -> bool:
    """Whether ``work`` operations are too few to be worth threads, or anything else with a similar overhead."""
    return work < PARALLEL_WORK


def n_threads() -> int:
    """Number of threads that the caller may use: ``GSNMF_NUM_THREADS``, or as many as there are processors."""
    if _single_thread.get():
        return 1
    requested = os.environ.get("GSNMF_NUM_THREADS", "")
    return max(1, int(requested)) if requested.isdecimal() else _n_processors()


@cache
def _n_processors() -> int:
    return max(1, int(cpu_count()))


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Run the loops of the block in the calling thread, for instance in a Dask task that shares the cores."""
    token = _single_thread.set(True)
    try:
        yield
    finally:
        _single_thread.reset(token)


class Loop:
    """A native loop over independent items, run in one thread or split among all.

    Parameters
    ----------
    kernel : callable
        Called with the arguments of the loop, ``part`` and ``n_parts``; processes the items of that part. It releases
        the global interpreter lock, changes arrays in place, and returns nothing.

    Examples
    --------
    >>> squares = [0] * 4
    >>> def square(squares, part, n_parts):
    ...     for i in range(part, len(squares), n_parts):
    ...         squares[i] = i**2
    >>> Loop(square)(squares, work=4)
    >>> squares
    [0, 1, 4, 9]
    """

    def __init__(self, kernel: Callable[..., None]) -> None:
        self._kernel = kernel
        update_wrapper(self, kernel)

    def __call__(self, *arguments: Any, work: float) -> None:
        """Run the loop, which takes about ``work`` operations."""
        threads = 1 if is_small(work) else _cores.acquire()
        if threads == 1:
            self._kernel(*arguments, 0, 1)
            return
        n_parts = threads * _PARTS_PER_THREAD
        # Neighbouring parts often share cache lines, so threads start far apart
        order = [thread * _PARTS_PER_THREAD + step for step in range(_PARTS_PER_THREAD) for thread in range(threads)]
        try:
            parallel_map(lambda part: self._kernel(*arguments, part, n_parts), order, threads)
        finally:
            _cores.release()


def parallel_map(function: Callable[[_Item], _Result], items: Sequence[_Item], n_threads: int) -> list[_Result]:
    """Apply a function to all items in up to ``n_threads`` threads, the calling thread included; results in order.

    The calling thread works on items too and never waits for a worker that has not started. So the function may call
    `parallel_map` itself: idle workers then help with the inner items.

    Examples
    --------
    >>> parallel_map(abs, [-1, 2, -3], n_threads=2)
    [1, 2, 3]
    """
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    remaining, workers = deque(range(len(items))), _Workers()

    def work() -> None:
        try:
            with in_one_thread():
                while True:
                    try:
                        position = remaining.popleft()
                    except IndexError:
                        return
                    results[position] = function(items[position])
        finally:
            remaining.clear()  # after an error, no thread starts another item

    def work_in_background() -> None:
        if workers.enter():
            try:
                work()
            except BaseException as error:
                errors.append(error)
            finally:
                workers.leave()

    with suppress(RuntimeError):  # the system has no more threads, or the interpreter is shutting down
        for _ in range(min(n_threads, len(items)) - 1):
            _thread_pool(n_threads).submit(work_in_background)
    try:
        work()
    finally:
        workers.close()
    if errors:
        raise errors[0]
    return [results[position] for position in range(len(items))]


class ThreadBudget:
    """How many threads the steps of one computation may use; one outside `limited_to`.

    Examples
    --------
    >>> budget = ThreadBudget()
    >>> with budget.limited_to(2):
    ...     budget.map(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._n_threads = 1

    @contextmanager
    def limited_to(self, most: int) -> Iterator[None]:
        """Allow up to ``most`` threads within the block, the caller included."""
        before, self._n_threads = self._n_threads, max(self._n_threads, min(most, n_threads()))
        try:
            yield
        finally:
            self._n_threads = before

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Apply a function to all items, each in one thread; results in order."""
        if self._n_threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        return parallel_map(function, items, self._n_threads)


def single_threaded_blas() -> AbstractContextManager[None]:
    """Keep BLAS at one thread within the block: its idle threads would take the cores from the native loops.

    Any number of threads may enter and leave at any time; afterwards BLAS has as many threads as before.
    """
    return _single_threaded_blas


def blas_threads(n_multiplications: float) -> AbstractContextManager[None]:
    """One BLAS thread, unless the products are so large that more threads gain more than they cost the loops."""
    large = n_multiplications * (os.cpu_count() or 1) >= _BLAS_WORK
    return nullcontext() if large else single_threaded_blas()


class _Cores:
    """Lock that lets one Python thread at a time use all cores; other callers run single-threaded."""

    def __init__(self) -> None:
        self._lock = Lock()

    def acquire(self) -> int:
        """Try to acquire all cores: their number, or 1 if another thread holds them. Above 1, call `release`."""
        available = n_threads()
        return available if available > 1 and self._lock.acquire(blocking=False) else 1

    def release(self) -> None:
        """Release the cores."""
        self._lock.release()

    def reset(self) -> None:
        """Start with a free lock in a forked process, where the thread that held it does not exist."""
        self._lock = Lock()


class _Workers:
    """Background threads of one `parallel_map` call; after `close`, late workers return at once."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._n_active = 0
        self._open = True

    def enter(self) -> bool:
        """Register a worker; False after `close`."""
        with self._changed:
            self._n_active += self._open
            return self._open

    def leave(self) -> None:
        """Deregister a worker."""
        with self._changed:
            self._n_active -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Admit no more workers, and wait for the active ones."""
        with self._changed:
            self._open = False
            self._changed.wait_for(lambda: self._n_active == 0)


@cache
def _thread_pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads - 1, thread_name_prefix="gsnmf")


class _SingleThreadedBLAS:
    """Context manager that keeps BLAS at one thread while any Python thread is inside.

    The number of BLAS threads belongs to the whole process. The first thread to enter sets it to one, and the last to
    leave restores what the first one found, in whatever order they enter and leave.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                with _controlling_blas():
                    self._limit = _thread_pools().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                with _controlling_blas():
                    self._limit.restore_original_limits()

    def reset(self) -> None:
        """Start with a free lock in a forked process, where the thread that held it does not exist."""
        self._lock = Lock()


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _controlling_blas() -> Iterator[None]:
    """Let this Python thread change the number of BLAS threads, and any other one afterwards.

    threadpoolctl lets only the first thread do so and silently ignores all others. Here they take turns.
    """
    releases = [getattr(library, "clear_controlling_thread", None) for library in _thread_pools().lib_controllers]
    for release in filter(None, releases):
        release(force=True)
    try:
        yield
    finally:
        for release in filter(None, releases):
            release(force=True)


_cores = _Cores()
_single_threaded_blas = _SingleThreadedBLAS()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cores.reset)
    os.register_at_fork(after_in_child=_single_threaded_blas.reset)
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)

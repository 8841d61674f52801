"""The one policy on threads: when compiled loops and BLAS may use more than one core.

Threads wait for each other at the end of a loop. With little work that costs more than it saves, all the more if other
programs want the cores. So every kernel uses threads only from `PARALLEL_WORK` operations on. BLAS is kept to one
thread around the kernels (`single_threaded_blas`), because its threads spin between products and take the cores from
the kernels; only much larger products are worth that (`blas_threads`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

PARALLEL_WORK = 1 << 21
"""Operations, about a millisecond, below which threads cost more than they save. On a core that another program uses as
well, a thread may come several milliseconds late."""

_BLAS_WORK = 1 << 32
"""Multiplications in a product, times processors, above which BLAS threads gain more than they cost the kernels."""

_IN_ONE_THREAD = ContextVar("_IN_ONE_THREAD", default=False)


def small(work: float) -> bool:
    """Whether ``work`` operations are too few to be worth threads, or anything else with a similar overhead."""
    return work < PARALLEL_WORK


class Cores:
    """Who may use all cores: one Python thread at a time. Others that come meanwhile make do with one core each."""

    def __init__(self) -> None:
        self._taken = Lock()

    def acquire(self) -> int:
        """Take all cores and return their number, or return 1 and take none. Who has taken them must `release` them."""
        n_threads = n_threads_allowed()
        return n_threads if n_threads > 1 and self._taken.acquire(blocking=False) else 1

    def release(self) -> None:
        """Let others have them."""
        self._taken.release()

    def forget(self) -> None:
        """In a forked process, do not wait for a thread that had them: it does not exist here."""
        self._taken = Lock()


class _SingleThreadedBLAS:
    """Keeps BLAS to one thread for as long as anyone wants it.

    The number of BLAS threads belongs to the whole process. The first caller to ask for one thread sets it, and the
    last to leave restores what the first one found, in whatever order Python threads come and go.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                with _in_control():
                    self._limit = _thread_pools().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                with _in_control():
                    self._limit.restore_original_limits()

    def forget(self) -> None:
        """In a forked process, do not wait for a thread that was about to enter or leave: it does not exist here."""
        self._lock = Lock()


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _in_control() -> Iterator[None]:
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


cores = Cores()
_single_threaded_blas = _SingleThreadedBLAS()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cores.forget)
    os.register_at_fork(after_in_child=_single_threaded_blas.forget)


def n_threads_allowed() -> int:
    """How many threads a caller may use for its own work: ``NUMBA_NUM_THREADS``, or as many as there are processors."""
    if _IN_ONE_THREAD.get():
        return 1
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, int(asked)) if asked.isdecimal() else _n_processors()


def _n_processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def single_threaded_blas() -> AbstractContextManager[None]:
    """Keep BLAS to one thread within the block: its waiting threads would take the cores from the compiled kernels.

    Any number of threads may enter and leave at any time; afterwards BLAS has as many threads as before.
    """
    return _single_threaded_blas


def blas_threads(n_multiplications: float) -> AbstractContextManager[None]:
    """One BLAS thread, unless products are so large that more threads gain more than they cost the kernels."""
    large = n_multiplications * (os.cpu_count() or 1) >= _BLAS_WORK
    return nullcontext() if large else single_threaded_blas()


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Keep the kernels called here to this thread: a Dask task is one of several that share the cores."""
    token = _IN_ONE_THREAD.set(True)
    try:
        yield
    finally:
        _IN_ONE_THREAD.reset(token)

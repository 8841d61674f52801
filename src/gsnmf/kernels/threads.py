"""The one policy on threads: when compiled loops and BLAS may use more than one core.

Threads wait for each other at the end of a loop. With little work that costs more than it saves, all the more if other
programs want the cores. So every kernel uses threads only from `PARALLEL_WORK` operations on. BLAS is kept to one
thread around the kernels (`single_threaded_blas`), because its threads spin between products and take the cores from
the kernels; only much larger products are worth that (`blas_threads`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Lock
from types import FunctionType
from typing import Any

import numba
from threadpoolctl import ThreadpoolController

from gsnmf.kernels.compilation import compiled, kept_on_disk

PARALLEL_WORK = 1 << 21
"""Operations, about a millisecond, below which threads cost more than they save. On a core that another program uses as
well, a thread may come several milliseconds late."""

_COMPILATION = 128.0
"""Multiple of `PARALLEL_WORK` that takes about as long as compiling the parallel form of a loop."""

_BLAS_WORK = 1 << 32
"""Multiplications in a product, times processors, above which BLAS threads gain more than they cost the kernels."""

N_CHUNKS = 64
"""Number of parts of a loop over rows that needs working memory for each part. Row j is in part j modulo this.

Rows that take long are often neighbours; this way every thread gets some of them.
"""

_IN_ONE_THREAD = ContextVar("_IN_ONE_THREAD", default=False)


def small(work: float) -> bool:
    """Whether ``work`` operations are too few to be worth threads, or anything else with a similar overhead."""
    return work < PARALLEL_WORK


class Loop:
    """A compiled loop over ``numba.prange``, run in one thread or in all of them.

    Only one Python thread at a time runs a loop on all cores; others that arrive meanwhile run theirs on one core.
    Otherwise some of Numba's threading layers would end the process, and all loops would compete for the same cores.

    The form for all cores takes as long to compile as the loop needs for many calls. So the loop runs in one thread
    until it has worked about as long as compiling would take, unless an earlier process has left that form on disk.

    Parameters
    ----------
    function : function
        Its iterations are independent of each other. It changes arrays in place and returns nothing.
    part : function, optional
        Does items ``first``, ``first + stride``, ... of the loop when it is called with the arguments of ``function``,
        ``first`` and ``stride``. ``function`` shares these calls out. In one thread a single call of ``part`` does
        everything, which saves the compilation of ``function``. Pass it ``int(np.int64(...))`` in ``function``: Numba
        would compile it once more for the unsigned counter of ``numba.prange``, and once more for a constant.
    reordered : bool
        Whether the compiler may reorder sums.

    Examples
    --------
    >>> import numpy as np
    >>> def halve(X):
    ...     for i in numba.prange(X.size):
    ...         X[i] /= 2
    >>> X = np.array([2.0, 4.0])
    >>> Loop(halve)(X, work=X.size)
    >>> X
    array([1., 2.])
    """

    def __init__(
        self, function: Callable[..., None], part: Callable[..., None] | None = None, *, reordered: bool = False
    ) -> None:
        assert isinstance(function, FunctionType)
        self.__doc__ = function.__doc__
        self._part = part
        self._whole = compiled(reordered=reordered)(function) if part is None else None
        self.parallel = compiled(reordered=reordered, parallel=True)(_copy(function, f"{function.__name__}_parallel"))
        self._done = 0.0  # operations so far that all cores could have shared; infinite if that form is on disk

    def serial(self, *arguments: Any) -> None:
        """Run the loop in this thread."""
        if self._part is None:
            self._whole(*arguments)  # type: ignore[misc]
        else:
            self._part(*arguments, 0, 1)

    def __call__(self, *arguments: Any, work: float) -> None:
        """Run the loop, which takes about ``work`` operations."""
        if small(work) or not _cores.acquire():
            self.serial(*arguments)
            return
        try:
            if self._waits(work):
                self.serial(*arguments)
            else:
                self.parallel(*arguments)
        finally:
            _cores.release()

    def _waits(self, work: float) -> bool:
        """Whether the parallel form is not compiled yet and has not become worth compiling."""
        if self._done == 0.0 and kept_on_disk(self.parallel):
            self._done = math.inf
        waits = self._done < _COMPILATION * PARALLEL_WORK
        self._done += work
        return waits


def loop(part: Callable[..., None] | None = None, *, reordered: bool = False) -> Callable[[Callable[..., None]], Loop]:
    """Decorator that turns a function into a `Loop`."""
    return lambda function: Loop(function, part, reordered=reordered)


def _copy(function: FunctionType, name: str) -> FunctionType:
    """The same function under another name, under which its compiled form is kept on disk."""
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__qualname__, copy.__module__ = name, function.__module__
    return copy


class _Cores:
    """Who may use all cores: one Python thread at a time, and no process forked from one that has used them.

    Threads that a library has started do not survive a fork, and GNU OpenMP ends a process that then calls them.
    """

    def __init__(self) -> None:
        self._taken = Lock()
        self._started = False
        self._lost = False

    def acquire(self) -> bool:
        """Take all cores; False if this thread must make do with one. Whoever takes them must `release` them."""
        if self._lost or _IN_ONE_THREAD.get() or not self._taken.acquire(blocking=False):
            return False
        self._started = True
        if numba.get_num_threads() > 1:
            return True
        self._taken.release()
        return False

    def release(self) -> None:
        """Let others have them."""
        self._taken.release()

    def forget(self) -> None:
        """Start over in a forked process."""
        self._taken = Lock()
        self._lost = self._started


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


_cores = _Cores()
_single_threaded_blas = _SingleThreadedBLAS()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cores.forget)
    os.register_at_fork(after_in_child=_single_threaded_blas.forget)


def n_threads_allowed() -> int:
    """How many threads a caller may start for its own work."""
    return 1 if _IN_ONE_THREAD.get() else int(numba.get_num_threads())


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

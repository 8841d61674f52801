"""How many threads BLAS and the compiled kernels may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_IN_ONE_THREAD = ContextVar("_IN_ONE_THREAD", default=False)


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> Any:
    """Keep BLAS to one thread for a while: its waiting threads would take the cores from the compiled kernels.

    That holds for the whole process, so within `in_one_thread`, where others do the same at the same time, it does
    nothing: each would restore what another has set.
    """
    return nullcontext() if _IN_ONE_THREAD.get() else _thread_pools().limit(limits=1, user_api="blas")


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Keep the kernels called here to this thread: a task of Dask is one of several that share the cores."""
    token = _IN_ONE_THREAD.set(True)
    try:
        yield
    finally:
        _IN_ONE_THREAD.reset(token)


def threads_allowed() -> bool:
    """Whether a kernel may take more threads than the one it is called in."""
    return not _IN_ONE_THREAD.get()

# mypy: disallow-untyped-calls=False
"""Compiles kernels, keeps them on disk, and logs when compiling takes seconds.

A wheel for one kind of machine brings compiled kernels (`gsnmf.kernels.ahead`). What it does not bring, Numba compiles
when it is first called and keeps on disk, beside the package or in ``NUMBA_CACHE_DIR``: later processes only load it. A
full disk or a damaged file there must not stop a computation, so `compiled` goes on without the file, with one warning
per process. Before Numba loads the first kernel it reads its own tables of types, which takes a tenth of a second. That
happens here, when the package is imported, rather than in the middle of the first fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from gsnmf.kernels import ahead
from gsnmf.support.progress import Bar, heard_by, logger

with contextlib.suppress(ImportError, AttributeError):  # private to Numba; without it the first fit does the same
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()

KERNELS: list[Any] = []
"""All kernels that Python calls, as Numba's dispatchers."""

_warned = Event()

_Function = TypeVar("_Function", bound=Callable[..., Any])

_FAST = frozenset({"reassoc", "contract", "nsz"})
"""Sums may be reordered so that the processor adds whole vectors; NaN and infinity keep their meaning."""


def compiled(*, reordered: bool = False, inner: bool = False) -> Callable[[_Function], _Function]:
    """Take a function from the library of compiled kernels, or let Numba compile it when it is first called.

    Parameters
    ----------
    reordered : bool
        Whether the compiler may reorder sums, which makes long ones several times faster.
    inner : bool
        Whether only other compiled functions call it, which shortens compilation.

    Notes
    -----
    Dividing by zero gives infinity or NaN, as in NumPy, because an exception cannot reach the caller from a kernel that
    runs in threads. Python's lock is released while the kernel runs.

    Examples
    --------
    >>> @compiled()
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if inner:
        options["no_cpython_wrapper"] = True

    def decorate(function: _Function) -> _Function:
        dispatcher = numba.njit(fastmath=set(_FAST) if reordered else False, **options)(function)
        dispatcher._cache = _cache_of(function)
        if inner or dispatcher is function or not _in_package(function):  # a function stays one without the JIT
            return cast("_Function", dispatcher)
        KERNELS.append(dispatcher)
        held = _held(function)
        return cast("_Function", ahead.AheadOfTime(dispatcher, held) if held else dispatcher)

    return decorate


def _held(function: Callable[..., Any]) -> dict[Any, Callable[..., Any]]:
    """What the library of compiled kernels holds of a function, if it was made from the same source."""
    try:
        return ahead.forms(function, source_stamp(inspect.getfile(function)))
    except OSError:  # the source is not there
        return {}


def _cache_of(function: Callable[..., Any]) -> Any:
    try:
        return _GuardedCache(function)
    except (OSError, RuntimeError) as error:  # no folder can be written to, or the source is not a file
        if Path(inspect.getfile(function)).exists():
            _warn(error)
        return NullCache()


class _GuardedCache(FunctionCache):
    """Numba's store of one compiled function; an error in it never stops the computation.

    A function compiled with another one inside is out of date as soon as either changes. Numba looks at the file of the
    outer one alone; here all modules of kernels count.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = source_stamp(inspect.getfile(function))
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The stored function; None if there is none or if it is damaged. A damaged one is overwritten later."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            _warn(error)
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a function, unless that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(error)
            self.disable()


@cache
def source_stamp(path: str) -> str:
    """Fingerprint of the source of a kernel and of everything it may have been compiled with."""
    digest = hashlib.sha256()
    for source in (Path(path), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _in_package(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("gsnmf.")


def _warn(error: Exception) -> None:
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled kernels cannot be kept on disk ({type(error).__name__}: {error}); going on without, which costs "
            "some seconds in every process. Free the disk, empty the folder, or let NUMBA_CACHE_DIR name another one.",
            RuntimeWarning,
            stacklevel=2,
        )


class _Announcement(event.Listener):
    """Logs the first compilation of one of our kernels and ignores those of other packages."""

    def __init__(self) -> None:
        self.done = False

    def on_start(self, event: event.Event) -> None:
        """Numba begins to compile a function: it was not on disk."""
        if not self.done and _in_package(event.data["dispatcher"].py_func):
            self.done = True
            logger.info("compiling kernels: some seconds, once on this machine; later runs load them from disk")

    def on_end(self, event: event.Event) -> None:
        """Numba has compiled a function."""


@contextmanager
def announced_compilation(verbose: int | bool = 0) -> Iterator[None]:
    """Log within the block that kernels are being compiled, if they are.

    The logger is ``"gsnmf"``, the level INFO; with ``verbose`` its messages are also written to standard output within
    the block, and progress is drawn as a bar.
    """
    with (
        event.install_listener("numba:compile", _Announcement()),
        heard_by(Bar(sys.stdout)) if verbose else nullcontext(),
    ):
        yield

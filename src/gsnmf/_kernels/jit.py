# mypy: disallow-untyped-calls=False
"""Kernels compiled by Numba when they are first called, and kept on disk.

Numba keeps what it compiles beside the package or in ``NUMBA_CACHE_DIR``: later processes only load it. A full disk or
a damaged file there must not stop a computation, so it goes on without the file, with one warning per process. Before
Numba loads the first kernel it reads its own tables of types, which takes a tenth of a second. That happens here, when
this module is imported, rather than in the middle of the first fit.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from gsnmf._kernels.announcement import announce_compilation
from gsnmf._kernels.sources import in_package, source_stamp

with contextlib.suppress(ImportError, AttributeError):  # private to Numba; without it the first fit does the same
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()

_warned = Event()

_FAST = frozenset({"reassoc", "contract", "nsz"})
"""Sums may be reordered so that the processor adds whole vectors; NaN and infinity keep their meaning."""


def dispatcher(function: Callable[..., Any], *, reordered: bool, inner: bool) -> Any:
    """Numba's compiled form of a function, or the function itself where Numba is told not to compile."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if inner:
        options["no_cpython_wrapper"] = True
    compiled = numba.njit(fastmath=set(_FAST) if reordered else False, **options)(function)
    compiled._cache = _cache_of(function)
    return compiled


def _cache_of(function: Callable[..., Any]) -> Any:
    try:
        return _GuardedCache(function)
    except (OSError, RuntimeError) as error:  # no folder can be written to, or the source is not a file
        if Path(inspect.getfile(function)).exists():
            _warn(error)
        return _NoCache(function)


class _NoCache(NullCache):
    """Keeps nothing, and announces that a function of the package is about to be compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """There is nothing to load."""
        if in_package(self._function):
            announce_compilation()


class _GuardedCache(FunctionCache):
    """Numba's store of one compiled function; an error in it never stops the computation.

    A function compiled with another one inside is out of date as soon as either changes. Numba looks at the file of the
    outer one alone; here all modules of kernels count.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function
        stamp = source_stamp(inspect.getfile(function))
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The stored function; None if there is none or if it is damaged. A damaged one is overwritten later."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            _warn(error)
            with contextlib.suppress(Exception):
                self.flush()
            found = None
        if found is None and in_package(self._function):
            announce_compilation()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a function, unless that fails."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(error)
            self.disable()


def _warn(error: Exception) -> None:
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled kernels cannot be kept on disk ({type(error).__name__}: {error}); going on without, which costs "
            "some seconds in every process. Free the disk, empty the folder, or let NUMBA_CACHE_DIR name another one.",
            RuntimeWarning,
            stacklevel=2,
        )

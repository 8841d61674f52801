"""The decorator that makes a kernel of a function: found in the package, or compiled when it is first called.

A wheel for one kind of machine brings compiled kernels (`gsnmf._kernels.ahead`). What it does not bring, Numba compiles
(`gsnmf._kernels.jit`). Numba is imported only then: it takes longer to import than all of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from gsnmf._kernels import ahead
from gsnmf._kernels.sources import in_package

KERNELS: list[Any] = []
"""All kernels of this package that Python calls."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


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

    def decorate(function: _Function) -> _Function:
        make = partial(_dispatcher, function, reordered=reordered, inner=inner)
        held = ahead.available() and in_package(function)
        kernel = ahead.AheadOfTime(function, make) if held else make()
        if in_package(function) and not inner:
            KERNELS.append(kernel)
        return cast("_Function", kernel)

    return decorate


def _dispatcher(function: Callable[..., Any], *, reordered: bool, inner: bool) -> Any:
    from gsnmf._kernels.jit import dispatcher

    return dispatcher(function, reordered=reordered, inner=inner)

"""Kernels that were compiled when the package was built, so that a first call compiles nothing.

A wheel for one kind of machine holds the library ``gsnmf._kernels._ahead``. `packaging/compile_kernels.py` makes it:
one function for each kernel and each kind of arguments that users are likely to pass. Where there is no library, where
the processor is too old for it, or for other kinds of arguments, Numba compiles the kernel when it is first called.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from gsnmf._kernels.sources import source_stamp
from gsnmf.support.progress import logger

Kind = Any
"""Of one argument: dtype, dimensions and memory order of an array; the Python type of a number."""

PROCESSORS = {"x86_64": "x86-64-v3", "amd64": "x86-64-v3"}
"""What the library is compiled for, by kind of machine; elsewhere for any processor of the kind."""

_LIBRARY = "gsnmf._kernels._ahead"

_X86_64_V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")

_ALIGNED, _C, _F = 0x100, 0x1, 0x2
_ORDERS = {_ALIGNED | _C: "C", _ALIGNED | _C | _F: "C", _ALIGNED | _F: "F", _ALIGNED: "A"}
"""Memory order by the flags of an array, as Numba names it. Arrays that are not aligned have none."""

_NUMBERS: dict[type, type] = {
    int: int,
    np.int64: int,
    float: float,
    np.float64: float,
    bool: bool,
    np.bool_: bool,
}


def available() -> bool:
    """Whether the package holds kernels that this machine can run."""
    return bool(_library())


def kinds(arguments: Sequence[Any]) -> tuple[Kind, ...]:
    """The kinds of arguments, those in tuples included; None for an argument of any other type."""
    found: list[Kind] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            order = _ORDERS.get(argument.flags.num & (_ALIGNED | _C | _F))
            found.append((argument.dtype, argument.ndim, order))
        elif isinstance(argument, tuple):
            found.extend(kinds(argument))
        else:
            found.append(_NUMBERS.get(type(argument)))
    return tuple(found)


def symbol(function: Callable[..., Any], of: tuple[Kind, ...]) -> str:
    """Name in the library of a kernel for arguments of given kinds; another source of the kernel has another name."""
    return f"{_stem(function)}__{'_'.join(_written(kind) for kind in of)}"


class AheadOfTime:
    """A kernel of which the library may hold some forms. Numba compiles the others, and those that other kernels call.

    Parameters
    ----------
    function : function
        The source of the kernel.
    make : callable
        Gives Numba's dispatcher for it. Called only if it is needed.
    """

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._make = make
        self._held = _library().get(_stem(function), {})

    def __call__(self, *arguments: Any) -> Any:
        """Run the form for these arguments."""
        form = self._held.get(kinds(arguments)) or self.dispatcher
        return form(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """What Numba compiles."""
        return self._make()

    @property
    def signatures(self) -> list[Any]:
        """For which types Numba has compiled it."""
        return list(self.dispatcher.signatures) if "dispatcher" in vars(self) else []

    @property
    def _numba_type_(self) -> Any:
        """What Numba sees where another kernel calls this one."""
        return self.dispatcher._numba_type_

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


def _stem(function: Callable[..., Any]) -> str:
    stamp = source_stamp(function.__code__.co_filename)
    return f"{function.__module__.replace('.', '_')}_{function.__name__}_{stamp[:12]}"


def _written(kind: Kind) -> str:
    if isinstance(kind, type):
        return kind.__name__
    dtype, n_dimensions, order = kind
    return f"{dtype.kind}{dtype.itemsize}{order}{n_dimensions}"


def _read(text: str) -> Kind:
    for number in (int, float, bool):
        if text == number.__name__:
            return number
    return np.dtype(text[:2]), int(text[3:]), text[2]


@cache
def _library() -> dict[str, dict[tuple[Kind, ...], Callable[..., Any]]]:
    """Everything in the library, by kernel and kinds; nothing where there is none for this machine."""
    plain = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"  # as a debugger wants it
    if plain or find_spec(_LIBRARY) is None or not Path(__file__).exists() or not _new_enough():
        return {}
    try:
        library = import_module(_LIBRARY)
    except ImportError as error:  # made for another system
        logger.info("compiled kernels cannot be loaded (%s); Numba compiles them", error)
        return {}
    found: dict[str, dict[tuple[Kind, ...], Callable[..., Any]]] = {}
    for name, function in vars(library).items():
        stem, separator, of = name.rpartition("__")
        if separator and stem.startswith("gsnmf"):
            found.setdefault(stem, {})[tuple(map(_read, of.split("_")))] = function
    return found


def _new_enough() -> bool:
    """Whether the processor has all that the library may use."""
    if platform.machine().lower() not in PROCESSORS:
        return True
    from llvmlite import binding  # comes with Numba

    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in _X86_64_V3)

"""Benchmarks: one module each, with a function ``run(quick)`` that measures and prints.

A module of this package is a benchmark unless its name begins with an underscore; putting it here is all it takes to
make it known to ``gsnmf bench``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import cast


def available() -> list[str]:
    """Names of the benchmarks, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(name: str) -> Callable[[bool], None]:
    """The function that runs a benchmark; its argument asks for a short version.

    Parameters
    ----------
    name : str
        One of `available`.

    Examples
    --------
    >>> load("nothing")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: benchmark must be one of ...; got 'nothing'.
    """
    names = available()
    if name not in names:
        allowed = ", ".join(map(repr, names)) or "none (there are no benchmarks yet)"
        raise ValueError(f"benchmark must be one of {allowed}; got {name!r}.")
    return cast("Callable[[bool], None]", import_module(f"{__name__}.{name}").run)

"""Libraries that only some parts need."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def import_optional(module: str, purpose: str, remedy: str) -> Any:
    """Import a module, or say what needs its library and how to install it.

    Examples
    --------
    >>> import_optional("no_such_library.part", "this example", "pip install it")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: this example needs no_such_library; pip install it
    """
    library = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != library:
            raise
        raise ModuleNotFoundError(f"{purpose} needs {library}; {remedy}", name=library) from None


def axes_or_new(ax: Axes | None, purpose: str) -> Axes:
    """The Matplotlib axes given, or new ones in a figure of their own."""
    if ax is not None:
        return ax
    plt = import_optional("matplotlib.pyplot", purpose, 'pip install "gsnmf[plots]"')
    axes: Axes = plt.subplots(layout="constrained")[1]
    return axes

"""One call for one kind of person: each application takes what its users have and speaks their language."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gsnmf.applications.unmixing.result import Unmixing
    from gsnmf.applications.unmixing.unmix import unmix

__all__ = ["Unmixing", "unmix"]

_HOMES = {"Unmixing": "unmixing.result", "unmix": "unmixing.unmix"}
"""The module of each public name, imported when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

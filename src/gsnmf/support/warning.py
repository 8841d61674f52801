"""Warnings that point at the caller's own line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.split(".", maxsplit=1)[0]


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     warn_caller("The matrix is odd.")
    >>> caught[0].category.__name__, str(caught[0].message)
    ('UserWarning', 'The matrix is odd.')
    """
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth + 1)


def _inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")

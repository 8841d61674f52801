"""Compiled loops."""

from __future__ import annotations

from collections.abc import Callable

from gsnmf._kernels.compilation import compiled
from gsnmf._parallel import Loop

__all__ = ["Loop", "loop"]


def loop(*, reordered: bool = False) -> Callable[[Callable[..., None]], Loop]:
    """Decorator that compiles a function and makes a `Loop` of it; ``reordered`` as in `compiled`."""
    return lambda part: Loop(compiled(reordered=reordered)(part))

"""The source of a kernel, by which compiled forms of it are recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def in_package(function: Callable[..., Any]) -> bool:
    """Whether a function is one of this package."""
    return function.__module__.startswith("gsnmf.")


@cache
def source_stamp(path: str) -> str:
    """Fingerprint of the file of a kernel and of everything it may have been compiled with."""
    digest = hashlib.sha256()
    for source in (Path(path), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()

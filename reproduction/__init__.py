"""The paper's experiments: one module per figure or table, each with its studies in ``STUDIES``.

A study is run once and serves one or several parts, the figures and tables that ``make reproduce`` knows by name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from reproduction._study import Study

_MODULES = (
    "synthetic",
    "documents",
    "document_topics",
    "faces",
    "face_pictures",
    "compression",
    "non_uniqueness",
    "gspa_failure",
    "hyperspectral",
    "audio",
)


@cache
def studies() -> tuple[Study, ...]:
    """All studies, in the order of the paper."""
    modules = [import_module(f"{__name__}.{name}") for name in _MODULES]
    return tuple(study for module in modules for study in module.STUDIES)


def part_names() -> dict[str, str]:
    """What can be reproduced, by name, and what it is.

    Examples
    --------
    >>> list(part_names())[:2]
    ['random-accuracy', 'random-error']
    """
    return {name: title for study in studies() for name, title in study.parts.items()}


def find_study(name: str) -> Study:
    """The study of that name, or the one that a part belongs to."""
    for study in studies():
        if name == study.name or name in study.parts:
            return study
    raise ValueError(f"name must be one of {', '.join(part_names())}; got {name!r}.")

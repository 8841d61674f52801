"""The experiments of the paper, with the matrices and methods that only they use.

J. Pan and N. Gillis, Generalized Separable Nonnegative Matrix Factorization, IEEE TPAMI 43 (2021),
doi:10.1109/TPAMI.2019.2956046.

Figures 1 to 6 are in `reproduction.synthetic`, tables 1 and 2 in `reproduction.documents`, tables 3 and 4 and figures
7 to 14 in `reproduction.faces`, properties 5 and 9 and example 1 in `reproduction.theory`, and two applications that
the paper names in `reproduction.applications`. Each module has its studies in ``STUDIES``. A study is run once and
serves one or several parts, the figures and tables that ``make reproduce`` knows by name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reproduction.study import Study

_MODULES = ("synthetic", "documents", "faces", "theory", "applications")


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

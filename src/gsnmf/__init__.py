"""Generalized separable nonnegative matrix factorization: a matrix explained by a few of its own rows and columns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import sklearn  # noqa: F401, before Numba, whose many objects would cost Python's garbage collection a tenth of a second

from gsnmf import convex, metrics
from gsnmf.estimators import GSNMF
from gsnmf.factorization.functions import factorize, select
from gsnmf.factorization.registry import Method, methods
from gsnmf.factorization.saving import load, save
from gsnmf.matrices.scaling import Scaling, scale
from gsnmf.results import ConvexSolution, Factor, Factorization, Selection, Weights
from gsnmf.search.ranks import RankPath, rank_path
from gsnmf.support.reasons import StopReason
from gsnmf.support.tables import Table
from gsnmf.support.version import __version__
from gsnmf.weights import fit_weights

if TYPE_CHECKING:
    from gsnmf import datasets, nmf
    from gsnmf.estimators.selector import GSNMFSelector

__all__ = [
    "GSNMF",
    "ConvexSolution",
    "Factor",
    "Factorization",
    "GSNMFSelector",
    "Method",
    "RankPath",
    "Scaling",
    "Selection",
    "StopReason",
    "Table",
    "Weights",
    "__version__",
    "convex",
    "datasets",
    "factorize",
    "fit_weights",
    "load",
    "methods",
    "metrics",
    "nmf",
    "rank_path",
    "save",
    "scale",
    "select",
]


def __getattr__(name: str) -> Any:
    """Import, when it is asked for, what a first fit can do without."""
    if name in {"datasets", "nmf"}:
        return import_module(f"{__name__}.{name}")
    if name == "GSNMFSelector":
        return import_module(f"{__name__}.estimators.selector").GSNMFSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

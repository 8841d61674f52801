"""Generalized separable nonnegative matrix factorization: a matrix explained by a few of its own rows and columns."""

from typing import TYPE_CHECKING, Any

from gsnmf import convex, datasets, metrics, nmf
from gsnmf.estimator import GSNMF
from gsnmf.factorize import factorize, select
from gsnmf.methods import Method, methods
from gsnmf.results import Factorization, Selection, Weights
from gsnmf.saving import load, save
from gsnmf.scaling import Scaling, scale
from gsnmf.selection.ranks import RankPath, rank_path
from gsnmf.weights import fit_weights

if TYPE_CHECKING:
    from gsnmf.selector import GSNMFSelector

__version__ = "0.1.0"

__all__ = [
    "GSNMF",
    "Factorization",
    "GSNMFSelector",
    "Method",
    "RankPath",
    "Scaling",
    "Selection",
    "Weights",
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
    """Import the selector when it is asked for: what scikit-learn loads for it takes a tenth of a second."""
    if name == "GSNMFSelector":
        from gsnmf.selector import GSNMFSelector

        return GSNMFSelector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

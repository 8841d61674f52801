"""Generalized separable nonnegative matrix factorization: a matrix explained by a few of its own rows and columns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gsnmf.support.version import __version__

if TYPE_CHECKING:
    from gsnmf import applications, convex, datasets, metrics, nmf, plotting
    from gsnmf.constraints import Constraints
    from gsnmf.convex.model import ConvexSolution
    from gsnmf.estimators.gsnmf import GSNMF
    from gsnmf.estimators.selector import GSNMFSelector
    from gsnmf.functions import factorize, fit_weights, select
    from gsnmf.matrix.scaling import Scaling, scale
    from gsnmf.model_selection.rank_choice import RankChoice, choose_rank
    from gsnmf.model_selection.rank_path import RankPath, rank_path
    from gsnmf.model_selection.split_profile import SplitProfile, split_profile
    from gsnmf.model_selection.stability import Stability, stability
    from gsnmf.outputs import load, report, save
    from gsnmf.records import SearchRecord, Selection, Weights
    from gsnmf.registry import Method, methods
    from gsnmf.result import Factor, Factorization
    from gsnmf.support.formatting import Table
    from gsnmf.support.reasons import StopReason

__all__ = [
    "GSNMF",
    "Constraints",
    "ConvexSolution",
    "Factor",
    "Factorization",
    "GSNMFSelector",
    "Method",
    "RankChoice",
    "RankPath",
    "Scaling",
    "SearchRecord",
    "Selection",
    "SplitProfile",
    "Stability",
    "StopReason",
    "Table",
    "Weights",
    "__version__",
    "applications",
    "choose_rank",
    "convex",
    "datasets",
    "factorize",
    "fit_weights",
    "load",
    "methods",
    "metrics",
    "nmf",
    "plotting",
    "rank_path",
    "report",
    "save",
    "scale",
    "select",
    "split_profile",
    "stability",
]

_HOMES = {
    "RankChoice": "model_selection.rank_choice",
    "choose_rank": "model_selection.rank_choice",
    "SplitProfile": "model_selection.split_profile",
    "split_profile": "model_selection.split_profile",
    "Stability": "model_selection.stability",
    "stability": "model_selection.stability",
    "GSNMF": "estimators.gsnmf",
    "GSNMFSelector": "estimators.selector",
    "factorize": "functions",
    "select": "functions",
    "Method": "registry",
    "methods": "registry",
    "Scaling": "matrix.scaling",
    "scale": "matrix.scaling",
    "load": "outputs",
    "report": "outputs",
    "save": "outputs",
    "Constraints": "constraints",
    "ConvexSolution": "convex.model",
    "SearchRecord": "records",
    "Factor": "result",
    "Factorization": "result",
    "Selection": "records",
    "Weights": "records",
    "RankPath": "model_selection.rank_path",
    "rank_path": "model_selection.rank_path",
    "StopReason": "support.reasons",
    "Table": "support.formatting",
    "fit_weights": "functions",
}
"""The module of each public name that is not a module itself."""


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

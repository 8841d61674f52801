"""Generalized separable nonnegative matrix factorization: a matrix explained by a few of its own rows and columns."""

from gsnmf import convex, datasets, metrics, nmf
from gsnmf.estimator import GSNMF
from gsnmf.factorize import factorize, select
from gsnmf.methods import Method, methods
from gsnmf.results import Factorization, Selection, Weights
from gsnmf.scaling import Scaling, scale
from gsnmf.selection.ranks import RankPath, rank_path
from gsnmf.selector import GSNMFSelector
from gsnmf.weights import fit_weights

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
    "methods",
    "metrics",
    "nmf",
    "rank_path",
    "scale",
    "select",
]

"""The convex model of generalized separable NMF, and its exact counterpart."""

from gsnmf.convex.exact import ExactSolution, is_separable, solve_exact
from gsnmf.convex.penalties import project
from gsnmf.convex.selection import automatic_sizes
from gsnmf.convex.solve import solve_convex
from gsnmf.convex.uniqueness import Uniqueness, check_uniqueness

__all__ = [
    "ExactSolution",
    "Uniqueness",
    "automatic_sizes",
    "check_uniqueness",
    "is_separable",
    "project",
    "solve_convex",
    "solve_exact",
]

"""The ways to choose endmembers, by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gsnmf.applications.unmixing.nfindr import n_findr
from gsnmf.applications.unmixing.outliers import shortened
from gsnmf.applications.unmixing.pixel_search import search_pixels
from gsnmf.applications.unmixing.ppi import pixel_purity_index
from gsnmf.applications.unmixing.preconditioning import preconditioned_projection
from gsnmf.applications.unmixing.vca import vertex_component_analysis
from gsnmf.functions import select
from gsnmf.matrix import wrap
from gsnmf.selection.successive_projection import smoothed_groups
from gsnmf.support.arrays import Floats, Indices

Mix = Callable[[Floats, int, int], list[Indices]]
"""Pixels, how many endmembers, how many pixels each is the mean of; returns positions among the pixels."""

Choose = Callable[[Floats, int, np.random.Generator], Indices]
"""Pixels (n x bands), how many to choose, random numbers; returns positions among the pixels."""


@dataclass(frozen=True)
class EndmemberMethod:
    """A way to choose pixels as endmembers.

    Attributes
    ----------
    name : str
        The ``method=`` of `gsnmf.applications.unmix`.
    title : str
        In words, with the reference.
    choose : callable
    averaged : bool
        Whether each chosen pixel is replaced by the mean of similar pixels by default.
    mix : callable or None
        Chooses all pixels of each mean itself, in the place of ``choose``.
    """

    name: str
    title: str
    choose: Choose
    averaged: bool = False
    mix: Mix | None = None


def _selected(method: str) -> Choose:
    return lambda pixels, rank, rng: select(pixels.T, rank, method=method).columns


_METHODS = (
    EndmemberMethod(
        "auto",
        "several starts, improved by exchanges of the true error; each pixel then averaged with similar ones",
        lambda pixels, rank, rng: search_pixels(shortened(pixels), rank),
        averaged=True,
    ),
    EndmemberMethod(
        "minimum-volume",
        "what auto chooses, moved outwards to the least volume around the pixels; where no pixel is pure",
        lambda pixels, rank, rng: search_pixels(shortened(pixels), rank),
        averaged=True,
    ),
    EndmemberMethod("vca", "vertex component analysis (Nascimento and Bioucas-Dias 2005)", vertex_component_analysis),
    EndmemberMethod(
        "n-findr", "the simplex of the largest volume (Winter 1999)", lambda pixels, rank, rng: n_findr(pixels, rank)
    ),
    EndmemberMethod("ppi", "pixel purity index (Boardman et al. 1995)", pixel_purity_index),
    EndmemberMethod("spa", "successive projection (Araújo et al. 2001)", _selected("spa-columns")),
    EndmemberMethod(
        "smooth-spa",
        "successive projection, each endmember the mean of several pixels (Nadisic et al. 2021)",
        _selected("spa-columns"),
        averaged=True,
        mix=lambda pixels, rank, count: smoothed_groups(wrap(np.ascontiguousarray(pixels.T)), rank, count),
    ),
    EndmemberMethod(
        "preconditioned-spa",
        "successive projection after the enclosing ellipsoid (Gillis and Vavasis 2015)",
        lambda pixels, rank, rng: preconditioned_projection(pixels, rank),
    ),
    EndmemberMethod("snpa", "successive nonnegative projection (Gillis 2014)", _selected("snpa")),
    EndmemberMethod("xray", "extreme rays of the conical hull (Kumar et al. 2013)", _selected("xray")),
)

ENDMEMBER_METHODS: dict[str, EndmemberMethod] = {method.name: method for method in _METHODS}
"""All methods by their names, the default first."""


def check_method(name: str) -> EndmemberMethod:
    """The method of that name, or an error that lists them."""
    if name not in ENDMEMBER_METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, ENDMEMBER_METHODS))}; got {name!r}.")
    return ENDMEMBER_METHODS[name]

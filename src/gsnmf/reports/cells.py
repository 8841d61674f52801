"""The report on marker genes and prototype cells: what it says, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gsnmf.reports.page import environment
from gsnmf.support.arrays import Doubles, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.version import __version__

_STEP, _TOP, _LARGEST = 30.0, 92.0, 12.0
_PER_LETTER = 7.8
"""Width of a letter, slightly above average."""
_SIDE = 440.0


@dataclass(frozen=True)
class Strength:
    """A gene or a group that goes with a factor; ``strength`` is between 0 and 1."""

    name: str
    strength: float
    note: str = ""


@dataclass(frozen=True)
class CellFactor:
    """A factor: the gene or cell that stands for it, and what goes with it."""

    number: int
    title: str
    kind: str
    name: str
    share: float
    n_cells: int
    genes: tuple[Strength, ...]
    groups: tuple[Strength, ...]
    """Groups of cells, by the share of their cells in which the factor is strongest."""
    annotations: tuple[tuple[str, str], ...] = ()
    """What the object says about a prototype cell."""


@dataclass(frozen=True)
class Dot:
    """A gene in a group of cells, as a circle."""

    x: float
    y: float
    radius: float
    strength: float
    label: str


@dataclass(frozen=True)
class DotChart:
    """Marker genes by groups of cells."""

    width: float
    height: float
    left: float
    genes: tuple[tuple[float, str], ...]
    groups: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    top: float = _TOP


@dataclass(frozen=True)
class CellMap:
    """Cells on an embedding, coloured by factor: one SVG path per factor."""

    name: str
    paths: tuple[tuple[int, str, str], ...]
    """Number of the factor from 1, its title, and the path."""
    n_shown: int
    n_cells: int
    side: float = _SIDE


@dataclass(frozen=True)
class HeatTable:
    """Numbers between 0 and 1 with names of rows and columns, to be shaded."""

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True)
class CellFindings:
    """What the report says, section by section."""

    title: str
    sentence: str
    about: str
    quality: float
    shape: tuple[int, int]
    factors: tuple[CellFactor, ...]
    group_column: str
    dots: DotChart | None
    by_group: HeatTable | None
    by_batch: HeatTable | None
    cell_map: CellMap | None
    parameters: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def render_cells(findings: CellFindings) -> str:
    """The whole page; all names are escaped."""
    return environment().get_template("cells.html").render(f=findings, version=__version__)


def write_cells(findings: CellFindings, path: str | Path) -> None:
    """Write the page to a file, completely or not at all."""
    with atomic_write(path) as stream:
        stream.write(render_cells(findings).encode())


def summary(findings: CellFindings) -> dict[str, Any]:
    """A short machine-readable summary of the findings, ready for JSON."""
    return {
        "title": findings.title,
        "sentence": findings.sentence,
        "shape": list(findings.shape),
        "quality": findings.quality,
        "factors": [
            {
                "factor": factor.title,
                "kind": factor.kind,
                "name": factor.name,
                "share": factor.share,
                "n_cells": factor.n_cells,
                "genes": [gene.name for gene in factor.genes],
                "groups": {group.name: group.strength for group in factor.groups},
            }
            for factor in findings.factors
        ],
        "parameters": dict(findings.parameters),
        "warnings": list(findings.warnings),
    }


def dot_chart(groups: Sequence[str], genes: Sequence[str], strengths: Doubles, fractions: Doubles) -> DotChart:
    """Circles for genes by groups: area by the part of cells with the gene, shade by relative expression."""
    left = 18.0 + _PER_LETTER * max((len(name) for name in groups), default=0)
    places = [left + _STEP * (k + 0.5) for k in range(len(genes))]
    heights = [_TOP + _STEP * (k + 0.5) for k in range(len(groups))]
    dots = tuple(
        Dot(
            round(x, 1), round(y, 1), round(_LARGEST * float(np.sqrt(fractions[row, column])), 1),
            round(float(strengths[row, column]), 3),
            f"{genes[column]} in {groups[row]}: in {fractions[row, column]:.0%} of cells",
        )
        for row, y in enumerate(heights)
        for column, x in enumerate(places)
        if fractions[row, column] > 0
    )  # fmt: skip
    return DotChart(
        width=left + _STEP * len(genes) + 30.0,
        height=_TOP + _STEP * len(groups) + 6.0,
        left=left,
        genes=tuple(zip(places, genes, strict=True)),
        groups=tuple(zip(heights, groups, strict=True)),
        dots=dots,
    )


def cell_map(
    name: str, places: Doubles, strongest: Indices, titles: Sequence[str], *, max_cells: int = 4000
) -> CellMap:
    """Cells as dots, at most ``max_cells`` of them, evenly through the object; cells without a factor are left out."""
    usable = np.flatnonzero((strongest >= 0) & np.isfinite(places).all(axis=1))
    shown = (
        usable[np.linspace(0, usable.size - 1, min(usable.size, max_cells)).astype(np.intp)] if usable.size else usable
    )
    low, high = (places[shown].min(axis=0), places[shown].max(axis=0)) if shown.size else (np.zeros(2), np.ones(2))
    span = np.where(high > low, high - low, 1.0)
    scaled = 8.0 + (_SIDE - 16.0) * (places[shown] - low) / span
    paths = []
    for number, title in enumerate(titles):
        members = scaled[strongest[shown] == number]
        if members.size:
            steps = "".join(f"M{x:.1f} {_SIDE - y:.1f}h0" for x, y in members)
            paths.append((number + 1, title, steps))
    return CellMap(name, tuple(paths), int(shown.size), int(strongest.size))

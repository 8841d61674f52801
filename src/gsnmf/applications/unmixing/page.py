"""The report of an unmixing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from gsnmf.applications.unmixing.methods import ENDMEMBER_METHODS
from gsnmf.applications.unmixing.plots import abscissa
from gsnmf.reports.scene import SceneArrays, gather_scene, render_scene
from gsnmf.support.version import __version__

if TYPE_CHECKING:
    from gsnmf.applications.unmixing.result import Unmixing


def _averaged(result: Unmixing) -> str:
    counts = [len(own) for own in result.members] or [0]
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def render(result: Unmixing, title: str, parameters: Mapping[str, str]) -> str:
    """The page of HTML."""
    positions, label = abscissa(result)
    scene = SceneArrays(
        endmembers=result.endmembers,
        names=result.names,
        band_positions=positions,
        band_label=label,
        pixels=result.pixels,
        members=result.members,
        abundances=result.abundances,
        residuals=result.residual_map,
        picture=result.picture,
        angles=result.angles,
        relative_error=result.relative_error,
        sum_to_one=result.sum_to_one,
    )
    known = ENDMEMBER_METHODS.get(result.method)
    made = {
        "Method": f"{result.method}: {known.title}" if known else result.method,
        "Normalisation of pixels for the choice": result.normalize,
        "Pixels averaged per endmember": _averaged(result),
        "Abundances": "nonnegative, sum to one" if result.sum_to_one else "nonnegative",
        **({"Number of endmembers": f"{result.rank_choice.number}, by HySime"} if result.rank_choice else {}),
        "gsnmf": __version__,
    }
    findings = gather_scene(
        scene,
        title=title or PurePath(result.source).name,
        source=result.source,
        parameters=made | dict(parameters),
        notes=result.notes,
    )
    return render_scene(findings)

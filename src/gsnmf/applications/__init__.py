"""One call per field: each application takes the field's data and answers in its vocabulary.

The packages are named after fields, since a package `topics` would hide the function of that name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gsnmf.applications.marker_genes.markers import markers
    from gsnmf.applications.marker_genes.plots import plot_markers
    from gsnmf.applications.topic_modelling.model import TopicModel
    from gsnmf.applications.topic_modelling.topics import topics
    from gsnmf.applications.unmixing.unmix import unmix
    from gsnmf.applications.unmixing.unmixing_result import Unmixing

_HOMES = {
    "TopicModel": "topic_modelling.model",
    "Unmixing": "unmixing.unmixing_result",
    "markers": "marker_genes.markers",
    "plot_markers": "marker_genes.plots",
    "topics": "topic_modelling.topics",
    "unmix": "unmixing.unmix",
}
"""The module of each public name, imported on first use."""

__all__ = ["TopicModel", "Unmixing", "markers", "plot_markers", "topics", "unmix"]


def __getattr__(name: str) -> Any:
    """Import an application on first use."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

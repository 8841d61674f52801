"""What every example shares: the option ``--figure PATH``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def figure_path(about: str | None) -> Path | None:
    """The path given on the command line, if any; ``about`` is the help of the example."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path, metavar="PATH", help="save a figure there (needs Matplotlib)")
    return parser.parse_args().figure


def new_figure(*shape: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A Matplotlib figure that needs no display, and its axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--figure needs Matplotlib: pip install matplotlib.") from None
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(*shape)


def save(figure: Any, path: Path) -> None:
    """Write the figure and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"figure: {path}")

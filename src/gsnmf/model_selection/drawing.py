"""Pictures of the choice of a rank, on Matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gsnmf.support.optional import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gsnmf.model_selection.rank_choice import RankChoice
    from gsnmf.model_selection.side_map import SideMap

_LEFT_OUT, _WHOLE, _STABLE = "tab:blue", "tab:gray", "tab:green"


def draw_rank_choice(choice: RankChoice, ax: Axes | None) -> Axes:
    """Errors and stability over the ranks, with a line at the recommended one."""
    axes = axes_or_new(ax, "RankChoice.plot")
    axes.errorbar(
        choice.ranks, choice.errors, choice.standard_errors, color=_LEFT_OUT, marker=".", label="left-out entries"
    )
    axes.plot(choice.ranks, 1.0 - choice.qualities, color=_WHOLE, marker=".", label="whole matrix")
    axes.plot(choice.ranks, choice.stabilities, color=_STABLE, linestyle=":", label="stability")
    axes.axvline(choice.rank, color=_LEFT_OUT, linewidth=0.8)
    axes.annotate(
        f"rank {choice.rank}", (choice.rank, 1.0), xycoords=("data", "axes fraction"),
        xytext=(4, -4), textcoords="offset points", va="top", color=_LEFT_OUT,
    )  # fmt: skip
    axes.set_xlabel("rank: columns and rows in all")
    axes.set_ylabel("relative error; stability")
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return axes


def draw_side_map(found: SideMap, ax: Axes | None) -> Axes:
    """Qualities over the numbers of columns and rows, the result in bold."""
    axes = axes_or_new(ax, "SideMap.plot")
    image = axes.imshow(found.qualities, cmap="Blues", origin="lower", aspect="auto")
    axes.set_xticks(range(found.n_rows.size), [str(r) for r in found.n_rows])
    axes.set_yticks(range(found.n_columns.size), [str(c) for c in found.n_columns])
    middle = (found.qualities.min() + found.qualities.max()) / 2
    for i, c in enumerate(found.n_columns):
        for j, r in enumerate(found.n_rows):
            quality, is_chosen = found.qualities[i, j], (int(c), int(r)) == found.chosen
            axes.text(
                j, i, f"{quality:.1%}", ha="center", va="center", color="white" if quality > middle else "black",
                weight="bold" if is_chosen else "normal",
            )  # fmt: skip
    axes.set_xlabel("rows")
    axes.set_ylabel("columns")
    axes.figure.colorbar(image, ax=axes, label="quality")
    return axes

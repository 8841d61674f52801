"""What a report says about the choice of a rank, about how sure each factor is, and about other numbers of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.model_selection.split_profile import SplitProfile
from gsnmf.model_selection.stability import CHANGES, Stability
from gsnmf.reports.charts import LineChart, rank_chart
from gsnmf.support.formatting import percent


@dataclass(frozen=True)
class TriedRank:
    """One rank that was tried."""

    rank: int
    quality: float
    error: float
    standard_error: float
    stability: float
    chosen: bool


@dataclass(frozen=True)
class RankFindings:
    """The choice of a rank: why, a chart, and every rank that was tried."""

    reason: str
    chart: LineChart | None
    tried: tuple[TriedRank, ...]


@dataclass(frozen=True)
class SideCell:
    """Quality for one pair of numbers; ``shade`` goes from 0 for the worst to 1 for the best on the map."""

    quality: float
    shade: float
    chosen: bool


@dataclass(frozen=True)
class SideFindings:
    """Quality over the numbers of columns and rows: a sentence, all numbers of rows, a line per number of columns."""

    sentence: str
    n_rows: tuple[int, ...]
    lines: tuple[tuple[int, tuple[SideCell, ...]], ...]


def rank_findings(choice: RankChoice) -> RankFindings:
    """The section about the choice of a rank."""
    left_out = np.maximum(0.0, 1.0 - choice.errors)
    series = [("left-out entries", "ours", left_out), ("whole matrix", "svd", choice.qualities)]
    tried = tuple(
        TriedRank(
            rank=int(rank),
            quality=float(choice.qualities[k]),
            error=float(choice.errors[k]),
            standard_error=float(choice.standard_errors[k]),
            stability=float(choice.stabilities[k]),
            chosen=bool(rank == choice.rank),
        )
        for k, rank in enumerate(choice.ranks)
    )
    return RankFindings(choice.reason, rank_chart(series, choice.ranks) if choice.ranks.size > 1 else None, tried)


def side_findings(found: SplitProfile) -> SideFindings:
    """The section about the map."""
    low, high = float(found.qualities.min()), float(found.qualities.max())
    lines = tuple(
        (
            int(c),
            tuple(
                SideCell(float(q), (float(q) - low) / (high - low or 1.0), (int(c), int(r)) == found.chosen)
                for r, q in zip(found.n_rows, row, strict=True)
            ),
        )
        for c, row in zip(found.n_columns, found.qualities, strict=True)
    )
    return SideFindings(found.sentence, tuple(map(int, found.n_rows)), lines)


def stability_sentence(stability: Stability) -> str:
    """How the percentages were found, and how similar the refits are overall."""
    agreements = ", ".join(f"{change} {percent(a)}" for change, a in zip(CHANGES, stability.agreements, strict=True))
    return (
        f"Stability is how often a factor, or one nearly parallel to it, came back in {3 * stability.n_repeats} refits "
        f"of changed data; factors below 50 % are marked. Agreement of all factors: {agreements}."
    )

"""Results as tables on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gsnmf.model_selection.stability import DOUBTFUL
from gsnmf.reports.findings import Findings
from gsnmf.support.formatting import percent


def print_factors(console: Console, findings: Findings, most: int = 40) -> None:
    """What was chosen, each with the columns and rows in which it is strongest."""
    sure = ["stability"] if findings.stability else []
    strongest = f"strongest {findings.column_kind}s", f"strongest {findings.row_kind}s"
    table = Table("chosen", "name", "share", *sure, *strongest)
    for factor in findings.factors[:most]:
        members = (", ".join(member.name for member in side[:4]) for side in (factor.columns, factor.rows))
        cells = factor.kind, factor.name, percent(factor.share), *_stability(factor.stability), *members
        table.add_row(*map(escape, cells))
    console.print(table)
    if len(findings.factors) > most:
        console.print(f"and {len(findings.factors) - most} more")


def print_qualities(console: Console, findings: Findings) -> None:
    """The quality next to others of the same rank."""
    table = Table("", "quality", "")
    for bar in findings.bars:
        quality = "–" if bar.quality is None else percent(bar.quality)
        table.add_row(*map(escape, (bar.label, quality, bar.missing or bar.note)))
    console.print(table)


def _stability(share: float | None) -> list[str]:
    """How often a factor came back, marked if that is rare; nothing if it is not known."""
    if share is None:
        return []
    return [percent(share) + (", doubtful" if share < DOUBTFUL else "")]

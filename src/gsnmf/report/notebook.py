"""A factorization as a piece of HTML, for notebooks."""

from __future__ import annotations

from html import escape

from gsnmf.explanation import Explanation
from gsnmf.report.words import counted, percent
from gsnmf.results import Factorization

_MOST = 20
_N_STRONGEST = 5
_CELL = 'style="text-align: left; padding: 0.2em 0.8em; vertical-align: top"'


def render_fragment(result: Factorization) -> str:
    """What was found in a sentence, how far to trust it, and the factors as a table; colours are the notebook's."""
    m, n = result.matrix.shape
    chosen = f"{counted(result.columns.size, 'column')} and {counted(result.rows.size, 'row')}"
    trust = "weights optimal" if result.converged else "weights not converged"
    lines = "".join(
        f"<tr>{''.join(f'<td {_CELL}>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in _cells(result)
    )
    head = "".join(f"<th {_CELL}>{title}</th>" for title in ("chosen", "share", "strongest columns", "strongest rows"))
    more = result.selection.n_selected - _MOST
    return (
        f"<div><p><b>{chosen} explain {percent(result.quality)}</b> of a {m} × {n} matrix. Method "
        f"{escape(result.selection.method)}, {escape(result.stop_reason)}; {trust} (violation "
        f"{result.optimality:.1e}).</p><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        f"{f'<p>and {more} more</p>' if more > 0 else ''}</div>"
    )


def _cells(result: Factorization) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"{factor.axis} {factor.index}",
            percent(factor.share),
            ", ".join(map(str, factor.columns)) or "–",
            ", ".join(map(str, factor.rows)) or "–",
        )
        for factor in Explanation(result).factors(_N_STRONGEST)[:_MOST]
    ]

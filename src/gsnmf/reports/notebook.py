"""A factorization as a table, for notebooks."""

from __future__ import annotations

from gsnmf.explanation.explanation import Explanation
from gsnmf.reports.words import counted, percent
from gsnmf.results.records import Factorization
from gsnmf.support.tables import Table

_MOST = 20
_N_STRONGEST = 5


def factor_table(result: Factorization) -> Table:
    """The factors, each with the columns and rows in which it is strongest; above it what was found, in a sentence."""
    m, n = result.matrix.shape
    chosen = f"{counted(result.columns.size, 'column')} and {counted(result.rows.size, 'row')}"
    trust = "weights optimal" if result.converged else "weights not converged"
    more = result.selection.n_selected - _MOST
    rows = tuple(
        (
            f"{factor.axis} {factor.index}",
            percent(factor.share),
            tuple(map(str, factor.columns)),
            tuple(map(str, factor.rows)),
        )
        for factor in Explanation(result).factors(_N_STRONGEST)[:_MOST]
    )
    return Table(
        header=("chosen", "share", "strongest columns", "strongest rows"),
        rows=rows,
        caption=(
            f"{chosen} explain {percent(result.quality)} of a {m} × {n} matrix. Method {result.selection.method}, "
            f"{result.stop_reason}; {trust} (violation {result.optimality:.1e})."
            f"{f' The first {_MOST} of {_MOST + more}:' if more > 0 else ''}"
        ),
    )

"""The paper's tables of quality: the same trials on every matrix, and our figures next to the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pandas as pd

from reproduction.matrices import PaperMatrix, load
from reproduction.methods import LABELS, Outcome, choose_among_candidates, fitted, run_method
from reproduction.published import COLUMNS, DOCUMENT_NAMES, SELECTING, Published, published
from reproduction.report import Claim, Section, Table
from reproduction.study import Key, Measurement, Record, Results, Settings, Study

_GROUPS = ("minimum-volume", "selection", "auto", "nmf", "svd")
"""Trials of one matrix, the longest first: all selections of the paper together, because SPA* takes its sizes from
GS-FGM.
"""

METHODS = (*COLUMNS, "auto")

SIGNIFICANT = 2.0
"""Percent by which a quality must be higher to be called significantly better."""
ROUNDING = 0.0051
"""Percent by which equal figures can differ in print."""
_CLOSE = 0.15

_OTHER_MATRIX = {
    "TDT30": "another version of the data, with 36771 terms instead of 19528",
    "Yale": "another draw of ten images per person",
    "ORL": "reduced to 23 x 19 pixels in another way",
}


@dataclass(frozen=True)
class Entry:
    """One figure of a table: ours, the paper's if it prints one, and why they differ."""

    dataset: str
    method: str
    quality: float
    size: tuple[int, int]
    seconds: float
    rows: frozenset[int]
    columns: frozenset[int]
    paper: float | None
    paper_size: tuple[int, int] | None

    @property
    def difference(self) -> float:
        """Ours minus the paper's, in percent; zero if the paper prints none."""
        return 0.0 if self.paper is None else self.quality - self.paper

    @property
    def selection(self) -> tuple[frozenset[int], frozenset[int]]:
        """Chosen rows and columns."""
        return self.rows, self.columns


Entries: TypeAlias = Mapping[tuple[str, str], Entry]
"""By data set and method."""


def table_study(
    name: str,
    parts: dict[str, str],
    names: tuple[str, ...],
    quick: tuple[str, ...],
    present: Callable[[str, Results], Section],
    *,
    preselected: bool,
) -> Study:
    """The study of a table: all groups of methods on these matrices, or on those of ``quick``."""
    return Study(
        name=name,
        parts=parts,
        trials=lambda settings: [(name, group) for group in _GROUPS for name in (quick if settings.quick else names)],
        measure=partial(_measure, preselected=preselected),
        present=present,
        datasets=lambda settings: quick if settings.quick else names,
    )


def _measure(key: Key, settings: Settings, *, preselected: bool) -> Measurement:
    """Run one group of methods on one matrix."""
    name, group = key
    data = load(name, folder=settings.data)
    if group != "selection":
        return Measurement([_record(data, group, run_method(data.matrix, group, data.rank))])
    found, spent = choose_among_candidates(data.matrix, data.rank, preselected=preselected)
    return Measurement(
        [
            _record(data, method, fitted(data.matrix, columns, rows, seconds), spent if preselected else None)
            for method, (columns, rows, seconds) in found.items()
        ]
    )


def _record(data: PaperMatrix, method: str, outcome: Outcome, preselection_seconds: float | None = None) -> Record:
    return {
        "dataset": data.name,
        "method": method,
        "rank": data.rank,
        "n_rows": outcome.rows.size,
        "n_columns": outcome.columns.size,
        "quality": 100.0 * (1.0 - outcome.relative_error),
        "seconds": outcome.seconds,
        "preselection_seconds": preselection_seconds,
        "converged": bool(outcome.converged),
        "rows": outcome.rows.tolist(),
        "columns": outcome.columns.tolist(),
    }


def entries(table: pd.DataFrame) -> dict[tuple[str, str], Entry]:
    """All entries, by data set and method."""
    found = {}
    for record in table.to_dict("records"):
        line, method = published(record["dataset"]), record["method"]
        found[line.name, method] = Entry(
            dataset=line.name,
            method=method,
            quality=record["quality"],
            size=(record["n_rows"], record["n_columns"]),
            seconds=record["seconds"],
            rows=frozenset(record["rows"]),
            columns=frozenset(record["columns"]),
            paper=line.quality.get(method),
            paper_size=_paper_size(line, method),
        )
    return found


def explain(entry: Entry) -> str:
    """Why our figure is not the printed one; empty if it is, or if none is printed."""
    if entry.paper is None or abs(entry.difference) <= ROUNDING:
        return ""
    if entry.dataset in _OTHER_MATRIX:
        return _OTHER_MATRIX[entry.dataset]
    better = entry.difference > 0
    if entry.method == "nmf":
        return f"a different local minimum, {'better' if better else 'worse'} than the paper's"
    if entry.method == "minimum-volume":
        return "a different weight of the volume and a different local minimum"
    if entry.method not in SELECTING:
        return "not the same matrix"
    remark = ", from other candidates" if entry.dataset in DOCUMENT_NAMES else ""
    if entry.size != entry.paper_size:
        return f"a different selection{remark}: {_size(entry.size)} in place of {_size(entry.paper_size)}"
    if better and entry.difference <= _CLOSE:
        return "the same numbers of rows and columns; weights solved to a tolerance, or a slightly different choice"
    return f"the same numbers of rows and columns, a different choice of them{remark}"


def quality_table(names: Sequence[str], found: Entries, sides: str) -> Table:
    """In the paper's layout: our figure, and in brackets ours minus the paper's; ``sides`` says what sizes count."""
    rows = []
    for name in names:
        line = published(name)
        cells = [name, str(line.rank)]
        for method in METHODS:
            entry = found.get((name, method))
            if entry is None:
                cells.append(f"missing (paper {line.quality[method]:.2f})" if method in line.quality else "missing")
                continue
            size = f" {_size(entry.size)}" if method in ("gspa", "gs-fgm", "auto") else ""
            difference = entry.quality - line.best if entry.paper is None else entry.difference
            cells.append(f"{entry.quality:.2f} [{difference:+.2f}]{size}")
        rows.append(cells)
    caption = (
        f"Quality in percent, with {sides} where a method divides the rank itself. In brackets: the difference from "
        "the paper's figure, or for auto from the paper's best selection."
    )
    return Table(("data set", "r", *(LABELS[method] for method in METHODS)), rows, caption)


def comparison_table(names: Sequence[str], found: Entries) -> Table:
    """Every figure with the paper's, the difference, and the reason for it."""
    rows = [
        [
            name,
            LABELS[method],
            f"{entry.quality:.2f}",
            f"{entry.paper:.2f}",
            f"{entry.difference:+.2f}",
            _size(entry.size) if method in SELECTING else "",
            _size(entry.paper_size) if entry.paper_size else "",
            explain(entry),
        ]
        for name in names
        for method in METHODS
        if (entry := found.get((name, method))) and entry.paper is not None
    ]
    header = ("data set", "method", "ours", "paper", "difference", "(rows, columns)", "paper's", "why it differs")
    return Table(header, rows, "Every figure next to the paper's", long=True)


def shown_names(names: Sequence[str], found: Entries, missing: Iterable[str]) -> list[str]:
    """Data sets that a table has a line for: those with figures, and those that are missing."""
    measured = {name for name, _ in found}
    return [name for name in names if name in measured or name in missing]


def complete_names(names: Sequence[str], found: Entries, methods: Sequence[str]) -> list[str]:
    """Data sets for which there are figures of all these methods."""
    return [name for name in names if all((name, method) in found for method in methods)]


def missing_text(missing: Mapping[str, str]) -> list[str]:
    """One paragraph per data set that is not at hand."""
    return [f"**{name} is missing.** {reason}" for name, reason in missing.items()]


def stand_in_text(names: Iterable[str]) -> list[str]:
    """One paragraph per data set that is not quite the paper's."""
    others = [name for name in names if name in _OTHER_MATRIX]
    return [f"**{name} is not the paper's own matrix**: {_OTHER_MATRIX[name]}." for name in others]


def lower_errors(found: Entries, names: Sequence[str]) -> Claim:
    """Whether NMF and minimum-volume NMF beat every selection on every matrix."""
    margins = {
        method: [found[name, method].quality - max(found[name, m].quality for m in SELECTING) for name in names]
        for method in ("nmf", "minimum-volume")
    }
    numbers = ", ".join(
        f"{LABELS[method]} {min(values):+.2f} to {max(values):+.2f} against the best selection"
        for method, values in margins.items()
    )
    holds = all(min(values) > 0 for values in margins.values())
    return Claim("NMF and MV-NMF have lower errors than the selections", holds, numbers)


def _paper_size(line: Published, method: str) -> tuple[int, int] | None:
    if method == "spa-both":
        return line.sizes["gs-fgm"]
    if method in ("spa-columns", "spa-rows"):
        return (0, line.rank) if method == "spa-columns" else (line.rank, 0)
    return line.sizes.get(method)


def _size(size: tuple[int, int] | None) -> str:
    return f"({size[0]}, {size[1]})" if size else ""

"""Tables 1 and 2: quality on fifteen document collections, and the words and documents that are chosen.

Table 1: as in the paper, hierarchical clustering preselects 500 documents and 500 words, each scaled by the square root
of the size of its cluster. GSPA, GS-FGM and the three kinds of SPA choose among them; weights and quality are those of
the whole matrix. NMF, minimum-volume NMF, truncated SVD and auto see the whole matrix.

Table 2: the available copy of TDT30 lacks words and titles; numbers and the classes of documents stand for them. Other
collections, whose words are known, show what such a choice tells a reader.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp

from gsnmf.support.arrays import Indices
from reproduction import tables
from reproduction.matrices import PaperMatrix, load
from reproduction.methods import LABELS, choose, choose_among_candidates
from reproduction.published import COLUMNS, DOCUMENT_NAMES, DOCUMENT_SECONDS, SELECTING, Published, published
from reproduction.report import Claim, Section, Table
from reproduction.study import Key, Measurement, Record, Results, Settings, Study

_QUICK = ("tr11", "tr23")
_ENOUGH = 10
"""Fewest data sets for which statements about all of them are checked."""


def _present(part: str, results: Results) -> Section:
    found = tables.entries(results.table)
    names = tables.shown_names(DOCUMENT_NAMES, found, results.missing)
    return Section(
        title="Table 1: document data sets",
        text=[
            "For classic the paper prints (4, 0). All its other lines count documents first, and the qualities are "
            "those of four words: (0, 4).",
            "Candidates are preselected by clustering, as in the paper, whose own 500 x 500 candidates are not known.",
            *tables.stand_in_text(names),
            *tables.missing_text(results.missing),
        ],
        tables=[
            tables.quality_table(names, found, "(documents, words)"),
            _time_table(found),
            tables.comparison_table(names, found),
        ],
        claims=_claims(found),
    )


def _time_table(found: tables.Entries) -> Table:
    rows = []
    for method in tables.METHODS:
        seconds = [entry.seconds for entry in found.values() if entry.method == method]
        if seconds:
            paper = f"{DOCUMENT_SECONDS[method]:.3f}" if method in DOCUMENT_SECONDS else ""
            rows.append([LABELS[method], f"{np.mean(seconds):.3f}", f"{max(seconds):.3f}", paper])
    caption = (
        "Seconds on one thread, while other trials ran on the other cores. Selections choose among 500 x 500 "
        "candidates, without the time of preselection; GS-FGM includes all ten values of lambda; the other methods "
        "factorize the whole matrix. The paper's times are for Matlab on a 2.2 GHz laptop processor."
    )
    return Table(("method", "average", "longest", "paper's average"), rows, caption)


def _claims(found: tables.Entries) -> list[Claim]:
    names = tables.complete_names(DOCUMENT_NAMES, found, COLUMNS)
    if not names:
        return []
    return [
        *_same_solutions(found, names),
        _sometimes_best(found, names),
        _first_or_second(found, names),
        _on_average(found, names),
        tables.lower_errors(found, names),
        _far_from_low_rank(found, names),
        _times(found, names),
    ]


def _same_solutions(found: tables.Entries, names: list[str]) -> list[Claim]:
    same = [name for name in names if found[name, "gspa"].selection == found[name, "gs-fgm"].selection]
    spa_agrees = [name for name in same if found[name, "spa-both"].selection == found[name, "gspa"].selection]
    lines = [published(name) for name in names]
    printed = [line for line in lines if line.sizes["gspa"] == line.sizes["gs-fgm"] and _equal(line, "gspa")]
    with_spa = [line.name for line in printed if _equal(line, "spa-both")]
    return [
        Claim(
            "GS-FGM and GSPA give the same solution in 6 of the 15 cases",
            len(same) == len(printed),
            f"in {len(same)} of the {len(names)} at hand ({', '.join(same) or 'none'}); the paper in {len(printed)} of "
            f"these ({', '.join(line.name for line in printed) or 'none'})",
        ),
        Claim(
            "In 5 of these 6 cases SPA* gives the same solution",
            len(spa_agrees) == len(with_spa),
            f"in {len(spa_agrees)} ({', '.join(spa_agrees) or 'none'}); the paper in {len(with_spa)} of those at hand",
        ),
    ]


def _equal(line: Published, method: str) -> bool:
    return line.quality[method] == line.quality["gs-fgm"]


def _sometimes_best(found: tables.Entries, names: list[str]) -> Claim:
    margins = {
        name: max(found[name, method].quality for method in ("spa-columns", "spa-rows")) - found[name, "gs-fgm"].quality
        for name in names
    }
    leads = {name: margin for name, margin in margins.items() if margin > 0.005}
    numbers = ", ".join(f"{name} {margin:+.2f}" for name, margin in leads.items()) or "never ahead of GS-FGM"
    return Claim(
        "SPA-C and SPA-R are sometimes best, but never significantly better than GS-FGM "
        f"(by {tables.SIGNIFICANT:g} points)",
        bool(leads) and max(margins.values()) < tables.SIGNIFICANT,
        numbers,
    )


def _first_or_second(found: tables.Entries, names: list[str]) -> Claim:
    places = {}
    for name in names:
        own = found[name, "gs-fgm"].quality
        better = {round(found[name, method].quality, 2) for method in SELECTING} - {round(own, 2)}
        n_better = sum(value > own for value in better)
        if n_better > 1:
            places[name] = n_better + 1
    numbers = f"in {len(names) - len(places)} of {len(names)}"
    numbers += "".join(f"; {name}: place {place}" for name, place in places.items())
    return Claim("GS-FGM has the highest or second highest quality of the selections in all cases", not places, numbers)


def _on_average(found: tables.Entries, names: list[str]) -> Claim:
    means = {method: float(np.mean([found[name, method].quality for name in names])) for method in SELECTING}
    numbers = ", ".join(f"{LABELS[method]} {mean:.2f}" for method, mean in means.items())
    holds = max(means, key=lambda m: means[m]) == "gs-fgm"
    return Claim("GS-FGM performs best on average", holds if len(names) >= _ENOUGH else None, numbers)


def _far_from_low_rank(found: tables.Entries, names: list[str]) -> Claim:
    below = [name for name in names if found[name, "svd"].quality < 10]
    statement = "The quality of the truncated SVD is below 10 % for many data sets (at least five)"
    return Claim(
        statement,
        len(below) >= 5 if len(names) >= _ENOUGH else None,
        f"for {len(below)} of {len(names)}: {', '.join(below) or 'none'}",
    )


def _times(found: tables.Entries, names: list[str]) -> Claim:
    seconds = [found[name, "gs-fgm"].seconds for name in names]
    return Claim(
        "GS-FGM takes less than 2.5 seconds in all cases, 1.25 on average",
        max(seconds) < 2.5,
        f"longest {max(seconds):.2f} s, {np.mean(seconds):.2f} s on average for all ten values of lambda; "
        f"{np.mean(seconds) / 10:.2f} s for one",
    )


_CHOSEN_FROM = ("TDT30", "NG10", "reviews", "tr41")
_QUICKLY_FROM = ("tr23",)
_CHOOSING = ("gs-fgm", "auto")


def _collections(settings: Settings) -> tuple[str, ...]:
    return _QUICKLY_FROM if settings.quick else _CHOSEN_FROM


def _measure_choice(key: Key, settings: Settings) -> Measurement:
    data = load(key[0], folder=settings.data)
    found, _ = choose_among_candidates(data.matrix, data.rank, preselected=True)
    records: list[Record] = []
    for method in _CHOOSING:
        columns, rows = found["gs-fgm"][:2] if method == "gs-fgm" else choose(data.matrix, "auto", data.rank)
        records += [
            {"dataset": data.name, "method": method, **r} for r in (*_words(data, columns), *_texts(data, rows))
        ]
    return Measurement(records)


def _words(data: PaperMatrix, columns: Indices) -> list[Record]:
    counts = sp.csc_array(data.matrix)
    records = []
    for place, column in enumerate(columns.tolist(), start=1):
        by_class = np.bincount(np.asarray(data.labels), weights=counts[:, [column]].toarray().ravel())
        top = int(np.argmax(by_class))
        name = data.terms[column] if data.terms else f"word {column}"
        shown = f"{name} ({_class(data, top)} {100 * by_class[top] / max(by_class.sum(), 1.0):.0f} %)"
        records.append({"kind": "words", "place": place, "index": column, "shown": shown})
    return records


def _texts(data: PaperMatrix, rows: Indices) -> list[Record]:
    return [
        {
            "kind": "documents",
            "place": place,
            "index": row,
            "shown": f"{_class(data, int(np.asarray(data.labels)[row]))} (document {row})",
        }
        for place, row in enumerate(rows.tolist(), start=1)
    ]


def _class(data: PaperMatrix, label: int) -> str:
    return data.class_names[label - 1] if data.class_names else str(label)


def _present_choice(part: str, results: Results) -> Section:
    shown = []
    known = set(results.table["dataset"]) if not results.table.empty else set()
    for name in [n for n in (*_CHOSEN_FROM, *_QUICKLY_FROM) if n in known]:
        for method in _CHOOSING:
            chosen = results.table.query("dataset == @name and method == @method")
            rows = [_listed(chosen, kind) for kind in ("documents", "words")]
            shown.append(Table(("kind", "chosen"), rows, f"{name}, {LABELS[method]}"))
    return Section(
        title="Table 2: words and documents that were chosen",
        text=[
            "Each word is followed by the class in which it occurs most, and the share of its occurrences there; a "
            "document is named by its class and its number. The available copy of TDT30 has numbers in place of "
            "words, so the paper's list (4 documents, 26 words) cannot be compared word by word.",
            *tables.missing_text(results.missing),
        ],
        tables=shown,
    )


def _listed(chosen: pd.DataFrame, kind: str) -> list[str]:
    own = chosen[chosen["kind"] == kind].sort_values("place")["shown"]
    return [f"{kind} ({own.size})", ", ".join(own)]


STUDIES = (
    tables.table_study(
        "documents",
        {"documents": "table 1: quality on fifteen document data sets"},
        DOCUMENT_NAMES,
        _QUICK,
        _present,
        preselected=True,
    ),
    Study(
        name="document-topics",
        parts={"document-topics": "table 2: words and documents chosen from TDT30 and other collections"},
        trials=lambda settings: [(name,) for name in _collections(settings)],
        measure=_measure_choice,
        present=_present_choice,
        datasets=_collections,
    ),
)

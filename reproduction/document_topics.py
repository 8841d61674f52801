"""Table 2: the words and documents that are chosen from TDT30, and from collections whose words are known.

The available copy of TDT30 lacks words and titles; numbers and the classes of documents stand for them. The other
collections show what such a choice tells a reader.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Indices
from reproduction._methods import LABELS, choose, warm_up
from reproduction._study import Key, Measurement, Record, Results, Section, Settings, Study, Table
from reproduction._tables import at_hand, choose_among_candidates, missing_text, not_at_hand
from reproduction.matrices import PaperMatrix, paper_matrix

_NAMES = ("TDT30", "NG10", "reviews", "tr41")
_QUICK = ("tr23",)
_COLUMNS = ("dataset", "method", "kind", "place", "index", "name", "class", "class_share")
_METHODS = ("gs-fgm", "auto")


def _names(settings: Settings) -> tuple[str, ...]:
    return _QUICK if settings.quick else _NAMES


def _trials(settings: Settings) -> list[Key]:
    return [(name,) for name in at_hand(_names(settings), settings)]


def _measure(key: Key, settings: Settings) -> Measurement:
    data = paper_matrix(str(key[0]), folder=settings.data)
    warm_up()
    found, _ = choose_among_candidates(data.matrix, data.rank, preselected=True)
    records: list[Record] = []
    for method in _METHODS:
        columns, rows = found["gs-fgm"][:2] if method == "gs-fgm" else choose(data.matrix, "auto", data.rank)
        records += _words(data, method, columns) + _documents(data, method, rows)
    return Measurement(records)


def _words(data: PaperMatrix, method: str, columns: Indices) -> list[Record]:
    labels, records = np.asarray(data.labels), []
    counts = sp.csc_array(data.matrix)
    for place, column in enumerate(columns.tolist(), start=1):
        used = counts[:, [column]].toarray().ravel()
        by_class = np.bincount(labels, weights=used)
        top = int(np.argmax(by_class))
        name = data.terms[column] if data.terms else ""
        share = float(by_class[top] / max(by_class.sum(), 1.0))
        records.append(_record(data, method, "word", place, column, name, top, share))
    return records


def _documents(data: PaperMatrix, method: str, rows: Indices) -> list[Record]:
    labels = np.asarray(data.labels)
    return [
        _record(data, method, "document", place, row, "", int(labels[row]), None)
        for place, row in enumerate(rows.tolist(), start=1)
    ]


def _record(
    data: PaperMatrix, method: str, kind: str, place: int, index: int, name: str, label: int, share: float | None
) -> Record:
    known = data.class_names[label - 1] if data.class_names else str(label)
    values = (data.name, method, kind, place, index, name, known, share)
    return dict(zip(_COLUMNS, values, strict=True))


def _present(part: str, results: Results) -> Section:
    tables = []
    names = dict.fromkeys(str(record["dataset"]) for record in results.records)
    for name in [n for n in (*_NAMES, *_QUICK) if n in names]:
        for method in _METHODS:
            chosen = [r for r in results.records if r["dataset"] == name and r["method"] == method]
            rows = [
                [f"documents ({_count(chosen, 'document')})", ", ".join(map(_document, _of(chosen, "document")))],
                [f"words ({_count(chosen, 'word')})", ", ".join(map(_word, _of(chosen, "word")))],
            ]
            tables.append(Table(("kind", "chosen"), rows, f"{name}, {LABELS[method]}"))
    return Section(
        title="Table 2: words and documents that were chosen",
        text=[
            "Each word is followed by the class in which it occurs most, and the share of its occurrences there; a "
            "document is named by its class and its number. The available copy of TDT30 has numbers in place of "
            "words, so the paper's list (4 documents, 26 words) cannot be compared word by word.",
            *missing_text(results.missing),
        ],
        tables=tables,
    )


def _of(records: Sequence[Record], kind: str) -> list[Record]:
    return sorted((r for r in records if r["kind"] == kind), key=lambda r: int(r["place"] or 0))


def _count(records: Sequence[Record], kind: str) -> int:
    return len(_of(records, kind))


def _word(record: Record) -> str:
    name = str(record["name"]) or f"word {record['index']}"
    return f"{name} ({record['class']} {100 * float(record['class_share'] or 0.0):.0f} %)"


def _document(record: Record) -> str:
    return f"{record['class']} (document {record['index']})"


STUDIES = (
    Study(
        name="document-topics",
        parts={"document-topics": "table 2: words and documents chosen from TDT30 and other collections"},
        columns=_COLUMNS,
        text=("dataset", "method", "kind", "name", "class"),
        trials=_trials,
        measure=_measure,
        present=_present,
        missing=lambda settings: not_at_hand(_names(settings), settings),
    ),
)

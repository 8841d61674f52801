"""Tables 3 and 4: quality and times on four collections of face images, pixels x faces, columns that sum to one."""

from __future__ import annotations

from collections.abc import Mapping

from reproduction import _tables as tables
from reproduction._methods import LABELS
from reproduction._study import Claim, Results, Section, Table
from reproduction.published import COLUMNS, FACE_NAMES, SELECTING, published

_QUICK = ("CBCL", "ORL")
_CLOSE = 0.5
"""Percent within which two qualities are called very close."""


def _present(part: str, results: Results) -> Section:
    found = tables.entries(results.records)
    names = tables.shown_names(FACE_NAMES, found, results.missing)
    if part == "face-times":
        return Section(
            title="Table 4: times on the facial image data sets",
            text=tables.missing_text(results.missing),
            tables=[_time_table(names, found)],
            claims=_time_claims(found),
        )
    return Section(
        title="Table 3: facial image data sets",
        text=[*tables.stand_in_text(names), *tables.missing_text(results.missing)],
        tables=[tables.quality_table(names, found, "(pixels, faces)"), tables.comparison_table(names, found)],
        claims=_claims(found),
    )


def _time_table(names: list[str], found: tables.Entries) -> Table:
    rows = []
    for name in names:
        times = published(name).seconds
        cells = [name]
        for method in tables.METHODS:
            entry = found.get((name, method))
            ours = f"{entry.seconds:.3f}" if entry else "missing"
            cells.append(f"{ours} (paper {times[method]:g})" if method in times else ours)
        rows.append(cells)
    caption = (
        "Seconds on one thread, while other trials ran on the other cores; GS-FGM includes all ten values of lambda."
        " The paper's times are for Matlab on a 2.2 GHz laptop processor; it does not say whether they include all "
        "ten values."
    )
    return Table(("data set", *(LABELS[method] for method in tables.METHODS)), rows, caption)


def _claims(found: tables.Entries) -> list[Claim]:
    names = tables.complete_names(FACE_NAMES, found, COLUMNS)
    if not names:
        return []
    gains = {name: found[name, "gs-fgm"].quality - found[name, "gspa"].quality for name in names}
    rows = {name: found[name, "spa-rows"].quality - found[name, "gs-fgm"].quality for name in names}
    expected = {"CBCL": True, "ORL": True, "Frey": False, "Yale": False}
    claims = [
        Claim("GS-FGM outperforms GSPA on all data sets", min(gains.values()) > 0, _differences(gains)),
        Claim(
            "SPA-R is better than GS-FGM on CBCL and ORL, and worse on Frey and Yale",
            all((margin > 0) == expected[name] for name, margin in rows.items()) if len(names) == 4 else None,
            _differences(rows),
        ),
        tables.lower_errors(found, names),
    ]
    if "Yale" in names:
        claims.insert(2, _yale(found))
    if "Frey" in names:
        claims.insert(2, _frey(rows["Frey"]))
    return claims


def _yale(found: tables.Entries) -> Claim:
    margin = found["Yale", "gs-fgm"].quality - max(
        found["Yale", method].quality for method in SELECTING if method != "gs-fgm"
    )
    statement = f"On Yale, GS-FGM is significantly better than all other selections (by {tables.SIGNIFICANT:g} points)"
    return Claim(statement, margin > tables.SIGNIFICANT, f"{margin:+.2f}")


def _frey(margin: float) -> Claim:
    statement = f"On Frey, rows alone (SPA-R) are very close to GS-FGM (within {_CLOSE:g} points)"
    return Claim(statement, abs(margin) <= _CLOSE, f"{margin:+.2f}")


def _time_claims(found: tables.Entries) -> list[Claim]:
    names = tables.complete_names(FACE_NAMES, found, SELECTING)
    if not names:
        return []
    slowest = all(
        found[name, "gs-fgm"].seconds >= max(found[name, method].seconds for method in SELECTING) for name in names
    )
    seconds = {name: found[name, "gs-fgm"].seconds for name in names}
    listed = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    longest = max(seconds, key=lambda name: seconds[name])
    return [
        Claim("GS-FGM is the slowest of the selections", slowest, listed),
        Claim("GS-FGM takes longest on Yale", longest == "Yale" if len(names) == 4 else None, listed),
    ]


def _differences(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:+.2f}" for name, value in values.items())


STUDIES = (
    tables.table_study(
        "faces",
        {
            "faces": "table 3: quality on four facial image data sets",
            "face-times": "table 4: times on the facial image data sets",
        },
        FACE_NAMES,
        _QUICK,
        _present,
        preselected=False,
    ),
)

"""What a study shows: sections with figures, tables and checked statements, and a page of them in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_ROWS_SHOWN = 8
_CHARACTERS_SHOWN = 1000
"""Tables with more rows or more text than these are folded."""


@dataclass(frozen=True)
class Table:
    """Cells of text under a header."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    long: bool = False
    """Whether a page should fold it, and a terminal leave it out."""


@dataclass(frozen=True)
class Figure:
    """A picture that was saved as PNG and SVG under this name."""

    name: str
    caption: str
    of_data: bool = False
    """Whether it shows entries of a data set, which may not be published with the library."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what was found; ``holds`` is None if there are too few results to tell."""

    statement: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """In words."""
        return "cannot be checked" if self.holds is None else "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Section:
    """One figure or table of the paper, reproduced."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    files: Sequence[str] = ()
    """Other files that were written, relative to the output folder."""


def page(
    title: str, introduction: Sequence[str], sections: Sequence[Section], *, figures: str, shows_data: bool = True
) -> str:
    """The whole page: in every section pictures first, then the paper's statements, and long tables folded.

    Parameters
    ----------
    title : str
    introduction : sequence of str
        Paragraphs; those after the first, which say how it was measured, are folded.
    sections : sequence of Section
    figures : str
        Folder of the pictures, relative to the page.
    shows_data : bool
        Whether to show pictures of entries of data sets.
    """
    opening, *facts = introduction
    blocks = [f"# {title}", opening, *_overview(sections)]
    if facts:
        blocks.append(_folded("How it was measured", "\n\n".join(facts)))
    for section in sections:
        blocks.append(f"## {section.title}")
        for figure in section.figures:
            if figure.of_data and not shows_data:
                blocks.append(f"*{figure.caption}* Not shown here: the picture contains the data itself.")
            else:
                blocks.append(f"![{figure.caption}]({figures}/{figure.name}.png)\n\n*{figure.caption}*")
        blocks.extend(section.text)
        if section.claims:
            rows = [(claim.statement, f"**{claim.verdict}**", claim.numbers) for claim in section.claims]
            blocks.append(_lines(Table(("the paper says", "", "measured"), rows)))
        blocks.extend(map(_table, section.tables))
        if section.files and shows_data:
            blocks.append("Files: " + ", ".join(f"[{file}]({file})" for file in section.files))
    return "\n\n".join(block for block in blocks if block) + "\n"


def environment_lines(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """What the runs used: each different environment once, after the names of the studies that ran in it."""
    studies: dict[str, list[str]] = {}
    for run in runs:
        facts = "; ".join(f"{key}: {value}" for key, value in run.items() if key not in ("began", "load", "study"))
        studies.setdefault(facts, []).append(str(run["study"]))
    return [f"{', '.join(dict.fromkeys(names))}: {facts}." for facts, names in studies.items()]


def verdicts(sections: Sequence[Section]) -> str:
    """How many statements hold, in one line."""
    counts = Counter(claim.verdict for section in sections for claim in section.claims)
    plural = {"holds": "hold", "does not hold": "do not hold", "cannot be checked": "cannot be checked"}
    return ", ".join(f"{counts[verdict]} {words}" for verdict, words in plural.items())


def _overview(sections: Sequence[Section]) -> list[str]:
    """How many statements hold, in all and section by section, with links."""
    checked = [section for section in sections if section.claims]
    if not checked:
        return []
    rows = []
    for section in checked:
        counts = Counter(claim.verdict for claim in section.claims)
        numbers = [str(counts[verdict] or "") for verdict in ("holds", "does not hold")]
        rows.append((f"[{section.title}](#{_anchor(section.title)})", *numbers))
    return [
        f"Of the paper's statements, {verdicts(sections)}.",
        _lines(Table(("", "hold", "do not hold"), rows)),
    ]


def _anchor(title: str) -> str:
    """The anchor that GitHub and the site give to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _table(table: Table) -> str:
    """A table with its caption, folded if it would push the next picture far down."""
    text = _lines(table)
    if table.long or len(table.rows) > _ROWS_SHOWN or len(text) > _CHARACTERS_SHOWN:
        return _folded(table.caption or ", ".join(filter(None, table.header)), text)
    return f"{text}\n\n*{table.caption}*" if table.caption else text


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{escape(summary, quote=False)}</summary>\n\n{text}\n\n</details>"


def _lines(table: Table) -> str:
    return "\n".join([_line(table.header), _line(["---"] * len(table.header)), *map(_line, table.rows)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

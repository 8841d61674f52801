"""A page in Markdown, and plain text for the terminal, from sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gsnmf.experiments._study import Claim, Section, Table


def page(
    title: str, introduction: Sequence[str], sections: Sequence[Section], *, figures: str, shows_data: bool = True
) -> str:
    """The whole page.

    Parameters
    ----------
    title : str
    introduction : sequence of str
        Paragraphs.
    sections : sequence of Section
    figures : str
        Folder of the pictures, relative to the page.
    shows_data : bool
        Whether to show pictures of entries of data sets.
    """
    blocks = [f"# {title}", *introduction, _summary(sections)]
    for section in sections:
        blocks.append(f"## {section.title}")
        blocks.extend(section.text)
        for figure in section.figures:
            if figure.of_data and not shows_data:
                blocks.append(f"*{figure.caption}* Not shown here: the picture contains the data itself.")
            else:
                blocks.append(f"![{figure.caption}]({figures}/{figure.name}.png)\n\n*{figure.caption}*")
        blocks.extend(_table(table) for table in section.tables)
        if section.claims:
            blocks.append(claims_table(section.claims))
        if section.files and shows_data:
            blocks.append("Files: " + ", ".join(f"[{file}]({file})" for file in section.files))
    return "\n\n".join(block for block in blocks if block) + "\n"


def claims_table(claims: Sequence[Claim]) -> str:
    """Statements of the paper with their verdicts, as a table in Markdown."""
    rows = [(claim.statement, f"**{claim.verdict}**", claim.numbers) for claim in claims]
    return _table(Table(("the paper says", "", "measured"), rows))


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


def _summary(sections: Sequence[Section]) -> str:
    return f"Of the paper's statements, {verdicts(sections)}." if any(section.claims for section in sections) else ""


def _table(table: Table) -> str:
    lines = [_line(table.header), _line(["---"] * len(table.header)), *map(_line, table.rows)]
    text = "\n".join(lines)
    if table.long:
        return f"<details><summary>{table.caption}</summary>\n\n{text}\n\n</details>"
    return f"{text}\n\n*{table.caption}*" if table.caption else text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

"""Numbers, names and small tables for people: as text, as HTML in a notebook, and as a DataFrame."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MAX_NAME = 160
"""Longest name that is shown in full."""

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LONGEST_CELL, _LONGEST_NAME = 80, 40
"""Characters of a cell of text, and of each name in a cell of several; longer ones lose their middle."""
_CELL = 'style="text-align: left; vertical-align: top"'


def percent(share: float) -> str:
    r"""A share in percent with one decimal, or with as many as it takes to differ from 0 and 100.

    Examples
    --------
    >>> percent(0.1964), percent(0.99996), percent(1.0), percent(0.00012), percent(0.0)
    ('19.6\xa0%', '99.996\xa0%', '100\xa0%', '0.01\xa0%', '0\xa0%')
    """
    if not math.isfinite(share):
        return "∞" if share > 0 else "–"
    rest = min(abs(share), abs(1.0 - share))
    if rest < 1e-12:
        return f"{100 * round(share):d}\u00a0%"
    decimals = 1 if rest >= 0.001 else min(8, math.ceil(-math.log10(rest)) - 2)
    return f"{100 * share:.{decimals}f}\u00a0%"


def counted(number: int, kind: str) -> str:
    """A number of things: ``"1 word"``, ``"2 words"``, ``"1 218 words"``."""
    return f"{grouped(number)} {kind if number == 1 else kind + 's'}"


def mixtures(number: int, kind: str, most: int) -> str:
    """A number of things or of mixtures of them: ``"2 words"``, ``"2 mixtures of up to 3 words"``."""
    return counted(number, kind) if most == 1 else f"{counted(number, 'mixture')} of up to {counted(most, kind)}"


def grouped(number: int) -> str:
    """An integer with thin spaces between its thousands, from 10 000 on."""
    return f"{number:,}".replace(",", "\u2009") if abs(number) >= 10_000 else str(number)


def listed(items: list[str]) -> str:
    """Items joined for a sentence: ``"a, b and c"``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def joined(names: Sequence[str]) -> str:
    """The name of a mixture: ``"break + continue + loop"``."""
    return " + ".join(names)


def price(lost: float) -> str:
    """By how many percentage points a quality is lower, with two decimals.

    Examples
    --------
    >>> price(0.0213), price(12.0), price(0.0004)
    ('0.02 points less', '12.00 points less', 'as good')
    """
    return f"{lost:.2f} points less" if lost >= 0.005 else "as good"


def shown(name: str, longest: int | None = MAX_NAME) -> str:
    """A name fit for display: at most ``longest`` characters, with a mark in place of unprintable ones.

    Examples
    --------
    >>> shown("a\\x00b")
    'a\ufffdb'
    """
    clean = _UNPRINTABLE.sub("\ufffd", name)
    return clean if longest is None or len(clean) <= longest else clean[: longest - 1] + "…"


def abridged(name: str, longest: int) -> str:
    """A name of at most ``longest`` characters: a longer one loses its middle, as names often differ at their ends.

    Examples
    --------
    >>> abridged("annual-report-of-the-year-2024", 15)
    'annual-…ar-2024'
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"


def columns_and_rows(n_columns: int, n_rows: int) -> str:
    """Numbers of columns and rows in words.

    Examples
    --------
    >>> columns_and_rows(8, 2), columns_and_rows(1, 0), columns_and_rows(0, 0)
    ('8 columns and 2 rows', '1 column', 'nothing')
    """
    parts = [counted(n, kind) for n, kind in ((n_columns, "column"), (n_rows, "row")) if n]
    return " and ".join(parts) or "nothing"


@dataclass(frozen=True, repr=False)
class Table:
    """Rows of cells under a header, which shows itself as text, or as HTML in a notebook.

    As text, long names lose their middle; ``rows`` and `to_frame` have them whole.

    Attributes
    ----------
    header : tuple of str
        Names of the columns.
    rows : tuple of tuples
        Cells: text, numbers, or tuples of text.
    caption : str
        Text above the table.

    Examples
    --------
    >>> import gsnmf
    >>> table = gsnmf.Table(("word", "share"), (("loop", 0.25),), "Words")
    >>> print(table)
    Words
    word  share
    ----  -----
    loop  0.25
    >>> table.to_frame().shape
    (1, 2)
    """

    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    caption: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        lines = text_table(self.header, [[_short(cell) for cell in row] for row in self.rows])
        return "\n".join(([self.caption] if self.caption else []) + lines)

    def _repr_html_(self) -> str:
        caption = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        return caption + html_table(self.header, [[_shown(cell) for cell in row] for row in self.rows])

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame, with numbers as numbers and tuples as tuples."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas.") from error
        return pd.DataFrame.from_records(list(self.rows), columns=self.header)


class ShownAsTable(ABC):
    """Mixin for a result with a ``table``: notebooks show the table, and `to_frame` converts it."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The result as a table."""

    def to_frame(self) -> pd.DataFrame:
        """The table as a pandas DataFrame."""
        return self.table.to_frame()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, its columns as wide as their cells.

    Examples
    --------
    >>> print("\\n".join(text_table(["name", "n"], [["a", "1"], ["bcdef", "22"]])))
    name   n
    -----  --
    a      1
    bcdef  22
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in (header, ["-" * width for width in widths], *rows)
    ]


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML. Cells are escaped; colours come from the surrounding page.

    Examples
    --------
    >>> html_table(["name"], [["<b>"]])[-35:]
    '&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(kind: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{kind} {_CELL}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

    body = "".join(line("td", cells) for cells in rows)
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"


def _short(cell: object) -> str:
    if isinstance(cell, tuple):
        return ", ".join(abridged(str(name), _LONGEST_NAME) for name in cell)
    return abridged(_shown(cell), _LONGEST_CELL)


def _shown(cell: object) -> str:
    if isinstance(cell, tuple):
        return ", ".join(map(str, cell))
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)

"""Small tables for people: as text, as HTML in a notebook, and as a DataFrame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from gsnmf.support.words import abridged

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_CELL, _LONGEST_NAME = 80, 40
"""Characters of a cell of text, and of each name in a cell of several; longer ones lose their middle."""
_CELL = 'style="text-align: left; vertical-align: top"'


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

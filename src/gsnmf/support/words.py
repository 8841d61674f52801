"""Numbers and names in readable form."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MAX_NAME = 160
"""Longest name that is shown in full."""

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


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

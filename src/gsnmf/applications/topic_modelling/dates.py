"""Dates of documents, and the periods in which they are counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, TypeAlias

Date: TypeAlias = date

_PARTS = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?:[T ].*)?")
_LONGEST_SHOWN = 40
_MOST_PERIODS = 40


def read_date(value: Any) -> Date | None:
    """A date from what tables hold: text, a year, `datetime`, or pandas' and NumPy's; None if it is missing.

    Examples
    --------
    >>> read_date("2024-05-31T12:00"), read_date(1999), read_date("2024/5"), read_date("")
    (datetime.date(2024, 5, 31), datetime.date(1999, 1, 1), datetime.date(2024, 5, 1), None)
    """
    if value is None or value != value:  # NaN and NaT are not equal to themselves
        return None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value).strip()
    if not text or text == "NaT":
        return None
    found = _PARTS.fullmatch(text)
    if found is not None:
        year, month, day = (int(part) if part else 1 for part in found.groups())
        try:
            return date(year, month, day)
        except ValueError:
            pass
    shown = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    raise ValueError(f"a date must be written as 2024-05-31, 2024-05 or 2024; got {shown!r}.")


def periods(dates: Sequence[Date | None]) -> tuple[list[str], list[int]]:
    """Days, months or years, as fine as gives at most 40 of them, and the period of each date; -1 where it is missing.

    Empty periods between the first and the last are among them.

    Examples
    --------
    >>> periods([date(2024, 11, 5), None, date(2025, 1, 7)])
    (['2024-11', '2024-12', '2025-01'], [0, -1, 2])
    """
    known = [day for day in dates if day is not None]
    if not known:
        return [], [-1] * len(dates)
    first, last = min(known), max(known)
    if (last - first).days < _MOST_PERIODS:
        start = first.toordinal()
        names = [date.fromordinal(start + k).isoformat() for k in range((last - first).days + 1)]
        return names, [-1 if day is None else day.toordinal() - start for day in dates]
    months = _month(last) - _month(first) + 1
    if months <= _MOST_PERIODS and any((day.month, day.day) != (1, 1) for day in known):
        start = _month(first)
        names = [f"{m // 12}-{m % 12 + 1:02d}" for m in range(start, start + months)]
        return names, [-1 if day is None else _month(day) - start for day in dates]
    step = -(-(last.year - first.year + 1) // _MOST_PERIODS)
    starts = range(first.year, last.year + 1, step)
    names = [str(year) if step == 1 else f"{year}–{year + step - 1}" for year in starts]
    return names, [-1 if day is None else (day.year - first.year) // step for day in dates]


def _month(day: Date) -> int:
    return 12 * day.year + day.month - 1

"""The rank on the command line: a number, a pair, a range to choose from, or the word auto."""

from __future__ import annotations

import re

import typer

from gsnmf.model_selection.rank_choice import USUAL_RANKS


def parse_rank(text: str) -> int | tuple[int, int] | range:
    """A number of factors, numbers of columns and rows, or a range of numbers to choose from.

    Examples
    --------
    >>> parse_rank("8"), parse_rank("6,4"), parse_rank("5-40"), parse_rank("auto")
    (8, (6, 4), range(5, 41), range(2, 31))
    """
    if text == "auto":
        return USUAL_RANKS
    number, pair, span = (re.fullmatch(form, text.replace(" ", "")) for form in (r"\d+", r"\d+,\d+", r"\d+-\d+"))
    if number and int(text) > 0:
        return int(text)
    if pair:
        columns, rows = map(int, text.split(","))
        return columns, rows
    if span:
        least, most = map(int, text.split("-"))
        if 0 < least <= most:
            return range(least, most + 1)
    raise typer.BadParameter(
        "--rank must be a positive integer, a pair such as 6,4, a range to choose from such as 5-40, or auto; "
        f"got {text!r}."
    )

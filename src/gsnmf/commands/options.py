"""Options that commands share, and how their values are read: ranks, sizes, names of columns and rows.

Only `typer` is imported at the top, so that ``--help`` is quick.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from gsnmf.constraints import Constraints
    from gsnmf.datasets.labelled import LabelledMatrix
    from gsnmf.support.arrays import Indices

Rank = int | tuple[int, int] | range | Literal["auto"]

_INCLUDED_OR_NOT = ("include_columns", "exclude_columns", "include_rows", "exclude_rows")


class Effort(StrEnum):
    """How much time the search may take."""

    fast = "fast"
    balanced = "balanced"
    best = "best"


AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only where the report is.")]
Encoding = Annotated[str, typer.Option(help="Of text.")]


def given_options(context: typer.Context) -> set[str]:
    """Names of the parameters given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def parse_rank(text: str, *, pairs: bool = True) -> Any:
    """A number of factors, numbers of columns and rows if ``pairs`` are allowed, a range to choose from, or "auto".

    Examples
    --------
    >>> parse_rank("8"), parse_rank("6,4"), parse_rank("5-40"), parse_rank("auto")
    (8, (6, 4), range(5, 41), 'auto')
    """
    if text == "auto":
        return text
    numbers = [int(word) for word in re.findall(r"\d+", text)]
    form = re.sub(r"\d+", "N", text.replace(" ", ""))
    if form == "N" and numbers[0] > 0:
        return numbers[0]
    if form == "N,N" and pairs:
        return numbers[0], numbers[1]
    if form == "N-N" and 0 < numbers[0] <= numbers[1]:
        return range(numbers[0], numbers[1] + 1)
    pair = "a pair such as 6,4, " if pairs else ""
    raise typer.BadParameter(
        f"--rank must be a positive integer, {pair}a range to choose from such as 5-40, or auto; got {text!r}."
    )


def parse_shape(text: str | None) -> tuple[int, int] | None:
    """Height and width of images, such as ``"28x20"``."""
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise typer.BadParameter(f"--image-shape must be height x width, such as 28x20; got {text!r}.")
    return int(sides[0]), int(sides[1])


@dataclass(frozen=True)
class ConstraintOptions:
    """Constraints as they were typed: names are not yet looked up in the data.

    Attributes
    ----------
    named : dict
        For each option that was given, the names and numbers in it.
    at_least : pair of int, or None
    """

    named: dict[str, list[str]]
    at_least: tuple[int, int] | None

    @classmethod
    def of(cls, options: Mapping[str, Any], rank: Rank, method: str) -> ConstraintOptions:
        """The constraints among all options, checked as far as that is possible without the data.

        Each is a comma-separated list of names or numbers, or ``@`` and a file with one per line.
        """
        from gsnmf.registry import find_method

        named = {option: _split(options[option]) for option in _INCLUDED_OR_NOT if options[option] is not None}
        at_least = None if options["at_least"] is None else _parse_pair(options["at_least"])
        if named or at_least:
            find_method(method).check_constrained()
        for axis in ("columns", "rows"):
            both = set(named.get(f"include_{axis}", ())) & set(named.get(f"exclude_{axis}", ()))
            if both:
                raise typer.BadParameter(
                    f"{axis} must not be both included and excluded; got {', '.join(sorted(both))}."
                )
        _check_numbers(named, at_least or (0, 0), rank)
        return cls(named, at_least)

    def constraints(self, data: LabelledMatrix) -> Constraints | None:
        """The constraints on this matrix; None without any. A word that is both a name and a number is a name."""
        from gsnmf.constraints import Constraints

        if not self.named and self.at_least is None:
            return None
        found = {option: _find(words, option, data) for option, words in self.named.items()}
        return Constraints(**found, at_least=self.at_least or (0, 0))  # type: ignore[arg-type]


def _check_numbers(named: dict[str, list[str]], at_least: tuple[int, int], rank: Rank) -> None:
    """Compare the numbers of included and required columns and rows with the rank, or with the largest rank."""
    included = [len(named.get(f"include_{axis}", ())) for axis in ("columns", "rows")]
    if isinstance(rank, tuple):
        for axis, number, least, size in zip(("columns", "rows"), included, at_least, rank, strict=True):
            if max(number, least) > size:
                raise typer.BadParameter(
                    f"--rank {rank[0]},{rank[1]} asks for {size} {axis}; got {max(number, least)} that must be chosen."
                )
        return
    if isinstance(rank, str):
        return
    size = rank[-1] if isinstance(rank, range) else rank
    if sum(included) > size:
        raise typer.BadParameter(f"at most {size} can be included with a rank of {size}; got {sum(included)}.")
    if sum(at_least) > size:
        raise typer.BadParameter(f"--at-least must sum to at most the rank, {size}; got {at_least[0]},{at_least[1]}.")


def _split(text: str) -> list[str]:
    from gsnmf.datasets.readers.files import read_lines

    words = read_lines(text[1:]) if text.startswith("@") else text.split(",")
    return [word.strip() for word in words if word.strip()]


def _find(words: list[str], option: str, data: LabelledMatrix) -> Indices:
    from gsnmf.constraints import indices_of_names

    columns = option.endswith("columns")
    length = data.matrix.shape[1 if columns else 0]
    names = list(data.column_names if columns else data.row_names) or [str(i) for i in range(length)]
    known, numbers = set(names), {str(i): i for i in range(length)}
    resolved = [names[numbers[word]] if word not in known and word in numbers else word for word in words]
    return indices_of_names(resolved, names, f"--{option.replace('_', '-')}")


def _parse_pair(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--at-least must be columns,rows, such as 0,3; got {text!r}.")
    return int(parts[0]), int(parts[1])

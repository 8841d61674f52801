"""Constraints on the command line: names, numbers, or files of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer

from gsnmf.constraints import Constraints, indices_of_names
from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.files import read_lines
from gsnmf.registry import Rank, find_method
from gsnmf.support.arrays import Indices

_WISHES = ("include_columns", "exclude_columns", "include_rows", "exclude_rows")


@dataclass(frozen=True)
class Wishes:
    """Constraints as they were typed: names are not yet looked up in the data.

    Attributes
    ----------
    named : dict
        For each option that was given, the names and numbers in it.
    at_least : pair of int
    """

    named: dict[str, list[str]]
    at_least: tuple[int, int] | None

    def constraints(self, data: LabelledMatrix) -> Constraints | None:
        """The constraints on this matrix; None if there are none. What is both a name and a number is a name."""
        if not self.named and self.at_least is None:
            return None
        found = {option: _found(wanted, option, data) for option, wanted in self.named.items()}
        return Constraints(**found, at_least=self.at_least or (0, 0))  # type: ignore[arg-type]


def read_wishes(options: Mapping[str, Any], rank: Rank | range, method: str) -> Wishes:
    """The constraints among the options, checked as far as that is possible without the data.

    A wish is a comma-separated list of names or numbers, or ``@`` and a file with one per line.
    """
    named = {option: _listed(options[option]) for option in _WISHES if options[option] is not None}
    at_least = None if options["at_least"] is None else _pair(options["at_least"])
    if named or at_least:
        find_method(method).check_constrained()
    for axis in ("columns", "rows"):
        both = set(named.get(f"include_{axis}", ())) & set(named.get(f"exclude_{axis}", ()))
        if both:
            raise typer.BadParameter(f"{axis} must not be both included and excluded; got {', '.join(sorted(both))}.")
    _check_numbers(named, at_least or (0, 0), rank)
    return Wishes(named, at_least)


def _check_numbers(named: dict[str, list[str]], at_least: tuple[int, int], rank: Rank | range) -> None:
    """Compare the numbers of included and required columns and rows with the rank, or with the largest rank."""
    included = [len(named.get(f"include_{axis}", ())) for axis in ("columns", "rows")]
    if isinstance(rank, tuple):
        for axis, number, least, size in zip(("columns", "rows"), included, at_least, rank, strict=True):
            if max(number, least) > size:
                raise typer.BadParameter(
                    f"--rank {rank[0]},{rank[1]} asks for {size} {axis}; got {max(number, least)} that must be chosen."
                )
        return
    size = rank[-1] if isinstance(rank, range) else rank
    if sum(included) > size:
        raise typer.BadParameter(f"at most {size} can be included with a rank of {size}; got {sum(included)}.")
    if sum(at_least) > size:
        raise typer.BadParameter(f"--at-least must sum to at most the rank, {size}; got {at_least[0]},{at_least[1]}.")


def _listed(text: str) -> list[str]:
    wanted = list(read_lines(text[1:])) if text.startswith("@") else text.split(",")
    return [one.strip() for one in wanted if one.strip()]


def _found(wanted: list[str], option: str, data: LabelledMatrix) -> Indices:
    columns = option.endswith("columns")
    names = data.column_names if columns else data.row_names
    length = data.matrix.shape[1 if columns else 0]
    known = list(names) or [str(i) for i in range(length)]
    distinct, numbers = set(known), {str(i): i for i in range(length)}
    resolved = [known[numbers[one]] if one not in distinct and one in numbers else one for one in wanted]
    return indices_of_names(resolved, known, f"--{option.replace('_', '-')}")


def _pair(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--at-least must be columns,rows, such as 0,3; got {text!r}.")
    return int(parts[0]), int(parts[1])

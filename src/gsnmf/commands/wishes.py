"""Constraints on the command line: names, numbers, or files of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from gsnmf.datasets.readers import LabelledMatrix, read_names
from gsnmf.selection.constraints import Constraints, indices_of_names
from gsnmf.support.arrays import Axis, Indices

_WISHES = ("include_columns", "exclude_columns", "include_rows", "exclude_rows")


def parse_constraints(options: Mapping[str, Any], data: LabelledMatrix) -> Constraints | None:
    """Constraints from the options of the command line; None if there are none.

    A wish is a comma-separated list of names or numbers, or ``@`` and a file with one per line. If a name looks like a
    number, it is taken as a name.
    """
    given = {name: _found(options[name], name, data) for name in _WISHES if options[name] is not None}
    at_least = options["at_least"]
    if not given and at_least is None:
        return None
    return Constraints(**given, at_least=_pair(at_least) if at_least is not None else (0, 0))  # type: ignore[arg-type]


def _found(text: str, name: str, data: LabelledMatrix) -> Indices:
    wanted = list(read_names(Path(text[1:]))) if text.startswith("@") else text.split(",")
    wanted = [one.strip() for one in wanted if one.strip()]
    axis: Axis = "columns" if name.endswith("columns") else "rows"
    names = data.column_names if axis == "columns" else data.row_names
    length = data.matrix.shape[1 if axis == "columns" else 0]
    known = list(names) if names else [str(i) for i in range(length)]
    numbers = {str(i): i for i in range(length)}
    resolved = [known[numbers[one]] if one not in known and one in numbers else one for one in wanted]
    return indices_of_names(resolved, known, f"--{name.replace('_', '-')}")


def _pair(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--at-least must be columns,rows, such as 0,3; got {text!r}.")
    return int(parts[0]), int(parts[1])

"""Options that would have no effect on the given input are errors, not silence."""

from __future__ import annotations

from pathlib import Path

import typer

from gsnmf.datasets.readers import FORMATS, format_of

_TEXT = frozenset({"text"})
_TABLES = frozenset({"csv", "tsv"})
_ARRAYS = frozenset({"npy", "npz", "mat"})
_EFFECTIVE: dict[str, frozenset[str]] = {
    "key": frozenset({"npz", "mat", "h5ad"}),
    "header": _TABLES,
    "row_names": _TABLES,
    "encoding": _TABLES | _TEXT,
    "stop_words": _TEXT,
    "min_documents": _TEXT,
    "image_shape": frozenset(FORMATS) - _TEXT,
    "column_major": frozenset(FORMATS) - _TEXT - {"images"},
    "cube": _ARRAYS,
}
"""The formats of files on which an option of ``gsnmf factorize`` has an effect."""


def given_options(context: typer.Context) -> set[str]:
    """Names of the parameters given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def check_effects(context: typer.Context, file: Path, format: str | None, method: str) -> None:
    """Raise an error that names the first option on the command line that has no effect on this file or method."""
    given = given_options(context)
    form = format_of(file, format)
    for name, formats in _EFFECTIVE.items():
        if name in given and form not in formats:
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} has no effect on {form} input; it is for {', '.join(sorted(formats))}."
            )
    if method != "auto" and "members" not in given:
        for name in ("effort", "keep_on_interrupt"):
            if name in given:
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no effect with --method {method}; use auto.")

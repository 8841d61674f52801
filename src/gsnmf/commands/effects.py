"""Options that would have no effect on the given input are errors, not silence."""

from __future__ import annotations

from pathlib import Path

import typer

from gsnmf.datasets.readers import FORMATS, format_of

_PARAMETERS = {"column_major": "image_order"}
"""Parameters of `read_matrix` with another name than the option."""
_OPTIONS_OF_FORMATS = {option for form in FORMATS.values() for option in form.options}


def given_options(context: typer.Context) -> set[str]:
    """Names of the parameters given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def check_effects(context: typer.Context, file: Path, format: str | None, method: str) -> None:
    """Raise an error that names the first option on the command line that has no effect on this file or method."""
    given = given_options(context)
    form = format_of(file, format)
    for name in context.params:
        parameter = _PARAMETERS.get(name, name)
        if name in given and parameter in _OPTIONS_OF_FORMATS and parameter not in FORMATS[form].options:
            effective = ", ".join(sorted(other for other, known in FORMATS.items() if parameter in known.options))
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} has no effect on {form} input; it is for {effective}."
            )
    if method != "auto" and "members" not in given:
        for name in ("effort", "keep_on_interrupt"):
            if name in given:
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no effect with --method {method}; use auto.")

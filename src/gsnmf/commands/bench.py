"""``gsnmf bench``: timings and qualities next to those of peers."""

from __future__ import annotations

from typing import Annotated

import typer

from gsnmf import benchmarks


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; without it they are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short version with small matrices.")] = False,
) -> None:
    """Run a benchmark."""
    if name is None:
        if quick:
            raise typer.BadParameter("--quick has no effect without the name of a benchmark.")
        typer.echo("\n".join(benchmarks.available()) or "There are no benchmarks.")
        return
    if name not in benchmarks.available():
        allowed = ", ".join(benchmarks.available()) or "none"
        raise typer.BadParameter(f"NAME must be one of: {allowed}; got {name!r}.")
    benchmarks.load(name)(quick)

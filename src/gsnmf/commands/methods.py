"""``gsnmf methods``: every method with what it chooses, what is known about its answer, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gsnmf


def methods(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
) -> None:
    """List the methods that choose columns and rows."""
    if markdown:
        typer.echo(in_markdown())
        return
    table = Table("--method", "chooses", "what is known", "cost", "reference")
    for method in gsnmf.methods():
        cells = (method.name, method.selects, method.guarantee, method.cost, method.reference)
        table.add_row(*map(escape, cells))
    Console(highlight=False).print(table)


def in_markdown() -> str:
    """The table of docs/guide/methods.md."""
    rows = ((f'`"{m.name}"`', m.selects, m.guarantee, m.cost) for m in gsnmf.methods())
    lines = [("`method=`", "chooses", "what is known", "cost"), *rows]
    text = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([text[0], "|---" * 4 + "|", *text[1:]])

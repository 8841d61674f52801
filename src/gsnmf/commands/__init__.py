"""The commands of ``gsnmf``, one per module: they read options, call the library, and print.

A command is imported when it is run, so that ``gsnmf --help`` does not wait for what only some commands need.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gsnmf.support.version import __version__

INTERRUPTED = 130

COMMANDS = {
    "factorize": "Explain a matrix by a few of its own rows and columns, and write a report.",
    "topics": "Find the topics of documents, and write a page that shows them.",
    "markers": "Find marker genes and prototype cells of single-cell data, and write a report.",
    "unmix": "Find the materials of a spectral image, how much of each is in every pixel, and write a report.",
    "demo": "Factorize Python's documentation and scikit-learn's digits, and write a report on each.",
    "methods": "List the methods that choose columns and rows.",
}
"""Every command with the first sentence of its help. Its module in this package has the same name, and so has its
function; ``HELP`` and ``EPILOG`` in the module take the place of the docstring."""

_OPTIONS = {
    "missing_values=numpy.nan": "--missing nan",
    'negative="clip"': "--negative clip",
    "header=True or header=False": "--header or --no-header",
    "row_names=True or row_names=False": "--row-names or --no-row-names",
    "cube=True": "--cube (see also gsnmf unmix)",
    "genes=None": "--genes all",
    "layer=": "--layer ",
    "use_raw=True": "--raw",
    "image_shape=(height, width)": "--image-shape HxW",
    "It looks like a table of texts.": "It looks like a table of texts; for those there is gsnmf topics.",
}
"""Options of the library as its messages name them, and how the command line calls them."""


class _Commands(TyperGroup):
    """Commands that are imported when they are run."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{cmd_name}")
        single = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
        words, ending = getattr(module, "HELP", None), getattr(module, "EPILOG", None)
        single.command(cmd_name, help=words, epilog=ending)(getattr(module, cmd_name))
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="gsnmf",
    cls=_Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; an error is one line unless ``--debug`` asks for its traceback."""
    debug = "--debug" in arguments
    try:
        code = app(args=[a for a in arguments if a != "--debug"], prog_name="gsnmf", standalone_mode=False)
    except typer.Abort:
        code = INTERRUPTED
    except Exception as error:
        if debug:
            raise
        print(f"gsnmf: {_one_line(error)}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))  # 2 if typer finds the arguments wrong
    if code == INTERRUPTED:
        print("gsnmf: stopped", file=sys.stderr)
    return code if isinstance(code, int) else 0


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Explain a nonnegative matrix by a few of its own rows and columns."""
    if version:
        typer.echo(f"gsnmf {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    for name, option in _OPTIONS.items():
        message = message.replace(name, option)
    message = re.sub(r"image_shape=\((\d+), (\d+)\)", r"--image-shape \1x\2", message)
    return " ".join(message.split()) or type(error).__name__

"""The commands of ``gsnmf``, one a module: they read options, call the library, and print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gsnmf import __version__
from gsnmf.commands import bench, demo, factorize, methods, reproduce, unmix

INTERRUPTED = 130

app = typer.Typer(
    name="gsnmf",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(help=factorize.HELP, epilog=factorize.EPILOG)(factorize.factorize)
app.command(help=unmix.HELP, epilog=unmix.EPILOG)(unmix.unmix)
for command in (demo.demo, methods.methods, bench.bench, reproduce.reproduce):
    app.command()(command)


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
    return " ".join(message.split()) or type(error).__name__

"""The entry point of the command line, which says what to install if its libraries are missing."""

from __future__ import annotations

import sys

_EXTRA = ("typer", "rich", "jinja2")
_INTERRUPTED = 130


def main() -> None:
    """Run the command that ``sys.argv`` asks for, and exit; an interrupt, even of the imports, is one line."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("gsnmf: stopped\n")
        sys.exit(_INTERRUPTED)


def _run() -> None:
    try:
        from gsnmf.commands import run
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.exit(f'gsnmf: the command line needs {error.name}; pip install "gsnmf[cli]"')
    sys.exit(run(sys.argv[1:]))

"""The entry point of the command line. If its libraries are missing, it says what to install."""

from __future__ import annotations

import sys

_EXTRA = ("typer", "rich", "jinja2")
_INTERRUPTED = 130


def main() -> None:
    """Run the command in ``sys.argv`` and exit. An interrupt, even during the imports, prints one line."""
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

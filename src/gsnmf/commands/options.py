"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Effort(StrEnum):
    """What the search may spend."""

    fast = "fast"
    balanced = "balanced"
    best = "best"


AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only where the report is.")]
Encoding = Annotated[str, typer.Option(help="Of text.")]

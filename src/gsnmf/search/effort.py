"""How hard to search: the stages of an effort, a limit on time, and who is told about progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

Effort = Literal["fast", "balanced", "best"]
Progress = Callable[[str, float, float, float], None]
"""Called with the stage, the work done, the total work, and the best quality so far."""


@dataclass(frozen=True)
class Stage:
    """What a stage may spend."""

    name: Effort
    work: float
    """Nominal seconds, including the earlier stages."""
    candidates: int
    """Candidates per side."""
    n_refined: int
    """Starts from which exchanges go on until none helps."""
    convex_entries: int
    """The convex model is solved only for matrices with at most this many entries."""
    patience: int
    """The stage ends after this many perturbations in a row without success."""
    limit: int
    """Exchanges in a row that may fail after a perturbation."""
    nmf_iterations: int
    """Iterations of the NMF whose factors are a start."""


STAGES = (
    Stage("fast", 1.0, 100, 2, 0, 0, 0, 20),
    Stage("balanced", 14.0, 500, 3, 50_000, 20, 40, 20),
    Stage("best", 240.0, 1500, 4, 200_000, 100, 60, 60),
)
"""Each effort takes all stages up to its own."""


def check_effort(effort: Any) -> Effort:
    """Return ``effort``, or say what is allowed."""
    names = [stage.name for stage in STAGES]
    if effort not in names:
        raise ValueError(f"effort must be one of {', '.join(map(repr, names))}; got {effort!r}.")
    return cast("Effort", effort)


def check_time_limit(time_limit: Any) -> float:
    """Return ``time_limit`` in seconds, infinity if it is None, or say what is allowed."""
    if time_limit is None:
        return math.inf
    number = not isinstance(time_limit, bool) and isinstance(time_limit, (int, float, np.number))
    if not number or not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds above 0, or None; got {time_limit!r}.")
    return float(time_limit)

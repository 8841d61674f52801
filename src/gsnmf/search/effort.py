"""How hard to search: the stages of an effort, the work that a search has done, and its limits.

Work is measured in nominal seconds: the operations that were actually carried out, each kind at the rate of one
ordinary core. So a limit on work ends a search at the same place on every machine. A limit on time, which can be set as
well, does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from gsnmf.matrix.protocol import Matrix

Effort = Literal["fast", "balanced", "best"]

# Nominal seconds of one multiplication in each kind of operation, measured on one ordinary core.
_PRODUCT = 1.5e-10
"""In a product of matrices."""
_SCATTERED = 2e-9
"""In a product of a sparse matrix with a block of at least ``_CACHE`` numbers, which is larger than caches."""
_CACHE = 1 << 22
_SWEEP = 5e-10
"""In a sweep of coordinate descent."""
_DESCENT = 1e-10
"""In the short fit of a trial."""
_SCORE = 2e-10
"""In the score of an exchange."""
_TRIAL = 2e-4
"""Nominal seconds of preparing one trial, whatever its size."""


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


def nominal_seconds(
    *, products: float = 0.0, sweeps: float = 0.0, descents: float = 0.0, scores: float = 0.0, trials: int = 0
) -> float:
    """Nominal seconds of multiplications of each kind, and of the preparation of trials."""
    return _PRODUCT * products + _SWEEP * sweeps + _DESCENT * descents + _SCORE * scores + _TRIAL * trials


def seconds_of_blocks(matrix: Matrix, operations: float, width: int) -> float:
    """Nominal seconds of multiplications of a matrix and its transpose with blocks of this many columns."""
    m, n = matrix.shape
    scattered = matrix.n_stored < m * n and max(m, n) * width >= _CACHE
    return (_SCATTERED if scattered else _PRODUCT) * operations


@dataclass
class Clock:
    """What ends a search and all of its parts at once."""

    deadline: float = math.inf
    """Time limit on the clock of `time.monotonic`."""
    out_of_time: bool = False
    stopped: bool = False
    """Whether an error or the user has ended one part, so that the others need not go on."""

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """End all parts if an error leaves the block."""
        try:
            yield
        except BaseException:
            self.stopped = True
            raise

    def running(self) -> bool:
        """Whether to go on."""
        self.out_of_time = self.out_of_time or time.monotonic() >= self.deadline
        return not self.out_of_time and not self.stopped


@dataclass
class Work:
    """A counter with limits.

    Attributes
    ----------
    limit : float
        Nominal seconds that may be spent; raised when a search goes on.
    clock : Clock
        The limit on time, which forks share.
    spent : float
        Nominal seconds.
    """

    limit: float
    clock: Clock = field(default_factory=Clock)
    spent: float = 0.0

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit has ended the search."""
        return self.clock.out_of_time

    def fork(self) -> Work:
        """A counter for one of several tasks that go on side by side; `join` adds what they have spent."""
        return Work(self.limit, self.clock, self.spent)

    def join(self, forks: Iterable[Work]) -> None:
        """Add what forks have spent since they were made, if nothing else was counted meanwhile."""
        self.spent += sum(fork.spent - self.spent for fork in forks)

    def left(self, until: float = math.inf) -> bool:
        """Whether time and work are left: up to the limit, or up to ``until``."""
        return self.clock.running() and self.spent < min(self.limit, until)

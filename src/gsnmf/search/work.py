"""The work that a search has done and may still do, counted in the same way on every machine.

Work is measured in nominal seconds: the operations that were actually carried out, each kind at the rate of one
ordinary core. So a limit on work ends a search at the same place everywhere. A limit on time, which can be set as well,
does not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gsnmf.matrix.protocol import Matrix

_PRODUCT = 1.5e-10
"""Nominal seconds of a multiplication in a product of matrices."""
_SCATTERED = 2e-9
"""Nominal seconds of a multiplication in a product of a sparse matrix with a block that is larger than caches."""
_CACHE = 1 << 22
"""Numbers in such a block."""
_SWEEP = 5e-10
"""Nominal seconds of a multiplication in a sweep of coordinate descent."""
_DESCENT = 1e-10
"""Nominal seconds of a multiplication in the short fit of a trial."""
_SCORE = 2e-10
"""Nominal seconds of a multiplication in the score of an exchange."""
_CALL = 2e-4
"""Nominal seconds of preparing one trial, whatever its size."""


def nominal_seconds(*, products: float = 0.0, scores: float = 0.0) -> float:
    """Nominal seconds of multiplications of products and of scores."""
    return _PRODUCT * products + _SCORE * scores


def seconds_of_blocks(matrix: Matrix, operations: float, width: int) -> float:
    """Nominal seconds of multiplications of a matrix and its transpose with blocks of this many columns."""
    m, n = matrix.shape
    scattered = matrix.n_stored < m * n and max(m, n) * width >= _CACHE
    return (_SCATTERED if scattered else _PRODUCT) * operations


@dataclass
class Clock:
    """What ends a search and all of its parts at once."""

    deadline: float = float("inf")
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

    def products(self, operations: float) -> None:
        """Count multiplications of products of matrices."""
        self.spent += _PRODUCT * operations

    def sweeps(self, operations: float) -> None:
        """Count multiplications of sweeps."""
        self.spent += _SWEEP * operations

    def descents(self, operations: float) -> None:
        """Count multiplications of `gsnmf._kernels.exchange.descend_rows`."""
        self.spent += _DESCENT * operations

    def scores(self, operations: float) -> None:
        """Count multiplications of scores."""
        self.spent += _SCORE * operations

    def calls(self, count: int = 1) -> None:
        """Count trials, each with its overhead."""
        self.spent += _CALL * count

    def left(self, until: float = float("inf")) -> bool:
        """Whether time and work are left: up to the limit, or up to ``until``."""
        return self.clock.running() and self.spent < min(self.limit, until)

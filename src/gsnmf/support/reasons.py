"""Why a search or an iteration ended: one set of words for the whole library."""

from enum import StrEnum


class StopReason(StrEnum):
    """Why something ended; each reason is a string and compares equal to it.

    Examples
    --------
    >>> import gsnmf
    >>> selection = gsnmf.select([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, method="spa-rows")
    >>> selection.stop_reason == gsnmf.StopReason.RANK_REACHED
    True
    >>> gsnmf.StopReason.SOLVED == "solved"
    True
    """

    RANK_REACHED = "rank reached"
    """As many columns and rows as requested were chosen."""
    RESIDUAL_IS_ZERO = "residual is zero"
    """Fewer were enough: the chosen ones span the matrix, up to rounding."""
    TOLERANCE_REACHED = "tolerance reached"
    MAX_ITERATIONS_REACHED = "max_iterations reached"
    NO_FURTHER_DECREASE = "no further decrease"
    """Rounding keeps the objective from falling."""
    MEMORY_EXCEEDED = "working set exceeds the memory"
    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    TIME_LIMIT_REACHED = "time_limit reached"
    OUT_OF_RANGE = "factors out of range"
    """The factors grow without bound."""


def iteration_reason(optimality: float, tolerance: float, n_iterations: int, max_iterations: int) -> StopReason | None:
    """Why an iteration ends at this point: at its tolerance or at its limit; None if it goes on.

    Examples
    --------
    >>> iteration_reason(1e-3, 1e-4, 7, 100) is None
    True
    """
    if optimality <= tolerance:
        return StopReason.TOLERANCE_REACHED
    return StopReason.MAX_ITERATIONS_REACHED if n_iterations >= max_iterations else None


def selection_reason(n_selected: int, wanted: int) -> StopReason:
    """Why a choice of ``n_selected`` of ``wanted`` columns and rows ended.

    Examples
    --------
    >>> selection_reason(3, 4) == "residual is zero"
    True
    """
    return StopReason.RANK_REACHED if n_selected >= wanted else StopReason.RESIDUAL_IS_ZERO

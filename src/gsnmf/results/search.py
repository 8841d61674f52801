"""What a search did: its starts, exchanges and perturbations, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EndReason = Literal["work spent", "time limit", "error is zero", "nothing better nearby"]


@dataclass(frozen=True)
class Start:
    """One start of a search.

    Attributes
    ----------
    name : str
        The method that chose it.
    relative_error : float
        Error of its selection before any exchange, after it was made to obey the constraints.
    n_columns, n_rows : int
    """

    name: str
    relative_error: float
    n_columns: int
    n_rows: int


@dataclass(frozen=True)
class SearchRecord:
    """What a search did.

    Attributes
    ----------
    effort : str
    starts : tuple of Start
        In the order in which they were made.
    n_candidates : pair of int
        Numbers of columns and rows that exchanges could choose from.
    exchanges_tried, exchanges_kept : int
        How many exchanges had their weights fitted, and how many of these lowered the error.
    perturbations, perturbations_kept : int
        How often the search left a selection that no exchange improved, and how often that led to a better one.
    optimal_under_exchanges : bool
        Whether every exchange of one index for one candidate was tried at the end, and none lowered the error.
    end : {"work spent", "time limit", "error is zero", "nothing better nearby"}
        "nothing better nearby": as many perturbations in a row as the effort allows led to nothing better.
    work : float
        In nominal seconds: see `gsnmf.search.work`.

    Examples
    --------
    >>> import gsnmf
    >>> record = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2, effort="fast").search
    >>> record.effort, record.optimal_under_exchanges
    ('fast', False)
    """

    effort: str
    starts: tuple[Start, ...]
    n_candidates: tuple[int, int]
    exchanges_tried: int
    exchanges_kept: int
    perturbations: int
    perturbations_kept: int
    optimal_under_exchanges: bool
    end: EndReason
    work: float

    def __str__(self) -> str:
        best = min(self.starts, key=lambda start: start.relative_error, default=None)
        begin = f"{len(self.starts)} starts" + (f", the best by {best.name}" if best else "")
        kept = f"{self.exchanges_kept} of {self.exchanges_tried} exchanges kept"
        moved = f"{self.perturbations_kept} of {self.perturbations} perturbations kept" if self.perturbations else ""
        optimal = "optimal under single exchanges" if self.optimal_under_exchanges else ""
        return "; ".join(part for part in (begin, kept, moved, optimal, f"ended: {self.end}") if part)

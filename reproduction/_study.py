"""What an experiment is: trials that are measured one by one, and a presentation of all that was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Value = str | int | float | bool | None
Record = Mapping[str, Value]
Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Settings:
    """How much to run, and on what.

    Attributes
    ----------
    quick : bool
        A few trials in place of all.
    data : path, optional
        Folder of the data files; by default the one that ``GSNMF_DATA`` names.
    levels : tuple of int, optional
        Which of the twenty noise levels, counted from zero; by default all, or some if ``quick``.
    n_matrices : int, optional
        Matrices per noise level.
    """

    quick: bool = False
    data: Path | None = None
    levels: tuple[int, ...] | None = None
    n_matrices: int | None = None


@dataclass(frozen=True)
class Measurement:
    """What one trial gave: rows of the table of results, and arrays that pictures are made of."""

    records: Sequence[Record]
    arrays: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Cells of text under a header."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    long: bool = False
    """Whether a page should fold it, and a terminal leave it out."""


@dataclass(frozen=True)
class Figure:
    """A picture that was saved as PNG and SVG under this name."""

    name: str
    caption: str
    of_data: bool = False
    """Whether it shows entries of a data set, which may not be published with the library."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what was found; ``holds`` is None if there are too few results to tell."""

    statement: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """In words."""
        return "cannot be checked" if self.holds is None else "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Section:
    """One figure or table of the paper, reproduced."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    files: Sequence[str] = ()
    """Other files that were written, relative to the output folder."""


@dataclass(frozen=True)
class Results:
    """All that is known about a study when it is presented.

    Attributes
    ----------
    records : sequence of dicts
        Sorted by trial.
    arrays : callable
        The arrays of a trial, by its key.
    missing : dict
        Data sets that are not at hand, and why.
    out : path
        Folder of the output; pictures go to its ``figures``.
    other : callable
        Records of another study in the same folder, empty if it has not been run.
    """

    records: Sequence[Record]
    arrays: Callable[[Key], Mapping[str, Any]]
    missing: Mapping[str, str]
    out: Path
    other: Callable[[str], Sequence[Record]] = lambda name: ()


@dataclass(frozen=True)
class Study:
    """An experiment: one run that serves one or several figures and tables.

    Attributes
    ----------
    name : str
        Name of its results on disk.
    parts : dict
        Name of each figure or table on the command line, and what it is.
    columns : tuple of str
        Columns of the table of results.
    text : tuple of str
        The columns that hold text. In all others, whatever looks like a number is one.
    trials : callable
        Keys of the trials of given settings.
    measure : callable
        Run one trial. It depends on its key and settings alone, never on what ran before.
    present : callable
        The section of a part.
    missing : callable
        Data sets that the settings ask for and that are not at hand, and why.
    """

    name: str
    parts: Mapping[str, str]
    columns: tuple[str, ...]
    text: tuple[str, ...]
    trials: Callable[[Settings], list[Key]]
    measure: Callable[[Key, Settings], Measurement]
    present: Callable[[str, Results], Section]
    missing: Callable[[Settings], dict[str, str]] = lambda settings: {}


def trial_id(key: Key) -> str:
    """The key as text; numbers are padded, so that identities sort as keys do.

    Examples
    --------
    >>> trial_id(("tr11", 7))
    'tr11/007'
    """
    return "/".join(f"{part:03d}" if isinstance(part, int) else part for part in key)

"""Checkpoints of a long selection: a file from which the same selection goes on after an interruption.

The file is a NumPy ``.npz`` without pickled objects. It holds everything that the method keeps in memory. It is
replaced as a whole, so an interruption at any moment leaves the previous file. Writing takes at most about a twentieth
of the time. Vectors with one entry per row, which GSPA keeps with the chunks of a Dask array, are not stored but
computed again in three passes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.constraints import Limits
from gsnmf.io import check_numbers
from gsnmf.matrix.fingerprint import fingerprint, same_fingerprint
from gsnmf.matrix.projection import State
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.validation import check_indices
from gsnmf.support.arrays import Axis
from gsnmf.support.atomic_files import atomic_write

_FORMAT = 4

_SHARE = 20.0
"""A checkpoint is written once this many times the duration of the last write has passed."""


class Checkpoint:
    """A file with the state of one selection.

    Parameters
    ----------
    path : path-like
        The file; a selection goes on from it if it exists.
    matrix : Matrix
        The matrix, whose `fingerprint` is compared with the one in the file.
    method : str
    rank : int, or pair of int
    limits : Limits or None
        What must and must not be chosen.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        matrix: Matrix,
        method: str,
        rank: int | tuple[int, int],
        limits: Limits | None = None,
    ) -> None:
        self.path = Path(path)
        self._identity = {
            "format": np.array(_FORMAT),
            "method": np.array(method),
            "rank": np.array(rank),
            "constraints": np.array("" if limits is None else limits.text),
            "shape": np.array(matrix.shape),
            "dtype": np.array(matrix.dtype.name),
            "entries": fingerprint(matrix),
        }
        self._written_at = -np.inf
        self._took = 0.0

    def load(self) -> tuple[list[tuple[Axis, int]], State] | None:
        """The picks so far and the state of the projection after them; None if there is no file."""
        if not self.path.exists():
            return None
        with self.sound(), self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            stored = {name: archive[name] for name in archive.files}
        for name, expected in self._identity.items():
            found = stored.pop(f"identity.{name}", None)
            if found is None:
                raise ValueError(f"checkpoint {self.path} is not a checkpoint of gsnmf; choose another file.")
            if not _equal(found, expected):
                difference = "" if name in ("entries", "constraints") else f": {found} instead of {expected}"
                raise ValueError(
                    f"checkpoint {self.path} belongs to another selection, of another {_WORDS.get(name, name)}"
                    f"{difference}; delete it or choose another file."
                )
        with self.sound():
            picks = self._checked_picks(stored.pop("picks.axes"), stored.pop("picks.indices"))
            for name, values in stored.items():
                check_numbers(values, name)
        return picks, stored

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Turn whatever a damaged or forged file raises into one error that names the file and the remedy."""
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) and error.filename is not None:  # it cannot be opened
                raise
            raise ValueError(
                f"checkpoint {self.path} is damaged or not a checkpoint ({error}); delete it to begin again."
            ) from error

    def _checked_picks(self, axes: NDArray[Any], indices: NDArray[Any]) -> list[tuple[Axis, int]]:
        lengths = dict(zip(("rows", "columns"), self._identity["shape"].tolist(), strict=True))
        if not np.isin(axes, list(lengths)).all():
            raise ValueError("an axis is neither columns nor rows")
        picks = list(zip(axes.tolist(), indices.tolist(), strict=True))
        for axis, length in lengths.items():
            check_indices([index for picked, index in picks if picked == axis], length, axis)
        if len(picks) > int(np.sum(self._identity["rank"])):
            raise ValueError("it has more picks than the rank")
        return picks

    def save(self, picks: Sequence[tuple[Axis, int]], state: State, *, last: bool = False) -> None:
        """Replace the file, unless the previous one is recent and this is not the last."""
        start = time.monotonic()
        if not last and start - self._written_at < _SHARE * self._took:
            return
        identity = {f"identity.{name}": value for name, value in self._identity.items()}
        arrays: dict[str, Any] = {**identity, **state}
        arrays["picks.axes"] = np.array([axis for axis, _ in picks])
        arrays["picks.indices"] = np.array([index for _, index in picks], dtype=np.intp)
        with atomic_write(self.path) as file:
            np.savez(file, **arrays)
        self._written_at = time.monotonic()
        self._took = self._written_at - start


_WORDS = {"entries": "matrix: its entries are different", "constraints": "choice: its constraints are different"}


def _equal(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    if expected.dtype.kind == "f":
        return found.dtype.kind == "f" and same_fingerprint(found, expected)
    return bool(np.array_equal(found, expected))

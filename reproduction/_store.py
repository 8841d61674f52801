"""Results on disk: one tidy table per study, to which every finished trial is added at once.

The table is a CSV file. Its first two columns say which trial a row belongs to, and which of how many rows of that
trial it is. A trial whose rows were cut off by a crash is recognised by them, dropped, and run again. Arrays of a trial
are in a file of their own, written before its rows.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction._study import Key, Measurement, Record, Value, trial_id

_MARKS = ("trial", "part")


class Store:
    """The results of one study.

    Parameters
    ----------
    folder : path
        Made when the first trial is added.
    name : str
        Name of the study; the table is ``name.csv``.
    columns : tuple of str
        Columns of the table.
    text : tuple of str
        The columns that hold text. In all others, whatever looks like a number is one.
    """

    def __init__(self, folder: Path, name: str, columns: tuple[str, ...], text: tuple[str, ...] = ()) -> None:
        self.path = folder / f"{name}.csv"
        self.columns = columns
        self._text = frozenset(text)
        self._array_folder = folder / name

    def load(self) -> dict[str, list[Record]]:
        """Rows of all finished trials, by trial and in the order of their keys."""
        found: dict[str, dict[int, dict[str, Value]]] = {}
        sizes: dict[str, int] = {}
        for row in self._rows():
            number, size = (int(part) for part in row["part"].split("/"))
            values: dict[str, Value] = {
                column: row[column] if column in self._text else _value(row[column]) for column in self.columns
            }
            found.setdefault(row["trial"], {})[number] = values
            sizes[row["trial"]] = size
        return {
            trial: [rows[number] for number in sorted(rows)]
            for trial, rows in sorted(found.items())
            if len(rows) == sizes[trial]
        }

    def begin(self) -> set[str]:
        """Make the file ready for more rows, without unfinished trials; return the finished ones."""
        finished = self.load()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = self.path.with_suffix(".new")
        with whole.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow((*_MARKS, *self.columns))
            for trial, records in finished.items():
                file.write(self._lines(trial, records))
        whole.replace(self.path)
        return set(finished)

    def append(self, key: Key, measurement: Measurement) -> None:
        """Add a finished trial; it is on disk when this returns."""
        trial = trial_id(key)
        if measurement.arrays:
            path = self._array_path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new.npz")
            np.savez_compressed(unfinished, **measurement.arrays)
            unfinished.replace(path)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(self._lines(trial, measurement.records))
            file.flush()
            os.fsync(file.fileno())

    def arrays(self, key: Key) -> dict[str, Any]:
        """The arrays of a trial."""
        with np.load(self._array_path(key)) as arrays:
            return dict(arrays)

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self._array_folder, ignore_errors=True)

    def _array_path(self, key: Key) -> Path:
        return self._array_folder / f"{trial_id(key).replace('/', '-')}.npz"

    def _rows(self) -> Iterable[dict[str, str]]:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a line without an end was cut off
        reader = csv.DictReader(io.StringIO(whole))
        expected = [*_MARKS, *self.columns]
        if whole and reader.fieldnames != expected:
            raise ValueError(
                f"{self.path} has the columns {', '.join(reader.fieldnames or ())}, made by another version of gsnmf; "
                "use another output folder, or --fresh to discard these results."
            )
        for row in reader:
            if None not in row and None not in row.values():
                yield row

    def _lines(self, trial: str, records: Sequence[Record]) -> str:
        text = io.StringIO()
        writer = csv.writer(text)
        for number, record in enumerate(records, start=1):
            if set(record) != set(self.columns):
                raise ValueError(f"a record of {self.path.stem} must have the columns {self.columns}; got {record}.")
            cells = (_text(record[column]) for column in self.columns)
            writer.writerow((trial, f"{number}/{len(records)}", *cells))
        return text.getvalue()


def add_environment(folder: Path, run: Mapping[str, Any]) -> None:
    """Note in ``environment.json`` what a run used; earlier runs stay there."""
    path = folder / "environment.json"
    runs = environments(folder)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps([*runs, run], indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def environments(folder: Path) -> list[dict[str, Any]]:
    """What the runs that made the results in a folder used."""
    path = folder / "environment.json"
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def _text(value: Value) -> str:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _value(text: str) -> Value:
    if text in ("", "True", "False"):
        return None if text == "" else text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

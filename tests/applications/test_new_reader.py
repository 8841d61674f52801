"""A new reader takes one function that returns a LabelledMatrix, and one entry."""

import json

import numpy as np
import pytest

from gsnmf.datasets import FileError, LabelledMatrix, read_matrix
from gsnmf.datasets.readers import FORMATS, Format
from gsnmf.datasets.readers.files import reading


def read_json_table(path, options):
    """Read ``{"rows": [...], "columns": [...], "entries": [[...], ...]}``."""
    with reading(path, "a table in JSON"):
        table = json.loads(path.read_text(encoding="utf-8"))
        return LabelledMatrix(
            np.asarray(table["entries"], dtype=float), tuple(table["rows"]), tuple(table["columns"]), source=str(path)
        )


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The entry as if it stood in ``datasets/readers/__init__.py``."""
    monkeypatch.setitem(FORMATS, "json", Format((".json",), read_json_table))


def test_it_reads_names_and_entries(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"rows": ["a", "b"], "columns": ["x", "y"], "entries": [[1, 0], [2, 3]]}')
    data = read_matrix(path)
    assert data.row_name(1) == "b"
    assert data.column_name(0) == "x"
    np.testing.assert_array_equal(data.matrix, [[1, 0], [2, 3]])


@pytest.mark.parametrize("text", ["{", '{"rows": []}', '{"rows": ["a"], "columns": ["x"], "entries": [["one"]]}'])
def test_damaged_files_raise_one_kind_of_error(tmp_path, text):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"table\.json"):
        read_matrix(path)


def test_what_it_reads_is_checked(tmp_path):
    path = tmp_path / "table.json"
    path.write_text('{"rows": ["a"], "columns": ["x"], "entries": [[-1]]}')
    with pytest.raises(ValueError, match="negative"):
        read_matrix(path)

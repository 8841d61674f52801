"""Texts from files: every format gives the same documents, and errors are short."""

import gzip
import io
import json
from datetime import date
from types import SimpleNamespace

import pandas as pd
import pytest

from gsnmf.applications.topic_modelling.text import FORMATS, read_texts
from gsnmf.datasets import FileError

FRAME = pd.DataFrame(
    {
        "id": ["a1", "a2", "a3"],
        "review": ['Good "tea", really.\nTwo lines.', "Cold soup; never again", "Größe"],
        "stars": [5, 1, 3],
        "when": ["2024-05-31", "", "2024-06-02"],
    }
)
COLUMNS = {"label_column": "stars", "id_column": "id", "date_column": "when"}


def check(data):
    assert data.texts == tuple(FRAME["review"])
    assert data.ids == ("a1", "a2", "a3")
    assert data.labels == ("5", "1", "3")
    assert data.dates == (date(2024, 5, 31), None, date(2024, 6, 2))
    assert data.text_column == "review"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_tables(tmp_path, separator, encoding):
    path = tmp_path / ("reviews.tsv" if separator == "\t" else "reviews.csv")
    FRAME.to_csv(path, index=False, sep=separator, encoding=encoding)
    read = read_texts(path, encoding=encoding.removesuffix("-sig"), **COLUMNS)
    check(read)
    assert read.source == str(path)


def test_compressed_table(tmp_path):
    with gzip.open(tmp_path / "reviews.csv.gz", "wt", encoding="utf-8") as stream:
        FRAME.to_csv(stream, index=False)
    check(read_texts(tmp_path / "reviews.csv.gz", **COLUMNS))


def test_json_lines(tmp_path):
    path = tmp_path / "reviews.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in FRAME.to_dict("records")), encoding="utf-8")
    check(read_texts(path, **COLUMNS))


def test_parquet(tmp_path):
    FRAME.assign(when=pd.to_datetime(FRAME["when"])).to_parquet(tmp_path / "reviews.parquet")
    check(read_texts(tmp_path / "reviews.parquet", **COLUMNS))
    FRAME.assign(stars=pd.array([5, None, 3], dtype="Int64")).to_parquet(tmp_path / "missing.parquet")
    assert read_texts(tmp_path / "missing.parquet", **COLUMNS).labels == ("5", "", "3")


def test_lines(tmp_path):
    (tmp_path / "reviews.txt").write_text("first\r\n\nthird\n", encoding="utf-8")
    read = read_texts(tmp_path / "reviews.txt")
    assert (read.texts, read.ids, read.labels) == (("first", "third"), ("line 1", "line 3"), ())


def test_folders_are_labels(tmp_path):
    for name in ("sport/one.txt", "sport/two.md", "music/three.txt", "music/.hidden.txt", "music/picture.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}", encoding="utf-8")
    read = read_texts(tmp_path)
    assert read.ids == ("music/three", "sport/one", "sport/two")
    assert read.labels == ("music", "sport", "sport")
    assert read_texts(tmp_path / "sport").labels == ()


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"text\none\ntwo\n")))
    read = read_texts("-", format="csv")
    assert (read.texts, read.source) == (("one", "two"), "standard input")
    with pytest.raises(ValueError, match="format must be one of csv, tsv, jsonl, lines for standard input; got none"):
        read_texts("-")


def test_column_of_texts_is_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Text,other\nshort,much longer than the text\n", encoding="utf-8")
    assert read_texts(path).texts == ("short",)
    path.write_text("a,b\n1,much longer\n2,words\n", encoding="utf-8")
    assert read_texts(path).text_column == "b"
    path.write_text("a,b\n,\n", encoding="utf-8")
    with pytest.raises(FileError, match="name the column that holds the texts; it has 'a', 'b'"):
        read_texts(path)


def test_very_long_cells(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("text\n" + "word " * 100_000 + "\n", encoding="utf-8")
    assert len(read_texts(path).texts[0]) == 500_000


LONG = "a very long cell " * 100


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "t.csv",
            "id,text\n1,one\n",
            {"label_column": "stars"},
            "no column 'stars' to take as label; it has 'id', 'text'",
        ),
        ("t.csv", "id,text\n1,one\n", {"label_column": LONG}, "no column 'a very long cell"),
        ("t.csv", f"{LONG},text\n1,one\n", {"label_column": "x"}, "it has 'a very long cell"),
        ("t.csv", f"id,text\n1,{LONG},{LONG}\n", {}, "row 1 must have 2 cells like the header; got 3"),
        ("t.csv", f"text,when\none,{LONG}\n", {"date_column": "when"}, "row 1, column 'when': a date must be written"),
        ("t.csv", "text\n\n", {}, "holds no documents"),
        ("t.csv", "", {}, "name the column that holds the texts; it has none"),
        ("t.jsonl", f'{{"text": "{LONG}"', {}, "line 1 is not JSON"),
        ("t.jsonl", f'"{LONG}"', {}, "line 1 must be a JSON object"),
        ("t.txt", "\n\n", {}, "holds no documents"),
        ("t.txt", "one\n", {"text_column": "text"}, "has no columns; it is read as one document per line"),
        ("t.parquet", "no parquet", {}, "cannot be read as a Parquet file"),
        ("t.pdf", "x", {}, "the ending must be one of .csv"),
    ],
)
def test_errors_are_short(tmp_path, name, content, options, message):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError) as error:
        read_texts(path, **options)
    assert message in str(error.value)
    assert len(str(error.value).removeprefix(str(path))) < 260


def test_wrong_places(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_texts(tmp_path / "missing.csv")
    with pytest.raises(FileError, match="holds no documents; their files end in"):
        read_texts(tmp_path)
    with pytest.raises(FileError, match="a folder is read as one document per file; got format csv"):
        read_texts(tmp_path, format="csv")
    with pytest.raises(ValueError, match=f"format must be one of {', '.join(FORMATS)}; got 'pdf'"):
        read_texts(tmp_path, format="pdf")

"""``gsnmf topics``: a table in; a page, tables and a saved model out."""

import csv
import json

import pytest

import gsnmf
from gsnmf.commands import run
from planted_texts import make_texts


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, labels = make_texts(30)
    with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "review", "kind", "day"])
        rows.writerows(
            [f"r{i}", text, label, f"200{i % 3}"] for i, (text, label) in enumerate(zip(texts, labels, strict=True))
        )
    return tmp_path


def test_table_to_page(table, capsys):
    options = ["--text-column", "review", "--label-column", "kind", "--id-column", "id", "--date-column", "day"]
    assert run(["topics", "reviews.csv", *options, "--rank", "3"]) == 0
    printed = capsys.readouterr()
    assert "3 topics in 30 documents" in printed.out
    assert printed.out.splitlines()[-1] == "Page: reviews-topics/topics.html"
    assert printed.err == ""
    folder = table / "reviews-topics"
    assert sorted(path.name for path in folder.iterdir()) == [
        "documents.csv",
        "model.npz",
        "topics.html",
        "topics.json",
    ]
    short = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
    assert len(short["topics"]) == 3
    assert short["sentence"] in (folder / "topics.html").read_text(encoding="utf-8")
    with (folder / "documents.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["document"] for row in rows] == [f"r{i}" for i in range(30)]
    assert len({(row["label"], row["topic"]) for row in rows}) == 3
    assert rows[0]["date"] == "2000-01-01"
    assert gsnmf.load(folder / "model.npz").ids == tuple(row["document"] for row in rows)


def test_json_and_quiet(table, capsys):
    assert run(["topics", "reviews.csv", "--rank", "2", "--json", "--no-compare", "--out", "deep/er"]) == 0
    short = json.loads(capsys.readouterr().out)
    assert short["sentence"] == "2 topics in 30 documents"
    assert run(["topics", "reviews.csv", "--rank", "2,1", "--quiet", "--effort", "fast"]) == 0
    assert capsys.readouterr().out == "reviews-topics/topics.html\n"


def test_stop_words_and_expressions(table, capsys):
    (table / "stop.txt").write_text("violin\nrose\n", encoding="utf-8")
    options = ["--stop-words", "stop.txt", "--ngrams", "2", "--min-df", "3", "--effort", "fast"]
    assert run(["topics", "reviews.csv", *options, "--rank", "3", "--json"]) == 0
    words = {word for topic in json.loads(capsys.readouterr().out)["topics"] for word in topic["words"]}
    assert not {"violin", "rose"} & words


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.csv"], 1, "missing.csv: No such file or directory"),
        (["reviews.csv", "--text-column", "revue"], 1, "it has 'id', 'review', 'kind', 'day'"),
        (["reviews.csv", "--rank", "many"], 2, "--rank must be a positive integer"),
        (["reviews.csv", "--rank", "900"], 1, "rank must be"),
        (["-"], 1, "format must be one of csv"),
    ],
)
def test_errors_are_one_line(table, capsys, arguments, code, message):
    assert run(["topics", *arguments]) == code
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert message in error


def test_factorize_points_to_it(table, capsys):
    assert run(["factorize", "reviews.csv", "--rank", "3"]) == 1
    error = capsys.readouterr().err
    assert "gsnmf topics" in error
    assert len(error) < 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["topics", "t.csv", "--language", "english", "--stop-words", "s.txt"], "--language has no effect"),
        (["topics", "t.parquet", "--encoding", "latin-1"], "--encoding has no effect"),
        (["topics", "t.bin", "--format", "parquet", "--encoding", "latin-1"], "--encoding has no effect"),
    ],
)
def test_options_without_effect_are_errors(arguments, message, capsys):
    assert run(arguments) == 2
    assert message in capsys.readouterr().err

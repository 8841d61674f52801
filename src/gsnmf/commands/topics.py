"""``gsnmf topics``: documents in, topics and a page about them out."""

from __future__ import annotations

import json
import textwrap
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gsnmf.commands.options import Effort, Encoding
from gsnmf.commands.progress import stages
from gsnmf.support.formatting import abridged, percent, price

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import TopicModel
    from gsnmf.applications.topic_modelling.text import Texts

HELP = """Find the topics of documents, and write a page that shows them.

FILE is one of:

\b
  .csv .tsv .parquet   tables with a column of texts
  .jsonl .ndjson       JSON objects, one per line
  .txt                 one document per line
  a folder             one document per file; subfolders are labels
  -                    standard input, with --format csv, tsv, jsonl or lines

The output folder gets topics.html (open it in a browser, share it), documents.csv (every document with its topic),
topics.json, and model.npz (everything, with the texts; gsnmf.load reads it).

Examples:

\b
  gsnmf topics reviews.csv --text-column review --label-column stars --id-column id --rank 12
  gsnmf topics articles/ --rank 20 --ngrams 2
  gsnmf topics berichte.jsonl --stop-words stopwords-de.txt --date-column datum
"""

_LONGEST_NAME = 16
"""Characters of a name in the printed table."""


class Language(StrEnum):
    """Languages with and without a list of stop words."""

    english = "english"
    other = "other"


def topics(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="Table, JSON lines, text or folder; - for standard input.", readable=False)
    ],
    rank: Annotated[
        str,
        typer.Option(
            "--rank", "-r", metavar="R|W,D|A-B|auto", help="Number of topics; words,documents: 8,4; or choose: auto."
        ),
    ] = "12",
    text_column: Annotated[str | None, typer.Option(help="Column of the texts.", metavar="NAME")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of labels.", metavar="NAME")] = None,
    id_column: Annotated[str | None, typer.Option(help="Column of names.", metavar="NAME")] = None,
    date_column: Annotated[str | None, typer.Option(help="Column of dates: 2024-05-31.", metavar="NAME")] = None,
    language: Annotated[
        Language, typer.Option(help="english has a list of stop words; other leaves out words in half of all texts.")
    ] = Language.english,
    stop_words: Annotated[Path | None, typer.Option(metavar="FILE", help="Words to leave out, one per line.")] = None,
    min_df: Annotated[int, typer.Option(min=1, help="Leave out words in fewer documents.")] = 2,
    max_df: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Leave out words in a larger part.")] = None,
    ngrams: Annotated[int, typer.Option(min=1, max=5, help="Count expressions of up to this many words.")] = 1,
    effort: Annotated[Effort, typer.Option(help="About 1 s, 10 s, or minutes.")] = Effort.balanced,
    members: Annotated[int, typer.Option(min=1, help="Words, or documents, that a topic may mix.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where to write; by default NAME-topics.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of FILE, if its ending does not say.", metavar="NAME")
    ] = None,
    encoding: Encoding = "utf-8",
    stability: Annotated[bool, typer.Option("--stability", help="Show how sure the topics are; 60 fits.")] = False,
    compare: Annotated[bool, typer.Option("--compare/--no-compare", help="Compute the best possible quality.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the topics as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only where the page is.")] = False,
) -> None:
    """Read, find topics, write and print; `HELP` says the rest."""
    from gsnmf.commands.effects import given_options
    from gsnmf.commands.factorize import check_writable
    from gsnmf.commands.ranks import parse_rank

    given = given_options(context)
    if {"language", "stop_words"} <= given:
        raise typer.BadParameter("--language has no effect with --stop-words, which gives the words to leave out.")
    if "encoding" in given and "parquet" in (format, file.suffix.lower().lstrip(".")):
        raise typer.BadParameter("--encoding has no effect on a Parquet file, which states its own.")
    asked = parse_rank(rank)
    folder = out or Path(f"{'stdin' if str(file) == '-' else file.resolve().stem}-topics")
    check_writable(folder)
    started = time.perf_counter()
    with stages(quiet, 5 + isinstance(asked, range) + stability) as stage:
        stage("Reading")
        texts = _read(file, format, (text_column, label_column, id_column, date_column), encoding)
        listed: Any = _stop_words(stop_words) or ("english" if language is Language.english else None)
        options: dict[str, Any] = {"stop_words": listed, "min_df": min_df, "max_df": max_df, "ngrams": (1, ngrams)}
        model, notes = _fit(
            texts, asked, options | {"effort": effort.value, "members": members, "stability": stability}
        )
        stage(f"Writing the page: quality {100 * model.result.quality:.1f} %")
        parameters = {
            "Source": texts.source,
            "Column of texts": texts.text_column,
            "Rank": str(model.rank_choice.rank) if model.rank_choice else rank,
            "Effort": effort.value,
            "Members of a topic": str(members) if members > 1 else "",
            "Stop words": stop_words.name if stop_words else language.value,
            "Words in at least": f"{min_df} documents",
            "Seconds": f"{time.perf_counter() - started:.1f}",
        }
        shown_options = {name: value for name, value in parameters.items() if value}
        short = _write(folder, model, texts, shown_options, notes, compare)
    _print(folder, model, short, notes, as_json, quiet)


def _read(file: Path, format: str | None, columns: tuple[str | None, ...], encoding: str) -> Texts:
    from gsnmf.applications.topic_modelling.text import read_texts

    text, label, name, date = columns
    return read_texts(
        file,
        format=format,
        text_column=text,
        label_column=label,
        id_column=name,
        date_column=date,
        encoding=encoding,
    )


def _stop_words(path: Path | None) -> tuple[str, ...]:
    from gsnmf.datasets.readers.files import read_lines

    return () if path is None else read_lines(path)


def _fit(texts: Texts, rank: Any, options: dict[str, Any]) -> tuple[TopicModel, list[str]]:
    from sklearn.exceptions import ConvergenceWarning

    from gsnmf.applications import topics as find

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = find(
            texts.texts,
            rank,
            labels=texts.labels or None,
            ids=texts.ids,
            dates=texts.dates or None,
            **options,
        )
    return model, [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


def _write(
    folder: Path, model: TopicModel, texts: Texts, parameters: dict[str, str], notes: list[str], compare: bool
) -> dict[str, Any]:
    """All files, or none if anything goes wrong before the last is complete; what was found, in short."""
    from gsnmf.applications.topic_modelling.document_report import (
        documents_csv,
        gather_documents,
        render_documents,
        summary,
    )
    from gsnmf.support.atomic_files import atomic_files

    title = Path(texts.source).name
    findings = gather_documents(model, title=title, bound=compare, parameters=parameters, warnings=notes)
    short = summary(findings)
    with atomic_files(folder, ("model.npz", "topics.json", "documents.csv", "topics.html")) as draft:
        model.save(draft / "model.npz")
        (draft / "topics.json").write_bytes((json.dumps(short, indent=2, ensure_ascii=False) + "\n").encode())
        (draft / "documents.csv").write_bytes(documents_csv(model).encode())
        (draft / "topics.html").write_bytes(render_documents(findings).encode())
    return short


def _print(
    folder: Path, model: TopicModel, short: dict[str, Any], notes: list[str], as_json: bool, quiet: bool
) -> None:
    page = folder / "topics.html"
    if as_json:
        typer.echo(json.dumps(short, indent=2, ensure_ascii=False))
    elif quiet:
        typer.echo(page)
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Column, Table

        console = Console(highlight=False)
        console.print(f"[bold]{escape(short['sentence'])}.[/bold]")
        sure = any("stability" in topic for topic in short["topics"])
        substitutes = Column("next best", overflow="fold")
        table = Table("share", "coherence", *(["stability"] if sure else []), "words", substitutes, "a passage")
        for topic in short["topics"]:
            coherence = "–" if topic["coherence"] is None else f"{topic['coherence']:.2f}"
            passage = textwrap.shorten(next(iter(topic["passages"]), ""), 110, placeholder=" …")
            others = ", ".join(_told(other, len(topic["chosen"]) > 1) for other in topic["alternatives"])
            stable = [percent(topic["stability"])] if sure else []
            cells = (percent(topic["share"]), coherence, *stable, ", ".join(topic["words"][:8]), others, passage)
            table.add_row(*map(escape, cells))
        console.print(table)
        typer.echo(f"Page: {page}")
    for note in notes:
        typer.echo(f"gsnmf: warning: {note}", err=True)


def _told(other: dict[str, Any], mixed: bool) -> str:
    """A substitute and its price: "break (0.02 points less)"."""
    replaced = f" for {abridged(other['chosen'], _LONGEST_NAME)}" if mixed else ""
    return f"{abridged(other['name'], _LONGEST_NAME)}{replaced} ({price(other['points_lost'])})"

"""``gsnmf topics``: documents in, topics and a page about them out."""

from __future__ import annotations

import textwrap
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gsnmf.commands.options import AsJson, Effort, Encoding, Quiet, given_options, parse_rank
from gsnmf.support.formatting import abridged, percent, price

if TYPE_CHECKING:
    from rich.console import Console

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
  gsnmf topics reviews.csv --text-column review --label-column stars --id-column id --topics 12
  gsnmf topics articles/ --topics 20 --ngrams 2
  gsnmf topics berichte.jsonl --stop-words stopwords-de.txt --date-column datum
"""

_FILES = ("model.npz", "topics.json", "documents.csv", "topics.html")
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
            "--rank",
            "--topics",
            "-r",
            metavar="R|W,D|A-B|auto",
            help="Number of topics; words,documents: 8,4; or choose: auto.",
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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, find topics, write and print; `HELP` says the rest."""
    from sklearn.exceptions import ConvergenceWarning

    import gsnmf
    from gsnmf.applications.topic_modelling.document_report import (
        documents_csv,
        gather_documents,
        render_documents,
        summary,
    )
    from gsnmf.applications.topic_modelling.text import read_texts
    from gsnmf.commands.output import check_folder, json_text, print_found, stages, write_files
    from gsnmf.datasets.readers.files import read_lines

    given = given_options(context)
    if {"language", "stop_words"} <= given:
        raise typer.BadParameter("--language has no effect with --stop-words, which gives the words to leave out.")
    if "encoding" in given and "parquet" in (format, file.suffix.lower().lstrip(".")):
        raise typer.BadParameter("--encoding has no effect on a Parquet file, which states its own.")
    asked = parse_rank(rank)
    folder = out or Path(f"{'stdin' if str(file) == '-' else file.resolve().stem}-topics")
    check_folder(folder, _FILES)
    started = time.perf_counter()
    with stages(quiet, 5 + (not isinstance(asked, int | tuple)) + stability) as stage:
        stage("Reading")
        texts = read_texts(
            file,
            format=format,
            text_column=text_column,
            label_column=label_column,
            id_column=id_column,
            date_column=date_column,
            encoding=encoding,
        )
        left_out: Any = "english" if language is Language.english else None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = gsnmf.applications.topics(
                texts.texts,
                asked,
                labels=texts.labels or None,
                ids=texts.ids,
                dates=texts.dates or None,
                stop_words=left_out if stop_words is None else read_lines(stop_words),
                min_df=min_df,
                max_df=max_df,
                ngrams=(1, ngrams),
                effort=effort.value,
                members=members,
                stability=stability,
            )
        notes = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
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
        findings = gather_documents(
            model,
            title=Path(texts.source).name,
            bound=compare,
            parameters={name: value for name, value in parameters.items() if value},
            warnings=notes,
        )
        short = summary(findings)
        write_files(
            folder,
            {
                "model.npz": model.save,
                "topics.json": json_text(short, ascii=False),
                "documents.csv": documents_csv(model),
                "topics.html": render_documents(findings),
            },
        )
    print_found(
        folder / "topics.html",
        short,
        lambda console: _print_topics(console, short),
        as_json=as_json,
        quiet=quiet,
        warnings=notes,
        label="Page",
    )


def _print_topics(console: Console, short: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Column

    from gsnmf.commands.output import print_table

    console.print(f"[bold]{escape(short['sentence'])}.[/bold]")
    sure = ["stability"] if any("stability" in topic for topic in short["topics"]) else []
    rows = []
    for topic in short["topics"]:
        coherence = "–" if topic["coherence"] is None else f"{topic['coherence']:.2f}"
        passage = textwrap.shorten(next(iter(topic["passages"]), ""), 110, placeholder=" …")
        others = ", ".join(_alternative(other, len(topic["chosen"]) > 1) for other in topic["alternatives"])
        stable = [percent(topic["stability"])] if sure else []
        rows.append((percent(topic["share"]), coherence, *stable, ", ".join(topic["words"][:8]), others, passage))
    next_best = Column("next best", overflow="fold")
    print_table(console, ["share", "coherence", *sure, "words", next_best, "a passage"], rows)


def _alternative(other: dict[str, Any], mixed: bool) -> str:
    """A substitute and its price: "break (0.02 points less)"."""
    replaced = f" for {abridged(other['chosen'], _LONGEST_NAME)}" if mixed else ""
    return f"{abridged(other['name'], _LONGEST_NAME)}{replaced} ({price(other['points_lost'])})"

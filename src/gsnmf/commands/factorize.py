"""``gsnmf factorize``: a file in, a result and a report out."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import gsnmf
from gsnmf.commands.options import (
    AsJson,
    ConstraintOptions,
    Effort,
    Encoding,
    Quiet,
    Rank,
    given_options,
    parse_rank,
    parse_shape,
)
from gsnmf.commands.output import check_folder, json_text, print_found, print_table, provenance, stages, write_files
from gsnmf.datasets.labelled import normalize_rows, tf_idf
from gsnmf.datasets.readers import FORMATS, STREAMED_FORMATS, LabelledMatrix, format_of, read_matrix
from gsnmf.datasets.readers.files import STANDARD_INPUT
from gsnmf.diagnostics import NO_COMPARISON, compare
from gsnmf.matrix.input import MissingValues, warn_of_empty
from gsnmf.model_selection.rank_choice import USUAL_RANKS, RankChoice
from gsnmf.model_selection.stability import DOUBTFUL
from gsnmf.problem import Problem
from gsnmf.reports.findings import Findings, gather, summary
from gsnmf.reports.page import render_report
from gsnmf.support.formatting import percent
from gsnmf.weights import DEFAULT_TOLERANCE

NOT_CONVERGED = 3
"""Exit code if the results are written, but the weights did not reach the tolerance."""

_FILES = ("result.npz", "summary.json", "report.html")


class Missing(StrEnum):
    """Which entries are missing."""

    nan = "nan"
    unstored = "unstored"


class Negative(StrEnum):
    """What to do with negative entries."""

    error = "error"
    clip = "clip"


class StopWords(StrEnum):
    """Words of documents to leave out."""

    english = "english"
    none = "none"


Method = StrEnum("Method", {m.name.replace("-", "_"): m.name for m in gsnmf.methods()})  # type: ignore[misc]
_AUTO = Method("auto")
Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]


HELP = f"""Explain a matrix by a few of its own rows and columns, and write a report.

FILE is a nonnegative matrix or something that becomes one:

\b
  .npz .npy         NumPy arrays, SciPy sparse matrices; 3 dimensions with --cube or --image-shape
  .mtx .mat .cluto  Matrix Market, MATLAB (up to version 7), CLUTO
  .csv .tsv         tables; first line and column are names if not numbers
  .parquet .h5ad    tables; cells x genes (needs anndata)
  .txt              documents, one per line, counted as documents x words
  a folder          of images (one per row, in grey) or of texts (one per row)
  -                 standard input, with --format {", ".join(STREAMED_FORMATS)}

The output folder gets report.html (open it in a browser, share it), summary.json, and result.npz (indices from 0 and
weights; numpy.load or gsnmf.load reads it).

Examples:

\b
  gsnmf factorize table.csv --rank 8
  gsnmf factorize reviews.txt --rank 12 --tfidf --effort best
  gsnmf factorize table.csv --rank auto
  gsnmf factorize table.csv --rank 5-40
  gsnmf factorize counts.mtx --rank 10 --columns words.txt --rows titles.txt
  gsnmf factorize faces/ --rank 20 --normalize --out faces-report
  gsnmf factorize spectra.npz --key M --rank 3,2 --method spa-both
  gsnmf factorize sensors.csv --rank 5 --missing nan
  gsnmf factorize ratings.mtx --rank 10 --missing unstored
  zcat table.csv.gz | gsnmf factorize - --format csv --rank 5 --json
"""

EPILOG = "\n".join(
    (
        "\b",
        "Methods:",
        *(f"  {method.name:<16} {method.title}" for method in gsnmf.methods()),
        "",
        "\b",
        "Exit codes:",
        "  0    done",
        "  1    the data cannot be read or used, or the results not written",
        "  2    wrong arguments",
        f"  {NOT_CONVERGED}    done, but the weights did not reach the tolerance",
        "  130  interrupted; nothing was written",
    )
)


def factorize(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="Matrix, table, documents or images; - for standard input.", readable=False)
    ],
    rank: Annotated[
        str,
        typer.Option(
            "--rank",
            "-r",
            metavar="R|C,R|A-B|auto",
            help="Number of columns and rows; columns,rows: 6,4; or choose: auto.",
        ),
    ],
    method: Annotated[Method, typer.Option(help="How to choose; see below.", metavar="NAME")] = _AUTO,
    effort: Annotated[Effort, typer.Option(help="For auto: about 1 s, 10 s, or minutes.")] = Effort.balanced,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="Names of the rows, one per line.")] = None,
    columns: Annotated[Path | None, typer.Option(metavar="FILE", help="Names of the columns, one per line.")] = None,
    tfidf: Annotated[bool, typer.Option("--tfidf", help="Weight counts by tf-idf, rows of unit length.")] = False,
    normalize: Annotated[bool, typer.Option("--normalize", help="Divide each row by its sum.")] = False,
    include_columns: Annotated[str | None, typer.Option(metavar="LIST|@FILE", help="Columns to choose.")] = None,
    exclude_columns: Annotated[str | None, typer.Option(metavar="LIST|@FILE", help="Columns never to choose.")] = None,
    include_rows: Annotated[str | None, typer.Option(metavar="LIST|@FILE", help="Rows to choose.")] = None,
    exclude_rows: Annotated[str | None, typer.Option(metavar="LIST|@FILE", help="Rows never to choose.")] = None,
    at_least: Annotated[str | None, typer.Option(metavar="C,R", help="Fewest columns and rows.")] = None,
    missing: Annotated[
        Missing | None, typer.Option(help="Treat as missing: nan (NaN and empty cells) or unstored (sparse).")
    ] = None,
    entry_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights of all entries, 0 for missing.")
    ] = None,
    negative: Annotated[Negative, typer.Option(help="Negative entries: refuse, or set to zero.")] = Negative.error,
    members: Annotated[int, typer.Option(min=1, help="Columns or rows that a factor may mix.")] = 1,
    time_limit: Annotated[float | None, typer.Option(min=0.001, help="For auto: seconds.")] = None,
    keep_on_interrupt: Annotated[
        bool, typer.Option("--keep-on-interrupt", help="For auto: on Ctrl-C go on with the best so far.")
    ] = False,
    scale: Annotated[
        bool, typer.Option("--scale", help="Choose on the matrix with equal row and column sums.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where to write; by default NAME-gsnmf.")] = None,
    format: Annotated[
        Format | None, typer.Option(help="Format of FILE, if its ending does not say.", metavar="NAME")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Array of an .npz or .mat file, or layer of .h5ad.")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line of a table is names.")
    ] = None,
    row_names: Annotated[
        bool | None, typer.Option("--row-names/--no-row-names", help="Whether the first column of a table is names.")
    ] = None,
    encoding: Encoding = "utf-8",
    stop_words: Annotated[StopWords, typer.Option(help="Words of documents to leave out.")] = StopWords.english,
    min_documents: Annotated[int, typer.Option(min=1, help="Leave out words in fewer documents.")] = 2,
    image_shape: Annotated[
        str | None, typer.Option(metavar="HxW", help="Height x width: resize images, or say that a matrix holds them.")
    ] = None,
    column_major: Annotated[
        bool, typer.Option("--column-major", help="Pixels of an image follow each other column by column.")
    ] = False,
    compare_with: Annotated[
        bool | None,
        typer.Option(
            "--compare/--no-compare", help="Compare with NMF too, or with nothing; by default with the bound."
        ),
    ] = None,
    cube: Annotated[
        bool, typer.Option("--cube", help="A spectral image, height x width x bands; see also gsnmf unmix.")
    ] = False,
    tolerance: Annotated[float, typer.Option(min=1e-12, help="On the optimality of the weights.")] = DEFAULT_TOLERANCE,
    with_stability: Annotated[
        bool, typer.Option("--stability", help="Show how sure each factor is; 60 refits.")
    ] = False,
    with_map: Annotated[bool, typer.Option("--map", help="Show other numbers of columns and rows.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, factorize, compare, write and print; `HELP` says the rest."""
    asked, shape = parse_rank(rank), parse_shape(image_shape)
    ranks = USUAL_RANKS if asked == "auto" else asked if isinstance(asked, range) else None
    _check_together(context)
    if file == STANDARD_INPUT and (format is None or format.value not in STREAMED_FORMATS):
        raise typer.BadParameter(f"standard input needs --format, one of {', '.join(STREAMED_FORMATS)}.")
    _check_effects(context, file, format.value if format else None, method.value)
    required = ConstraintOptions.of(context.params, ranks or asked, method.value)
    folder = out or Path(f"{'stdin' if file == STANDARD_INPUT else file.resolve().stem}-gsnmf")
    check_folder(folder, _FILES)
    started = time.perf_counter()
    with stages(quiet, 4 + (ranks is not None) + with_stability + with_map) as stage:
        stage("Reading")
        data = read_matrix(
            file,
            format=format.value if format else None,
            rows=rows,
            columns=columns,
            key=key,
            header=header,
            row_names=row_names,
            encoding=encoding,
            stop_words="english" if stop_words is StopWords.english else None,
            min_documents=min_documents,
            image_shape=shape,
            image_order="F" if column_major else "C",
            cube=cube,
            missing_values=_missing_values(missing),
            negative=negative.value,
        )
        if column_major and data.image_shape is None:
            raise typer.BadParameter("--column-major has no effect on a matrix without images; see --image-shape.")
        if tfidf:
            data = tf_idf(data)
        if normalize:
            data = normalize_rows(data)
        constraints = required.constraints(data)
        held: Any = data.held if entry_weights is None else _weighted(data, missing, entry_weights)
        choice = None
        if ranks is not None:
            stage("Choosing the rank")
            choice = gsnmf.choose_rank(held, ranks, effort=effort.value, constraints=constraints)
        stage("Choosing columns and rows")
        result, notes = _factorize(
            held,
            keep_on_interrupt,
            rank=choice.rank if choice else asked,
            method=method.value,
            effort=effort.value,
            scale=scale,
            tolerance=tolerance,
            constraints=constraints,
            members=members,
            time_limit=time_limit,
        )
        result = replace(result, problem=replace(result.problem, clipped_share=data.clipped_share))
        stage(f"Comparing: quality {percent(result.quality)}")
        comparison = NO_COMPARISON if compare_with is False else compare(result, nmf=bool(compare_with))
        sure = sides = None
        if with_stability:
            stage("Refitting changed data")
            sure = gsnmf.stability(result)
        if with_map:
            stage("Trying other numbers of columns and rows")
            sides = gsnmf.split_profile(result)
        stage("Writing the report")
        findings = gather(
            result,
            data,
            comparison=comparison,
            parameters=_parameters(context, asked, choice) | provenance(file, started),
            warnings=notes,
            tolerance=tolerance,
            rank_choice=choice,
            stability=sure,
            sides=sides,
        )
        short = summary(findings)
        write_files(
            folder,
            {
                "result.npz": lambda path: gsnmf.save(result, path, provenance=short),
                "summary.json": json_text(short),
                "report.html": render_report(findings),
            },
        )
    print_found(
        folder / "report.html",
        short,
        lambda console: _print_findings(console, findings),
        as_json=as_json,
        quiet=quiet,
        warnings=findings.warnings,
    )
    if not result.converged:
        raise typer.Exit(NOT_CONVERGED)


def _check_effects(context: typer.Context, file: Path, format: str | None, method: str) -> None:
    """Raise an error that names the first option on the command line that has no effect on this file or method."""
    given, form = given_options(context), format_of(file, format)
    for name in context.params:
        parameter = "image_order" if name == "column_major" else name
        effective = sorted(other for other, known in FORMATS.items() if parameter in known.options)
        if name in given and effective and form not in effective:
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} has no effect on {form} input; it is for {', '.join(effective)}."
            )
    for name in ("effort", "keep_on_interrupt"):
        if name in given and method != "auto" and "members" not in given:
            raise typer.BadParameter(f"--{name.replace('_', '-')} has no effect with --method {method}; use auto.")


def _check_together(context: typer.Context) -> None:
    """Raise an error that names options which exclude each other."""
    given = context.params
    with_holes = given["missing"] or given["entry_weights"]
    if (given["tfidf"] or given["normalize"]) and with_holes:
        raise typer.BadParameter("--tfidf and --normalize need a matrix without missing entries and entry weights.")
    if (given["with_stability"] or given["with_map"]) and (given["members"] > 1 or with_holes):
        raise typer.BadParameter("--stability and --map are about single columns and rows without missing entries.")


def _parameters(context: typer.Context, rank: Rank, choice: RankChoice | None) -> dict[str, str]:
    """What the report says about how the result was made."""
    given = context.params
    chosen = f"{choice.rank}, chosen from {choice.ranks[0]} to {choice.ranks[-1]}" if choice else ""
    weighting = [name for name, option in (("tf-idf", "tfidf"), ("rows sum to one", "normalize")) if given[option]]
    return {
        "Rank": chosen or (f"{rank[0]},{rank[1]}" if isinstance(rank, tuple) else str(rank)),
        "Method": given["method"].value,
        "Effort": given["effort"].value,
        **({"Members of a factor": str(given["members"])} if given["members"] > 1 else {}),
        "Weighting": ", ".join(weighting) or "none",
        "Choice on scaled matrix": "yes" if given["scale"] else "no",
        "Tolerance": f"{given['tolerance']:g}",
    }


def _weighted(data: LabelledMatrix, missing: Missing | None, entry_weights: Path) -> Any:
    """The matrix with weights of its entries from a file."""
    weights = read_matrix(entry_weights).matrix
    values = _missing_values(missing)
    return Problem.of(data.matrix, missing_values=values, entry_weights=weights, name=data.source).matrix


def _missing_values(missing: Missing | None) -> MissingValues:
    if missing is None:
        return None
    return np.nan if missing is Missing.nan else "unstored"


def _factorize(held: Any, keep: bool, **options: Any) -> tuple[gsnmf.Factorization, list[str]]:
    """The result, and what to know about it; with ``keep``, an interrupt leaves the best so far."""
    notes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warn_of_empty(held)
        try:
            result = gsnmf.factorize(held, **options)
        except KeyboardInterrupt as interrupt:
            best: gsnmf.Factorization | None = getattr(interrupt, "best_so_far", None)
            if not keep or best is None:
                raise
            result = best
            notes.append("The search was interrupted; this is the best that it had found.")
    return result, notes + [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _print_findings(console: Console, findings: Findings) -> None:
    console.print(f"[bold]{escape(findings.sentence)}.[/bold]")
    if findings.rank_choice:
        console.print(escape(findings.rank_choice.reason))
    print_factors(console, findings)
    print_qualities(console, findings)


def print_factors(console: Console, findings: Findings, most: int = 40) -> None:
    """What was chosen, each with the columns and rows in which it is strongest."""
    sure = ["stability"] if findings.stability else []
    header = ["chosen", "name", "share", *sure, f"strongest {findings.column_kind}s", f"strongest {findings.row_kind}s"]
    rows = []
    for factor in findings.factors[:most]:
        doubtful = ", doubtful" if factor.stability is not None and factor.stability < DOUBTFUL else ""
        stable = [] if factor.stability is None else [percent(factor.stability) + doubtful]
        members = (", ".join(member.name for member in side[:4]) for side in (factor.columns, factor.rows))
        rows.append([factor.kind, factor.name, percent(factor.share), *stable, *members])
    print_table(console, header, rows)
    if len(findings.factors) > most:
        console.print(f"and {len(findings.factors) - most} more")


def print_qualities(console: Console, findings: Findings) -> None:
    """The quality next to others of the same rank."""
    qualities = ["–" if bar.quality is None else percent(bar.quality) for bar in findings.bars]
    notes = [bar.missing or bar.note for bar in findings.bars]
    labels = [bar.label for bar in findings.bars]
    print_table(console, ["", "quality", ""], list(zip(labels, qualities, notes, strict=True)))

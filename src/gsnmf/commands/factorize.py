"""``gsnmf factorize``: a file in, a result and a report out."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import gsnmf
from gsnmf.commands.effects import check_effects
from gsnmf.commands.options import AsJson, Effort, Encoding, Quiet
from gsnmf.commands.progress import stages
from gsnmf.commands.ranks import parse_rank
from gsnmf.commands.tables import print_factors, print_qualities
from gsnmf.commands.wishes import read_wishes
from gsnmf.datasets.labelled import normalize_rows, tf_idf
from gsnmf.datasets.readers import FORMATS, STREAMED_FORMATS, LabelledMatrix, read_matrix
from gsnmf.datasets.readers.files import STANDARD_INPUT
from gsnmf.diagnostics import NO_COMPARISON, compare
from gsnmf.factorization.missing import solve_held
from gsnmf.factorization.path import Request
from gsnmf.matrix import Matrix
from gsnmf.matrix.input import MissingValues, warn_of_empty
from gsnmf.matrix.observed import Observed
from gsnmf.model_selection.rank_choice import RankChoice, choose_rank
from gsnmf.model_selection.split_profile import split_profile
from gsnmf.model_selection.stability import stability
from gsnmf.problem import Problem
from gsnmf.registry import methods
from gsnmf.reports.findings import Findings, gather, summary
from gsnmf.reports.page import render_report
from gsnmf.result import Factorization
from gsnmf.support.atomic_files import atomic_files, check_targets
from gsnmf.support.formatting import percent
from gsnmf.support.version import __version__
from gsnmf.weights import DEFAULT_TOLERANCE, warn_unless_converged

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


Method = StrEnum("Method", {m.name.replace("-", "_"): m.name for m in methods()})  # type: ignore[misc]
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
        *(f"  {method.name:<16} {method.title}" for method in methods()),
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
            help="Columns and rows in all; columns,rows: 6,4; or auto.",
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
    missing: Annotated[Missing | None, typer.Option(help="What is missing: nan, empty cells too; unstored.")] = None,
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
    asked_rank, shape = parse_rank(rank), _parse_shape(image_shape)
    _check_together(context)
    if file == STANDARD_INPUT and (format is None or format.value not in STREAMED_FORMATS):
        raise typer.BadParameter(f"standard input needs --format, one of {', '.join(STREAMED_FORMATS)}.")
    check_effects(context, file, format.value if format else None, method.value)
    wishes = read_wishes(context.params, asked_rank, method.value)  # --include-columns and the like, --at-least
    folder = out or Path(f"{'stdin' if file == STANDARD_INPUT else file.resolve().stem}-gsnmf")
    check_writable(folder, _FILES)
    started = time.perf_counter()
    with stages(quiet, 4 + isinstance(asked_rank, range) + with_stability + with_map) as stage:
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
        data = _weighted(data, tfidf, normalize)
        constraints = wishes.constraints(data)
        held = _held(data, missing, entry_weights)
        choice = None
        if isinstance(asked_rank, range):
            stage("Choosing the rank")
            choice = choose_rank(held, asked_rank, effort=effort.value, constraints=constraints)
        stage("Choosing columns and rows")
        request = Request.of(
            choice.rank if choice else asked_rank,
            method=method.value,
            effort=effort.value,
            scale=scale,
            tolerance=tolerance,
            constraints=constraints,
            members=members,
            time_limit=time_limit,
        )
        result, notes = _factorize(held, request, keep_on_interrupt)
        result = replace(result, clipped_share=data.clipped_share)
        stage(f"Comparing: quality {percent(result.quality)}")
        comparison = NO_COMPARISON if compare_with is False else compare(result, nmf=bool(compare_with))
        sure = sides = None
        if with_stability:
            stage("Refitting changed data")
            sure = stability(data.held, result, constraints=constraints)
        if with_map:
            stage("Trying other numbers of columns and rows")
            sides = split_profile(data.held, result)
        stage("Writing the report")
        findings = gather(
            result,
            data,
            comparison=comparison,
            parameters=_parameters(request, choice, tfidf, normalize) | provenance(file, started),
            warnings=notes,
            tolerance=tolerance,
            rank_choice=choice,
            stability=sure,
            sides=sides,
        )
        _write(folder, result, findings)
    _print(folder, findings, as_json, quiet)
    if not result.converged:
        raise typer.Exit(NOT_CONVERGED)


def _check_together(context: typer.Context) -> None:
    """Raise an error that names options which exclude each other."""
    given = context.params
    with_holes = given["missing"] or given["entry_weights"]
    if (given["tfidf"] or given["normalize"]) and with_holes:
        raise typer.BadParameter("--tfidf and --normalize need a matrix without missing entries and entry weights.")
    if (given["with_stability"] or given["with_map"]) and (given["members"] > 1 or with_holes):
        raise typer.BadParameter("--stability and --map are about single columns and rows without missing entries.")


def _parameters(request: Request, choice: RankChoice | None, tfidf: bool, normalize: bool) -> dict[str, str]:
    """What the report says about how the result was made."""
    rank = request.rank if isinstance(request.rank, int) else "{},{}".format(*request.rank)
    weighting = [name for name, is_used in (("tf-idf", tfidf), ("rows sum to one", normalize)) if is_used]
    return {
        "Rank": f"{rank}, chosen from {choice.ranks[0]} to {choice.ranks[-1]}" if choice else str(rank),
        "Method": request.method.name,
        "Effort": request.effort,
        **({"Members of a factor": str(request.members)} if request.members > 1 else {}),
        "Weighting": ", ".join(weighting) or "none",
        "Choice on scaled matrix": "yes" if request.scale else "no",
        "Tolerance": f"{request.tolerance:g}",
    }


def _parse_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise typer.BadParameter(f"--image-shape must be height x width, such as 28x20; got {text!r}.")
    return int(sides[0]), int(sides[1])


def check_writable(folder: Path, files: Sequence[str] = ()) -> None:
    """Find out before the work whether its results can be written."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(existing))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(existing))
    if folder.is_dir():
        check_targets([folder / name for name in files])


def _weighted(data: LabelledMatrix, tfidf: bool, normalize: bool) -> LabelledMatrix:
    if tfidf:
        data = tf_idf(data)
    return normalize_rows(data) if normalize else data


def _held(data: LabelledMatrix, missing: Missing | None, entry_weights: Path | None) -> Matrix | Observed:
    """The matrix, or what is observed of it."""
    if entry_weights is None:
        return data.held
    weights = read_matrix(entry_weights).matrix
    return Problem.of(
        data.matrix, missing_values=_missing_values(missing), entry_weights=weights, name=data.source
    ).matrix


def _missing_values(missing: Missing | None) -> MissingValues:
    if missing is None:
        return None
    return np.nan if missing is Missing.nan else "unstored"


def _factorize(held: Matrix | Observed, request: Request, keep: bool) -> tuple[Factorization, list[str]]:
    """The result, and what to know about it; with ``keep``, an interrupt leaves the best so far."""
    notes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warn_of_empty(held)
        try:
            result = solve_held(held, request)
        except KeyboardInterrupt as interrupt:
            best: Factorization | None = getattr(interrupt, "best_so_far", None)
            if not keep or best is None:
                raise
            result = best
            notes.append("The search was interrupted; this is the best that it had found.")
        warn_unless_converged(result.weights, request.tolerance)
    return result, notes + [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def provenance(file: Path, started: float) -> dict[str, str]:
    """What is needed to make the result again."""
    known = {
        "Seconds": f"{time.perf_counter() - started:.1f}",
        "Made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gsnmf": __version__,
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "NumPy, SciPy, scikit-learn": ", ".join(version(name) for name in ("numpy", "scipy", "scikit-learn")),
    }
    if file.is_file():
        with file.open("rb") as stream:
            known["SHA-256 of the file"] = hashlib.file_digest(stream, "sha256").hexdigest()
    return known


def _write(folder: Path, result: Factorization, findings: Findings) -> None:
    """All files, or none if anything goes wrong before the last is complete."""
    short = summary(findings)
    with atomic_files(folder, _FILES) as draft:
        gsnmf.save(result, draft / "result.npz", provenance=short)
        (draft / "summary.json").write_bytes((json.dumps(short, indent=2) + "\n").encode())
        (draft / "report.html").write_bytes(render_report(findings).encode())


def _print(folder: Path, findings: Findings, as_json: bool, quiet: bool) -> None:
    report = folder / _FILES[-1]
    if as_json:
        typer.echo(json.dumps(summary(findings), indent=2))
    elif quiet:
        typer.echo(report)
    else:
        console = Console(highlight=False)
        console.print(f"[bold]{escape(findings.sentence)}.[/bold]")
        if findings.rank_choice:
            console.print(escape(findings.rank_choice.reason))
        print_factors(console, findings)
        print_qualities(console, findings)
        typer.echo(f"Report: {report}")
    for warning in findings.warnings:
        typer.echo(f"gsnmf: warning: {warning}", err=True)

"""``gsnmf demo``: the library at work on two collections that come with Python and scikit-learn.

Python's own documentation topics are a matrix of documents x words, scikit-learn's digits a matrix of images x pixels.
Each is explained by a few of its own rows and columns, beside truncated SVD, which no method of the same rank can beat
and which has nothing to read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf.commands.factorize import print_factors, print_qualities
from gsnmf.commands.output import stages
from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import compare
from gsnmf.matrix.validation import check_matrix
from gsnmf.reports.findings import Bar, Findings, gather
from gsnmf.reports.page import write_report
from gsnmf.support.arrays import Indices

DOCUMENT_RANK = 10
DIGIT_RANK = 16
IMAGE_SIDE = 8

_ALTERNATIVES = (("gspa", False), ("gspa", True), ("spa-rows", False), ("spa-columns", False))


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("report"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only where the reports are.")] = False,
) -> None:
    """Factorize Python's documentation and scikit-learn's digits, and write a report on each."""
    out.mkdir(parents=True, exist_ok=True)
    with stages(quiet) as stage:
        examples = run_examples(stage)
    paths = [out / f"{example.name}.html" for example in examples]
    for example, path in zip(examples, paths, strict=True):
        write_report(example.findings, path)
    if not quiet:
        for example in examples:
            _print_example(example)
    for path in paths:
        typer.echo(path if quiet else f"Report: {path}")


@dataclass(frozen=True)
class Example:
    """A collection explained by its own columns and rows.

    Attributes
    ----------
    name : str
        Of the file of its report.
    result : Factorization
        By ``method="auto"``.
    findings : Findings
        What its report says; other methods at the same rank are among the ``bars``.
    """

    name: str
    result: gsnmf.Factorization
    findings: Findings


def run_examples(stage: Callable[[str], None] = lambda stage: None) -> tuple[Example, Example]:
    """Factorize both collections, the documents first; ``stage`` is told what begins."""
    stage("Python's documentation")
    documents = documentation_topics()
    stage("Handwritten digits")
    return documents, digit_images()


def documentation_topics(rank: int = DOCUMENT_RANK) -> Example:
    """Python's documentation topics as documents x words.

    Entries are counts x inverse document frequency of words in at least three topics, documents of unit length, as
    scikit-learn makes them by default.
    """
    from pydoc_data.topics import topics

    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(stop_words="english", min_df=3)
    data = LabelledMatrix(
        check_matrix(vectorizer.fit_transform(topics.values())),
        row_names=tuple(topics),
        column_names=tuple(vectorizer.get_feature_names_out().tolist()),
        row_kind="document",
        column_kind="word",
        source="pydoc_data.topics",
    )
    about = (
        "The texts behind Python's help(), as tf-idf with documents of unit length; English stop words and words in "
        "fewer than three documents are left out"
    )
    return _example("documentation", "Python's documentation topics", about, data, rank)


def digit_images(rank: int = DIGIT_RANK) -> Example:
    """scikit-learn's handwritten digits as images x pixels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    data = LabelledMatrix(
        check_matrix(digits.data),
        row_names=tuple(f"a {label} (image {i})" for i, label in enumerate(digits.target)),
        row_kind="image",
        column_kind="pixel",
        image_shape=(IMAGE_SIDE, IMAGE_SIDE),
        source="sklearn.datasets.load_digits",
    )
    return _example("digits", "Handwritten digits", "Scanned digits, ink from 0 to 16", data, rank)


def pixel_map(columns: Indices) -> str:
    """Chosen pixels of the digits as text, ``#`` on a ground of dots.

    Examples
    --------
    >>> import numpy as np
    >>> print(pixel_map(np.array([0, 9]))[:31])
    # . . . . . . .
    . # . . . . . .
    """
    marks = np.full(IMAGE_SIDE * IMAGE_SIDE, ".")
    marks[columns] = "#"
    return "\n".join(" ".join(row) for row in marks.reshape(IMAGE_SIDE, IMAGE_SIDE))


def _example(name: str, title: str, about: str, data: LabelledMatrix, rank: int) -> Example:
    result = gsnmf.factorize(data.matrix, rank)
    others = [_alternative(data, rank, method, scale) for method, scale in _ALTERNATIVES]
    parameters = {"Rank": str(rank), "Method": "auto", "Effort": "balanced"}
    compared = compare(result, nmf=True)
    findings = gather(result, data, title=title, about=about, comparison=compared, others=others, parameters=parameters)
    return Example(name, result, findings)


def _alternative(data: LabelledMatrix, rank: int, method: str, scale: bool) -> Bar:
    """How well another method does at the same rank."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        result = gsnmf.factorize(data.matrix, rank, method=method, scale=scale)
    failed = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    chosen = f"{result.columns.size} {data.column_kind}s, {result.rows.size} {data.row_kind}s"
    return Bar(
        f"{method}, scale=True" if scale else method,
        result.quality,
        f"{chosen}; did not converge" if failed else chosen,
    )


def _print_example(example: Example) -> None:
    console, findings = Console(highlight=False), example.findings
    console.print(f"\n[bold]{escape(findings.title)}[/bold]\n{escape(findings.sentence)}.")
    if findings.images is None:
        print_factors(console, findings)
    else:
        shown = ", ".join(name for name, _ in findings.images.chosen)
        console.print(f"Chosen pixels:\n{pixel_map(example.result.columns)}\nChosen images: {escape(shown or 'none')}")
    print_qualities(console, findings)

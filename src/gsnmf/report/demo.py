"""The report of ``gsnmf demo``: one function a section."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gsnmf.demo import IMAGE_SIDE, Demo, Example
from gsnmf.report.html import Markup, element, page, picture, table
from gsnmf.validation import Floats, Indices


def write_demo(demo: Demo, directory: Path) -> Path:
    """Write ``demo.html`` in a directory, which is made if it does not exist, and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "demo.html"
    path.write_text(render_demo(demo), encoding="utf-8")
    return path


def render_demo(demo: Demo) -> str:
    """The whole page."""
    return page(
        "gsnmf demo",
        _introduction(),
        _documents(demo.documents),
        _digits(demo.digits),
        _chosen_pictures(demo.digits, demo.digit_labels),
        _reconstructions(demo.digits, demo.digit_labels),
    )


def _introduction() -> Markup:
    return element(
        "p",
        "Each matrix is explained by a few of its own columns and rows with nonnegative weights. Quality is one minus "
        "the relative error. Truncated SVD is the best that any approximation of the same rank can do, with factors of "
        "mixed sign that are no part of the data.",
    )


def _documents(example: Example) -> Markup:
    rows = [
        (factor.kind, element("b", factor.name), ", ".join(factor.columns), ", ".join(factor.rows))
        for factor in example.factors
    ]
    return element(
        "section",
        _heading(example),
        table(("chosen", "name", "strongest words", "strongest documents"), rows),
        _comparison(example, "words", "documents"),
    )


def _digits(example: Example) -> Markup:
    rows = [(factor.kind, element("b", factor.name), ", ".join(factor.rows)) for factor in example.factors]
    return element(
        "section",
        _heading(example),
        table(("chosen", "pixel (row, column), or digit shown", "digits that use it most"), rows),
        _comparison(example, "pixels", "images"),
    )


def _chosen_pictures(example: Example, labels: Indices) -> Markup:
    chosen = np.zeros(IMAGE_SIDE * IMAGE_SIDE)
    chosen[example.result.columns] = 1.0
    images = example.result.matrix
    return element(
        "section",
        element("h3", "Chosen pixels and images"),
        picture(_image(chosen), "chosen pixels", marked=True),
        *(picture(_image(images[i]), f"a {labels[i]}") for i in example.result.rows),
    )


def _reconstructions(example: Example, labels: Indices) -> Markup:
    samples = np.array([np.flatnonzero(labels == label)[0] for label in range(10)])
    approximations = example.result.reconstruct(rows=samples)
    images = example.result.matrix
    return element(
        "section",
        element("h3", "The first image of each digit, and below it what the model makes of it"),
        element("div", *(picture(_image(images[i]), f"a {labels[i]}") for i in samples)),
        element("div", *(picture(_image(image), "model") for image in approximations)),
    )


def _heading(example: Example) -> Markup:
    result = example.result
    summary = (
        f"{example.about}. Rank {result.columns.size + result.rows.size}: quality {100 * result.quality:.1f} %, "
        f"truncated SVD {100 * example.svd_quality:.1f} %."
    )
    return Markup(element("h2", example.title) + element("p", summary))


def _comparison(example: Example, columns: str, rows: str) -> Markup:
    trials = [(t.method, t.n_columns, t.n_rows, t.quality, t.note) for t in example.trials]
    best = ("truncated SVD", "", "", example.svd_quality, "")
    return table(("method", columns, rows, "quality", ""), [*trials, best])


def _image(values: Floats) -> Floats:
    return np.asarray(values).reshape(IMAGE_SIDE, IMAGE_SIDE)

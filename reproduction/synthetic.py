"""Figures 1 to 6: accuracy, error and distance to the ground truth under noise, on two kinds of synthetic matrices.

Twenty noise levels, 25 matrices each, with a seed that follows from the kind, the level and the number of the matrix.
GS-FGM as in the paper: lambda~ = 0.25, at most 1000 iterations, tolerance 1e-4, the largest diagonal entries for given
numbers of columns and rows. NMF and minimum-volume NMF: at most 1000 iterations; their factors are scaled to those of
the ground truth before the distance is computed (`gsnmf.metrics.rescale_factors`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gsnmf.datasets import Planted, fully_random, middle_points
from gsnmf.metrics import accuracy, distance_to_ground_truth, rescale_factors
from reproduction.methods import FACTORIZATIONS, LABELS, OURS, REMARK, Outcome, run_method
from reproduction.pictures import draw_lines, line_style, picture
from reproduction.report import Figure, Section, Table
from reproduction.study import Key, Measurement, Record, Results, Settings, Study
from reproduction.synthetic_claims import averages, middle_claims, random_claims

EPSILONS = np.logspace(-3, 0, 20)

PAPER = ("gs-fgm", "gspa", "spa-both", "spa-columns", "spa-rows", "nmf", "minimum-volume")
SHOWN = (*PAPER, *OURS)

_N_MATRICES = 25
_QUICK_LEVELS, _QUICK_MATRICES = (0, 6, 11, 13, 17, 19), 3

_GENERATORS: dict[str, Callable[..., Planted]] = {"random": fully_random, "middle": middle_points}
_SEEDS = {"random": 1, "middle": 2}
_MATRICES = {
    "random": "fully random (20, 20)-separable 100 x 100 matrices",
    "middle": "(10, 12)-separable 78 x 55 matrices of middle points with adversarial noise",
}
_QUANTITIES = {
    "accuracy": "average accuracy",
    "error": "average relative approximation error",
    "distance": "average distance to the ground truth",
}
_NOTES = {
    "accuracy": (
        "GS-FGM, convex and SPA* are given the numbers of columns and rows; GSPA and auto are not. GS-FGM takes the "
        'largest diagonal entries, as the paper says; `method="gs-fgm"` also decides near ties by the error.'
    ),
    "error": "Where the noise is strong, auto finds columns and rows that fit better than the planted ones.",
    "distance": (
        "Factors of NMF and MV-NMF can have any scale. Each is first scaled to the length of the true factor that it"
        " matches, which favours these methods. The paper does not say how it scales them."
    ),
}
_ZOOM = {"random": ((9e-4, 0.56), (0.945, 1.004)), "middle": ((9e-4, 0.13), (0.945, 1.004))}


def matrix(kind: str, level: int, number: int) -> Planted:
    """One of the matrices: the same for the same numbers, whatever else is run."""
    seed = np.random.default_rng([_SEEDS[kind], level, number])
    return _GENERATORS[kind](float(EPSILONS[level]), random_state=seed)


def _trials(settings: Settings) -> list[Key]:
    levels = settings.levels or (_QUICK_LEVELS if settings.quick else range(EPSILONS.size))
    n_matrices = settings.n_matrices or (_QUICK_MATRICES if settings.quick else _N_MATRICES)
    return [(level, number) for number in range(n_matrices) for level in levels]


def _measure(kind: str, key: Key, settings: Settings) -> Measurement:
    level, number = key
    truth = matrix(kind, level, number)
    pair = truth.columns.size, truth.rows.size
    records = []
    for method in (*SHOWN, *REMARK):
        outcome = run_method(truth.matrix, method, sum(pair) if method == "auto" else pair, effort="fast", seed=number)
        trial = {"level": level, "epsilon": float(EPSILONS[level]), "matrix": number, "method": method}
        records.append(trial | _quality(truth, outcome, method))
    return Measurement(records)


def _quality(truth: Planted, outcome: Outcome, method: str) -> Record:
    factors = outcome.W, outcome.H
    if method in FACTORIZATIONS:
        factors = rescale_factors(*factors, truth.W, truth.H)
        share = None
    else:
        share = accuracy(outcome.columns, outcome.rows, truth.columns, truth.rows)
    return {
        "accuracy": share,
        "error": outcome.relative_error,
        "distance": distance_to_ground_truth(*factors, truth.W, truth.H),
        "converged": bool(outcome.converged),
        "seconds": outcome.seconds,
    }


def _present(kind: str, first_figure: int, part: str, results: Results) -> Section:
    quantity = part.partition("-")[2]
    means = averages(results.table, quantity)
    number = first_figure + list(_QUANTITIES).index(quantity)
    per_level = results.table.groupby("epsilon")["matrix"].nunique()
    fewest, most = per_level.min(), per_level.max()
    matrices = f"{fewest} to {most}" if most > fewest else str(most)
    subject = f"{_QUANTITIES[quantity]} on {_MATRICES[kind]}"
    figures = [_draw(kind, part, quantity, means, results)]
    if quantity == "accuracy":
        figures.append(_draw_remark(kind, means, results))
    if kind == "random":
        claims = random_claims(quantity, results.table)
    else:
        claims = middle_claims(quantity, results.table, results.other("random"))
    return Section(
        title=f"Figure {number}: {subject}",
        text=[f"{len(means)} noise levels, {matrices} matrices each. {_NOTES[quantity]}"],
        tables=[_means_table(quantity, means), *([_cost_table(results.table)] if quantity == "accuracy" else [])],
        figures=figures,
        claims=claims,
    )


def _draw(kind: str, part: str, quantity: str, means: pd.DataFrame, results: Results) -> Figure:
    scale = 100.0 if quantity == "accuracy" else 1.0
    shown = scale * means[[method for method in SHOWN if method in means]]
    caption = f"{_QUANTITIES[quantity].capitalize()} on {_MATRICES[kind]}."
    with picture(results.out, part, (7.0, 4.2)) as (figure, grid):
        axes = grid[0, 0]
        draw_lines(axes, shown)
        axes.set(xscale="log", xlabel="noise level ε", ylabel=f"{_QUANTITIES[quantity]}{' (%)' * (scale > 1)}")
        if quantity == "accuracy":
            axes.set_ylim(0, 104)
            _zoom(axes, kind, shown)
        else:
            axes.set_yscale("log")
        figure.legend(loc="outside right center")
    return Figure(part, caption)


def _zoom(axes: Any, kind: str, shown: pd.DataFrame) -> None:
    """The paper's inset: which methods are exactly at 100 percent."""
    (left, right), (low, high) = _ZOOM[kind]
    inset = axes.inset_axes((0.08, 0.08, 0.5, 0.28))
    draw_lines(inset, shown)
    inset.set(xscale="log", xlim=(left, right), ylim=(100 * low, 100 * high))
    inset.tick_params(labelsize=7)
    inset.set_title("zoom near 100 %", fontsize=7, fontweight="normal")
    inset.patch.set_edgecolor("#999999")


def _draw_remark(kind: str, means: pd.DataFrame, results: Results) -> Figure:
    name = f"{kind}-remark"
    with picture(results.out, name, (7.0, 2.5), ncols=3, sharey=True) as (figure, grid):
        for axes, way in zip(grid[0], ("both", "columns", "rows"), strict=True):
            for family in ("spa", "snpa", "xray", "fgnsr"):
                if (method := f"{family}-{way}") in means:
                    values = 100 * means[method]
                    axes.plot(values, label=family.upper(), markerfacecolor="white", **line_style(family))
            title = {"both": "columns and rows (*)", "columns": "columns (-C)", "rows": "rows (-R)"}[way]
            axes.set(xscale="log", xlabel="noise level ε", ylim=(0, 104), title=title)
        grid[0, 0].set_ylabel("average accuracy (%)")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right center")
    return Figure(name, "The remark in section 5: SNPA, XRAY and FGNSR in place of SPA.")


def _means_table(quantity: str, means: pd.DataFrame) -> Table:
    methods = [method for method in SHOWN if method in means]
    scale, digits = (100.0, 2) if quantity == "accuracy" else (1.0, 4)
    rows = [
        [f"{epsilon:.3g}", *(f"{scale * value:.{digits}f}" for value in level)]
        for epsilon, level in zip(means.index, means[methods].to_numpy(), strict=True)
    ]
    caption = f"{_QUANTITIES[quantity].capitalize()}{' in percent' if scale > 1 else ''}, by noise level."
    return Table(("ε", *(LABELS[method] for method in methods)), rows, caption, long=True)


def _cost_table(table: pd.DataFrame) -> Table:
    seconds = table.groupby("method", sort=False)["seconds"].agg(["mean", "max"])
    rows = [[LABELS[str(method)], f"{mean:.3f}", f"{longest:.3f}"] for method, mean, longest in seconds.itertuples()]
    total = f"{seconds['mean'].sum():.2f}"
    caption = f"Seconds per matrix on one thread, without weights; {total} for all methods together."
    return Table(("method", "mean seconds", "longest"), rows, caption, long=True)


def _study(kind: str, first_figure: int) -> Study:
    parts = {
        f"{kind}-{quantity}": f"figure {first_figure + number}: {words} on {_MATRICES[kind]}"
        for number, (quantity, words) in enumerate(_QUANTITIES.items())
    }
    return Study(
        name=kind,
        parts=parts,
        trials=_trials,
        measure=partial(_measure, kind),
        present=partial(_present, kind, first_figure),
    )


STUDIES = (_study("random", 1), _study("middle", 4))

"""Figures 1 to 6: accuracy, error and distance to the ground truth under noise, on two kinds of synthetic matrices.

Twenty noise levels, 25 matrices each, with a seed that follows from the kind, the level and the number of the matrix.
GS-FGM as in the paper: lambda~ = 0.25, at most 1000 iterations, tolerance 1e-4, the largest diagonal entries for given
numbers of columns and rows. NMF and minimum-volume NMF: at most 1000 iterations; their factors are scaled to those of
the ground truth before the distance is computed (`gsnmf.metrics.rescale_factors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gsnmf.datasets import Planted, fully_random, middle_points
from gsnmf.metrics import accuracy, distance_to_ground_truth, rescale_factors
from gsnmf.support.arrays import Floats
from reproduction._claims import middle_claims, random_claims
from reproduction._curves import Curves
from reproduction._figures import draw_lines, line_style, picture
from reproduction._methods import FACTORIZATIONS, LABELS, OURS, REMARK, Outcome, run_method
from reproduction._study import Figure, Key, Measurement, Record, Results, Section, Settings, Study, Table, Value

EPSILONS = np.logspace(-3, 0, 20)

PAPER = ("gs-fgm", "gspa", "spa-both", "spa-columns", "spa-rows", "nmf", "minimum-volume")
SHOWN = (*PAPER, *OURS)

_COLUMNS = ("level", "epsilon", "matrix", "method", "accuracy", "error", "distance", "converged", "seconds")
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
    level, number = int(key[0]), int(key[1])
    truth = matrix(kind, level, number)
    pair = truth.columns.size, truth.rows.size
    records: list[Record] = []
    for method in (*SHOWN, *REMARK):
        outcome = run_method(truth.matrix, method, sum(pair) if method == "auto" else pair, effort="fast", seed=number)
        record: dict[str, Value] = {
            "level": level,
            "epsilon": float(EPSILONS[level]),
            "matrix": number,
            "method": method,
        }
        records.append(record | _quality(truth, outcome, method))
    return Measurement(records)


def _quality(truth: Planted, outcome: Outcome, method: str) -> dict[str, Value]:
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
    curves = Curves.of(results.records)
    quantity = part.partition("-")[2]
    number = first_figure + list(_QUANTITIES).index(quantity)
    per_level = sorted(set(curves.n_matrices.values()))
    matrices = f"{per_level[0]} to {per_level[-1]}" if len(per_level) > 1 else str(per_level[0])
    subject = f"{_QUANTITIES[quantity]} on {_MATRICES[kind]}"
    figures = [_draw(kind, part, quantity, curves, results)]
    if quantity == "accuracy":
        figures.append(_draw_remark(kind, curves, results))
    if kind == "random":
        claims = random_claims(quantity, curves)
    else:
        claims = middle_claims(quantity, curves, Curves.of(results.other("random")))
    return Section(
        title=f"Figure {number}: {subject}",
        text=[f"{curves.epsilons.size} noise levels, {matrices} matrices each. {_NOTES[quantity]}"],
        tables=[_means_table(quantity, curves), *([_cost_table(results.records)] if quantity == "accuracy" else [])],
        figures=figures,
        claims=claims,
    )


def _draw(kind: str, part: str, quantity: str, curves: Curves, results: Results) -> Figure:
    means = curves.means(quantity)
    shown = {method: means[method] for method in SHOWN if method in means}
    caption = f"{_QUANTITIES[quantity].capitalize()} on {_MATRICES[kind]}."
    with picture(results.out / "figures", part, (7.0, 4.2)) as (figure, grid):
        axes = grid[0, 0]
        scale = 100.0 if quantity == "accuracy" else 1.0
        draw_lines(axes, curves.epsilons, {method: scale * values for method, values in shown.items()})
        axes.set(xscale="log", xlabel="noise level ε", ylabel=f"{_QUANTITIES[quantity]}{' (%)' * (scale > 1)}")
        if quantity == "accuracy":
            axes.set_ylim(0, 104)
            _zoom(axes, kind, curves.epsilons, shown)
        else:
            axes.set_yscale("log")
        figure.legend(loc="outside right center")
    return Figure(part, caption)


def _zoom(axes: Any, kind: str, epsilons: Floats, shown: dict[str, Floats]) -> None:
    """The paper's inset: which methods are exactly at 100 percent."""
    (left, right), (low, high) = _ZOOM[kind]
    inset = axes.inset_axes((0.08, 0.08, 0.5, 0.28))
    draw_lines(inset, epsilons, {method: 100 * values for method, values in shown.items()})
    inset.set(xscale="log", xlim=(left, right), ylim=(100 * low, 100 * high))
    inset.tick_params(labelsize=7)
    inset.set_title("zoom near 100 %", fontsize=7, fontweight="normal")
    inset.patch.set_edgecolor("#999999")


def _draw_remark(kind: str, curves: Curves, results: Results) -> Figure:
    means = curves.means("accuracy")
    name = f"{kind}-remark"
    with picture(results.out / "figures", name, (7.0, 2.5), ncols=3, sharey=True) as (figure, grid):
        for axes, way in zip(grid[0], ("both", "columns", "rows"), strict=True):
            for family in ("spa", "snpa", "xray", "fgnsr"):
                values = means.get(f"{family}-{way}")
                if values is not None:
                    style = line_style(family)
                    axes.plot(curves.epsilons, 100 * values, label=family.upper(), markerfacecolor="white", **style)
            title = {"both": "columns and rows (*)", "columns": "columns (-C)", "rows": "rows (-R)"}[way]
            axes.set(xscale="log", xlabel="noise level ε", ylim=(0, 104), title=title)
        grid[0, 0].set_ylabel("average accuracy (%)")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right center")
    return Figure(name, "The remark in section 5: SNPA, XRAY and FGNSR in place of SPA.")


def _means_table(quantity: str, curves: Curves) -> Table:
    means = curves.means(quantity)
    methods = [method for method in SHOWN if method in means]
    scale, digits = (100.0, 2) if quantity == "accuracy" else (1.0, 4)
    rows = [
        [f"{epsilon:.3g}", *(f"{scale * means[method][level]:.{digits}f}" for method in methods)]
        for level, epsilon in enumerate(curves.epsilons)
    ]
    caption = f"{_QUANTITIES[quantity].capitalize()}{' in percent' if scale > 1 else ''}, by noise level."
    return Table(("ε", *(LABELS[method] for method in methods)), rows, caption, long=True)


def _cost_table(records: Sequence[Record]) -> Table:
    seconds: dict[str, list[float]] = {}
    for record in records:
        seconds.setdefault(str(record["method"]), []).append(float(record["seconds"] or 0.0))
    rows = [[LABELS[method], f"{np.mean(values):.3f}", f"{np.max(values):.3f}"] for method, values in seconds.items()]
    total = sum(np.mean(values) for values in seconds.values())
    caption = f"Seconds per matrix on one thread, without weights; {total:.2f} for all methods together."
    return Table(("method", "mean seconds", "longest"), rows, caption, long=True)


def _study(kind: str, first_figure: int) -> Study:
    parts = {
        f"{kind}-{quantity}": f"figure {first_figure + number}: {words} on {_MATRICES[kind]}"
        for number, (quantity, words) in enumerate(_QUANTITIES.items())
    }
    return Study(
        name=kind,
        parts=parts,
        columns=_COLUMNS,
        text=("method",),
        trials=_trials,
        measure=partial(_measure, kind),
        present=partial(_present, kind, first_figure),
    )


STUDIES = (_study("random", 1), _study("middle", 4))

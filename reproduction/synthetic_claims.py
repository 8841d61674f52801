"""The statements of the bullet lists of the paper's section 5 on synthetic matrices, checked against our averages.

Where the paper uses a word without a number, "similar" for instance, the statement here says what it is taken to mean.
A table has one row per matrix and method, with the columns epsilon, matrix, method, accuracy, error and distance.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from reproduction.methods import LABELS
from reproduction.report import Claim

_SIMILAR_ERROR = 0.25
_SIMILAR_ACCURACY = 0.1
_TIE = 0.01
"""Two averages this close are equal: the same selections in another order have slightly different weights."""
_SELECTING = ["gspa", "spa-both", "spa-columns", "spa-rows"]
_AFTER_GSPA = [*_SELECTING[1:], "nmf", "minimum-volume"]
_SEPARABLE = ["spa-columns", "spa-rows"]
_FREE = ["nmf", "minimum-volume"]


def averages(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Averages over the matrices: one row per noise level, one column per method that has values."""
    return table.pivot_table(index="epsilon", columns="method", values=quantity)


def random_claims(quantity: str, table: pd.DataFrame) -> list[Claim]:
    """What the paper observes on its fully random matrices."""
    means = averages(table, quantity)
    low = _up_to(means, 0.483)
    if quantity == "accuracy":
        return [
            _at_most(table, _SEPARABLE, 0.5),
            _perfect(table, "gs-fgm", 0.483),
            _best_of_all(means),
            _not_perfect(_up_to(means, 0.1), "gspa", 0.1),
            _in_between(low, 0.483),
            *_remark(means),
        ]
    if quantity == "error":
        return [_above(low, _SEPARABLE, "gs-fgm", 0.483, "have a much larger error than GS-FGM"), _similar(means)]
    return [
        _above(low, _SEPARABLE, "gs-fgm", 0.483, "recover the ground truth very badly"),
        _first(low, "gs-fgm", ["gspa", *_AFTER_GSPA], 0.483),
        _first(low, "gspa", _AFTER_GSPA, 0.483),
        _above(low, _FREE, "gs-fgm", 0.483, "are not able to recover the ground truth"),
    ]


def middle_claims(quantity: str, table: pd.DataFrame, random: pd.DataFrame) -> list[Claim]:
    """What the paper observes on middle points with adversarial noise; ``random`` is the table of `random_claims`."""
    means = averages(table, quantity)
    low = _up_to(means, 0.113)
    if quantity == "accuracy":
        return [
            _rows_beat_columns(means if low.empty else low),
            _perfect(table, "gs-fgm", 0.113),
            _only_one(low, 0.113),
            _almost(low, 0.113),
            _in_between(low, 0.113),
            *_remark(means),
        ]
    if quantity == "error":
        lowest = _up_to(means, 0.01)
        high = means.drop(lowest.index)
        return [
            _below(lowest, "gs-fgm", "nmf", "GS-FGM has a smaller error than NMF for ε ≤ 0.01"),
            _below(high, "nmf", "gs-fgm", "NMF has a smaller error than GS-FGM for ε > 0.01"),
            _below(high, "minimum-volume", "gs-fgm", "MV-NMF has a smaller error than GS-FGM for ε > 0.01"),
        ]
    return [
        _first(low, "gs-fgm", ["gspa", *_AFTER_GSPA], 0.113),
        _first(low, "gspa", _AFTER_GSPA, 0.113),
        *(_worse_than_random(method, means, random) for method in _FREE),
    ]


def _up_to(means: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """The noise levels of at most epsilon, within the three digits that the paper prints."""
    return means[means.index <= epsilon * 1.005]


def _at_most(table: pd.DataFrame, methods: list[str], limit: float) -> Claim:
    largest = table.groupby("method")["accuracy"].max()[methods]
    numbers = ", ".join(f"{LABELS[str(method)]} at most {_percent(value)}" for method, value in largest.items())
    statement = f"{_names(methods)} have an accuracy of at most {_percent(limit)}"
    return Claim(statement, bool(largest.max() <= limit), numbers + " on any matrix")


def _perfect(table: pd.DataFrame, method: str, epsilon: float) -> Claim:
    statement = f"{LABELS[method]} has an accuracy of 100 % for all ε ≤ {epsilon}"
    own = _up_to(table[table["method"] == method].set_index("epsilon"), epsilon)["accuracy"]
    if own.empty:
        return _too_few(statement)
    means = own.groupby("epsilon").mean()
    numbers = (
        f"lowest average {_percent(means.min())} at ε = {means.idxmin():.3g}; "
        f"{(own == 1.0).sum()} of {own.size} matrices perfect"
    )
    return Claim(statement, bool(means.min() == 1.0), numbers)


def _not_perfect(low: pd.DataFrame, method: str, epsilon: float) -> Claim:
    statement = f"{LABELS[method]} does not recover all indices even at low noise (ε ≤ {epsilon})"
    if low.empty:
        return _too_few(statement)
    means = low[method]
    n_below = int((means < 1.0).sum())
    numbers = f"average accuracy {_percent(means.mean())}; below 100 % at {n_below} of {means.size} levels"
    return Claim(statement, n_below > 0, numbers)


def _best_of_all(means: pd.DataFrame) -> Claim:
    gaps = means["gs-fgm"] - means[_SELECTING].max(axis=1)
    numbers = f"alone or with others, at {(gaps >= 0).sum()} of {gaps.size} levels"
    if gaps.min() < 0:
        numbers += f"; {_points(-gaps.min())} behind at ε = {gaps.idxmin():.3g}"
    return Claim("GS-FGM has the highest accuracy", bool((gaps >= 0).all()), numbers)


def _in_between(low: pd.DataFrame, epsilon: float) -> Claim:
    statement = f"SPA* has a higher accuracy than SPA-C and SPA-R, and a lower one than GS-FGM and GSPA (ε ≤ {epsilon})"
    if low.empty:
        return _too_few(statement)
    below = low[_SEPARABLE].max(axis=1) < low["spa-both"]
    above = low[["gs-fgm", "gspa"]].min(axis=1) > low["spa-both"]
    shown = low[[*_SEPARABLE, "spa-both", "gspa", "gs-fgm"]].mean()
    numbers = ", ".join(f"{LABELS[str(method)]} {_percent(mean)}" for method, mean in shown.items())
    return Claim(statement, bool((below & above).all()), f"on average {numbers}")


def _rows_beat_columns(low: pd.DataFrame) -> Claim:
    rows, columns = low["spa-rows"].mean(), low["spa-columns"].mean()
    return Claim(
        "SPA-R has a higher accuracy than SPA-C, because there are more separable rows (ε ≤ 0.113)",
        bool(rows > columns),
        f"SPA-R {_percent(rows)}, SPA-C {_percent(columns)} on average; no more than 54.55 % and 45.45 % is possible",
    )


def _only_one(low: pd.DataFrame, epsilon: float) -> Claim:
    statement = f"GS-FGM is the only one of the paper's algorithms that is perfect for all ε ≤ {epsilon}"
    if low.empty:
        return _too_few(statement)
    lowest = low[["gs-fgm", *_SELECTING]].min()
    shown = ", ".join(f"{LABELS[str(method)]} {_percent(value)}" for method, value in lowest.items())
    return Claim(statement, list(lowest.index[lowest == 1.0]) == ["gs-fgm"], f"lowest averages: {shown}")


def _almost(low: pd.DataFrame, epsilon: float) -> Claim:
    statement = f"GSPA performs almost as well, within 5 points, but does not find all indices (ε ≤ {epsilon})"
    if low.empty:
        return _too_few(statement)
    gap = (low["gs-fgm"] - low["gspa"]).max()
    numbers = f"GSPA {_percent(low['gspa'].mean())} on average, at most {_points(gap)} behind GS-FGM"
    return Claim(statement, bool(gap <= 0.05 and low["gspa"].min() < 1.0), numbers)


def _remark(means: pd.DataFrame) -> list[Claim]:
    """What the paper says of other separable methods in the place of SPA."""
    claims = []
    for family in ("snpa", "xray", "fgnsr"):
        known = [way for way in ("both", "columns", "rows") if f"{family}-{way}" in means]
        gaps = {f"{family}-{way}": means[f"{family}-{way}"] - means[f"spa-{way}"] for way in known}
        limit = _points(_SIMILAR_ACCURACY)
        statement = f"{family.upper()} does about as well as SPA: average accuracies differ by at most {limit}"
        if not gaps:
            claims.append(_too_few(statement))
            continue
        numbers = ", ".join(
            f"{LABELS[method]} {_points(gap.min(), sign=True)} to {_points(gap.max(), sign=True)}"
            for method, gap in gaps.items()
        )
        largest = max(gap.abs().max() for gap in gaps.values())
        claims.append(Claim(statement, bool(largest <= _SIMILAR_ACCURACY), numbers))
    return claims


def _above(low: pd.DataFrame, methods: list[str], reference: str, epsilon: float, words: str) -> Claim:
    statement = f"{_names(methods)} {words}: above {LABELS[reference]} at every level (ε ≤ {epsilon})"
    if low.empty:
        return _too_few(statement)
    ratios = low[methods].div(low[reference], axis=0)
    numbers = ", ".join(f"{LABELS[method]} {_times(ratios[method], reference)}" for method in methods)
    return Claim(statement, bool((ratios > 1).all(axis=None)), numbers)


def _similar(means: pd.DataFrame) -> Claim:
    ratio = means["nmf"] / means["gs-fgm"]
    return Claim(
        f"NMF has about the error of GS-FGM: within {_percent(_SIMILAR_ERROR, 0)} at every level",
        bool((np.abs(ratio - 1) <= _SIMILAR_ERROR).all()),
        f"the error of NMF is {ratio.min():.3f} to {ratio.max():.3f} times that of GS-FGM",
    )


def _first(low: pd.DataFrame, method: str, others: list[str], epsilon: float) -> Claim:
    after = "all" if method == "gs-fgm" else "all but GS-FGM"
    tie = f"alone or within {_percent(_TIE, 0)}"
    statement = f"{LABELS[method]} is closest to the ground truth of {after}, {tie} (ε ≤ {epsilon})"
    if low.empty:
        return _too_few(statement)
    ranges = [f"{LABELS[name]} {low[name].min():.4f} to {low[name].max():.4f}" for name in (method, *others)]
    holds = bool((low[method] <= low[others].min(axis=1) * (1 + _TIE)).all())
    return Claim(statement, holds, f"{ranges[0]}; {', '.join(ranges[1:])}")


def _below(means: pd.DataFrame, method: str, other: str, statement: str) -> Claim:
    if means.empty:
        return _too_few(statement)
    ratio = means[method] / means[other]
    numbers = f"the error of {LABELS[method]} is {_times(ratio, other)}"
    holds = bool((ratio < 1).all())
    if not holds and method == "gs-fgm":
        numbers += ": here NMF avoided the bad local minima that the paper mentions"
    return Claim(statement, holds, numbers)


def _worse_than_random(method: str, means: pd.DataFrame, random: pd.DataFrame) -> Claim:
    statement = f"{LABELS[method]} is further from the ground truth than on the fully random matrices"
    others = averages(random, "distance") if not random.empty else means.iloc[:0]
    shared = means.index.intersection(others.index)
    if shared.empty:
        return _too_few(statement)
    adversarial, fully_random = means.loc[shared, method].mean(), others.loc[shared, method].mean()
    numbers = f"{adversarial:.3f} on average, against {fully_random:.3f}"
    return Claim(statement, bool(adversarial > fully_random), numbers)


def _too_few(statement: str) -> Claim:
    return Claim(statement, None, "no results at these noise levels")


def _names(methods: Iterable[str]) -> str:
    return " and ".join(LABELS[method] for method in methods)


def _times(ratio: pd.Series, reference: str) -> str:
    return f"{ratio.min():.3g} to {ratio.max():.3g} times that of {LABELS[reference]}"


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _points(share: float, *, sign: bool = False) -> str:
    return f"{100 * share:{'+' if sign else ''}.1f} points"

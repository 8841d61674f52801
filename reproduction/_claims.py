"""The statements of the bullet lists of the paper's section 5 on synthetic matrices, checked against our averages.

Where the paper uses a word without a number, "similar" for instance, the statement here says what it is taken to mean.
"""

from __future__ import annotations

import numpy as np

from gsnmf.support.arrays import Flags, Floats
from reproduction._curves import Curves
from reproduction._methods import LABELS
from reproduction._study import Claim

_SIMILAR_ERROR = 0.25
_SIMILAR_ACCURACY = 0.1
_TIE = 0.01
"""Two averages this close are equal: the same selections in another order have slightly different weights."""
_SELECTING = ("gspa", "spa-both", "spa-columns", "spa-rows")
_AFTER_GSPA = (*_SELECTING[1:], "nmf", "minimum-volume")


def random_claims(quantity: str, curves: Curves) -> list[Claim]:
    """What the paper observes on its fully random matrices."""
    means = curves.means(quantity)
    if quantity == "accuracy":
        return [
            _at_most(curves, ("spa-columns", "spa-rows"), 0.5),
            _perfect(curves, "gs-fgm", 0.483),
            _best_of_all(curves, means),
            _not_perfect(curves, "gspa", 0.1),
            _in_between(curves, means, largest_epsilon=0.483),
            *_remark(curves),
        ]
    if quantity == "error":
        return [
            _above(curves, means, ("spa-columns", "spa-rows"), "gs-fgm", 0.483, "have a much larger error than GS-FGM"),
            _similar(curves, means),
        ]
    return [
        _above(curves, means, ("spa-columns", "spa-rows"), "gs-fgm", 0.483, "recover the ground truth very badly"),
        _first(curves, means, "gs-fgm", ("gspa", *_AFTER_GSPA)),
        _first(curves, means, "gspa", _AFTER_GSPA),
        _above(curves, means, ("nmf", "minimum-volume"), "gs-fgm", 0.483, "are not able to recover the ground truth"),
    ]


def middle_claims(quantity: str, curves: Curves, random: Curves) -> list[Claim]:
    """What the paper observes on middle points with adversarial noise; ``random`` are the other matrices."""
    means = curves.means(quantity)
    if quantity == "accuracy":
        return [
            _rows_beat_columns(curves, means),
            _perfect(curves, "gs-fgm", 0.113),
            _only_one(curves, means, 0.113),
            _almost(curves, means, 0.113),
            _in_between(curves, means, largest_epsilon=0.113),
            *_remark(curves),
        ]
    if quantity == "error":
        low, high = curves.up_to(0.01), ~curves.up_to(0.01)
        return [
            _below(curves, means, "gs-fgm", "nmf", low, "GS-FGM has a smaller error than NMF for ε ≤ 0.01"),
            _below(curves, means, "nmf", "gs-fgm", high, "NMF has a smaller error than GS-FGM for ε > 0.01"),
            _below(
                curves, means, "minimum-volume", "gs-fgm", high, "MV-NMF has a smaller error than GS-FGM for ε > 0.01"
            ),
        ]
    return [
        _first(curves, means, "gs-fgm", ("gspa", *_AFTER_GSPA), 0.113),
        _first(curves, means, "gspa", _AFTER_GSPA, 0.113),
        *(_worse_than_random(method, curves, random) for method in ("nmf", "minimum-volume")),
    ]


def _at_most(curves: Curves, methods: tuple[str, ...], limit: float) -> Claim:
    largest = {method: curves.largest("accuracy", method) for method in methods}
    numbers = ", ".join(f"{LABELS[method]} at most {_percent(value)}" for method, value in largest.items())
    statement = f"{_names(methods)} have an accuracy of at most {_percent(limit)}"
    return Claim(statement, max(largest.values()) <= limit, numbers + " on any matrix")


def _perfect(curves: Curves, method: str, epsilon: float) -> Claim:
    chosen = curves.up_to(epsilon)
    statement = f"{LABELS[method]} has an accuracy of 100 % for all ε ≤ {epsilon}"
    if not chosen.any():
        return _too_few(statement)
    values = [curves.at("accuracy", method, e) for e in curves.epsilons[chosen]]
    averages = np.array([np.mean(v) for v in values])
    worst = int(np.argmin(averages))
    perfect = sum(v == 1.0 for level in values for v in level)
    numbers = (
        f"lowest average {_percent(averages[worst])} at ε = {curves.epsilons[chosen][worst]:.3g}; "
        f"{perfect} of {sum(map(len, values))} matrices perfect"
    )
    return Claim(statement, bool(averages.min() == 1.0), numbers)


def _not_perfect(curves: Curves, method: str, epsilon: float) -> Claim:
    chosen = curves.up_to(epsilon)
    statement = f"{LABELS[method]} does not recover all indices even at low noise (ε ≤ {epsilon})"
    if not chosen.any():
        return _too_few(statement)
    averages = curves.means("accuracy")[method][chosen]
    n_below = int((averages < 1.0).sum())
    numbers = f"average accuracy {_percent(averages.mean())}; below 100 % at {n_below} of {averages.size} levels"
    return Claim(statement, n_below > 0, numbers)


def _best_of_all(curves: Curves, means: dict[str, Floats]) -> Claim:
    rivals = np.max([means[method] for method in _SELECTING], axis=0)
    gaps = means["gs-fgm"] - rivals
    return Claim(
        "GS-FGM has the highest accuracy",
        bool((gaps >= 0).all()),
        f"alone or with others, at {int((gaps >= 0).sum())} of {gaps.size} levels"
        + (f"; {_points(-gaps.min())} behind at ε = {curves.epsilons[np.argmin(gaps)]:.3g}" if gaps.min() < 0 else ""),
    )


def _in_between(curves: Curves, means: dict[str, Floats], largest_epsilon: float) -> Claim:
    statement = (
        f"SPA* has a higher accuracy than SPA-C and SPA-R, and a lower one than GS-FGM and GSPA (ε ≤ {largest_epsilon})"
    )
    chosen = curves.up_to(largest_epsilon)
    if not chosen.any():
        return _too_few(statement)
    values = {method: means[method][chosen] for method in ("spa-both", *_SELECTING, "gs-fgm")}
    below = np.maximum(values["spa-columns"], values["spa-rows"]) < values["spa-both"]
    above = np.minimum(values["gs-fgm"], values["gspa"]) > values["spa-both"]
    numbers = ", ".join(
        f"{LABELS[method]} {_percent(values[method].mean())}"
        for method in ("spa-columns", "spa-rows", "spa-both", "gspa", "gs-fgm")
    )
    return Claim(statement, bool((below & above).all()), f"on average {numbers}")


def _rows_beat_columns(curves: Curves, means: dict[str, Floats]) -> Claim:
    low = curves.up_to(0.113)
    if not low.any():
        low = np.ones_like(low)
    rows, columns = means["spa-rows"][low].mean(), means["spa-columns"][low].mean()
    return Claim(
        "SPA-R has a higher accuracy than SPA-C, because there are more separable rows (ε ≤ 0.113)",
        bool(rows > columns),
        f"SPA-R {_percent(rows)}, SPA-C {_percent(columns)} on average; no more than 54.55 % and 45.45 % is possible",
    )


def _only_one(curves: Curves, means: dict[str, Floats], epsilon: float) -> Claim:
    statement = f"GS-FGM is the only one of the paper's algorithms that is perfect for all ε ≤ {epsilon}"
    chosen = curves.up_to(epsilon)
    if not chosen.any():
        return _too_few(statement)
    lowest = {method: float(means[method][chosen].min()) for method in ("gs-fgm", *_SELECTING)}
    perfect = [method for method, value in lowest.items() if value == 1.0]
    numbers = "lowest averages: " + ", ".join(f"{LABELS[method]} {_percent(v)}" for method, v in lowest.items())
    return Claim(statement, perfect == ["gs-fgm"], numbers)


def _almost(curves: Curves, means: dict[str, Floats], epsilon: float) -> Claim:
    statement = f"GSPA performs almost as well, within 5 points, but does not find all indices (ε ≤ {epsilon})"
    chosen = curves.up_to(epsilon)
    if not chosen.any():
        return _too_few(statement)
    values = means["gspa"][chosen]
    gap = float((means["gs-fgm"][chosen] - values).max())
    numbers = f"GSPA {_percent(values.mean())} on average, at most {_points(gap)} behind GS-FGM"
    return Claim(statement, bool(gap <= 0.05 and values.min() < 1.0), numbers)


def _remark(curves: Curves) -> list[Claim]:
    means = curves.means("accuracy")
    claims = []
    for family in ("snpa", "xray", "fgnsr"):
        known = [way for way in ("both", "columns", "rows") if f"{family}-{way}" in means]
        gaps = {way: means[f"{family}-{way}"] - means[f"spa-{way}"] for way in known}
        statement = (
            f"{family.upper()} does about as well as SPA: average accuracies differ by at most "
            f"{_points(_SIMILAR_ACCURACY)}"
        )
        if not gaps:
            claims.append(_too_few(statement))
            continue
        numbers = ", ".join(
            f"{LABELS[f'{family}-{way}']} {_points(gap.min(), sign=True)} to {_points(gap.max(), sign=True)}"
            for way, gap in gaps.items()
        )
        largest = max(float(np.abs(gap).max()) for gap in gaps.values())
        claims.append(Claim(statement, largest <= _SIMILAR_ACCURACY, numbers))
    return claims


def _above(
    curves: Curves,
    means: dict[str, Floats],
    methods: tuple[str, ...],
    reference: str,
    epsilon: float,
    words: str,
) -> Claim:
    statement = f"{_names(methods)} {words}: above {LABELS[reference]} at every level (ε ≤ {epsilon})"
    chosen = curves.up_to(epsilon)
    if not chosen.any():
        return _too_few(statement)
    ratios = {method: means[method][chosen] / means[reference][chosen] for method in methods}
    numbers = ", ".join(
        f"{LABELS[method]} {ratio.min():.3g} to {ratio.max():.3g} times that of {LABELS[reference]}"
        for method, ratio in ratios.items()
    )
    return Claim(statement, all(bool((ratio > 1).all()) for ratio in ratios.values()), numbers)


def _similar(curves: Curves, means: dict[str, Floats]) -> Claim:
    ratio = means["nmf"] / means["gs-fgm"]
    statement = f"NMF has about the error of GS-FGM: within {_percent(_SIMILAR_ERROR, 0)} at every level"
    return Claim(
        statement,
        bool((np.abs(ratio - 1) <= _SIMILAR_ERROR).all()),
        f"that of NMF is {ratio.min():.3f} to {ratio.max():.3f} times that of GS-FGM",
    )


def _first(
    curves: Curves, means: dict[str, Floats], method: str, others: tuple[str, ...], epsilon: float = 0.483
) -> Claim:
    after = "all" if method == "gs-fgm" else "all but GS-FGM"
    tie = f"alone or within {_percent(_TIE, 0)}"
    statement = f"{LABELS[method]} is closest to the ground truth of {after}, {tie} (ε ≤ {epsilon})"
    chosen = curves.up_to(epsilon)
    if not chosen.any():
        return _too_few(statement)
    rivals = {other: means[other][chosen] for other in others}
    own = means[method][chosen]
    best = np.min(list(rivals.values()), axis=0)
    numbers = f"{LABELS[method]} {own.min():.4f} to {own.max():.4f}; " + ", ".join(
        f"{LABELS[other]} {values.min():.4f} to {values.max():.4f}" for other, values in rivals.items()
    )
    return Claim(statement, bool((own <= best * (1 + _TIE)).all()), numbers)


def _below(curves: Curves, means: dict[str, Floats], method: str, other: str, chosen: Flags, statement: str) -> Claim:
    if not chosen.any():
        return _too_few(statement)
    ratio = means[method][chosen] / means[other][chosen]
    numbers = f"that of {LABELS[method]} is {ratio.min():.3g} to {ratio.max():.3g} times that of {LABELS[other]}"
    holds = bool((ratio < 1).all())
    if not holds and method == "gs-fgm":
        numbers += ": here NMF avoided the bad local minima that the paper mentions"
    return Claim(statement, holds, numbers)


def _worse_than_random(method: str, curves: Curves, random: Curves) -> Claim:
    statement = f"{LABELS[method]} is further from the ground truth than on the fully random matrices"
    shared = sorted(set(curves.epsilons) & set(random.epsilons))
    if not shared:
        return _too_few(statement)
    adversarial, fully_random = (
        np.array([np.mean(c.at("distance", method, epsilon)) for epsilon in shared]) for c in (curves, random)
    )
    numbers = f"{adversarial.mean():.3f} on average, against {fully_random.mean():.3f}"
    return Claim(statement, bool(adversarial.mean() > fully_random.mean()), numbers)


def _too_few(statement: str) -> Claim:
    return Claim(statement, None, "no results at these noise levels")


def _names(methods: tuple[str, ...]) -> str:
    return " and ".join(LABELS[method] for method in methods)


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _points(share: float, *, sign: bool = False) -> str:
    return f"{100 * share:{'+' if sign else ''}.1f} points"

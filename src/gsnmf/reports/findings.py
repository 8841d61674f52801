"""Everything that a report says, gathered from a factorization and ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, cast

import numpy as np

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import Comparison, Explanation, Residuals, compare
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.model_selection.split_profile import SplitProfile
from gsnmf.model_selection.stability import Stability
from gsnmf.reports.charts import Histogram, LineChart, histogram, rank_chart
from gsnmf.reports.pictures import ImageFindings, factor_picture, image_findings, ink_picture, member_pictures
from gsnmf.reports.statements import Certificate, certificates, headline, lead, remarks, stability_sentence
from gsnmf.result import Factor, Factorization
from gsnmf.support.arrays import Axis, Floats, Indices
from gsnmf.support.formatting import joined, shown
from gsnmf.weights import DEFAULT_TOLERANCE

MAX_ROWS = 500
"""Rows of a table of errors."""

UNEXPLAINED = 0.995
"""Relative error above which a row or column counts as not explained."""

_ALTERNATIVES = 2
"""Substitutes that are shown for each factor."""

_INK = (46, 105, 190)


@dataclass(frozen=True)
class Bar:
    """The quality of one way to approximate the matrix; None if it was not computed, and ``missing`` says why."""

    label: str
    quality: float | None
    note: str = ""
    css_class: str = "other"
    missing: str = ""


@dataclass(frozen=True)
class Member:
    """A column or row that goes with a factor; ``strength`` is relative to the strongest shown."""

    name: str
    strength: float
    picture: str = ""


@dataclass(frozen=True)
class MixedMember:
    """A column or row that a factor is made of; ``share`` is its part of the mixture."""

    name: str
    index: int
    share: float


@dataclass(frozen=True)
class Substitute:
    """A substitute for ``chosen``, and how many points of quality it costs."""

    name: str
    chosen: str
    points_lost: float


@dataclass(frozen=True)
class FactorView:
    """A chosen column or row, or a mixture of a few; ``index`` is that of the leading member."""

    number: int
    kind: str
    name: str
    index: int
    share: float
    columns: tuple[Member, ...]
    rows: tuple[Member, ...]
    members: tuple[MixedMember, ...]
    alternatives: tuple[Substitute, ...] = ()
    picture: str = ""
    stability: float | None = None
    """How often it came back, if this was requested."""


@dataclass(frozen=True)
class Explained:
    """How well one row or column is explained."""

    name: str
    index: int
    error: float
    error_share: float
    factor: str


@dataclass(frozen=True)
class ErrorTable:
    """How well the rows, or the columns, are explained; the worst ones by name."""

    kind: str
    total: int
    worst: tuple[Explained, ...]
    chart: Histogram
    n_unexplained: int = 0


@dataclass(frozen=True)
class RankStep:
    """A rank, the column or row that it adds, its quality, and the bound on the quality of any such rank."""

    rank: int
    kind: str
    name: str
    quality: float
    bound: float | None


@dataclass(frozen=True)
class Findings:
    """What a report says, section by section."""

    title: str
    source: str
    sentence: str
    lead: str
    shape: tuple[int, int]
    row_kind: str
    column_kind: str
    quality: float
    bars: tuple[Bar, ...]
    certificates: tuple[Certificate, ...]
    factors: tuple[FactorView, ...]
    tables: tuple[ErrorTable, ...]
    steps: tuple[RankStep, ...]
    chart: LineChart | None
    matrix_picture: str
    residual_picture: str
    images: ImageFindings | None
    parameters: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    about: str = ""
    observed_share: float = 1.0
    rank_choice: RankChoice | None = None
    rank_choice_chart: LineChart | None = None
    sides: SplitProfile | None = None
    stability: str = ""
    """How the stability of the factors was found, if requested."""

    @property
    def mixed(self) -> bool:
        """Whether factors are mixtures of several members."""
        return any(len(factor.members) > 1 for factor in self.factors)


def gather(
    result: Factorization,
    data: LabelledMatrix | None = None,
    *,
    title: str = "",
    about: str = "",
    comparison: Comparison | None = None,
    others: Sequence[Bar] = (),
    parameters: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    tolerance: float = DEFAULT_TOLERANCE,
    rank_choice: RankChoice | None = None,
    stability: Stability | None = None,
    sides: SplitProfile | None = None,
) -> Findings:
    """Gather what a report says.

    Parameters
    ----------
    result : Factorization
    data : LabelledMatrix, optional
        The names of rows and columns; its matrix must be that of the result.
    title, about : str
        What the matrix is; by default its source.
    comparison : Comparison, optional
        By default computed.
    others : sequence of Bar
        Other methods to show next to the result.
    parameters : mapping of str to str, optional
        How the result was made.
    warnings : sequence of str
        What the reader should know.
    tolerance : float
        The requested tolerance of the weights.
    rank_choice : RankChoice, optional
        Why the result has this number of factors.
    stability : Stability, optional
        How stable the factors are.
    sides : SplitProfile, optional
        What other numbers of columns and rows would cost.
    """
    named = data or LabelledMatrix(result.matrix)
    if named.matrix.shape != result.matrix.shape:
        raise ValueError(
            f"data must have the shape of the matrix of the result, {result.matrix.shape}; got {named.matrix.shape}."
        )
    explanation = Explanation(result)
    comparison = comparison or compare(result)
    substitutes = _substitutes(result, named)
    came_back = [None] * result.selection.n_selected if stability is None else stability.overall.tolist()
    factors = tuple(
        _view(k, factor, explanation, named, substitutes.get(k, ()), came_back[k])
        for k, factor in enumerate(result.factors())
    )
    steps = _steps(explanation, factors, comparison)
    matrix_picture, residual_picture = explanation.pictures()
    top = float(np.quantile(matrix_picture, 0.99)) or float(matrix_picture.max())
    return Findings(
        title=shown(title or PurePath(named.source).name or "A factorization"),
        source=shown(named.source),
        about=about,
        sentence=headline(result, named, comparison),
        lead=lead(result, comparison),
        shape=result.matrix.shape,
        row_kind=named.row_kind,
        column_kind=named.column_kind,
        quality=result.quality,
        observed_share=result.observed_share,
        bars=_bars(result, comparison, others),
        certificates=certificates(result, comparison, tolerance),
        factors=factors,
        tables=tuple(_table(explanation.residuals(axis), named, axis, factors) for axis in ("rows", "columns")),
        steps=steps,
        chart=_chart(steps, comparison),
        matrix_picture=ink_picture(matrix_picture, _INK, top),
        residual_picture=ink_picture(residual_picture, _INK, top),
        images=image_findings(explanation, named),
        parameters=dict(parameters or {}),
        warnings=(*remarks(result), *warnings),
        rank_choice=rank_choice,
        rank_choice_chart=None if rank_choice is None else _rank_choice_chart(rank_choice),
        sides=sides,
        stability="" if stability is None else stability_sentence(stability),
    )


def summary(findings: Findings) -> dict[str, Any]:
    """A short machine-readable summary of the findings, ready for JSON."""
    return {
        "title": findings.title,
        "source": findings.source,
        "sentence": findings.sentence,
        "shape": list(findings.shape),
        "quality": findings.quality,
        "observed_share": findings.observed_share,
        "comparison": [
            {"name": bar.label, "quality": bar.quality, "note": bar.missing or bar.note} for bar in findings.bars
        ],
        "certificates": [{"good": c.good, "title": c.title, "text": c.text} for c in findings.certificates],
        "factors": [
            {
                "kind": factor.kind,
                "index": factor.index,
                "name": factor.name,
                "share": factor.share,
                **({} if factor.stability is None else {"stability": factor.stability}),
                "members": [asdict(member) for member in factor.members],
                "alternatives": [asdict(substitute) for substitute in factor.alternatives],
                f"strongest_{findings.column_kind}s": [member.name for member in factor.columns],
                f"strongest_{findings.row_kind}s": [member.name for member in factor.rows],
            }
            for factor in findings.factors
        ],
        **({} if findings.rank_choice is None else {"rank_choice": _tried_ranks(findings.rank_choice)}),
        "quality_by_rank": [step.quality for step in findings.steps],
        "parameters": dict(findings.parameters),
        "warnings": list(findings.warnings),
    }


def _tried_ranks(choice: RankChoice) -> list[dict[str, Any]]:
    names = ("rank", "quality", "error", "standard_error", "stability")
    arrays = choice.ranks, choice.qualities, choice.errors, choice.standard_errors, choice.stabilities
    tried = (dict(zip(names, values, strict=True)) for values in zip(*(a.tolist() for a in arrays), strict=True))
    return [{**one, "chosen": one["rank"] == choice.rank} for one in tried]


def _bars(result: Factorization, comparison: Comparison, others: Sequence[Bar]) -> tuple[Bar, ...]:
    rank, note = result.selection.n_selected, comparison.nmf_note
    free = f"rank {rank}, nonnegative, factors free"
    if comparison.nmf_quality is not None:
        nmf: tuple[Bar, ...] = (Bar("NMF", comparison.nmf_quality, f"{free}; {note}" if note else free, "nmf"),)
    else:
        nmf = (Bar("NMF", None, free, "nmf", missing=note),) if note else ()
    bound = f"rank {rank}, any sign: no approximation is better"
    return (
        Bar("This result", result.quality, f"{result.selection.method}, nonnegative, made of the data itself", "ours"),
        *others,
        *nmf,
        Bar("Truncated SVD", comparison.svd_quality, bound, "svd", missing=comparison.svd_note),
    )


def _view(
    k: int,
    factor: Factor,
    explanation: Explanation,
    data: LabelledMatrix,
    alternatives: tuple[Substitute, ...],
    stability: float | None,
) -> FactorView:
    members = tuple(
        MixedMember(shown(data.name(factor.axis, int(i))), int(i), float(share))
        for i, share in zip(factor.members, factor.member_shares, strict=True)
    )
    return FactorView(
        number=k + 1,
        kind=data.kind(factor.axis),
        name=joined([member.name for member in members]),
        index=factor.index,
        share=factor.share,
        columns=_members(explanation, data, "columns", factor.columns, factor.column_strengths),
        rows=_members(explanation, data, "rows", factor.rows, factor.row_strengths),
        members=members,
        alternatives=alternatives,
        picture=factor_picture(explanation, data, k),
        stability=stability,
    )


def _substitutes(result: Factorization, data: LabelledMatrix) -> dict[int, tuple[Substitute, ...]]:
    """What else could have been chosen for each factor; nothing if that would take many passes over the data."""
    if not (result.knows_alternatives and result.source.in_memory and result.selection.n_selected):
        return {}
    found: dict[int, tuple[Substitute, ...]] = {}
    for alternative in result.alternatives(_ALTERNATIVES, quick=True).rows:
        k, axis, chosen, index, _, lost = cast("tuple[int, Axis, int, int, float, float]", alternative)
        names = shown(data.name(axis, index)), shown(data.name(axis, chosen))
        found[k] = (*found.get(k, ()), Substitute(*names, max(lost, 0.0)))
    return found


def _members(
    explanation: Explanation, data: LabelledMatrix, axis: Axis, indices: Indices, strengths: Floats
) -> tuple[Member, ...]:
    pictures = member_pictures(explanation, data, axis, indices)
    return tuple(
        Member(shown(data.name(axis, int(i))), float(value / strengths[0]), picture)
        for i, value, picture in zip(indices, strengths, pictures, strict=True)
    )


def _table(residuals: Residuals, data: LabelledMatrix, axis: Axis, factors: Sequence[FactorView]) -> ErrorTable:
    order = np.lexsort([-residuals.relative_errors, -residuals.error_shares])[:MAX_ROWS]
    worst = tuple(
        Explained(
            name=shown(data.name(axis, int(i))),
            index=int(i),
            error=float(residuals.relative_errors[i]),
            error_share=float(residuals.error_shares[i]),
            factor=factors[residuals.strongest[i]].name if residuals.strongest[i] >= 0 else "",
        )
        for i in order
    )
    errors = residuals.relative_errors
    return ErrorTable(
        data.kind(axis), errors.size, worst, histogram(errors), int(np.count_nonzero(errors >= UNEXPLAINED))
    )


def _steps(explanation: Explanation, factors: Sequence[FactorView], comparison: Comparison) -> tuple[RankStep, ...]:
    errors = explanation.rank_path().errors
    steps = []
    for rank, k in enumerate(explanation.factor_order, 1):
        bound = float(comparison.svd_path[rank]) if rank < comparison.svd_path.size else None
        steps.append(RankStep(rank, factors[k].kind, factors[k].name, 1.0 - float(errors[rank]), bound))
    return tuple(steps)


def _chart(steps: Sequence[RankStep], comparison: Comparison) -> LineChart | None:
    if len(steps) < 2:
        return None
    ours = np.array([0.0, *(step.quality for step in steps)])
    series = [("this result", "ours", ours)]
    if comparison.svd_path.size:
        series.append(("bound (SVD)", "svd", comparison.svd_path[: ours.size]))
    return rank_chart(series)


def _rank_choice_chart(choice: RankChoice) -> LineChart | None:
    if choice.ranks.size < 2:
        return None
    left_out = np.maximum(0.0, 1.0 - choice.errors)
    series = [("left-out entries", "ours", left_out), ("whole matrix", "svd", choice.qualities)]
    return rank_chart(series, choice.ranks)

"""What a report states in words: the headline, remarks on the data, and what is known about how good the result is."""

from __future__ import annotations

from dataclasses import dataclass

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import Comparison
from gsnmf.model_selection.stability import CHANGES, Stability
from gsnmf.records import Mixtures, SearchRecord
from gsnmf.registry import methods
from gsnmf.result import Factorization
from gsnmf.support.formatting import counted, listed, percent
from gsnmf.support.formatting import mixtures as mixtures_of
from gsnmf.support.reasons import StopReason


def headline(result: Factorization, data: LabelledMatrix, comparison: Comparison) -> str:
    """How much the chosen columns and rows explain."""
    m, n = result.matrix.shape
    whole = f"{counted(m, data.row_kind)} × {counted(n, data.column_kind)}"
    most = 1 if result.mixtures is None else result.mixtures.most
    chosen = [
        mixtures_of(indices.size, kind, most)
        for indices, kind in ((result.columns, data.column_kind), (result.rows, data.row_kind))
        if indices.size
    ]
    if not chosen:
        return f"There is nothing to explain: all entries of {whole} are zero"
    rank = result.selection.n_selected
    verb = "explains" if rank == 1 else "explain"
    if comparison.svd_quality is None or comparison.svd_quality <= 0:
        return f"{listed(chosen)} {verb} {percent(result.quality)} of {whole}{_where(result)}"
    part = percent(min(result.quality / comparison.svd_quality, 1.0))
    return f"{listed(chosen)} {verb} {part} of what any {counted(rank, 'factor')} can explain of {whole}"


def _where(result: Factorization) -> str:
    """Which entries the quality refers to, if not all."""
    if not result.problem.partial:
        return ""
    weighted = ", with their weights" if result.problem.entries_weighted else ""
    return f", on the {percent(result.observed_share)} of the entries that are observed{weighted}"


def lead(result: Factorization, comparison: Comparison) -> str:
    """The figures behind the fraction of the bound in the headline."""
    if not comparison.svd_quality or not result.selection.n_selected:
        return ""
    return (
        f"Their quality, one minus the relative error of the whole matrix, is {percent(result.quality)}. Truncated "
        f"SVD, which no other approximation of this rank can beat, has {percent(comparison.svd_quality)}"
    )


def remarks(result: Factorization) -> tuple[str, ...]:
    """What a reader must know about the data."""
    found = []
    if result.problem.partial:
        found.append(
            f"{percent(result.observed_share)} of the entries are observed, and the quality refers to these. Errors of "
            "single rows and columns, qualities by rank and pictures refer to the matrix with its holes filled."
        )
    if result.clipped_share:
        found.append(f"Negative entries, {percent(result.clipped_share)} of the norm, were set to zero.")
    return tuple(found)


def stability_sentence(stability: Stability) -> str:
    """How the percentages were found, and how similar the refits are overall."""
    agreements = ", ".join(f"{change} {percent(a)}" for change, a in zip(CHANGES, stability.agreements, strict=True))
    return (
        f"Stability is how often a factor, or one nearly parallel to it, came back in {3 * stability.n_repeats} refits "
        f"of changed data; factors below 50 % are marked. Agreement of all factors: {agreements}."
    )


@dataclass(frozen=True)
class Certificate:
    """Something that is known about the result, and whether it is good news."""

    good: bool
    title: str
    text: str


def certificates(result: Factorization, comparison: Comparison, tolerance: float) -> tuple[Certificate, ...]:
    """What is known about the weights, the choice, the members, the rank and the quality of a result."""
    members = () if result.mixtures is None else (_of_members(result.mixtures),)
    return (
        _of_weights(result, tolerance), _of_choice(result), *members, _of_rank(result), _of_bound(result, comparison),
    )  # fmt: skip


def _of_weights(result: Factorization, tolerance: float) -> Certificate:
    measured, spent = f"{result.optimality:.1e}", f", after {counted(result.n_iterations, 'iteration')}"
    if not result.converged:
        text = (
            f"Their optimality conditions are violated by {measured}, above the requested {tolerance:.1e}{spent}. The "
            "error is right for these weights; better ones exist."
        )
        return Certificate(False, "Weights not optimal to the tolerance", text)
    if not result.columns.size or not result.rows.size:
        text = f"Nonnegative least squares, solved exactly; the optimality conditions hold to {measured}."
        return Certificate(True, "Weights optimal", text)
    ended = spent if result.n_iterations else "; the starting weights already met this"
    text = f"Their problem is convex, and its optimality conditions hold to {measured} (requested: {tolerance:.1e})"
    return Certificate(True, "Weights optimal to the tolerance", f"{text}{ended}.")


def _of_choice(result: Factorization) -> Certificate:
    name = result.selection.method
    if result.search is not None:
        return Certificate(True, f"Choice by {name}", _searched(result.search))
    for method in methods():
        if method.name == name:
            text = f"What is known about its answer: {method.guarantee}."
            return Certificate(True, f"Choice by {name}: {method.title}", text)
    unknown = "This method is not one of the library's, so nothing is known about its answer."
    return Certificate(True, f"Choice by {name}", unknown)


def _searched(search: SearchRecord) -> str:
    """What a search did, in sentences."""
    best = min(search.starts, key=lambda start: start.relative_error, default=None)
    begin = f"{counted(len(search.starts), 'start')}" + (f", the best by {best.name}" if best else "")
    moved = f"; {search.exchanges_kept} of {search.exchanges_tried} exchanges lowered the error"
    shaken = f"; {search.perturbations_kept} of {search.perturbations} perturbations led to something better"
    candidates = f" {search.n_candidates[0]} columns and {search.n_candidates[1]} rows were considered."
    optimal = " At the end no exchange of one index for one of these helps." if search.optimal_under_exchanges else ""
    return f"{begin}{moved}{shaken if search.perturbations else ''}.{candidates}{optimal} It ended: {search.end}."


def _of_members(mixtures: Mixtures) -> Certificate:
    allowed = f"A factor may have {counted(mixtures.most, 'member')}"
    if mixtures.gain is None:
        text = f"{allowed} and is their mean: a mean keeps what its members have in common, not their noise."
        return Certificate(True, "Equal shares", text)
    if mixtures.settled:
        text = (
            f"{allowed}. No addition and no exchange of one member, among all columns and rows, lowers the error while "
            "the weights stay as they are."
        )
        return Certificate(True, "No other member helps", text)
    text = (
        f"{allowed}. The search ended early: the best addition or exchange of one member would lower the squared error "
        f"by {percent(mixtures.gain)}."
    )
    return Certificate(False, "Another member would help", text)


def _of_rank(result: Factorization) -> Certificate:
    rank = result.selection.n_selected
    if result.stop_reason == StopReason.RESIDUAL_IS_ZERO:
        text = f"The first {rank} already span the matrix; no more are needed."
        return Certificate(True, "Nothing left to explain", text)
    return Certificate(True, f"All {rank} found", "The search ended because it had as many as requested.")


def _of_bound(result: Factorization, comparison: Comparison) -> Certificate:
    bound = comparison.svd_quality
    if bound is None:
        return Certificate(True, "No bound computed", f"Truncated SVD was {comparison.svd_note or 'not computed'}.")
    part = min(result.quality / bound, 1.0) if bound > 0 else 1.0
    text = (
        f"No {result.selection.n_selected} factors of any kind can explain more than {percent(bound)} (truncated SVD). "
        "The error is measured on the whole matrix."
    )
    return Certificate(True, f"{percent(part)} of the best possible", text)

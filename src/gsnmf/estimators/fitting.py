"""From checked samples and the parameters of `gsnmf.GSNMF` to a factorization."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

from gsnmf.constraints import Constraints
from gsnmf.estimators.coefficients import COEFFICIENTS
from gsnmf.estimators.target import smallest_factorization
from gsnmf.functions import with_chosen_rank
from gsnmf.matrix import Matrix
from gsnmf.matrix.validation import check_count, check_positive
from gsnmf.problem import Problem
from gsnmf.registry import Plan, Ranks, find_method
from gsnmf.result import Factorization
from gsnmf.solve import solve
from gsnmf.support.arrays import Doubles
from gsnmf.support.progress import logger


@dataclass(frozen=True)
class Importance:
    """Weights of samples and of features in the error; None where all are equal."""

    of_samples: Doubles | None = None
    of_features: Doubles | None = None

    @property
    def equal(self) -> bool:
        """Whether all samples count equally, and all features too."""
        return self.of_samples is None and self.of_features is None


def factorized(model: Any, data: Problem, constraints: Constraints | None, importance: Importance) -> Factorization:
    """The factorization that the parameters of a model ask for."""
    samples = data.matrix
    check_positive(model.tol, "tol")
    check_count(model.max_iter, "max_iter")
    plain = isinstance(samples, Matrix) and importance.equal and not model.sum_to_one
    _check_coefficients(model, plain)
    method = find_method(model.method)
    model.__dict__.pop("rank_choice_", None)

    def of_rank(rank: Any) -> Factorization:
        return _of_rank(model, data, rank, constraints, importance)

    wanted = model.n_components
    if isinstance(wanted, str | range):
        asked = Problem(
            samples,
            wanted,
            constraints,
            sum_to_one=bool(model.sum_to_one),
            sample_weight=importance.of_samples,
            feature_weight=importance.of_features,
        )
        chosen, model.rank_choice_ = with_chosen_rank(asked, Plan(method.name, model.effort), name="n_components")
        wanted = chosen.rank
    if wanted is None:
        if not plain or not isinstance(samples, Matrix):
            raise ValueError(
                "n_components must be a number, a pair or 'auto' with missing values, and a number or a pair with "
                "weights of samples or features, or sum_to_one; got None."
            )
        if method.ranks == Ranks.PAIR:
            raise ValueError(f"method={model.method!r} needs n_components=(n_features, n_samples); got None.")
        goal = check_positive(model.target_error, "target_error")
        return smallest_factorization(samples, goal, of_rank)
    if isinstance(wanted, numbers.Integral) and not isinstance(wanted, bool):
        wanted = min(int(wanted), samples.shape[0] if model.sum_to_one else max(samples.shape))
        if model.sum_to_one and method.ranks == Ranks.PAIR:
            wanted = (0, wanted)
    return of_rank(method.checked_rank(wanted, samples.shape, name="n_components"))


def _check_coefficients(model: Any, plain: bool) -> None:
    if model.coefficients not in COEFFICIENTS:
        raise ValueError(f"coefficients must be 'refit' or 'model'; got {model.coefficients!r}.")
    if model.coefficients == "model" and (model.missing_values is not None or not plain):
        raise ValueError(
            "coefficients must be 'refit' with missing_values, weights of samples or features, or sum_to_one; got "
            "'model'."
        )
    if model.sum_to_one and model.members != 1:
        raise ValueError(f"members must be 1 with sum_to_one=True; got {model.members}.")


def _of_rank(
    model: Any, data: Problem, rank: Any, constraints: Constraints | None, importance: Importance
) -> Factorization:
    plan = Plan(model.method, model.effort, bool(model.scale), model.tol, model.max_iter, time_limit=model.time_limit)
    problem = replace(
        data,
        rank=rank,
        constraints=constraints,
        members=check_count(model.members, "members"),
        sum_to_one=bool(model.sum_to_one),
        sample_weight=importance.of_samples,
        feature_weight=importance.of_features,
    )
    result = solve(problem, plan)
    logger.info("%s features and %s samples: %.2f%%", result.columns.size, result.rows.size, 100 * result.quality)
    return result

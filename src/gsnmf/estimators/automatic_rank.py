"""The number of components of ``GSNMF(n_components="auto")``."""

from __future__ import annotations

from dataclasses import replace

from gsnmf.constraints import Constraints
from gsnmf.matrix import Matrix
from gsnmf.matrix.observed import Observed
from gsnmf.model_selection.rank_choice import RankChoice, choose_rank
from gsnmf.registry import Method, Ranks
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import COLUMNS_ALONE


def automatic_rank(
    samples: Matrix | Observed, method: Method, constraints: Constraints | None, effort: Effort
) -> RankChoice:
    """The rank that `gsnmf.choose_rank` recommends, of features or samples alone if the method chooses only those."""
    if method.ranks == Ranks.PAIR:
        raise ValueError(f"method={method.name!r} needs n_components=(n_features, n_samples); got 'auto'.")
    if len(method.axes) == 1:
        most = max(samples.shape)
        one_sided = (most, 0) if method.axes == COLUMNS_ALONE else (0, most)
        constraints = replace(constraints or Constraints(), at_most=one_sided)
    return choose_rank(samples, effort=effort, constraints=constraints)

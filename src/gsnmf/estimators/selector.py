"""`GSNMFSelector`, anchor features as unsupervised feature selection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gsnmf.estimators.input import checked_samples
from gsnmf.matrix.validation import check_count
from gsnmf.problem import Problem
from gsnmf.registry import Plan, Ranks, find_method, methods
from gsnmf.solve import choose
from gsnmf.support.arrays import Flags


class GSNMFSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Keep a few features such that all others are nearly nonnegative combinations of them.

    Parameters
    ----------
    n_features_to_select : int
        How many; all if the data has no more.
    method : str
        How to choose, one of `gsnmf.methods` that can choose columns alone.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`).

    Attributes
    ----------
    feature_indices_ : int array
        The features, in the order of choice.
    n_features_in_ : int
    feature_names_in_ : array of str
        If the training data has names of features.

    See Also
    --------
    gsnmf.GSNMF : Anchor features and pure samples, with weights.

    Examples
    --------
    >>> from gsnmf import GSNMFSelector
    >>> X = [[1, 0, 2], [0, 1, 2], [2, 3, 10]]
    >>> GSNMFSelector(2, method="snpa").fit(X).get_support()
    array([False,  True,  True])
    """

    def __init__(self, n_features_to_select: int = 10, *, method: str = "spa-columns", scale: bool = False) -> None:
        self.n_features_to_select = n_features_to_select
        self.method = method
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose features; X is nonnegative, dense, sparse or a Dask array, and y is ignored."""
        count = check_count(self.n_features_to_select, "n_features_to_select")
        method = find_method(self.method)
        if not method.chooses_columns_alone:
            allowed = ", ".join(repr(known.name) for known in methods() if known.chooses_columns_alone)
            raise ValueError(f"method must be one of {allowed}; got {self.method!r}.")
        samples = checked_samples(self, X, reset=True)
        count = min(count, samples.shape[1])
        rank = count if method.ranks == Ranks.NUMBER else (count, 0)
        plan = Plan(self.method, scale=bool(self.scale))
        self.feature_indices_ = choose(Problem(samples, rank), plan).selection.columns
        return self

    def transform(self, X: Any) -> Any:
        """The chosen features of samples, in the order that they have there; of a Dask array as a dense Dask array."""
        check_is_fitted(self)
        samples = checked_samples(self, X)
        if samples.in_memory:
            return super().transform(X)
        none = np.empty((samples.shape[0], 0), dtype=samples.dtype)
        return samples.left_factor(np.sort(self.feature_indices_), none)

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.feature_indices_] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

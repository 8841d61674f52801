"""`GSNMFSelector`, anchor features as unsupervised feature selection."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from gsnmf.factorization.path import select
from gsnmf.factorization.registry import Method, find_method, methods
from gsnmf.matrices.checks import check_count, check_matrix, is_dask
from gsnmf.support.arrays import Flags


class GSNMFSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Keep a few features of which all others are nearly nonnegative combinations.

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
        if not _chooses_columns(method):
            allowed = ", ".join(repr(known.name) for known in methods() if _chooses_columns(known))
            raise ValueError(f"method must be one of {allowed}; got {self.method!r}.")
        if is_dask(X):
            validate_data(self, X, skip_check_array=True)
        else:
            X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
            check_non_negative(X, f"{type(self).__name__}.fit")
        count = min(count, X.shape[1])
        rank = count if method.rank == "number" else (count, 0)
        self.feature_indices_ = select(X, rank, method=self.method, scale=self.scale).columns
        return self

    def transform(self, X: Any) -> Any:
        """The chosen features of samples, in the order that they have there; of a Dask array as a dense Dask array."""
        if not is_dask(X):
            return super().transform(X)
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)
        from gsnmf.matrices.chunked.arrays import lazy_columns

        return lazy_columns(cast("Any", check_matrix(X, name="X", lazy=True)), np.sort(self.feature_indices_))

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


def _chooses_columns(method: Method) -> bool:
    return method.rank != "number" or method.selects == "columns"

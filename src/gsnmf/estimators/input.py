"""Samples as scikit-learn and the library take them, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_non_negative, validate_data

from gsnmf.matrix import Matrix
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.validation import Hints, is_foreign
from gsnmf.problem import Problem

_HINTS = Hints("GSNMF(missing_values=numpy.nan)", 'GSNMF(negative="clip")')


def checked_samples(estimator: Any, X: Any, *, reset: bool = False) -> Matrix:
    """`admitted_samples` without holes and without negative entries."""
    held = admitted_samples(estimator, X, reset=reset).matrix
    assert isinstance(held, Matrix)
    return held


def admitted_samples(
    estimator: Any,
    X: Any,
    *,
    reset: bool = False,
    names: bool = True,
    missing_values: MissingValues = None,
    negative: Negative = "error",
) -> Problem:
    """Check samples, and their features against those that the estimator was fitted on.

    Parameters
    ----------
    estimator : GSNMF or GSNMFSelector
    X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
    reset : bool
        Whether the estimator is fitted on these samples.
    names : bool
        Whether names of features must be those of the fit.
    missing_values, negative
        As for `gsnmf.factorize`.
    """
    try:
        samples = Problem.of(X, missing_values=missing_values, negative=negative, name="X", hints=_HINTS)
    except (TypeError, ValueError) as error:
        if sp.issparse(X) or not is_foreign(X):
            _say_it_as_scikit_learn_does(estimator, X, reset, error, missing_values)
        raise
    if names:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return samples


def _say_it_as_scikit_learn_does(
    estimator: Any, X: Any, reset: bool, error: Exception, missing_values: MissingValues
) -> None:
    """Raise scikit-learn's message about wrong input, followed by the library's, which says where."""
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            order=None,
            ensure_all_finite="allow-nan" if missing_values is not None else True,
        )
        check_non_negative(checked, f"{type(estimator).__name__}.{'fit' if reset else 'transform'}")
    except (TypeError, ValueError) as known:
        raise type(known)(f"{known} {error}") from None

"""Samples as scikit-learn and the library take them, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_non_negative, validate_data

from gsnmf.matrices import Matrix, wrap


def checked_samples(estimator: Any, X: Any, *, reset: bool = False, names: bool = True) -> Matrix:
    """Check samples, and their features against those that the estimator was fitted on.

    Parameters
    ----------
    estimator : GSNMF or GSNMFSelector
    X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
    reset : bool
        Whether the estimator is fitted on these samples.
    names : bool
        Whether names of features must be those of the fit.
    """
    try:
        samples = wrap(X, name="X")
    except (TypeError, ValueError) as error:
        _say_it_as_scikit_learn_does(estimator, X, reset, error)
        raise
    if names:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return samples


def _say_it_as_scikit_learn_does(estimator: Any, X: Any, reset: bool, error: Exception) -> None:
    """Raise what scikit-learn has to say about wrong input, followed by what the library says, which knows where."""
    try:
        checked = validate_data(
            estimator, X, reset=reset, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), order=None
        )
        check_non_negative(checked, f"{type(estimator).__name__}.{'fit' if reset else 'transform'}")
    except (TypeError, ValueError) as known:
        raise type(known)(f"{known} {error}") from None

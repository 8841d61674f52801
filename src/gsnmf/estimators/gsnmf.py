"""`GSNMF`, the factorization as a scikit-learn estimator."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gsnmf.constraints import Constraints
from gsnmf.estimators.coefficients import Coefficients, explained
from gsnmf.estimators.fitting import Importance, factorized
from gsnmf.estimators.learned import REMEMBERED, Learned
from gsnmf.estimators.naming import index_names, index_of, named_constraints
from gsnmf.estimators.saving import load_model, save_model
from gsnmf.estimators.tables import component_table, sample_table
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.validation import check_block
from gsnmf.problem import checked_weight
from gsnmf.search.effort import Effort
from gsnmf.support.arrays import Floats
from gsnmf.support.formatting import Table
from gsnmf.support.progress import Bar, heard_by
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, warn_unless_converged

_UNNAMED = "Features are numbered; feature_names=, with a fitted vectorizer or a list of names, names them."


class GSNMF(TransformerMixin, Learned):  # type: ignore[misc]
    r"""Explain samples by a few features and a few samples of the training data.

    Chooses *anchor features* :math:`A` and *pure samples* :math:`S` of the training data and nonnegative weights that
    minimise

    .. math:: \| X - X(:, A)\, P_1 - P_2\, X(S, :) \|_F = \| X - W H \|_F,
        \quad W = [X(:, A),\; P_2], \quad H = [P_1;\; X(S, :)] .

    The components are anchor features first, then pure samples.

    Parameters
    ----------
    n_components : int, pair (n_features, n_samples), range, "auto", or None
        How many anchor features and pure samples to choose in total, or how many of each. Values above max(X.shape)
        are reduced to it. From a range `gsnmf.choose_rank` takes the number that predicts left-out entries best; "auto"
        is the range from 2 to 30. None: the smallest number that reaches ``target_error``.
    target_error : float
        For ``n_components=None``: the relative error to reach, with as few components as possible and at most 200. If
        truncated SVD proves it out of reach, as it often does for text, an error is raised at once.
    method : str
        How to choose: see `gsnmf.methods`.
    effort : {"fast", "balanced", "best"}
        What ``method="auto"`` may spend: about a second, ten seconds, or minutes.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`).
    coefficients : {"refit", "model"}
        What `transform` gives. ``"refit"``: the best nonnegative coefficients for ``components_``. ``"model"``: those
        of the model above, in which the coefficient of an anchor feature is the sample's own value there, and that of
        a mixture of features the mean of its values there, weighted by their shares.
    constraints : gsnmf.Constraints, optional
        Which features (columns) and samples (rows) must be chosen, which must not, and how many of each at least and at
        most: by indices, boolean masks, or, for a DataFrame, names of its columns and labels of its index.
    members : int
        How many features, or samples, a component may mix: 1 for single ones, which are easiest to read. Three to five
        explain much of what NMF explains beyond them. ``feature_indices_`` and ``sample_indices_`` are then the leading
        ones, and ``result_.column_mixture`` and ``result_.row_mixture`` have all of them with their shares.
    missing_values : numpy.nan, "unstored" or None
        Which entries are missing: those that are NaN in dense data, those that sparse data does not store, or none. The
        error is that of observed entries, and new samples may have holes as well.
    negative : {"error", "clip"}
        What to do with negative entries: refuse them, or set them to zero.
    sum_to_one : bool
        Samples as mixtures: pure samples alone are chosen, and the coefficients of a sample sum to one.
    time_limit : float, optional
        Seconds after which ``method="auto"`` settles for the best so far.
    tol : float
        On the relative violation of the optimality conditions of the weights (`gsnmf.weights`).
    max_iter : int
        Limit on the iterations of the weights.
    verbose : int
        Above 0, a bar on standard output shows how far the search is and the quality so far; in any case progress goes
        to the logger ``"gsnmf"``.

    Attributes
    ----------
    feature_indices_, sample_indices_ : int arrays of length r1 and r2
        Anchor features and pure samples, in the order of choice.
    components_ : array, shape (k, n_features)
        H.
    n_components_ : int
        r1 + r2. Fewer than asked for if they already explain everything.
    column_weights_ : array, shape (r1, n_features)
        P1.
    row_weights_ : array, shape (n_samples, r2)
        P2.
    labels_ : int array, shape (n_samples,)
        The group of each training sample, as `predict` gives it. There is one group per component: label j means that
        the sample resembles the samples of component j more, on average, than those of any other component. -1 for a
        sample that is zero everywhere. Not for a Dask array, for which `predict` gives them when it is asked.
    reconstruction_err_ : float
        ||X - W H||_F with the W of the model above, of observed entries and with their weights.
    quality_ : float
        One minus the relative error, 1 - ||X - W H||_F / ||X||_F, with the same W.
    observed_share_ : float
        Share of the entries that are observed.
    n_iter_ : int
        Iterations spent on the weights.
    n_features_in_ : int
    feature_names_in_ : array of str
        If the training data has names of features.
    sample_names_in_ : tuple of str, or None
        If the training data is a DataFrame with an index of names.
    rank_choice_ : RankChoice
        With a range or "auto": every number that was tried, and why this one is recommended.
    result_ : Factorization
        What `gsnmf.factorize` would return, with the training data in it. It is not pickled.

    Notes
    -----
    ``fit_transform(X)`` equals ``fit(X).transform(X)``. Both kinds of coefficients are exact, one small nonnegative
    least-squares problem per sample. Refitted ones never have a larger error than those of the model, and leave no
    sample without coefficients unless it shares no feature with any component.

    *Labels.* At first, each training sample is in the group of its strongest component: the one whose coefficient is
    largest compared with its mean over all training samples. Then each sample moves, up to ten times, to the group with
    whose samples it has the largest mean cosine. A new sample goes to the group with which it has the largest mean
    cosine, and to the largest group if it shares no feature with any. Holes count as what the components say, and
    features with the weights that they have in the error. The strongest component itself is
    ``(W / W.mean(axis=0)).argmax(axis=1)`` for the coefficients W of the training samples.

    A sparse X stays sparse: the time goes with its nonzeros. What is dense are the coefficients and the components.
    float32 stays float32.

    A Dask array is read chunk by chunk; what has one entry per sample (`transform`, `predict`, ``row_weights_``) is a
    Dask array with the same chunks of samples, computed when it is asked for. The first `predict` reads the training
    data about a dozen times to find the groups.

    See Also
    --------
    gsnmf.factorize : The function behind it.
    gsnmf.GSNMFSelector : Anchor features alone, as feature selection.

    Examples
    --------
    >>> from gsnmf import GSNMF
    >>> from gsnmf.datasets import planted
    >>> X = planted((60, 40), n_columns=2, n_rows=1, random_state=0).matrix
    >>> model = GSNMF(n_components=3).fit(X)
    >>> sorted(model.get_feature_names_out())
    ['anchor:x38', 'anchor:x7', 'sample:23']
    >>> model.transform(X[:5]).shape
    (5, 3)
    >>> print(f"{model.score(X):.1%}")
    100.0%
    """

    def __init__(
        self,
        n_components: int | tuple[int, int] | range | Literal["auto"] | None = 10,
        *,
        target_error: float = 0.1,
        method: str = "auto",
        effort: Effort = "balanced",
        scale: bool = False,
        coefficients: Coefficients = "refit",
        constraints: Constraints | None = None,
        members: int = 1,
        missing_values: MissingValues = None,
        negative: Negative = "error",
        sum_to_one: bool = False,
        time_limit: float | None = None,
        tol: float = DEFAULT_TOLERANCE,
        max_iter: int = DEFAULT_MAX_ITERATIONS,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.target_error = target_error
        self.method = method
        self.effort = effort
        self.scale = scale
        self.coefficients = coefficients
        self.constraints = constraints
        self.members = members
        self.missing_values = missing_values
        self.negative = negative
        self.sum_to_one = sum_to_one
        self.time_limit = time_limit
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, feature_weight: Any = None) -> Self:
        """Choose anchor features and pure samples, and learn the components.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative. The columns of a DataFrame name the features, its index the samples.
        y : ignored
        sample_weight : array-like of length n_samples, optional
            Nonnegative weight of each sample in the error; 0 leaves a sample out. For data in memory.
        feature_weight : array-like of length n_features, optional
            The same for features; `transform` uses these weights as well.

        Returns
        -------
        self
        """
        self.fit_transform(X, sample_weight=sample_weight, feature_weight=feature_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None, feature_weight: Any = None) -> Any:
        """Fit, and return the coefficients of the training data; parameters as for `fit`.

        Returns
        -------
        array, shape (n_samples, k)
            The same as ``fit(X).transform(X)``.
        """
        asked = self._problem(X, reset=True)
        samples = asked.matrix
        self._constraints = named_constraints(self.constraints, getattr(self, "feature_names_in_", None), index_of(X))
        importance = Importance(
            checked_weight(sample_weight, samples.shape[0], "sample_weight"),
            checked_weight(feature_weight, samples.shape[1], "feature_weight"),
        )
        with heard_by(Bar(sys.stdout)) if self.verbose else nullcontext():
            result = factorized(self, asked, self._constraints, importance)
        warn_unless_converged(result.weights, self.tol)
        self._remember(result, index_names(X), importance.of_features)
        W = self._coefficients(samples)
        if result.source.in_memory:
            self.labels_ = self._learn_groups(samples, W, importance.of_samples)
            self._strongest_samples = result.source.strongest_rows(W, REMEMBERED)
        return W

    def transform(self, X: Any) -> Any:
        """Coefficients of samples, as the parameter ``coefficients`` says.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative; with ``missing_values`` it may have holes, and a sample's observed entries count.

        Returns
        -------
        array, shape (n_samples, k)
        """
        check_is_fitted(self)
        return self._coefficients(self._admitted(X))

    def predict(self, X: Any) -> Any:
        """The group of each sample: the component whose training samples it resembles most; see ``labels_``.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative; it may have holes as for `transform`.

        Returns
        -------
        int array, shape (n_samples,)
            Numbers of components; -1 for a sample that is zero everywhere.
        """
        check_is_fitted(self)
        return self._labels(self._admitted(X))

    def fit_predict(self, X: Any, y: Any = None, *, sample_weight: Any = None, feature_weight: Any = None) -> Any:
        """Fit, and return ``labels_``, or for a Dask array what `predict` gives."""
        self.fit(X, sample_weight=sample_weight, feature_weight=feature_weight)
        return self.labels_ if hasattr(self, "labels_") else self.predict(X)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Samples from their coefficients, X H.

        Parameters
        ----------
        X : array-like or Dask array, shape (n_samples, k)
            Coefficients, as from `transform`.

        Returns
        -------
        array, shape (n_samples, n_features), dense; lazy if X is
        """
        check_is_fitted(self)
        return check_block(X, (None, self.n_components_), name="X") @ self.components_

    def score(self, X: Any, y: Any = None) -> float:
        """Quality with which the components explain samples: one minus the relative error, at most 1.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative; if it has holes, the error is that of observed entries.
        y : ignored
        """
        check_is_fitted(self)
        samples = self._admitted(X)
        return explained(samples, self._coefficients(samples), self.components_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the components: ``"anchor:"`` and a feature's name, or ``"sample:"`` and a sample's name or number.

        Parameters
        ----------
        input_features : array-like of str, or object with ``get_feature_names_out``, optional
            Names of the features, if the training data had none.
        """
        chosen = self._chosen(*self._names(input_features, None))
        return np.array([f"{kind}:{name}" for kind, name in chosen], dtype=object)

    def topics(
        self,
        n_words: int = 10,
        *,
        n_samples: int = 3,
        feature_names: Any = None,
        sample_names: Sequence[object] | None = None,
    ) -> Table:
        """The meaning of each component: its kind, its name, and where it is strongest.

        Parameters
        ----------
        n_words, n_samples : int
            How many features and how many training samples to give, at most.
        feature_names : array-like of str, or object with ``get_feature_names_out``, optional
            Names of the features, if the training data had none: a vectorizer, for instance.
        sample_names : sequence, optional
            Names of the training samples; by default those of the DataFrame's index, or their numbers.

        Returns
        -------
        Table
            One row per component, shown as text or HTML; ``.to_frame()`` makes a DataFrame of it.
        """
        table = component_table(self, n_words, n_samples, *self._names(feature_names, sample_names))
        named = feature_names is not None or hasattr(self, "feature_names_in_")
        return table if named else replace(table, caption=f"{table.caption}. {_UNNAMED}")

    def explain(self, sample: Any, *, feature_names: Any = None, sample_names: Sequence[object] | None = None) -> Table:
        """Which anchor features and pure samples make up one sample.

        Parameters
        ----------
        sample : int or str, or array-like, Series or sparse row with n_features entries
            Number of a training sample, its name in the DataFrame's index, or any sample.
        feature_names, sample_names
            As for `topics`.

        Returns
        -------
        Table
            One row per component that takes part, the largest part first: its kind, its name, its coefficient
            ("weight") and its part in the sum of the reconstructed sample ("share").
        """
        return sample_table(self, sample, self._chosen(*self._names(feature_names, sample_names)))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, without the training data and without pickle; `load` reads it."""
        check_is_fitted(self)
        save_model(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `save` wrote. It can do everything but show the training data, for which
        `gsnmf.report` asks.
        """
        return load_model(cls, path)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = isinstance(self.missing_values, float) and math.isnan(self.missing_values)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

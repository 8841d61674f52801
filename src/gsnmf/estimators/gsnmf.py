"""`GSNMF`, the factorization as a scikit-learn estimator: samples in rows, features in columns."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, check_non_negative, validate_data

from gsnmf.explanation.topics import describe_factors, strongest_rows
from gsnmf.factorization.path import factorize
from gsnmf.factorization.registry import find_method
from gsnmf.kernels.compilation import announced_compilation, logger
from gsnmf.matrices.checks import check_count, check_matrix, check_positive, is_dask
from gsnmf.matrices.protocol import dense_columns, wrap
from gsnmf.metrics import quality
from gsnmf.results.records import Factorization
from gsnmf.search.automatic import Effort
from gsnmf.search.ranks import rank_path
from gsnmf.support.arrays import Floats, Indices, RawMatrix
from gsnmf.support.tables import Table
from gsnmf.weights import DEFAULT_MAX_ITERATIONS, DEFAULT_TOLERANCE, remaining_weights

_LARGEST_SEARCHED = 200
"""Where the search for a number of components ends: every step costs more than the one before."""


class GSNMF(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Explain samples by a few features and a few samples of the training data.

    Chooses *anchor features* :math:`A` and *pure samples* :math:`S` of the training data and nonnegative weights that
    minimise

    .. math:: \| X - X(:, A)\, P_1 - P_2\, X(S, :) \|_F = \| X - W H \|_F,
        \quad W = [X(:, A),\; P_2], \quad H = [P_1;\; X(S, :)] .

    The components are anchor features first, then pure samples.

    Parameters
    ----------
    n_components : int, pair (n_features, n_samples), or None
        How many anchor features and pure samples to choose in all, or how many of each. None: as many as it takes to
        reach ``target_error``.
    target_error : float
        For ``n_components=None``: the relative error to reach. The search starts from the number of components that
        `gsnmf.rank_path` takes and fits until it has a number that reaches the error and one less that does not. It
        does not go beyond 200 components: text, for instance, is rarely explained so well.
    method : str
        How to choose: see `gsnmf.methods`.
    effort : {"fast", "balanced", "best"}
        What ``method="auto"`` may spend: about a second, ten seconds, or minutes.
    scale : bool
        Choose on the matrix scaled to equal row sums and equal column sums (`gsnmf.scale`).
    tol : float
        On the relative violation of the optimality conditions of the weights (`gsnmf.weights`).
    max_iter : int
        Limit on the iterations of the weights.
    random_state : int, RandomState instance or None
        Has no effect: every method is deterministic. It is there so that GSNMF can take the place of
        `sklearn.decomposition.NMF`.
    verbose : int
        Above 0, progress is written to standard output; in any case it goes to the logger ``"gsnmf"``.

    Attributes
    ----------
    feature_indices_, sample_indices_ : int arrays of length r1 and r2
        Anchor features and pure samples, in the order of choice.
    components_ : array, shape (n_components_, n_features)
        H.
    n_components_ : int
        r1 + r2. Fewer than asked for if they already explain everything.
    feature_weights_ : array, shape (r1, n_features)
        P1.
    sample_weights_ : array, shape (n_samples, r2)
        P2.
    reconstruction_err_ : float
        ||X - W H||_F.
    quality_ : float
        One minus the relative error, 1 - ||X - W H||_F / ||X||_F.
    n_iter_ : int
        Iterations spent on the weights.
    n_features_in_ : int
    feature_names_in_ : array of str
        If the training data has names of features.
    result_ : Factorization
        What `gsnmf.factorize` returned, with the training data in it.

    Notes
    -----
    `transform` reads the anchor values of a sample off the sample and finds its other coefficients by nonnegative least
    squares with the learned components, exactly. `fit_transform` ends with that same step, so that
    ``fit_transform(X)`` equals ``fit(X).transform(X)``. The row weights of ``result_``, which were found together with
    P1, solve it up to ``tol``. They agree with ``sample_weights_`` to about that accuracy if the pure samples are
    linearly independent; their error, which is the one reported, is in any case no smaller than that of
    ``fit_transform(X)``.

    A sparse X stays sparse: the time goes with its nonzeros. What is dense are the coefficients and the components.
    float32 stays float32.

    A Dask array is read chunk by chunk; its coefficients, from `transform` and in ``sample_weights_``, are Dask arrays
    with the same chunks of samples, computed when they are asked for.

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
        n_components: int | tuple[int, int] | None = None,
        *,
        target_error: float = 0.1,
        method: str = "auto",
        effort: Effort = "balanced",
        scale: bool = False,
        tol: float = DEFAULT_TOLERANCE,
        max_iter: int = DEFAULT_MAX_ITERATIONS,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.target_error = target_error
        self.method = method
        self.effort = effort
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose anchor features and pure samples, and learn the components.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit, and return the coefficients W of the training data; parameters as for `fit`.

        Returns
        -------
        array, shape (n_samples, n_components_)
            ``[X[:, feature_indices_], sample_weights_]``, the same as ``fit(X).transform(X)``.
        """
        matrix = self._checked(X, reset=True)
        with announced_compilation(self.verbose):
            self.result_ = result = self._factorized(matrix)
            self.feature_indices_, self.sample_indices_ = result.columns, result.rows
            self.n_components_ = result.columns.size + result.rows.size
            self.components_, self.feature_weights_ = result.H, result.column_weights
            W = self._coefficients(matrix)
        self.sample_weights_ = W[:, result.columns.size :].copy()
        self.quality_ = result.quality
        self.reconstruction_err_ = result.relative_error * _norm(matrix)
        self.n_iter_ = max(1, result.n_iterations)
        return W

    def transform(self, X: Any) -> Floats:
        """Coefficients of samples: their values at the anchor features, and the weights of the pure samples.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative.

        Returns
        -------
        array, shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        return self._coefficients(self._checked(X))

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Samples from their coefficients, X H.

        Parameters
        ----------
        X : array-like or Dask array, shape (n_samples, n_components_)
            Coefficients, as from `transform`.

        Returns
        -------
        array, shape (n_samples, n_features), dense; lazy if X is
        """
        check_is_fitted(self)
        lazy = is_dask(X)
        W: Any = X if lazy else check_array(X, dtype=(np.float64, np.float32), ensure_min_features=0, input_name="X")
        if W.shape[1] != self.n_components_:
            raise ValueError(f"X must have {self.n_components_} columns, one a component; got {W.shape[1]}.")
        product = W @ self.components_
        return cast("Floats", product) if lazy else np.asarray(product)

    def score(self, X: Any, y: Any = None) -> float:
        """Quality with which the components explain samples: one minus the relative error, at most 1.

        Parameters
        ----------
        X : array-like, DataFrame, sparse or Dask array, shape (n_samples, n_features)
            Nonnegative.
        y : ignored
        """
        check_is_fitted(self)
        matrix = self._checked(X)
        return quality(matrix, self._coefficients(matrix), self.components_)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the components: ``"anchor:"`` and a feature's name, or ``"sample:"`` and a sample's number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the features, if the training data had none.
        """
        features = self._feature_names(input_features)
        names = [f"anchor:{features[j]}" for j in self.feature_indices_]
        return np.array(names + [f"sample:{i}" for i in self.sample_indices_], dtype=object)

    def topics(
        self,
        n_words: int = 10,
        *,
        n_samples: int = 3,
        feature_names: ArrayLike | None = None,
        sample_names: Sequence[object] | None = None,
    ) -> Table:
        """What each component stands for: its kind, its name, and where it is strongest.

        Parameters
        ----------
        n_words, n_samples : int
            How many features and how many training samples to give, at most.
        feature_names : array-like of str, optional
            Names of the features, if the training data had none: those of a vectorizer, for instance.
        sample_names : sequence, optional
            Names of the training samples; their numbers if left out.

        Returns
        -------
        Table
            A row a component, shown as text or HTML; ``.to_frame()`` makes a DataFrame of it.
        """
        features, samples = self._names(feature_names, sample_names)
        chosen = self._chosen(features, samples)
        W, shown = self._training_coefficients(samples, check_count(n_samples, "n_samples"))
        factors = describe_factors(
            W, self.components_, chosen, features, shown, n_columns=check_count(n_words, "n_words"), n_rows=n_samples
        )
        rows = tuple((factor.kind, factor.name, factor.columns, factor.rows) for factor in factors)
        return Table(("kind", "name", "features", "samples"), rows, f"quality {self.quality_:.1%}")

    def explain(
        self,
        sample: Any,
        *,
        feature_names: ArrayLike | None = None,
        sample_names: Sequence[object] | None = None,
    ) -> Table:
        """Which anchor features and pure samples make up one sample.

        Parameters
        ----------
        sample : int, or array-like, Series or sparse row with n_features entries
            Number of a training sample, or any sample.
        feature_names, sample_names
            As for `topics`.

        Returns
        -------
        Table
            A row a component that takes part, the largest part first: its kind, its name, its coefficient ("weight")
            and its part in the sum of the reconstructed sample ("share").
        """
        features, samples = self._names(feature_names, sample_names)
        row = self._one_sample(sample)
        weights = self._coefficients(row)[0].astype(np.float64)
        parts = weights * self.components_.sum(axis=1, dtype=np.float64)
        shares = parts / (parts.sum() or 1.0)
        chosen = self._chosen(features, samples)
        rows = tuple(
            (*chosen[k], float(weights[k]), float(shares[k]))
            for k in np.argsort(-shares, kind="stable")
            if shares[k] > 0
        )
        explained = quality(row, weights[None, :], self.components_)
        return Table(("kind", "name", "weight", "share"), rows, f"quality {explained:.1%}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked(self, X: Any, *, reset: bool = False) -> RawMatrix:
        """Samples that scikit-learn takes (names, number of features) and that the library takes."""
        if is_dask(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return check_matrix(X, name="X", lazy=True)
        checked = validate_data(
            self, X, reset=reset, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), order=None
        )
        check_non_negative(checked, f"{type(self).__name__}.{'fit' if reset else 'transform'}")
        return check_matrix(checked, name="X")

    def _factorized(self, matrix: RawMatrix) -> Factorization:
        check_positive(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        if self.n_components is None:
            return self._smallest(matrix)
        rank = find_method(self.method).checked_rank(self.n_components, matrix.shape, name="n_components")
        return self._of_rank(matrix, rank)

    def _of_rank(self, matrix: RawMatrix, rank: int | tuple[int, int]) -> Factorization:
        result = factorize(
            matrix,
            rank,
            method=self.method,
            effort=self.effort,
            scale=self.scale,
            tolerance=self.tol,
            max_iterations=self.max_iter,
        )
        logger.info("%s features and %s samples: %.2f%%", result.columns.size, result.rows.size, 100 * result.quality)
        return result

    def _smallest(self, matrix: RawMatrix) -> Factorization:
        """As few components as reach the target error, to begin with those of nested choices, or more."""
        if find_method(self.method).rank == "pair":
            raise ValueError(f"method={self.method!r} needs n_components=(n_features, n_samples); got None.")
        goal, limit = check_positive(self.target_error, "target_error"), min(_LARGEST_SEARCHED, max(matrix.shape))
        errors = rank_path(matrix, limit, target_error=goal).errors
        error, rank = float(errors[-1]), max(1, errors.size - 1)
        while error <= goal:
            result = self._of_rank(matrix, rank)
            if result.relative_error <= goal:
                return self._shortened(matrix, result, goal)
            if rank == limit:
                error = result.relative_error
            rank += 1
        raise ValueError(
            f"{limit} components have a relative error of {error:.3g}, above target_error={goal}; raise it or set "
            "n_components."
        )

    def _shortened(self, matrix: RawMatrix, result: Factorization, goal: float) -> Factorization:
        """Fewer components, as few as still reach the goal, by bisection."""
        too_few = 0
        while result.selection.n_selected - too_few > 1:
            rank = (too_few + result.selection.n_selected) // 2
            trial = self._of_rank(matrix, rank)
            if trial.relative_error <= goal:
                result = trial
            else:
                too_few = rank
        return result

    def _coefficients(self, matrix: RawMatrix) -> Floats:
        """W of samples, in their precision; lazy if they are."""
        work = partial(coefficients, features=self.feature_indices_)
        if is_dask(matrix):
            from gsnmf.matrices.chunked.arrays import map_rows

            return cast("Floats", map_rows(matrix, work, self.n_components_, shared=(self.components_,), name="X"))
        return work(matrix, self.components_)

    def _training_coefficients(self, names: Sequence[object], n_samples: int) -> tuple[Floats, Sequence[object]]:
        """W of the training samples, and their names; of a Dask array only of those that are strongest somewhere."""
        matrix = self.result_.matrix
        if not is_dask(matrix):
            return np.hstack([dense_columns(matrix, self.feature_indices_), self.sample_weights_]), names
        from gsnmf.matrices.chunked.arrays import left_factor

        found = strongest_rows(left_factor(matrix, self.feature_indices_, self.sample_weights_), n_samples + 1)
        shown = np.unique(np.concatenate([positions for positions, _ in found]))
        W = np.zeros((shown.size, self.n_components_), dtype=self.components_.dtype)
        for k, (positions, values) in enumerate(found):
            W[np.searchsorted(shown, positions), k] = values
        return W, [names[i] for i in shown]

    def _one_sample(self, sample: Any) -> RawMatrix:
        """One row: a training sample by its number, or the sample given."""
        if isinstance(sample, numbers.Integral):
            n_samples = self.result_.matrix.shape[0]
            number = int(sample)
            if not 0 <= number < n_samples:
                raise ValueError(f"sample must be in [0, {n_samples - 1}] or a sample itself; got {number}.")
            if is_dask(self.result_.matrix):
                return dense_columns(self.result_.matrix, np.array([number]), across=True).T
            return self.result_.matrix[[number], :]
        if sample is None or isinstance(sample, str):
            raise TypeError(f"sample must be the number of a training sample or a sample itself; got {sample!r}.")
        if hasattr(sample, "to_frame"):  # a row of a DataFrame
            sample = sample.to_frame().T
        elif np.ndim(sample) == 1:
            sample = np.reshape(sample, (1, -1))
        row = self._checked(sample)
        if row.shape[0] != 1:
            raise ValueError(f"sample must be one sample; got {row.shape[0]}.")
        return row

    def _feature_names(self, given: ArrayLike | None) -> NDArray[np.object_]:
        """Names of all features, checked against what the estimator was fitted on as scikit-learn does it."""
        check_is_fitted(self)
        return np.asarray(OneToOneFeatureMixin.get_feature_names_out(self, given), dtype=object)

    def _names(
        self, feature_names: ArrayLike | None, sample_names: Sequence[object] | None
    ) -> tuple[list[str], Sequence[object]]:
        features = [str(name) for name in self._feature_names(feature_names)]
        n_samples = self.result_.matrix.shape[0]
        samples = range(n_samples) if sample_names is None else list(sample_names)
        if len(samples) != n_samples:
            raise ValueError(f"sample_names must have {n_samples} entries; got {len(samples)}.")
        return features, samples

    def _chosen(self, features: list[str], samples: Sequence[object]) -> list[tuple[str, str]]:
        """Kind and name of each component."""
        anchors = [("anchor", features[j]) for j in self.feature_indices_]
        return anchors + [("sample", str(samples[i])) for i in self.sample_indices_]


def _norm(matrix: RawMatrix) -> float:
    held = wrap(matrix)
    return float(np.ldexp(np.sqrt(held.squared_norm), held.exponent))


def coefficients(matrix: RawMatrix, components: Floats, features: Indices) -> Floats:
    """W of samples that are in memory, for fitted components of which those of ``features`` come first."""
    r1 = features.size
    weights = remaining_weights(wrap(matrix), features, components[:r1], components[r1:])
    return np.hstack([dense_columns(matrix, features), weights.astype(matrix.dtype, copy=False)])

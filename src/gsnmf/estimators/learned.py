"""What `gsnmf.GSNMF` learns, and what follows from it without the parameters of the search."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from gsnmf.estimators.coefficients import Anchors, CoefficientRule, Coefficients, coefficients
from gsnmf.estimators.grouping import Groups, comparable, learn_groups, nearest_group
from gsnmf.estimators.input import admitted_samples
from gsnmf.estimators.naming import component_names, names_out, sample_names
from gsnmf.matrix import Matrix
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.observed import Observed
from gsnmf.problem import Problem
from gsnmf.result import Factorization
from gsnmf.support.arrays import Doubles, Floats, Indices

REMEMBERED = 100
"""How many of the strongest training samples per component a model remembers without the training data."""


class Learned(BaseEstimator):  # type: ignore[misc]
    """The learned state of a model: components, names, and means over the training samples, but never its data."""

    coefficients: Coefficients
    missing_values: MissingValues
    negative: Negative
    sum_to_one: bool
    result_: Factorization
    _strongest_samples: list[tuple[Indices, Floats]] | None
    _groups: Groups | None

    def _remember(self, result: Factorization, names: tuple[str, ...] | None, feature_weight: Doubles | None) -> None:
        """Set what is learned."""
        self.result_ = result
        self.selection_ = result.selection
        self.feature_indices_, self.sample_indices_ = result.columns, result.rows
        self.n_components_ = result.selection.n_selected
        self.n_samples_fit_ = result.source.shape[0]
        self.components_, self.column_weights_, self.row_weights_ = result.H, result.column_weights, result.row_weights
        self.quality_ = result.quality
        self.observed_share_ = result.observed_share
        self.reconstruction_err_ = result.absolute_error
        self.n_iter_ = max(1, result.n_iterations)
        self.sample_names_in_ = names
        self._members = [(members.tolist(), shares.tolist()) for members, shares in result.members]
        self._feature_weight = feature_weight
        self._strongest_samples = None
        self._groups = None
        self.__dict__.pop("labels_", None)

    def _admitted(self, X: Any, *, names: bool = True) -> Matrix | Observed:
        """Checked samples."""
        return self._problem(X, names=names).matrix

    def _problem(self, X: Any, *, reset: bool = False, names: bool = True) -> Problem:
        """Checked samples; warns if much was cut off and, when fitting, about empty rows and columns."""
        data = admitted_samples(
            self, X, reset=reset, names=names, missing_values=self.missing_values, negative=self.negative
        )
        data.warn(name="X", of_empty=reset)
        return data

    def _one_sample(self, sample: Any) -> Matrix | Observed:
        """One row: a training sample by its number or name, or the sample given."""
        if isinstance(sample, str) and self.sample_names_in_ and sample in self.sample_names_in_:
            sample = self.sample_names_in_.index(sample)
        if isinstance(sample, numbers.Integral):
            number = int(sample)
            if not 0 <= number < self.n_samples_fit_:
                raise ValueError(f"sample must be in [0, {self.n_samples_fit_ - 1}] or a sample itself; got {number}.")
            sample = self.result_.source.T.raw_columns(np.array([number])).T
            return self._admitted(sample, names=False)
        if sample is None or isinstance(sample, str):
            raise TypeError(
                f"sample must be the number or name of a training sample, or a sample itself; got {sample!r}."
            )
        if hasattr(sample, "to_frame"):  # a row of a DataFrame
            sample = sample.to_frame().T
        elif np.ndim(sample) == 1:
            sample = np.reshape(sample, (1, -1))
        row = self._admitted(sample)
        if row.shape[0] != 1:
            raise ValueError(f"sample must be one sample; got {row.shape[0]}.")
        return row

    def _coefficients(self, samples: Matrix | Observed) -> Any:
        anchors = Anchors.of(self._members[: self.feature_indices_.size])
        rule = CoefficientRule(self.coefficients, anchors, self.sum_to_one, self._feature_weight)
        return coefficients(samples, self.components_, rule)

    def _learn_groups(self, samples: Matrix | Observed, W: Any, sample_weight: Doubles | None = None) -> Any:
        """Labels of the training samples; remembers what `_labels` needs for other samples."""
        held = comparable(samples, W, self.components_, self._feature_weight)
        labels, self._groups = learn_groups(held, W, sample_weight)
        return labels

    def _known_groups(self) -> Groups:
        """What was learned about the groups."""
        if self._groups is None:
            source = self.result_.source
            self._learn_groups(source, self._coefficients(source))
        assert self._groups is not None
        return self._groups

    def _labels(self, samples: Matrix | Observed) -> Any:
        """The component to whose group each sample belongs."""
        groups = self._known_groups()
        W = self._coefficients(samples) if isinstance(samples, Observed) else None
        return nearest_group(comparable(samples, W, self.components_, self._feature_weight), groups)

    def _strongest(self) -> list[tuple[Indices, Floats]]:
        """Positions and values of the training samples in which each component is strongest."""
        if self._strongest_samples is None:
            source = self.result_.source
            self._strongest_samples = source.strongest_rows(self._coefficients(source), REMEMBERED)
        return self._strongest_samples

    def _names(self, features: Any, samples: Sequence[object] | None) -> tuple[NDArray[np.object_], Sequence[object]]:
        """Names of all features, checked as scikit-learn does it, and of all training samples."""
        check_is_fitted(self)
        known = OneToOneFeatureMixin.get_feature_names_out(self, names_out(features))
        return np.asarray(known, dtype=object), sample_names(samples, self.sample_names_in_, self.n_samples_fit_)

    def _chosen(self, features: NDArray[np.object_], samples: Sequence[object]) -> list[tuple[str, str]]:
        """Kind and name of each component."""
        return component_names(features, samples, [own for own, _ in self._members], self.feature_indices_.size)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the training data, which ``result_`` holds."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "components_" in state:
            self._strongest()
            self._known_groups()
            state |= {"_strongest_samples": self._strongest_samples, "_groups": self._groups}
        state.pop("result_", None)
        state.pop("_constraints", None)
        return state

    def __getattr__(self, name: str) -> Any:
        if name == "result_" and "components_" in self.__dict__:
            raise AttributeError("result_ holds the training data, which are not saved with a model; fit it again.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

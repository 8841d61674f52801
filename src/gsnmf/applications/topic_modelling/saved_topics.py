"""Topic models in files, complete: with the texts, the vocabulary and the matrix, so that a loaded model can do
everything.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import scipy.sparse as sp

from gsnmf.io import SavedResult, check_numbers
from gsnmf.matrix.validation import check_indices
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.model_selection.stability import Stability
from gsnmf.support.arrays import Doubles, Floats, Indices

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import TopicModel

FORMAT = "gsnmf topics"

VectorizerName = Literal["TfidfVectorizer", "CountVectorizer"]


@dataclass(frozen=True)
class SavedVectorizer:
    """The class, the parameters and the vocabulary of one of scikit-learn's vectorizers."""

    kind: VectorizerName
    parameters: dict[str, Any]
    words: tuple[str, ...]
    idf: Floats | None

    @classmethod
    def of(cls, vectorizer: Any) -> SavedVectorizer:
        """What a file keeps of a vectorizer, or an error if it cannot keep all of it."""
        kind, allowed = type(vectorizer), get_args(VectorizerName)
        if kind.__name__ not in allowed or not kind.__module__.startswith("sklearn."):
            raise TypeError(
                f"a topic model can be saved with scikit-learn's {' or '.join(allowed)}; got {kind.__name__}. Pickle "
                "keeps other vectorizers."
            )
        parameters = vectorizer.get_params()
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
        words = tuple(map(str, vectorizer.get_feature_names_out()))
        if parameters["vocabulary"] is not None:
            parameters["vocabulary"] = words
        if not isinstance(parameters["stop_words"], str | None):
            parameters["stop_words"] = sorted(parameters["stop_words"])
        for name, value in parameters.items():
            if callable(value):
                raise TypeError(
                    f"a topic model cannot be saved if {name} of its vectorizer is a function; got {value!r}."
                )
        return cls(cast("VectorizerName", kind.__name__), parameters, words, getattr(vectorizer, "idf_", None))

    def restored(self) -> Any:
        """The vectorizer, fitted."""
        from sklearn.feature_extraction import text  # slow to import

        parameters = dict(self.parameters)
        parameters["ngram_range"] = tuple(parameters["ngram_range"])
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        vectorizer = getattr(text, self.kind)(**parameters | {"vocabulary": self.words}).fit([""])
        if self.idf is not None:
            vectorizer.idf_ = check_numbers(self.idf, "idf", shape=(len(self.words),))
        return vectorizer.set_params(vocabulary=parameters["vocabulary"])


@dataclass(frozen=True)
class SavedTopics:
    """A `TopicModel` as its file holds it; fields as there, and ``matrix``."""

    result: SavedResult
    matrix: sp.csr_array
    vectorizer: SavedVectorizer
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    labels: tuple[str, ...]
    dates: tuple[str | None, ...]
    order: Indices
    components: Doubles
    weights: Doubles
    document_topics: Indices
    means: Floats
    rank_choice: RankChoice | None
    stability: Stability | None

    @classmethod
    def of(cls, model: TopicModel) -> SavedTopics:
        """What a file keeps of a model."""
        changed = {
            "result": SavedResult.of(model.result),
            "vectorizer": SavedVectorizer.of(model.vectorizer),
            "dates": tuple(None if day is None else day.isoformat() for day in model.dates),
        }
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)} | changed)

    def model_fields(self) -> dict[str, Any]:
        """The fields of the model."""
        kept = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "matrix"}
        return kept | {
            "result": self.result.with_matrix(self.matrix),
            "vectorizer": self.vectorizer.restored(),
            "dates": tuple(None if day is None else date.fromisoformat(day) for day in self.dates),
        }

    def check(self) -> None:
        """Raise unless topics, weights and documents fit each other."""
        m, n = self.matrix.shape
        rank = self.result.columns.size + self.result.rows.size
        if check_indices(self.order, rank, "order").size != rank:
            raise ValueError(f"order must be a permutation of {rank} topics")
        for name, shape in {"components": (rank, n), "weights": (m, rank), "means": (rank, n)}.items():
            check_numbers(getattr(self, name), name, shape=shape, nonnegative=True)
        topics = check_numbers(self.document_topics, "document_topics", shape=(m,))
        if topics.size and not -1 <= topics.min() <= topics.max() < max(rank, 1):
            raise ValueError("document_topics must be numbers of topics")
        if len(self.vectorizer.words) != n:
            raise ValueError(f"there must be {n} words; got {len(self.vectorizer.words)}")
        for name in ("texts", "ids", "labels", "dates"):
            count = len(getattr(self, name))
            if count != m and not (count == 0 and name in ("labels", "dates")):
                raise ValueError(f"there must be {m} {name}; got {count}")

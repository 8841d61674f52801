"""`TopicModel`: topics with their words, their documents, and the passages that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from gsnmf.applications.topic_modelling import topic_words
from gsnmf.applications.topic_modelling.document_report import gather_documents, render_documents
from gsnmf.applications.topic_modelling.saved_topics import FORMAT, SavedTopics
from gsnmf.applications.topic_modelling.text import Date, check_texts, nonnegative, periods, word_sequences
from gsnmf.applications.topic_modelling.topic_words import Passage
from gsnmf.estimators.grouping import Groups, nearest_group
from gsnmf.io import load_record, one_error, save_record
from gsnmf.matrix import Matrix, wrap
from gsnmf.matrix.protocol import largest_of
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.model_selection.stability import Stability
from gsnmf.records import Record
from gsnmf.result import Factorization
from gsnmf.support.arrays import Doubles, Floats, Indices
from gsnmf.support.atomic_files import atomic_write
from gsnmf.support.formatting import Table, counted
from gsnmf.support.optional import import_optional
from gsnmf.weights import coefficients_for

if TYPE_CHECKING:
    import pandas as pd

_IN_A_NAME = 3
"""Words in the name of a topic."""

Kind = Literal["word", "document"]


@dataclass(frozen=True)
class Topic:
    """A topic: the words or documents that were chosen for it, and its strongest words.

    Attributes
    ----------
    kind : {"word", "document"}
        What was chosen.
    leading : tuple of str
        The chosen words, or the names of the chosen documents, the largest share first.
    leading_shares : tuple of float
        Their shares in the topic, which sum to one.
    words : tuple of str
        The chosen words first, then the strongest others.
    share : float
        Part of the documents that belong to the topic.
    """

    kind: Kind
    leading: tuple[str, ...]
    leading_shares: tuple[float, ...]
    words: tuple[str, ...]
    share: float

    @property
    def name(self) -> str:
        """The first three words."""
        return ", ".join(self.words[:_IN_A_NAME])


@dataclass(frozen=True, repr=False, eq=False)
class TopicModel(Record):
    """Topics of documents, made by `gsnmf.applications.topics` and sorted by their number of documents.

    Two models are equal if they have the same documents, topics and weights.

    Attributes
    ----------
    result : Factorization
        The words and documents that were chosen, and how well they explain the matrix.
    vectorizer : scikit-learn vectorizer
        Turns texts into the matrix of documents x words.
    texts, ids : tuples of str
        The documents and their names.
    labels : tuple of str
        Label of each document; empty if there are none.
    dates : tuple of date or None
        Date of each document; empty if there are none.
    order : int array of length n_topics
        The number of each topic among the factors of ``result``, chosen columns first, then chosen rows.
    components : array, shape (n_topics, n_words)
        The topics as weights of words.
    weights : array, shape (n_documents, n_topics)
        How much of each topic a document holds, by nonnegative least squares on ``components``.
    document_topics : int array of length n_documents
        The topic whose documents each document resembles most; -1 for a document without a known word.
    means : array, shape (n_topics, n_words)
        The mean document of each topic, each document scaled to unit length.
    rank_choice : RankChoice or None
        Why this number of topics was chosen, if it was not given: see `gsnmf.choose_rank`.
    stability : Stability or None
        How stable the topics are, in the order of ``result``, if it was asked for: see `gsnmf.stability`.

    Examples
    --------
    >>> from gsnmf.applications import topics
    >>> texts = ["cats purr", "cats purr softly", "dogs bark", "dogs bark loudly"] * 3
    >>> model = topics(texts, 2, effort="fast")
    >>> sorted(topic.name for topic in model.topics)
    ['bark, dogs, loudly', 'cats, purr, softly']
    >>> model.document_topics.shape, model.weights.shape
    ((12,), (12, 2))
    """

    result: Factorization
    vectorizer: Any = field(compare=False)
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    labels: tuple[str, ...]
    dates: tuple[Date | None, ...]
    order: Indices
    components: Doubles
    weights: Doubles
    document_topics: Indices
    means: Floats = field(default_factory=lambda: np.empty((0, 0)))
    rank_choice: RankChoice | None = None
    stability: Stability | None = None

    def __repr__(self) -> str:
        m, n = self.result.matrix.shape
        names = "; ".join(topic.name for topic in self.topics)
        return f"TopicModel of {counted(m, 'document')} and {counted(n, 'word')}: {names}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def matrix(self) -> sp.csr_array:
        """The documents x words that were factorized."""
        return sp.csr_array(self.result.matrix)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Names of the columns of ``components``."""
        return tuple(map(str, self.vectorizer.get_feature_names_out()))

    @cached_property
    def sizes(self) -> Indices:
        """Number of documents of each topic."""
        known = self.document_topics[self.document_topics >= 0]
        return np.bincount(known, minlength=len(self.order))

    @cached_property
    def shares(self) -> Doubles:
        """Part of each topic in what is explained of each document, shape (n_documents, n_topics); rows sum to one."""
        return topic_words.distributions(self.weights * np.linalg.norm(self.components, axis=1))

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        """The topics with their ten strongest words."""
        return self.described(10)

    def described(self, n_words: int) -> tuple[Topic, ...]:
        """The topics with their ``n_words`` strongest words."""
        total = max(int(self.sizes.sum()), 1)
        found = []
        for k, words in enumerate(self.top_words(n_words)):
            kind, members, shares = self._leading(k)
            found.append(
                Topic(
                    kind=kind,
                    leading=tuple(self._name(kind, int(i)) for i in members),
                    leading_shares=tuple(map(float, shares)),
                    words=tuple(self.words[j] for j in words),
                    share=float(self.sizes[k] / total),
                )
            )
        return tuple(found)

    def top_words(self, n_words: int = 10) -> list[Indices]:
        """Positions of the strongest words of each topic; the words that were chosen for it come first."""
        nothing = np.empty(0, dtype=np.intp)
        chosen = [self._leading(k) for k in range(len(self.order))]
        leading = [members if kind == "word" else nothing for kind, members, _ in chosen]
        return topic_words.strongest_words(self.components, leading, n_words)

    def coherence(self, n_words: int = 10, *, window: int | None = None) -> Doubles:
        """Normalised pointwise mutual information of the strongest words of each topic, from -1 to 1.

        Parameters
        ----------
        n_words : int
            How many words of each topic.
        window : int, optional
            Count words that occur together within this many consecutive words; by default in the same document.

        See Also
        --------
        gsnmf.applications.topic_modelling.topic_words : The definition.
        """
        words = self.top_words(n_words)
        if window is None:
            return topic_words.document_coherence(words, self.matrix)
        return topic_words.window_coherence(words, word_sequences(self.vectorizer, self.texts), window)

    def diversity(self, n_words: int = 25) -> float:
        """Share of different words among the strongest words of all topics."""
        return topic_words.diversity(self.top_words(n_words))

    def exclusivity(self, n_words: int = 10) -> Doubles:
        """How much the strongest words of each topic belong to that topic alone, from 0 to 1."""
        return topic_words.exclusivity(self.top_words(n_words), self.components)

    def similarity(self) -> Doubles:
        """Cosine between the mean documents of every two topics."""
        return topic_words.similarity(self.means)

    def representatives(self, topic: int, count: int = 3) -> Indices:
        """Positions of the documents of a topic that hold most of it, the strongest first."""
        self._check_topic(topic)
        members = np.flatnonzero(self.document_topics == topic)
        return np.asarray(members[largest_of(self.weights[members, topic], count)])

    def passages(self, topic: int, count: int = 3, *, n_words: int = 10) -> tuple[Passage, ...]:
        """Sentences in which the words of a topic occur, from the documents that hold most of it.

        Parameters
        ----------
        topic : int
            Number of the topic, from 0.
        count : int
            How many, each from another document.
        n_words : int
            How many words of the topic to look for.
        """
        documents = self.representatives(topic, 4 * count)
        weights = {self.words[j]: float(self.components[topic, j]) for j in self.top_words(n_words)[topic]}
        pattern = getattr(self.vectorizer, "token_pattern", None) or topic_words.USUAL_WORD
        found: list[Passage] = []
        for document in documents:
            passage = topic_words.find_passage(int(document), self.texts[document], weights, pattern=pattern)
            if passage is not None and all(passage.text != other.text for other in found):
                found.append(passage)
            if len(found) == count:
                break
        return tuple(found)

    def table(self, n_words: int = 10) -> Table:
        """The topics as a table: their words, their part of the documents, their coherence, a passage."""
        rows = []
        for k, (topic, coherence) in enumerate(zip(self.described(n_words), self.coherence(n_words), strict=True)):
            passage = next(iter(self.passages(k, 1, n_words=n_words)), "")
            rows.append((k, topic.words, topic.share, float(coherence), str(passage)))
        return Table(("topic", "words", "documents", "coherence", "passage"), tuple(rows))

    def alternatives(self, count: int = 3, *, quick: bool = True) -> Table:
        """For every topic the words, or documents, that could have been chosen instead, and what each would cost.

        Parameters
        ----------
        count : int
            Substitutes for each topic at most.
        quick : bool
            Whether to fit their weights for one round only; see `gsnmf.Factorization.alternatives`.

        Returns
        -------
        Table
            One row per substitute: the number of the topic, its kind, what is given up, the substitute, and by how
            many percentage points the quality falls.
        """
        place = {int(factor): k for k, factor in enumerate(self.order)}
        rows: list[tuple[int, str, str, str, float]] = []
        for found in self.result.alternatives(count, quick=quick).rows:
            factor, axis, chosen, index, _, lost = cast("tuple[int, str, int, int, float, float]", found)
            kind: Kind = "word" if axis == "columns" else "document"
            rows.append((place[factor], kind, self._name(kind, chosen), self._name(kind, index), max(lost, 0.0)))
        rows.sort(key=lambda row: row[0])
        return Table(("topic", "kind", "chosen", "substitute", "points lost"), tuple(rows))

    def by_label(self) -> Table:
        """For each label, its number of documents and the part of them that belongs to each topic."""
        if not self.labels:
            raise ValueError("the documents have no labels; give labels= to topics().")
        names = sorted(dict.fromkeys(self.labels))
        return self._counted("label", names, [names.index(label) for label in self.labels])

    def over_time(self) -> Table:
        """For each period, its number of documents and the part of them that belongs to each topic."""
        if not self.dates:
            raise ValueError("the documents have no dates; give dates= to topics().")
        names, groups = periods(self.dates)
        return self._counted("period", names, groups)

    def agreement(self) -> tuple[float, float]:
        """Normalised mutual information and adjusted Rand index of topics and labels; both are at most 1."""
        if not self.labels:
            raise ValueError("the documents have no labels; give labels= to topics().")
        found = self.document_topics
        return float(normalized_mutual_info_score(self.labels, found)), float(adjusted_rand_score(self.labels, found))

    def transform(self, texts: Any) -> Doubles:
        """How much of each topic new texts hold, shape (n_texts, n_topics); zero for a text without a known word."""
        return coefficients_for(self._vectorized(texts), self.components)

    def predict(self, texts: Any) -> Indices:
        """The topic whose documents each new text resembles most; -1 for a text without a known word.

        A text that shares no word with any document goes to the largest topic.
        """
        groups = Groups(self.means, int(self.sizes.argmax()))
        return np.asarray(nearest_group(self._vectorized(texts), groups))

    def to_frame(self) -> pd.DataFrame:
        """The documents with their topics as a pandas DataFrame: one row per document.

        Its columns are the topic's number and name, the part of each topic, and the label and date where known.
        """
        pandas = import_optional("pandas", "to_frame", "pip install pandas")
        names = [topic.name for topic in self.topics]
        shares = pandas.DataFrame(self.shares, columns=[f"share of {name}" for name in names])
        known = {"document": self.ids, "topic": self.document_topics}
        known["name"] = [names[k] if k >= 0 else "" for k in self.document_topics]
        known |= {name: values for name, values in (("label", self.labels), ("date", self.dates)) if values}
        frame: pd.DataFrame = pandas.concat([pandas.DataFrame(known), shares], axis=1)
        return frame

    def report(self, path: str | PathLike[str], *, title: str = "", compare: bool = True) -> None:
        """Write a page that shows the topics, their passages and their documents; it opens in any browser, offline.

        Parameters
        ----------
        path : path
            Of the HTML file.
        title : str
            What the collection is.
        compare : bool
            Compute the bound that tells how much any factors of this number could explain.
        """
        page = render_documents(gather_documents(self, title=title, bound=compare))
        with atomic_write(path) as stream:
            stream.write(page.encode())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole model to an ``.npz`` file, with the texts and without pickle; `load` reads it."""
        save_record(SavedTopics.of(self), path, format=FORMAT)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> TopicModel:
        """Read a model that `save` wrote; it can do everything that the model could."""
        saved = load_record(SavedTopics, path, format=FORMAT, kind="a topic model")
        with one_error(path, "a topic model"):
            return cls(**saved.model_fields())

    def _leading(self, topic: int) -> tuple[Kind, Indices, Floats]:
        """What was chosen for a topic: words or documents, by position, and their shares."""
        factor = int(self.order[topic])
        return ("word" if factor < self.result.columns.size else "document", *self.result.members[factor])

    def _name(self, kind: Kind, position: int) -> str:
        return self.words[position] if kind == "word" else self.ids[position]

    def _counted(self, title: str, names: Sequence[str], groups: Sequence[int]) -> Table:
        """Parts of the documents of each group that belong to each topic."""
        own, topics = np.array(groups, dtype=np.intp), self.document_topics
        totals = np.bincount(own[own >= 0], minlength=len(names))
        counts = np.zeros((len(names), len(self.order)))
        known = (own >= 0) & (topics >= 0)
        np.add.at(counts, (own[known], topics[known]), 1)
        parts = counts / np.maximum(totals, 1)[:, None]
        rows = tuple((name, int(totals[g]), *parts[g].tolist()) for g, name in enumerate(names))
        return Table((title, "documents", *(topic.name for topic in self.topics)), rows)

    def _vectorized(self, texts: Any) -> Matrix:
        return wrap(nonnegative(self.vectorizer.transform(check_texts(texts))))

    def _check_topic(self, topic: int) -> None:
        if not 0 <= topic < len(self.order):
            raise ValueError(f"topic must be in [0, {len(self.order) - 1}]; got {topic}.")

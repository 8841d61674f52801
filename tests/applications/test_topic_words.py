"""Coherence and other measures of topics, against plain Python that counts sets."""

import math
from datetime import date, datetime
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gsnmf.applications.topic_modelling.document_charts import layout
from gsnmf.applications.topic_modelling.text import periods, read_date
from gsnmf.applications.topic_modelling.topic_words import (
    LONGEST_PASSAGE,
    diversity,
    document_coherence,
    exclusivity,
    find_passage,
    sentences,
    similarity,
    strongest_words,
    window_coherence,
)

N_WORDS = 6
DOCUMENTS = st.lists(st.lists(st.integers(0, N_WORDS - 1), max_size=9), min_size=1, max_size=8)
TOPICS = [np.array([0, 1, 2]), np.array([3, 1]), np.array([5, 4, 0, 2]), np.array([2])]


def counted(units, topic):
    """The definition, word by word: the mean over pairs of the words of a topic."""
    units = [set(unit) for unit in units]

    def share(*words):
        return sum(all(word in unit for word in words) for unit in units) / len(units) if units else 0.0

    values = []
    for a, b in combinations(topic.tolist(), 2):
        both = share(a, b)
        if both == 0:
            values.append(-1.0)
        elif both == 1:
            values.append(1.0)
        else:
            values.append(math.log(both / (share(a) * share(b))) / -math.log(both))
    return sum(values) / len(values) if values else math.nan


def windows(documents, size):
    return [
        document[start : start + size]
        for document in documents
        for start in range(max(len(document) - size + 1, 1) if document else 0)
    ]


@given(DOCUMENTS)
@settings(deadline=None)
def test_coherence_over_documents_is_its_definition(documents):
    counts = np.zeros((len(documents), N_WORDS))
    for i, document in enumerate(documents):
        np.add.at(counts[i], document, 1)
    for kind in (sp.csr_array, sp.csc_array):
        found = document_coherence(TOPICS, kind(counts))
        np.testing.assert_allclose(found, [counted(documents, topic) for topic in TOPICS], atol=1e-12)


@given(DOCUMENTS, st.integers(1, 12))
@settings(deadline=None)
def test_coherence_over_windows_is_its_definition(documents, size):
    found = window_coherence(TOPICS, [np.array(d, dtype=np.intp) for d in documents], size)
    np.testing.assert_allclose(found, [counted(windows(documents, size), topic) for topic in TOPICS], atol=1e-12)


def test_words_without_a_number_take_their_place_in_a_window():
    apart = window_coherence([np.array([0, 1])], [np.array([0, -1, -1, 1])], 2)
    together = window_coherence([np.array([0, 1])], [np.array([0, 1, -1, -1])], 2)
    assert apart[0] == -1
    assert together[0] > 0


def test_window_must_be_positive():
    with pytest.raises(ValueError, match="window must be a positive number of words; got 0"):
        window_coherence(TOPICS, [np.array([0])], 0)


def test_diversity_and_exclusivity():
    topics = [np.array([0, 1]), np.array([2, 3])]
    assert diversity(topics) == 1
    assert diversity([topics[0], topics[0]]) == 0.5
    assert exclusivity(topics, np.array([[3.0, 1, 0, 0], [0, 0, 2, 5]])).tolist() == [1, 1]
    shared = exclusivity([np.array([0])] * 2, np.array([[1.0, 0.0], [30.0, 10.0]]))
    np.testing.assert_allclose(shared, [1 / 1.75, 0.75 / 1.75])


def test_chosen_words_come_first_and_once():
    components = np.array([[0.5, 3.0, 2.0, 0.0], [1.0, 0.0, 2.0, 3.0]])
    found = strongest_words(components, [np.array([0, 2]), np.empty(0, dtype=np.intp)], 3)
    assert [words.tolist() for words in found] == [[0, 2, 1], [3, 2, 0]]


def test_similar_topics_are_close_on_the_map():
    components = np.array([[4.0, 3, 0, 0, 0], [4.0, 2, 1, 0, 0], [0.0, 0, 0, 3, 3], [0, 0, 0, 2, 4]])
    points = layout(components)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert max(distances[0, 1], distances[2, 3]) < min(distances[0, 2], distances[1, 3])
    assert np.abs(points).max() == 1
    assert similarity(components)[0, 2] == 0
    np.testing.assert_allclose(np.diag(similarity(components)), 1)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_map_of_few_topics(count):
    points = layout(np.eye(count, 3))
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()


def test_distances_on_the_map_are_those_of_jensen_and_shannon():
    """Three points fit into a plane exactly."""
    from scipy.spatial.distance import jensenshannon

    shares = np.random.default_rng(0).dirichlet(np.ones(7), size=3)
    points = layout(5 * shares)
    found = np.linalg.norm(points[:, None] - points, axis=2)
    expected = np.array([[jensenshannon(a, b) for b in shares] for a in shares])
    np.testing.assert_allclose(found / found.max(), expected / expected.max(), atol=1e-9)


class TestPassages:
    def test_best_sentence_and_where_its_words_stand(self):
        text = "The sea is cold. Green tea, and a CAKE with tea!  Nothing here."
        found = find_passage(7, text, {"tea": 1.0, "cake": 2.0})
        assert (found.document, found.text) == (7, "Green tea, and a CAKE with tea!")
        assert [found.text[a:b] for a, b in found.spans] == ["tea", "CAKE", "tea"]

    def test_none_of_the_words(self):
        assert find_passage(0, "Nothing of it. At all.", {"tea": 1.0}) is None
        assert find_passage(0, "", {"tea": 1.0}) is None

    def test_expressions_of_several_words(self):
        found = find_passage(0, "Ice and cream. She likes ice cream.", {"ice cream": 1.0})
        assert [found.text[a:b] for a, b in found.spans] == ["ice cream"]

    def test_headings_and_tables_come_last(self):
        text = "tea cake ==========================.\n\n+---+--- tea | cake ---+---+.\n\nThey had tea there."
        assert find_passage(0, text, {"tea": 1.0, "cake": 1.0}).text == "They had tea there."

    @pytest.mark.parametrize("before", [0, 30, 3000])
    def test_long_sentences_are_cut_around_the_words(self, before):
        text = "word " * before + "tea with cake" + " word" * 3000
        found = find_passage(0, text, {"tea": 1.0, "cake": 1.0})
        assert len(found.text) <= LONGEST_PASSAGE + 2
        assert [found.text[a:b] for a, b in found.spans] == ["tea", "cake"]

    def test_sentences(self):
        assert sentences('He said "Go!" Then he\nleft.\n\nA title\n\nEnd') == [
            'He said "Go!',
            "Then he left.",
            "A title",
            "End",
        ]
        assert sentences(" \n ") == []


class TestDates:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("2024-05-31", date(2024, 5, 31)),
            ("2024-05-31 23:59:01+00:00", date(2024, 5, 31)),
            ("2024.5", date(2024, 5, 1)),
            (1999, date(1999, 1, 1)),
            (1999.0, date(1999, 1, 1)),
            (np.datetime64("2020-02-29"), date(2020, 2, 29)),
            (datetime(2020, 2, 29, 12), date(2020, 2, 29)),
            (date(2020, 2, 29), date(2020, 2, 29)),
            *((value, None) for value in (None, "", "  ", math.nan, np.datetime64("NaT"))),
        ],
    )
    def test_what_tables_hold(self, value, expected):
        assert read_date(value) == expected

    @pytest.mark.parametrize("value", ["31.05.2024", "2024-13", "2023-02-29", "yesterday", "x" * 2000])
    def test_what_is_no_date(self, value):
        with pytest.raises(ValueError, match="a date must be written as 2024-05-31") as error:
            read_date(value)
        assert len(str(error.value)) < 120

    @pytest.mark.parametrize(
        ("first", "last", "count", "name"),
        [
            ("2024-02-27", "2024-03-02", 5, "2024-02-29"),
            ("2023-11-30", "2025-01-01", 15, "2023-12"),
            ("1990", "1999", 10, "1991"),
            ("1000", "1999", 40, "1025–1049"),
        ],
    )
    def test_periods(self, first, last, count, name):
        names, groups = periods([read_date(last), None, read_date(first)])
        assert (len(names), groups) == (count, [count - 1, -1, 0])
        assert name in names
        assert periods([None]) == ([], [-1])

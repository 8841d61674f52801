"""Topics of texts: planted ones are found, and everything that is said about them follows from the texts."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

import gsnmf
from gsnmf.applications import TopicModel, topics
from gsnmf.applications.topic_modelling.topic_words import window_coherence
from planted_texts import SUBJECTS, make_texts


@pytest.fixture(scope="module")
def collection():
    return make_texts()


@pytest.fixture(scope="module")
def model(collection):
    texts, labels = collection
    dates = [f"20{20 + i % 4}-01-01" for i in range(len(texts))]
    return topics(texts, 3, labels=labels, ids=[f"text {i}" for i in range(60)], dates=dates, min_df=1)


def test_planted_subjects_are_found(model, collection):
    assert model.agreement() == (1.0, 1.0)
    for k, topic in enumerate(model.topics):
        subject = collection[1][int(np.flatnonzero(model.document_topics == k)[0])]
        assert set(topic.words[:5]) <= set(SUBJECTS[subject])
        assert topic.share == pytest.approx(1 / 3)
        assert topic.name == ", ".join(topic.words[:3])
        assert set(topic.leading) <= ({*topic.words} if topic.kind == "word" else {*model.ids})
    assert model.diversity(5) == 1
    assert (model.exclusivity(5) > 0.6).all()


def test_weights_are_nonnegative_least_squares(model):
    for row, weights in zip(model.matrix.toarray()[:10], model.weights, strict=False):
        np.testing.assert_allclose(weights, nnls(model.components.T, row)[0], atol=1e-9)
    assert (model.weights.max(axis=1) > 0).all()
    np.testing.assert_allclose(model.shares.sum(axis=1), 1)


def test_new_texts_are_treated_as_the_old_ones(model, collection):
    np.testing.assert_allclose(model.transform(collection[0]), model.weights, atol=1e-10)
    np.testing.assert_array_equal(model.predict(collection[0]), model.document_topics)
    new = model.predict(["a rose and a hedge in the soil", "nothing known", ""])
    assert model.topics[new[0]].words[0] in SUBJECTS["garden"]
    assert new[1:].tolist() == [-1, -1]
    assert model.transform(["nothing known"]).tolist() == [[0, 0, 0]]


def test_topics_are_sorted_by_size():
    texts, _ = make_texts(30)
    model = topics(texts + [texts[1]] * 9 + [texts[2]] * 3, 3, min_df=1)
    assert sorted(model.sizes.tolist(), reverse=True) == model.sizes.tolist() == [19, 13, 10]
    np.testing.assert_allclose(model.components, model.result.H[model.order])


def test_coherence_by_documents_and_by_windows(model):
    assert (model.coherence() > 0).all()
    texts = [text.lower().replace(".", "").split() for text in model.texts]
    sequences = [np.array([model.words.index(word) for word in text]) for text in texts]
    expected = window_coherence(model.top_words(6), sequences, 5)
    np.testing.assert_allclose(model.coherence(6, window=5), expected)


def test_window_needs_single_words(collection):
    model = topics(collection[0], 3, ngrams=(1, 2), effort="fast")
    with pytest.raises(ValueError, match="needs single words"):
        model.coherence(window=5)
    assert any(" " in word for word in model.words)


def test_passages_hold_the_words(model):
    for k, topic in enumerate(model.topics):
        found = model.passages(k)
        assert len(found) == 3
        assert len({passage.document for passage in found}) == 3
        for passage in found:
            assert model.document_topics[passage.document] == k
            assert {passage.text[a:b].lower() for a, b in passage.spans} <= set(topic.words)
    for ask in (model.representatives, model.passages):
        with pytest.raises(ValueError, match=r"topic must be in \[0, 2\]; got 3"):
            ask(3)


def test_tables(model, collection):
    table = model.by_label()
    assert [row[0] for row in table.rows] == sorted(SUBJECTS)
    assert all(row[1] == 20 and sorted(row[2:]) == [0, 0, 1] for row in table.rows)
    assert [row[:2] for row in model.over_time().rows] == [(str(2020 + k), 15) for k in range(4)]
    assert len(model.table()) == 3
    frame = model.to_frame()
    assert frame["document"].tolist() == [f"text {i}" for i in range(60)]
    assert frame["label"].tolist() == collection[1]
    np.testing.assert_array_equal(frame["topic"], model.document_topics)
    np.testing.assert_allclose(frame.filter(like="share of").sum(axis=1), 1)
    assert "TopicModel of 60 documents" in repr(model)


def test_names_of_a_series_are_its_index(collection):
    texts = pd.Series(collection[0], index=[f"id{i}" for i in range(60)])
    model = topics(texts, 3, effort="fast")
    assert model.ids[:2] == ("id0", "id1")
    assert topics(collection[0], 3, effort="fast").ids[:2] == ("0", "1")


def test_no_document_without_a_topic_unless_it_has_no_word(collection):
    texts = [*collection[0], "", "unheard", None, "violin"]
    model = topics(texts, 3, min_df=2, effort="fast")
    assert np.flatnonzero(model.document_topics < 0).tolist() == [60, 61, 62]
    assert model.sizes.sum() == 61
    assert model.to_frame()["name"].tolist()[60] == ""


def test_documents_are_with_those_that_they_resemble(collection):
    model = topics(collection[0], 3)
    dense, found = model.matrix.toarray(), model.document_topics
    for k in range(3):
        np.testing.assert_allclose(model.means[k], dense[found == k].mean(axis=0))
    similarity = dense @ dense.T
    mean_similarity = np.array([similarity[:, found == k].mean(axis=1) for k in range(3)])
    np.testing.assert_array_equal(mean_similarity.argmax(axis=0), found)


@pytest.mark.parametrize("members", [1, 3])
def test_documents_have_the_labels_of_the_estimator(collection, members):
    model = topics(collection[0], 3, members=members, min_df=1)
    labels = gsnmf.GSNMF(3, members=members).fit_predict(model.matrix)
    np.testing.assert_array_equal(model.order[model.document_topics], labels)


def test_more_topics_than_documents_and_words():
    with pytest.raises(ValueError, match="rank must be at most 2 for 2 documents with 1 word; got 5"):
        topics(["a text alone", "another line of text"], 5)


def test_a_text_apart_from_all_topics_goes_with_the_largest():
    texts = ["tea cake", "tea cake", "tea", "cars roads", "cars roads", "whale"]
    model = topics(texts, 2, min_df=1)
    alone = model.predict(["whale"])
    assert alone.tolist() == model.document_topics[5:].tolist() == [0]
    assert model.predict(["whale", "cars", "roads cars"]).tolist() == [0, 1, 1]


def test_words_and_documents_can_be_asked_for(collection):
    model = topics(collection[0], (1, 2))
    assert sorted(topic.kind for topic in model.topics) == ["document", "document", "word"]
    chosen = [topic.leading[0] for topic in model.topics if topic.kind == "document"]
    assert sorted(chosen) == sorted(str(i) for i in model.result.rows)


class TestVocabulary:
    def test_lists_of_stop_words(self, collection):
        model = topics(collection[0], 3, stop_words=["Violin", " rose ", ""], effort="fast")
        assert not {"violin", "rose"} & set(model.words)

    def test_frequent_words_go_where_there_is_no_list(self, collection):
        texts = [text + " und der" for text in collection[0]]
        assert "der" not in topics(texts, 3, stop_words=None, effort="fast").words
        assert "der" in topics(texts, 3, stop_words=None, max_df=1.0, effort="fast").words

    def test_any_vectorizer(self, collection):
        from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

        counts = CountVectorizer(vocabulary=["violin", "oven", "rose", "tune"])
        model = topics(collection[0], 3, vectorizer=counts, effort="fast")
        assert set(model.words) == {"violin", "oven", "rose", "tune"}
        with pytest.raises(ValueError, match="alternate_sign=False"):
            topics(collection[0], 3, vectorizer=HashingVectorizer(n_features=50))

    def test_nothing_left(self):
        with pytest.raises(ValueError, match="no word of the 2 documents is left"):
            topics(["the and", "of"], 1)
        with pytest.raises(ValueError, match="stop_words must be 'english', a list of words, or None; got 'german'"):
            topics(["tea", "tea"], 1, stop_words="german")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"texts": "one text"}, TypeError, "texts must be a sequence of documents; got one str"),
        ({"texts": pd.DataFrame({"text": ["tea"]})}, TypeError, "got a table. Give the column that holds the texts"),
        ({"texts": ["a", 3]}, TypeError, "texts must be strings; got int at position 1"),
        ({"texts": []}, ValueError, "at least one document"),
        ({"texts": ["tea"] * 3, "labels": ["a"]}, ValueError, "labels must have one entry for each of the 3 documents"),
        (
            {"texts": ["tea"] * 3, "ids": ["a"]},
            ValueError,
            "ids must have one entry for each of the 3 documents; got 1",
        ),
        ({"texts": ["tea"] * 3, "dates": []}, ValueError, "dates must have one entry for each"),
        ({"texts": ["tea"] * 3, "dates": ["1"] * 3}, ValueError, "a date must be written as"),
    ],
)
def test_wrong_input(arguments, error, message):
    with pytest.raises(error, match=message):
        topics(rank=1, **arguments)


def test_without_labels_and_dates(collection):
    model = topics(collection[0][:9], 2, effort="fast")
    for ask in (model.by_label, model.agreement):
        with pytest.raises(ValueError, match="labels="):
            ask()
    with pytest.raises(ValueError, match="dates="):
        model.over_time()


def test_progress_is_told(collection):
    told = []
    topics(collection[0], 3, progress=told.append, effort="fast")
    stages = dict.fromkeys(status.stage for status in told)
    assert [stage.split()[0] for stage in stages] == ["Counting", "Choosing", "Assigning"]
    assert any(status.fraction is not None and "quality" in status.message for status in told)


def test_progress_is_shown(collection, capsys):
    topics(collection[0], 3, progress=True, effort="fast")
    assert "[gsnmf] Counting words" in capsys.readouterr().err


def test_models_are_equal_if_they_say_the_same(model, collection, tmp_path):
    model.save(tmp_path / "model.npz")
    assert TopicModel.load(tmp_path / "model.npz") == model
    assert topics(collection[0], 3, effort="fast") == topics(collection[0], 3, effort="fast") != model
    assert "\n" not in repr(model)
    assert all(topic.words[0] in model._repr_html_() for topic in model.topics)


def test_public_names():
    assert gsnmf.applications.topics is topics
    assert isinstance(topics(["tea cake", "tea"], 1, min_df=1), TopicModel)
    with pytest.raises(AttributeError, match="nothing"):
        gsnmf.applications.nothing  # noqa: B018

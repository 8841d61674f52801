"""`gsnmf.save`, `load` and `report` take whatever was found, and say what they need."""

import json
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import gsnmf
from gsnmf.applications import TopicModel, topics, unmix
from gsnmf.datasets import LabelledMatrix, planted
from gsnmf.records import same_value

TEXTS = [
    "Tea and cake. Green tea with milk.",
    "Cake with tea and milk.",
    "A cup of tea, a piece of cake.",
    "Cars on roads. Fast cars.",
    "Roads for cars and buses.",
    "Buses on roads.",
    "",
]
KINDS = ["food", "food", "food", "traffic", "traffic", "traffic", "none"]


@pytest.fixture(scope="module")
def frame():
    matrix = planted((20, 12), 2, 1, random_state=0).matrix
    return pd.DataFrame(matrix, [f"sample {i}" for i in range(20)], [f"feature {j}" for j in range(12)])


@pytest.fixture(scope="module")
def model(frame):
    return gsnmf.GSNMF(3, effort="fast").fit(frame)


@pytest.fixture(scope="module")
def talk():
    dates = ["2024-01-01", None, *["2025-06-30"] * 5]
    return topics(TEXTS, 2, labels=KINDS, dates=dates, ids=list("abcdefg"), min_df=1, effort="fast")


def assert_reports_after_loading(model, X, folder):
    """A model that was saved and loaded, given the training data, reports its quality and what it has chosen."""
    model.save(folder / "model.npz")
    gsnmf.report(gsnmf.GSNMF.load(folder / "model.npz"), folder / "page.html", data=X)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert f"{100 * model.quality_:.1f}" in page
    assert all(name in page for name in (*X.columns[model.feature_indices_], *X.index[model.sample_indices_]))


class TestReport:
    def test_of_a_fitted_model_has_the_names(self, model, frame, tmp_path):
        gsnmf.report(model, tmp_path / "page.html", title="<Twenty> samples")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "&lt;Twenty&gt; samples" in page
        for name in (*frame.columns[model.feature_indices_], *frame.index[model.sample_indices_]):
            assert name in page

    def test_of_a_loaded_model_needs_the_training_data(self, model, frame, tmp_path):
        gsnmf.save(model, tmp_path / "model.npz")
        loaded = gsnmf.load(tmp_path / "model.npz")
        assert isinstance(loaded, gsnmf.GSNMF)
        np.testing.assert_array_equal(loaded.row_weights_, model.row_weights_)
        with pytest.raises(ValueError, match="needs the training data, which are not saved with a model; give them"):
            gsnmf.report(loaded, tmp_path / "page.html")
        with pytest.raises(ValueError, match="matrix must be the one that was factorized"):
            gsnmf.report(loaded, tmp_path / "page.html", data=frame.iloc[::-1])
        gsnmf.report(loaded, tmp_path / "page.html", data=frame)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert all(name in page for name in frame.columns[model.feature_indices_])

    def test_of_a_model_that_was_saved_twice(self, model, frame, tmp_path):
        gsnmf.save(model, tmp_path / "a.npz")
        gsnmf.save(gsnmf.load(tmp_path / "a.npz"), tmp_path / "b.npz")
        gsnmf.report(gsnmf.load(tmp_path / "b.npz"), tmp_path / "twice.html", data=frame, compare=False)
        gsnmf.report(gsnmf.load(tmp_path / "a.npz"), tmp_path / "once.html", data=frame, compare=False)
        assert (tmp_path / "twice.html").read_text(encoding="utf-8") == (tmp_path / "once.html").read_text(
            encoding="utf-8"
        )

    @pytest.mark.parametrize("options", [{"members": 2}, {"missing_values": np.nan}, {"sum_to_one": True}])
    def test_of_other_models_after_loading(self, options, frame, tmp_path):
        given = frame.mask(np.eye(20, 12, dtype=bool)) if "missing_values" in options else frame
        assert_reports_after_loading(gsnmf.GSNMF(3, effort="fast", **options).fit(given), given, tmp_path)

    def test_of_a_model_with_weights_after_loading(self, frame, tmp_path):
        weight = np.linspace(1, 2, 20)
        fitted = gsnmf.GSNMF(3, effort="fast").fit(frame, sample_weight=weight)
        assert_reports_after_loading(fitted, frame, tmp_path)

    def test_of_other_data_than_those_fitted(self, model, frame, tmp_path):
        with pytest.raises(ValueError, match=r"data must be .*, of shape \(20, 12\); got shape \(5, 12\)"):
            gsnmf.report(model, tmp_path / "page.html", data=frame.iloc[:5])

    def test_of_a_factorization_with_names(self, frame, tmp_path):
        result = gsnmf.factorize(frame, 3, effort="fast")
        gsnmf.report(result, tmp_path / "frame.html", data=frame, title="A table")
        labelled = LabelledMatrix(result.matrix, tuple(frame.index), tuple(frame.columns))
        gsnmf.report(result, tmp_path / "labelled.html", data=labelled, title="A table")
        gsnmf.report(
            result, tmp_path / "names.html", row_names=frame.index, column_names=frame.columns, title="A table"
        )
        pages = {(tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("frame", "labelled", "names")}
        assert len(pages) == 1
        assert "feature" in pages.pop()

    def test_names_from_a_vectorizer(self, tmp_path):
        vectorizer = TfidfVectorizer()
        result = gsnmf.factorize(vectorizer.fit_transform(TEXTS), 2, effort="fast")
        gsnmf.report(result, tmp_path / "page.html", column_names=vectorizer)
        assert "buses" in (tmp_path / "page.html").read_text(encoding="utf-8")

    def test_of_applications(self, talk, tmp_path):
        gsnmf.report(talk, tmp_path / "topics.html", title="Talk")
        assert "Talk" in (tmp_path / "topics.html").read_text(encoding="utf-8")
        gsnmf.report(unmix(np.random.default_rng(0).random((6, 5, 8)), 2), tmp_path / "scene.html", title="Scene")
        assert "Scene" in (tmp_path / "scene.html").read_text(encoding="utf-8")
        with pytest.raises(ValueError, match="row_names must be left out for TopicModel, which knows its names"):
            gsnmf.report(talk, tmp_path / "topics.html", row_names=["a"])

    def test_of_anything_else(self, tmp_path):
        with pytest.raises(TypeError, match=r"result must be a Factorization, GSNMF, TopicModel, .*; got list"):
            gsnmf.report([], tmp_path / "page.html")
        result = gsnmf.factorize(np.eye(3), 1)
        with pytest.raises(TypeError, match="data must be a DataFrame or a LabelledMatrix; got ndarray"):
            gsnmf.report(result, tmp_path / "page.html", data=np.eye(3))
        with pytest.raises(ValueError, match="column_names must have one name for each of the 3 columns; got 1"):
            gsnmf.report(result, tmp_path / "page.html", column_names=["a"])
        assert not list(tmp_path.iterdir())


class TestSaveAndLoad:
    def test_a_result_says_that_it_needs_its_matrix(self, tmp_path):
        result = gsnmf.factorize(np.eye(3), 2)
        gsnmf.save(result, tmp_path / "result.npz")
        with pytest.raises(ValueError, match=r"holds a Factorization, which is saved without its matrix: gsnmf.load\("):
            gsnmf.load(tmp_path / "result.npz")
        assert gsnmf.load(tmp_path / "result.npz", np.eye(3)) == result

    def test_a_model_says_that_it_needs_none(self, model, frame, tmp_path):
        gsnmf.save(model, tmp_path / "model.npz")
        with pytest.raises(ValueError, match="holds a GSNMF, which is loaded without a matrix"):
            gsnmf.load(tmp_path / "model.npz", frame)
        with pytest.raises(ValueError, match="provenance is kept with a Factorization only; got a GSNMF"):
            gsnmf.save(model, tmp_path / "model.npz", provenance={"who": "me"})

    def test_a_model_of_a_dask_array(self, frame, tmp_path):
        X = da.from_array(frame.to_numpy(), chunks=(10, 12))
        lazy = gsnmf.GSNMF(3, method="gspa").fit(X)
        gsnmf.save(lazy, tmp_path / "model.npz")
        loaded = gsnmf.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(loaded.predict(frame.to_numpy()), lazy.predict(X).compute())
        assert not hasattr(loaded, "labels_")

    def test_a_model_keeps_why_it_has_so_many_components(self, frame, tmp_path):
        chosen = gsnmf.GSNMF("auto", effort="fast").fit(frame.iloc[:10, :7])
        gsnmf.save(chosen, tmp_path / "model.npz")
        assert gsnmf.load(tmp_path / "model.npz").rank_choice_ == chosen.rank_choice_

    def test_a_scene(self, tmp_path):
        found = unmix(np.random.default_rng(0).random((6, 5, 8)), 2)
        gsnmf.save(found, tmp_path / "scene.npz")
        np.testing.assert_array_equal(gsnmf.load(tmp_path / "scene.npz").abundances, found.abundances)

    def test_nothing_else_is_saved_or_loaded(self, tmp_path):
        with pytest.raises(TypeError, match=r"TopicModel, Unmixing or a result of gsnmf\.nmf; got dict"):
            gsnmf.save({}, tmp_path / "x.npz")
        (tmp_path / "x.npz").write_bytes(b"text")
        with pytest.raises(ValueError, match="is not a result or a model that gsnmf saved"):
            gsnmf.load(tmp_path / "x.npz")
        with pytest.raises(FileNotFoundError):
            gsnmf.load(tmp_path / "none.npz")


class TestTopics:
    @pytest.fixture
    def file(self, talk, tmp_path):
        talk.save(tmp_path / "topics.npz")
        return tmp_path / "topics.npz"

    def test_a_loaded_model_can_do_everything(self, talk, file, tmp_path):
        loaded = gsnmf.load(file)
        assert isinstance(loaded, TopicModel)
        assert loaded.result == talk.result
        for name in ("texts", "ids", "labels", "dates", "words", "topics", "components", "weights", "document_topics"):
            assert same_value(getattr(loaded, name), getattr(talk, name))
        np.testing.assert_array_equal(loaded.transform(TEXTS), talk.transform(TEXTS))
        np.testing.assert_array_equal(loaded.coherence(5, window=3), talk.coherence(5, window=3))
        assert loaded.alternatives(1) == talk.alternatives(1)
        for model, name in ((talk, "a"), (loaded, "b")):
            model.report(tmp_path / f"{name}.html")
        assert (tmp_path / "a.html").read_text(encoding="utf-8") == (tmp_path / "b.html").read_text(encoding="utf-8")

    def test_how_many_and_how_sure(self, talk, tmp_path):
        choice = gsnmf.choose_rank(talk.matrix, range(1, 3), effort="fast")
        sure = replace(talk, rank_choice=choice, stability=gsnmf.stability(talk.result, n_repeats=1))
        sure.save(tmp_path / "topics.npz")
        loaded = TopicModel.load(tmp_path / "topics.npz")
        assert (loaded.rank_choice, loaded.stability) == (sure.rank_choice, sure.stability)

    @pytest.mark.parametrize(
        "vectorizer",
        [
            CountVectorizer(ngram_range=(1, 2), dtype=np.float32),
            TfidfVectorizer(stop_words=["and", "of"], sublinear_tf=True),
            TfidfVectorizer(vocabulary={"tea": 1, "cars": 0, "roads": 2}),
            TfidfVectorizer(use_idf=False, vocabulary=["tea", "cars", "roads"]),
        ],
    )
    def test_vectorizers_come_back(self, vectorizer, tmp_path):
        found = topics(TEXTS, 2, vectorizer=vectorizer, effort="fast")
        found.save(tmp_path / "topics.npz")
        loaded = TopicModel.load(tmp_path / "topics.npz")
        assert loaded.words == found.words
        new = ["tea on roads", "cars of tea and cake"]
        np.testing.assert_array_equal(loaded.transform(new), found.transform(new))

    def test_vectorizers_that_only_pickle_could_keep(self, tmp_path):
        own = topics(TEXTS, 2, vectorizer=TfidfVectorizer(tokenizer=str.split, token_pattern=None), effort="fast")
        with pytest.raises(TypeError, match="cannot be saved if tokenizer of its vectorizer is a function"):
            own.save(tmp_path / "topics.npz")
        piped = topics(TEXTS, 2, vectorizer=make_pipeline(CountVectorizer()), effort="fast")
        with pytest.raises(TypeError, match="scikit-learn's TfidfVectorizer or CountVectorizer; got Pipeline"):
            piped.save(tmp_path / "topics.npz")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("order", np.array([0, 0])),
            ("weights", np.full((7, 2), np.nan)),
            ("document_topics", np.full(7, 2)),
            ("matrix.indices", np.full(100, 10**6)),
            ("vectorizer.idf", np.ones(3)),
            ("result.columns", np.array([10**6])),
            ("texts", ["one"]),
            ("dates", ["soon"] * 7),
            ("vectorizer", {"kind": "Popen", "parameters": {}, "words": []}),
        ],
    )
    def test_damaged_files_are_refused(self, part, value, file):
        with np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        record = json.loads(str(arrays["record"]))
        if part in arrays:
            arrays[part] = value
        else:
            arrays["record"] = np.array(json.dumps(record | {part: value}))
        with file.open("wb") as stream:
            np.savez(stream, **arrays)
        with pytest.raises(ValueError, match=r"is not a (topic model|result) that gsnmf saved, or is damaged: .+"):
            gsnmf.load(file)

    def test_other_files(self, model, file):
        with pytest.raises(ValueError, match="is not a model that gsnmf saved"):
            gsnmf.GSNMF.load(file)
        gsnmf.save(model, file)
        with pytest.raises(ValueError, match=r"is not a topic model .* it holds .gsnmf model."):
            TopicModel.load(file)

"""The estimators: scikit-learn's own checks, and what the factorization promises."""

import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gsnmf
from gsnmf import GSNMF, GSNMFSelector
from gsnmf.datasets import planted
from gsnmf.metrics import relative_error

_HEURISTIC = (
    "the error is the same for weighted and for repeated samples, but which ones are chosen is a heuristic, which sees "
    "long samples in one case and many in the other"
)


@parametrize_with_checks(
    [
        GSNMF(),
        GSNMF(2, method="gspa"),
        GSNMF((1, 1), effort="fast"),
        GSNMF(2, missing_values=np.nan, method="gspa"),
        GSNMF(2, sum_to_one=True, method="spa-rows"),
        GSNMFSelector(),
        GSNMFSelector(2, method="snpa"),
    ],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": _HEURISTIC
        for kind in ("dense", "sparse")
        if not getattr(estimator, "sum_to_one", False)
    },
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks set max_iter to 5
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def truth():
    return planted((60, 40), n_columns=3, n_rows=3, noise_level=0.05, random_state=0)


@pytest.fixture(scope="module")
def X(truth):
    return np.asarray(truth.matrix)


@pytest.fixture(scope="module")
def model(X):
    return GSNMF(6, tol=1e-8).fit(X)


@pytest.fixture(scope="module")
def thin(X):
    """The samples with zeros in half of their entries, and a model of them."""
    samples = np.where(np.median(X) < X, X, 0.0)
    return samples, GSNMF(5, effort="fast").fit(samples)


@pytest.fixture(scope="module")
def fast_model(X):
    """For what does not depend on how long the search was."""
    return GSNMF(6, tol=1e-8, effort="fast").fit(X)


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=[f"band {j}" for j in range(X.shape[1])])


def kkt(X, W, H):
    """Violation of the optimality conditions of nonnegative least squares, components of unit length."""
    lengths = np.linalg.norm(H, axis=1)
    W, H = W * lengths, H / lengths[:, None]
    return np.linalg.norm(np.minimum(W, (W @ H - X) @ H.T)) / np.linalg.norm(X)


class TestFit:
    def test_finds_what_was_planted(self, truth, model):
        assert sorted(model.feature_indices_) == list(truth.columns)
        assert sorted(model.sample_indices_) == list(truth.rows)

    def test_is_factorize(self, X, model):
        result = gsnmf.factorize(X, 6, tolerance=1e-8)
        np.testing.assert_array_equal(model.feature_indices_, result.columns)
        np.testing.assert_array_equal(model.components_, result.H)
        np.testing.assert_array_equal(model.column_weights_, result.column_weights)
        assert model.quality_ == result.quality
        assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - result.W @ result.H))
        assert model.n_components_ == 6
        assert model.n_iter_ >= 1

    def test_coefficients_are_anchor_values_and_weights(self, X, fast_model):
        W = clone(fast_model).set_params(coefficients="model").fit_transform(X)
        np.testing.assert_array_equal(W[:, :3], X[:, fast_model.feature_indices_])
        np.testing.assert_allclose(W[:, 3:], fast_model.row_weights_, atol=1e-6)

    def test_default_fits_any_ordinary_matrix(self):
        rng = np.random.default_rng(0)
        for shape in ((3, 2), (40, 5), (20, 30)):
            model = GSNMF(effort="fast").fit(rng.random(shape))
            assert 1 <= model.n_components_ <= 10
        assert GSNMF(61, method="spa-rows").fit(rng.random((6, 4))).n_components_ == 4

    def test_pair(self, X):
        model = GSNMF((4, 1), effort="fast").fit(X)
        assert (model.feature_indices_.size, model.sample_indices_.size) == (4, 1)

    @pytest.mark.parametrize("method", ["auto", "gspa", "spa-rows"])
    @pytest.mark.parametrize("target", [0.2, 0.05])
    def test_target_error_is_reached_with_no_more_than_it_takes(self, X, method, target):
        model = GSNMF(None, method=method, effort="fast", target_error=target).fit(X)
        assert 1 - model.quality_ <= target
        one_less = GSNMF(model.n_components_ - 1, method=method, effort="fast").fit(X)
        assert 1 - one_less.quality_ > target

    def test_one_component_can_be_enough(self, X):
        assert GSNMF(None, target_error=0.3, effort="fast").fit(X).n_components_ == 1

    def test_target_error_takes_the_planted_number(self, X):
        assert GSNMF(None, target_error=0.051, effort="fast").fit(X).n_components_ == 6

    def test_target_error_out_of_reach(self, monkeypatch):
        noise = np.random.default_rng(0).random((300, 250))
        with pytest.raises(ValueError, match=r"target_error=1e-09 is out of reach: no 200 components of any kind"):
            GSNMF(None, target_error=1e-9, method="gspa").fit(noise)
        monkeypatch.setattr("gsnmf.estimators.target.LARGEST_SEARCHED", 20)
        with pytest.raises(ValueError, match=r"20 components have a relative error of .*, above target_error=0.3"):
            GSNMF(None, target_error=0.3, method="gspa").fit(noise[:60, :50])

    def test_zero_matrix(self):
        model = GSNMF()
        W = model.fit_transform(np.zeros((4, 3)))
        assert W.shape == (4, 0)
        assert model.quality_ == 1.0
        assert model.score(np.zeros((2, 3))) == 1.0
        np.testing.assert_array_equal(model.inverse_transform(W), np.zeros((4, 3)))
        assert len(model.topics()) == 0

    def test_scale(self, X):
        scaled = X * 10 ** np.random.default_rng(0).uniform(-1, 1, X.shape[1])
        model = GSNMF(6, method="gspa", scale=True).fit(scaled)
        np.testing.assert_array_equal(
            model.feature_indices_, gsnmf.factorize(scaled, 6, method="gspa", scale=True).columns
        )

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"n_components": 0}, ValueError, r"n_components must be in \[1, 60\] for a matrix of shape .*; got 0"),
            ({"coefficients": "best"}, ValueError, r"coefficients must be 'refit' or 'model'; got 'best'"),
            ({"n_components": (41, 0)}, ValueError, r"n_components must be a pair .* n_features in \[0, 40\]"),
            ({"n_components": 2.5}, TypeError, r"n_components must be an integer; got 2.5"),
            ({"n_components": 3, "method": "spa-both"}, ValueError, r"n_components must be a pair"),
            (
                {"n_components": None, "method": "spa-both"},
                ValueError,
                r"method='spa-both' needs n_components=\(n_features, n_samples\)",
            ),
            ({"n_components": 3, "method": "best"}, ValueError, r"method must be one of 'auto'"),
            ({"n_components": 3, "effort": "huge"}, ValueError, r"effort must be one of 'fast'"),
            ({"n_components": 3, "effort": "huge", "method": "gspa"}, ValueError, r"effort must be one of 'fast'"),
            ({"n_components": 3, "tol": 0}, ValueError, r"tol must be a finite number above 0; got 0"),
            ({"n_components": 3, "max_iter": 0}, ValueError, r"max_iter must be an integer of at least 1; got 0"),
            (
                {"n_components": None, "target_error": -1.0},
                ValueError,
                r"target_error must be a finite number above 0; got -1.0",
            ),
        ],
    )
    def test_wrong_parameters(self, X, parameters, error, message):
        with pytest.raises(error, match=message):
            GSNMF(**parameters).fit(X)

    def test_says_if_it_did_not_converge(self, X):
        with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
            GSNMF(6, tol=1e-12, max_iter=1, effort="fast").fit(X)


class TestTransform:
    @pytest.mark.parametrize("coefficients", ["refit", "model"])
    def test_equals_fit_transform(self, X, coefficients):
        model = GSNMF(6, coefficients=coefficients, effort="fast")
        np.testing.assert_array_equal(model.fit_transform(X), model.transform(X))

    def test_refitted_coefficients_are_those_of_nnls(self, X, model):
        new = np.random.default_rng(1).random((7, 40))
        for coefficients, target in zip(model.transform(new), new, strict=True):
            np.testing.assert_allclose(coefficients, nnls(model.components_.T, target)[0], atol=1e-10)

    def test_refitted_coefficients_are_no_worse_than_those_of_the_model(self, X, fast_model):
        plain = GSNMF(6, tol=1e-8, coefficients="model", effort="fast").fit(X)
        new = np.random.default_rng(1).random((7, 40))
        errors = [relative_error(new, m.transform(new), m.components_) for m in (fast_model, plain)]
        assert errors[0] <= errors[1]

    def test_labels_are_what_predict_gives(self, X, fast_model):
        np.testing.assert_array_equal(fast_model.predict(X), fast_model.labels_)
        np.testing.assert_array_equal(
            np.concatenate([fast_model.predict(X[:7]), fast_model.predict(X[7:])]), fast_model.labels_
        )
        np.testing.assert_array_equal(clone(fast_model).fit_predict(X), fast_model.labels_)
        assert fast_model.predict(np.zeros((1, 40))).tolist() == [-1]

    def test_is_no_worse_than_the_weights_found_together(self, X):
        model = GSNMF(6, tol=1e-2, effort="fast").fit(X)
        assert relative_error(X, model.transform(X), model.components_) <= model.result_.relative_error * (1 + 1e-12)

    @pytest.mark.parametrize("n_components", [(3, 3), (0, 6), (6, 0)])
    def test_against_nnls(self, X, n_components):
        model = GSNMF(n_components, coefficients="model", effort="fast").fit(X)
        new = np.random.default_rng(1).random((7, 40))
        W, r1 = model.transform(new), n_components[0]
        np.testing.assert_array_equal(W[:, :r1], new[:, model.feature_indices_])
        rest = new - W[:, :r1] @ model.components_[:r1]
        for coefficients, target in zip(W[:, r1:], rest, strict=True):
            if n_components[1]:
                np.testing.assert_allclose(coefficients, nnls(model.components_[r1:].T, target)[0], atol=1e-10)

    def test_more_pure_samples_than_features(self):
        points = np.random.default_rng(0).dirichlet(np.ones(3), size=30)
        model = GSNMF(6, method="snpa-rows").fit(points)
        assert model.components_.shape == (6, 3)
        assert kkt(points, model.transform(points), model.components_) < 1e-12

    @pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
    def test_sparse(self, thin, model, form):
        thin, dense = thin
        sparse = GSNMF(5, effort="fast").fit(form(thin))
        np.testing.assert_array_equal(dense.feature_indices_, sparse.feature_indices_)
        np.testing.assert_allclose(dense.transform(thin), sparse.transform(form(thin)), atol=1e-8)
        np.testing.assert_allclose(model.transform(thin), model.transform(form(thin)), atol=1e-10)
        assert sparse.score(form(thin)) == pytest.approx(dense.score(thin))

    def test_large_sparse_is_never_dense(self):
        """A dense copy of these samples would take 80 GB."""
        rng = np.random.default_rng(0)
        shape = (100_000, 100_000)
        coordinates = rng.integers(0, shape[0], 50_000), rng.integers(0, shape[1], 50_000)
        samples = sp.csr_array((rng.random(50_000), coordinates), shape=shape)
        model = GSNMF((2, 2), method="spa-both").fit(samples[:200])
        assert model.transform(samples).shape == (100_000, 4)
        assert 0 < model.score(samples) < 1

    def test_float32_is_kept(self, X, fast_model):
        single = GSNMF(6, effort="fast").fit(X.astype(np.float32))
        assert {single.components_.dtype, single.row_weights_.dtype} == {np.dtype(np.float32)}
        W = single.transform(X.astype(np.float32))
        assert W.dtype == np.float32
        rebuilt = fast_model.inverse_transform(fast_model.transform(X))
        np.testing.assert_allclose(single.inverse_transform(W), rebuilt, atol=1e-3)

    @pytest.mark.parametrize("exponent", [-150, 150])
    def test_any_unit(self, X, fast_model, exponent):
        scaled = np.ldexp(X, exponent)
        other = clone(fast_model).fit(scaled)
        np.testing.assert_allclose(other.row_weights_, fast_model.row_weights_, atol=1e-6)
        assert other.reconstruction_err_ == pytest.approx(np.ldexp(fast_model.reconstruction_err_, exponent))
        np.testing.assert_allclose(
            other.transform(X)[:, 3:],
            np.ldexp(fast_model.transform(X)[:, 3:], -exponent),
            rtol=1e-3,
            atol=np.ldexp(1e-9, -exponent),
        )

    def test_input_is_unchanged(self, X):
        copy = X.copy()
        GSNMF(6, effort="fast").fit(X).transform(X)
        np.testing.assert_array_equal(X, copy)

    def test_returned_coefficients_are_the_callers(self, X):
        model = GSNMF(6, effort="fast")
        W = model.fit_transform(X)
        kept = model.row_weights_.copy()
        W[:] = -1
        np.testing.assert_array_equal(model.row_weights_, kept)

    def test_optimality_is_no_worse_than_that_of_nmf(self):
        rng = np.random.default_rng(0)
        X = sp.random_array((200, 300), density=0.05, rng=rng, format="csr")
        model = GSNMF((0, 10), effort="fast").fit(X)
        peer = NMF(10, init="nndsvda", max_iter=50, tol=1e-2).fit(X)
        ours = kkt(X.toarray(), model.transform(X), model.components_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = kkt(X.toarray(), peer.transform(X), peer.components_)
        assert ours < 1e-10 < theirs

    def test_inverse(self, X, model):
        W = model.transform(X)
        np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_)
        assert np.linalg.norm(X - model.inverse_transform(W)) <= model.reconstruction_err_ * (1 + 1e-12)
        with pytest.raises(ValueError, match=r"X must have shape \(any, 6\); got \(60, 5\)"):
            model.inverse_transform(W[:, 1:])

    def test_score_is_quality(self, X, model):
        assert model.score(X) >= model.quality_ - 1e-12
        plain = GSNMF(6, tol=1e-8, coefficients="model", effort="fast").fit(X)
        assert plain.score(X) == pytest.approx(plain.quality_)

    def test_negative_entries(self, X, model):
        with pytest.raises(ValueError, match=r"Negative values in data passed to GSNMF\.transform"):
            model.transform(-X)

    def test_not_fitted(self, X):
        for call in (GSNMF().transform, GSNMF().score, GSNMF().inverse_transform, GSNMF().explain):
            with pytest.raises(NotFittedError):
                call(X)
        with pytest.raises(NotFittedError):
            GSNMF().topics()


class TestCompany:
    """scikit-learn's other tools."""

    def test_grid_search_over_a_pipeline(self, X):
        y = X[:, 0] > np.median(X[:, 0])
        pipeline = make_pipeline(MaxAbsScaler(), GSNMF(effort="fast"), LinearSVC())
        grid = {"gsnmf__n_components": [2, (3, 2)], "gsnmf__method": ["auto"]}
        search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
        assert search.best_params_["gsnmf__n_components"] in (2, (3, 2))
        assert search.predict(X).shape == (60,)

    def test_grid_search_by_quality(self, X):
        search = GridSearchCV(GSNMF(effort="fast"), {"n_components": [1, 6]}, cv=2, error_score="raise").fit(X)
        assert search.best_params_ == {"n_components": 6}

    @pytest.mark.long
    def test_in_parallel_processes(self, X, model):
        copies = joblib.Parallel(n_jobs=2)(joblib.delayed(clone(model).fit)(X) for _ in range(2))
        for copy in copies:
            np.testing.assert_array_equal(copy.feature_indices_, model.feature_indices_)

    def test_fitted_after_pickling(self, X, fast_model):
        """As in another process, which gets the estimator before the fit and gives it back after the fit."""
        copy = pickle.loads(pickle.dumps(clone(fast_model))).fit(X)
        again = pickle.loads(pickle.dumps(copy))
        np.testing.assert_array_equal(again.feature_indices_, fast_model.feature_indices_)

    @pytest.mark.parametrize("load", [lambda m: pickle.loads(pickle.dumps(m)), lambda m: _through_joblib(m)])
    def test_pickled(self, X, model, load):
        again = load(model)
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert str(again.topics()) == str(model.topics())
        with pytest.raises(AttributeError, match="result_ holds the training data"):
            again.result_  # noqa: B018

    def test_saved(self, frame, tmp_path):
        named = GSNMF((2, 2), effort="fast").fit(frame.set_axis([f"pixel {i}" for i in range(60)]))
        named.save(tmp_path / "model.npz")
        again = GSNMF.load(tmp_path / "model.npz")
        assert again.get_params() == named.get_params()
        np.testing.assert_array_equal(again.transform(frame), named.transform(frame))
        assert str(again.topics()) == str(named.topics())
        assert any("sample:pixel " in name for name in again.get_feature_names_out())
        with pytest.raises(ValueError, match="is not a model that gsnmf saved"):
            GSNMF.load(__file__)

    def test_metadata_routing(self, X):
        y = X[:, 0] > np.median(X[:, 0])
        with sklearn.config_context(enable_metadata_routing=True):
            classifier = LinearSVC().set_fit_request(sample_weight=True)
            pipeline = make_pipeline(GSNMF(3, effort="fast").set_fit_request(sample_weight=False), classifier)
            pipeline.fit(X, y, sample_weight=np.ones(60))
        assert pipeline.predict(X).shape == (60,)

    def test_html_representation(self, model):
        assert "GSNMF" in model._repr_html_()
        assert "GSNMF" in make_pipeline(model)._repr_html_()

    def test_names_of_a_frame_are_kept(self, frame, model):
        named = GSNMF(6, effort="fast").fit(frame)
        np.testing.assert_array_equal(named.feature_names_in_, frame.columns)
        names = named.get_feature_names_out().tolist()
        assert names[:3] == [f"anchor:band {j}" for j in named.feature_indices_]
        assert names[3:] == [f"sample:{i}" for i in named.sample_indices_]
        with pytest.raises(ValueError, match="feature names should match"):
            named.transform(frame[frame.columns[::-1]])

    def test_pandas_output(self, frame):
        model = GSNMF(6, effort="fast").set_output(transform="pandas")
        W = model.fit_transform(frame)
        assert list(W.columns) == model.get_feature_names_out().tolist()
        pd.testing.assert_frame_equal(W, model.transform(frame))

    def test_polars(self, frame):
        polars = pytest.importorskip("polars")
        data = polars.DataFrame({name: frame[name].to_numpy() for name in frame})
        model = GSNMF(6, effort="fast").set_output(transform="polars")
        W = model.fit_transform(data)
        assert isinstance(W, polars.DataFrame)
        assert W.columns == model.get_feature_names_out().tolist()
        assert list(model.feature_names_in_) == list(frame.columns)

    def test_names_given(self, model):
        names = [f"f{j}" for j in range(40)]
        assert model.get_feature_names_out(names)[0] == f"anchor:f{model.feature_indices_[0]}"
        with pytest.raises(ValueError, match="input_features should have length equal"):
            model.get_feature_names_out(names[1:])


def _through_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


class TestWords:
    @pytest.fixture
    def weather(self):
        words = ["sun", "heat", "rain", "umbrella", "snow"]
        counts = [[3, 1, 0, 0, 0], [0, 0, 4, 2, 0], [0, 0, 0, 0, 5], [3, 1, 4, 2, 0], [6, 2, 0, 0, 5]]
        return pd.DataFrame(counts, columns=words)

    def test_topics(self, weather):
        model = GSNMF((2, 1), method="spa-both").fit(weather)
        table = model.topics(n_words=2, n_samples=2, sample_names=list("abcde"))
        assert table.header == ("kind", "name", "features", "samples")
        assert [row[0] for row in table.rows] == ["anchor", "anchor", "sample"]
        for kind, name, features, samples in table.rows:
            assert len(features) <= 2
            assert len(samples) <= 2
            assert name in (weather.columns if kind == "anchor" else list("abcde"))
            assert name not in features + samples
        text = repr(table)
        assert text.splitlines()[0] == f"quality {model.quality_:.1%}"
        assert len(text.splitlines()) == 3 + len(table)
        frame = table.to_frame()
        assert list(frame.columns) == list(table.header)
        assert frame["name"].tolist() == [row[1] for row in table.rows]

    def test_topics_say_how_to_name_features(self, X, model):
        assert "feature_names=" in model.topics().caption
        names = [f"word{j}" for j in range(40)]
        assert "feature_names=" not in model.topics(feature_names=names).caption

    def test_names_are_escaped_in_html(self, weather):
        model = GSNMF((2, 1), method="spa-both").fit(weather.to_numpy())
        page = model.topics(feature_names=["<b>"] * 5)._repr_html_()
        assert "<b>" not in page
        assert "&lt;b&gt;" in page

    def test_explain(self, weather):
        model = GSNMF((0, 3), tol=1e-9).fit(weather)
        assert sorted(model.sample_indices_) == [0, 1, 2]
        table = model.explain(weather.iloc[4], sample_names=list("abcde"))
        assert table.caption == "quality 100.0%"
        assert [row[:2] for row in table.rows] == [("sample", "a"), ("sample", "c")]
        assert [row[2] for row in table.rows] == pytest.approx([2, 1])
        assert [row[3] for row in table.rows] == pytest.approx([8 / 13, 5 / 13])

    def test_explain_takes_a_sample_in_any_form(self, weather):
        model = GSNMF((1, 2)).fit(weather.to_numpy())
        expected = model.explain(3).rows
        row = weather.to_numpy()[3]
        for sample in (row, list(row), row[None, :], sp.csr_array(row[None, :])):
            assert model.explain(sample).rows == expected

    def test_explain_takes_the_name_of_a_sample(self, weather):
        model = GSNMF((1, 2)).fit(weather.set_axis(["mon", "tue", "wed", "thu", "fri"]))
        assert model.explain("thu").rows == model.explain(3).rows
        with pytest.raises(TypeError, match=r"got 'sat'"):
            model.explain("sat")

    def test_long_names_lose_their_middle_as_text_alone(self, weather):
        names = [f"{'a long name of a day' * 5} {day}" for day in range(5)]
        table = GSNMF((0, 3)).fit(weather.set_axis(names)).topics(n_samples=2)
        assert max(map(len, repr(table).splitlines())) < 220
        assert set(table.to_frame()["name"]) <= set(names)

    def test_nothing_to_explain(self, weather):
        model = GSNMF((0, 3)).fit(weather.to_numpy())
        table = model.explain(np.zeros(5))
        assert table.rows == ()
        assert table.to_frame().shape == (0, 4)

    def test_wrong_samples(self, weather):
        model = GSNMF((0, 3)).fit(weather.to_numpy())
        with pytest.raises(ValueError, match=r"sample must be in \[0, 4\] or a sample itself; got 5"):
            model.explain(5)
        with pytest.raises(TypeError, match=r"sample must be the number or name of a training sample.*; got 'rain'"):
            model.explain("rain")
        with pytest.raises(ValueError, match=r"sample must be one sample; got 5"):
            model.explain(weather.to_numpy())
        with pytest.raises(ValueError, match=r"sample_names must have 5 entries, one per training sample; got 1"):
            model.topics(sample_names=["a"])
        with pytest.raises(ValueError, match=r"n_words must be an integer of at least 1; got 0"):
            model.topics(0)


class TestSelector:
    def test_supports_the_anchor_features(self):
        truth = planted((60, 40), n_columns=5, n_rows=0, random_state=0)
        selector = GSNMFSelector(5).fit(truth.matrix)
        np.testing.assert_array_equal(selector.get_support(indices=True), truth.columns)
        np.testing.assert_array_equal(selector.transform(truth.matrix), truth.matrix[:, truth.columns])

    @pytest.mark.parametrize("method", ["auto", "spa-both", "snpa", "xray", "convex", "separable-trace"])
    def test_methods(self, X, method):
        assert GSNMFSelector(4, method=method).fit(X).get_support().sum() == 4

    def test_methods_that_choose_rows_too(self, X):
        with pytest.raises(ValueError, match=r"method must be one of 'auto', .*; got 'gspa'"):
            GSNMFSelector(4, method="gspa").fit(X)

    def test_names(self, frame):
        selector = GSNMFSelector(4).set_output(transform="pandas").fit(frame)
        assert list(selector.transform(frame).columns) == list(frame.columns[selector.get_support()])

    def test_no_more_features_than_there_are(self, X):
        assert GSNMFSelector(400).fit(X).get_support().sum() <= 40

"""Weights that sum to one, against a general solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import gsnmf
from gsnmf import GSNMF

NAN = float("nan")


@pytest.fixture(scope="module")
def mixtures():
    rng = np.random.default_rng(0)
    pure = rng.random((4, 30))
    shares = rng.dirichlet(np.full(4, 0.6), 60)
    shares[:4] = np.eye(4)
    return np.abs(shares @ pure * (1 + 0.05 * rng.standard_normal((60, 30))))


def reference(H, target, seen):
    """The minimiser over the simplex by SciPy's sequential quadratic programming."""
    H, target = H[:, seen], target[seen]
    start = np.full(len(H), 1.0 / len(H))
    found = minimize(
        lambda x: 0.5 * float(np.sum((x @ H - target) ** 2)),
        start,
        jac=lambda x: H @ (x @ H - target),
        bounds=[(0.0, None)] * len(H),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0, "jac": lambda x: np.ones(len(H))},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x


def objective(X, H, target, seen):
    return float(np.sum((X @ H[:, seen] - target[seen]) ** 2))


@pytest.mark.parametrize("missing", [False, True])
def test_rows_agree_with_a_general_solver(mixtures, missing):
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random(mixtures.shape) < 0.4, NAN, mixtures) if missing else mixtures
    if missing:
        matrix[:4] = mixtures[:4]  # so that the chosen rows have no holes to be filled
    weights = gsnmf.fit_weights(matrix, [], range(4), missing_values=NAN, sum_to_one="rows")
    assert_allclose(weights.row_weights.sum(axis=1), 1.0, atol=1e-12)
    assert weights.row_weights.min() >= 0.0
    assert weights.optimality < 1e-10
    H = mixtures[:4]
    squared = 0.0
    for i in range(60):
        seen = ~np.isnan(matrix[i])
        best = reference(H, mixtures[i], seen)
        ours = objective(weights.row_weights[i], H, mixtures[i], seen)
        squared += ours
        assert ours <= objective(best, H, mixtures[i], seen) + 1e-10
        assert_allclose(weights.row_weights[i], best, atol=1e-4)
    assert weights.relative_error == pytest.approx(np.sqrt(squared / np.nansum(matrix**2)))


def test_columns_are_the_rows_of_the_transpose(mixtures):
    rows = gsnmf.fit_weights(mixtures, [], range(4), sum_to_one="rows")
    columns = gsnmf.fit_weights(mixtures.T, range(4), [], sum_to_one="columns")
    assert_allclose(columns.column_weights, rows.row_weights.T, atol=1e-12)
    assert columns.row_weights.shape == (30, 0)


def test_every_kind_of_matrix_and_unit(mixtures):
    expected = gsnmf.fit_weights(mixtures, [], range(4), sum_to_one="rows")
    for matrix in (sp.csr_array(mixtures), mixtures * 2.0**200, mixtures * 2.0**-300):
        weights = gsnmf.fit_weights(matrix, [], range(4), sum_to_one="rows")
        assert_allclose(weights.row_weights, expected.row_weights, atol=1e-10)
        assert weights.relative_error == pytest.approx(expected.relative_error)
    single = gsnmf.fit_weights(mixtures.astype(np.float32), [], range(4), sum_to_one="rows")
    assert single.row_weights.dtype == np.float32
    assert_allclose(single.row_weights, expected.row_weights, atol=1e-4)


@pytest.mark.parametrize(
    ("columns", "rows", "axis", "message"),
    [
        ([0], [1], "rows", "no chosen columns; got 1 columns and 1 rows"),
        ([0], [], "rows", "needs chosen rows"),
        ([], [], "columns", "needs chosen columns"),
        ([], [1], "samples", "sum_to_one must be 'columns', 'rows' or None"),
    ],
)
def test_wrong_requests(mixtures, columns, rows, axis, message):
    with pytest.raises(ValueError, match=message):
        gsnmf.fit_weights(mixtures, columns, rows, sum_to_one=axis)


class TestEstimator:
    def test_samples_are_mixtures_of_pure_samples(self, mixtures):
        model = GSNMF(4, sum_to_one=True, effort="fast")
        W = model.fit_transform(mixtures)
        assert model.feature_indices_.size == 0
        assert_allclose(W.sum(axis=1), 1.0, atol=1e-12)
        assert_allclose(W, model.row_weights_, atol=1e-12)
        assert_allclose(model.transform(mixtures[:7]), W[:7], atol=1e-12)
        assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(mixtures - W @ model.components_))

    def test_holes_weights_and_files(self, mixtures, tmp_path):
        rng = np.random.default_rng(3)
        holed = np.where(rng.random(mixtures.shape) < 0.2, NAN, mixtures)
        model = GSNMF((0, 4), sum_to_one=True, missing_values=NAN, effort="fast")
        W = model.fit_transform(holed, sample_weight=rng.random(60))
        assert_allclose(W.sum(axis=1), 1.0, atol=1e-12)
        model.save(tmp_path / "m.npz")
        assert_allclose(GSNMF.load(tmp_path / "m.npz").transform(holed), model.transform(holed))
        features = rng.random(30)
        weighted = GSNMF(4, sum_to_one=True, effort="fast").fit(mixtures, feature_weight=features)
        result = weighted.result_
        error = (features / features.max() * (mixtures - result.reconstruct()) ** 2).sum()
        assert result.absolute_error == pytest.approx(np.sqrt(error))
        assert_allclose(weighted.transform(mixtures), result.row_weights, atol=1e-10)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_components": (1, 2)}, r"\(0, k\); got \(1, 2\)"),
            ({"method": "gspa"}, "samples alone"),
            ({"coefficients": "model"}, "must be 'refit'"),
            ({"members": 2}, "members must be 1"),
        ],
    )
    def test_wrong_requests(self, mixtures, options, message):
        with pytest.raises(ValueError, match=message):
            GSNMF(**{"n_components": 3, **options}, sum_to_one=True).fit(mixtures)

    def test_dask_samples_are_transformed(self, mixtures):
        array = pytest.importorskip("dask.array").from_array(mixtures, chunks=(20, 30))
        model = GSNMF(4, sum_to_one=True, effort="fast").fit(mixtures)
        assert_allclose(model.transform(array).compute(), model.transform(mixtures), atol=1e-12)
        with pytest.raises(ValueError, match="Dask array"):
            GSNMF(4, sum_to_one=True, method="spa-rows").fit(array)

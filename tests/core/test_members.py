"""Factors of a few members each: the model, what it guarantees, and what it gives to other parts of the library."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

import gsnmf
from gsnmf._kernels.members import best_change, member_weights
from gsnmf.constraints import Constraints
from gsnmf.matrix import InMemoryMatrix, wrap
from gsnmf.problem import Problem
from gsnmf.records import Mixtures
from gsnmf.search.effort import Work
from gsnmf.search.members import check_members, random_start, refine_members
from gsnmf.search.mixed_model import MixedModel, Space


def random_matrix(seed, shape=(30, 24), density=0.6):
    rng = np.random.default_rng(seed)
    return rng.random(shape) * (rng.random(shape) < density) + 0.01


def planted(seed=0, noise=0.0, copies=4):
    """Column factors of which the matrix holds parts only: each is the sum of several columns."""
    rng = np.random.default_rng(seed)
    parts = rng.random((40, 3 * copies)) * (rng.random((40, 3 * copies)) < 0.3)
    factors = np.column_stack([parts[:, k * copies : (k + 1) * copies].sum(axis=1) for k in range(3)])
    mixed = factors @ rng.dirichlet(np.ones(3), size=60).T
    matrix = np.hstack([parts, 5.0 * mixed])
    return np.maximum(matrix + noise * rng.standard_normal(matrix.shape), 0.0)


def quality_of(matrix, result):
    dense = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
    return 1.0 - np.linalg.norm(dense - result.W @ result.H) / np.linalg.norm(dense)


@pytest.fixture(scope="module")
def start():
    return gsnmf.factorize(random_matrix(0), 5, effort="fast")


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_members_are_nonnegative_least_squares(seed):
    rng = np.random.default_rng(seed)
    columns, target = rng.random((8, 4)), rng.standard_normal(8)
    expected, _ = nnls(columns, target)
    found = member_weights(columns.T @ columns, columns.T @ target)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_weights_of_dependent_members():
    column = np.array([1.0, 2.0, 3.0])
    columns = np.column_stack([column, column, 2 * column])
    found = member_weights(columns.T @ columns, columns.T @ column)
    assert (found >= 0).all()
    np.testing.assert_allclose(columns @ found, column, rtol=1e-12)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_a_member_that_others_replace_leaves_again(order):
    """The first column is closest to the target, but together with the others its weight would be negative."""
    columns, target = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.3, 0.0, 0.0]]), np.array([1.0, 1.0, -0.1])
    cosines = target @ columns / np.linalg.norm(columns, axis=0)
    assert cosines.argmax() == 0
    shuffled = columns[:, order]
    found = member_weights(shuffled.T @ shuffled, shuffled.T @ target)
    np.testing.assert_allclose(found, np.array([0.0, 1.0, 1.0])[list(order)], atol=1e-14)


@pytest.mark.parametrize("exponent", [-60, 60])
def test_units_of_targets_and_columns_do_not_matter(exponent):
    rng = np.random.default_rng(0)
    matrix, target = rng.random((9, 12)), rng.standard_normal(9) + 0.5
    gram, linear, allowed = matrix.T @ matrix, matrix.T @ target, np.ones(12, dtype=bool)
    weights = member_weights(gram[:4, :4].copy(), linear[:4].copy())
    members = np.flatnonzero(weights)
    scaled = member_weights(gram[:4, :4].copy(), np.ldexp(linear[:4], exponent))
    np.testing.assert_array_equal(scaled, np.ldexp(weights, exponent))
    expected = best_change(members, gram[members], np.diag(gram).copy(), linear, allowed, 3, 0.0)
    squares = np.ldexp(gram, 2 * exponent)
    found = best_change(members, squares[members], np.diag(squares).copy(), np.ldexp(linear, exponent), allowed, 3, 0.0)
    assert found == expected
    assert found[0] >= 0


@pytest.mark.parametrize("largest", [1.0, 0.3])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_best_change_is_the_best_of_all(seed, most, largest):
    rng = np.random.default_rng(seed)
    matrix, target = rng.random((9, 12)), rng.standard_normal(9) + 0.5
    matrix[matrix > largest] = 0.0  # many columns are then orthogonal to each other
    members = rng.permutation(12)[:3]
    weights, _ = nnls(matrix[:, members], target)
    members = members[weights > 0]
    members = members[:most]
    weights, before = nnls(matrix[:, members], target)
    members = members[weights > 0]
    allowed = rng.random(12) < 0.8
    gram, norm = matrix.T @ matrix, target @ target
    position, index, explained = best_change(
        members, gram[members], np.diag(gram).copy(), matrix.T @ target, allowed, most, norm - before**2
    )
    kept = (
        list(itertools.combinations(range(members.size), most - 1)) if members.size == most else [range(members.size)]
    )
    trials = {
        (*(int(members[a]) for a in keep), j): nnls(matrix[:, [*members[list(keep)], j]], target)[1]
        for keep in kept
        for j in np.flatnonzero(allowed)
        if j not in members
    }
    least = min(trials.values(), default=before)
    if position < 0:
        assert least >= before - 1e-9
    else:
        assert norm - explained == pytest.approx(least**2, abs=1e-9)
        changed = {*np.delete(members, slice(position, position + 1)).tolist(), index}
        best = min(trials, key=trials.__getitem__)
        assert changed == set(best)


def test_more_members_are_never_worse(start):
    errors = [start.relative_error] + [refine_members(start, p).relative_error for p in (2, 3, 4)]
    assert np.all(np.diff(errors) <= 1e-12)
    assert errors[-1] < errors[0] - 0.005


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_result_is_what_it_says(start, effort):
    result = refine_members(start, 3, effort=effort)
    A, B = result.column_mixture, result.row_mixture
    m, n = start.source.shape
    assert A.shape == (n, start.columns.size)
    assert B.shape == (start.rows.size, m)
    assert (A.data > 0).all()
    assert (B.data > 0).all()
    assert np.diff(A.indptr).max(initial=0) <= 3
    assert np.diff(B.indptr).max(initial=0) <= 3
    np.testing.assert_allclose(A.sum(axis=0), 1.0)
    np.testing.assert_allclose(B.sum(axis=1), 1.0)
    matrix = start.matrix
    np.testing.assert_allclose(result.W, np.hstack([matrix @ A.toarray(), result.row_weights]))
    np.testing.assert_allclose(result.H, np.vstack([result.column_weights, B.toarray() @ matrix]))
    assert result.quality == pytest.approx(quality_of(matrix, result), abs=1e-12)
    np.testing.assert_allclose(result.reconstruct(), result.W @ result.H)
    assert result.converged
    assert (result.column_weights >= 0).all()
    assert (result.row_weights >= 0).all()
    np.testing.assert_array_equal(result.columns, A.toarray().argmax(axis=0))


def test_no_change_of_one_member_helps(start):
    """The certificate against all changes by SciPy, with the weights as they are."""
    result = refine_members(start, 2)
    assert result.mixtures.gain <= 1e-9
    matrix, W, H = start.matrix, result.W, result.H
    error = np.linalg.norm(matrix - W @ H) ** 2
    for side, left, right, mixture in (
        (matrix, W, H, result.column_mixture.toarray()),
        (matrix.T, H.T, W.T, result.row_mixture.toarray().T),
    ):
        first = 0 if side is matrix else result.columns.size
        for k in range(mixture.shape[1]):
            weights = right[first + k]
            target = (side - left @ right) @ weights / (weights @ weights) + left[:, first + k]
            best = min(
                nnls(side[:, list(pair)], target)[1]
                for pair in itertools.combinations(range(side.shape[1]), 2)
                if set(pair) & set(np.flatnonzero(mixture[:, k]))
            )
            current = np.linalg.norm(left[:, first + k] - target)
            gain = (weights @ weights) * (current**2 - best**2)
            assert gain <= 1e-5 * error  # what is left are the weights of the present members


def test_error_never_rises(start, monkeypatch):
    seen = []
    improve, solve = MixedModel.improve, MixedModel.solve

    def error(model):
        W, H = model.factors()
        return np.linalg.norm(start.matrix - W @ H)

    def checked(step):
        def run(model, *arguments):
            before = error(model)
            step(model, *arguments)
            seen.append(error(model) - before)

        return run

    monkeypatch.setattr(MixedModel, "improve", checked(improve))
    monkeypatch.setattr(MixedModel, "solve", checked(solve))
    refine_members(start, 3)
    assert len(seen) > 10
    assert max(seen) <= 1e-10


def test_planted_mixtures_are_found():
    matrix = planted()
    start = gsnmf.factorize(matrix, (3, 0), effort="fast")
    mixed = refine_members(start, 4)
    assert mixed.relative_error < 0.7 * start.relative_error


def test_kinds_of_matrices_agree():
    matrix = random_matrix(3, density=0.3) - 0.01
    start = gsnmf.factorize(matrix, 4, effort="fast")
    expected = refine_members(start, 3)
    for raw in (sp.csr_array(matrix), sp.csc_array(matrix), np.asfortranarray(matrix)):
        other = refine_members(gsnmf.Factorization(Problem(wrap(raw)), start.selection, start.weights), 3)
        assert other.relative_error == pytest.approx(expected.relative_error, rel=1e-9)
        assert (abs(other.column_mixture - expected.column_mixture)).max() < 1e-6
        assert quality_of(raw, other) == pytest.approx(other.quality, abs=1e-12)


def test_single_precision_stays():
    matrix = random_matrix(4)
    start = gsnmf.factorize(matrix.astype(np.float32), 4, effort="fast")
    result = refine_members(start, 3)
    for array in (result.W, result.H, result.column_mixture, result.row_mixture, result.row_weights):
        assert array.dtype == np.float32
    double = refine_members(gsnmf.factorize(matrix, 4, effort="fast"), 3)
    assert result.quality == pytest.approx(double.quality, abs=1e-4)
    assert result.quality == pytest.approx(quality_of(matrix, result), abs=1e-5)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_of_the_data(start, scale):
    expected = refine_members(start, 2)
    scaled = gsnmf.Factorization(Problem(wrap(start.matrix * scale)), start.selection, start.weights)
    result = refine_members(scaled, 2)
    assert result.relative_error == pytest.approx(expected.relative_error, rel=1e-9)
    np.testing.assert_allclose(
        result.W[:, : result.columns.size], scale * expected.W[:, : expected.columns.size], rtol=1e-6
    )


def test_transposition_gives_the_same(start):
    matrix = start.matrix
    weights = gsnmf.fit_weights(matrix.T, start.rows, start.columns)
    selection = gsnmf.Selection.of_indices(start.rows, start.columns, "auto", 5)
    other = refine_members(gsnmf.Factorization(Problem(wrap(matrix.T)), selection, weights), 2, effort="fast")
    expected = refine_members(start, 2, effort="fast")
    assert other.relative_error == pytest.approx(expected.relative_error, abs=2e-3)


def test_runs_repeat_and_input_stays(start):
    before = start.matrix.copy(), start.column_weights.copy(), start.row_weights.copy()
    assert refine_members(start, 3) == refine_members(start, 3)
    for array, copy in zip((start.matrix, start.column_weights, start.row_weights), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_one_member_is_the_start(start):
    result = refine_members(start, 1)
    np.testing.assert_array_equal(result.columns, start.columns)
    np.testing.assert_array_equal(result.rows, start.rows)
    assert result.relative_error <= start.relative_error + 1e-12


@pytest.mark.parametrize("rank", [(4, 0), (0, 4)])
def test_one_side_alone(rank):
    start = gsnmf.factorize(random_matrix(5), rank, effort="fast")
    result = refine_members(start, 3)
    assert (result.columns.size, result.rows.size) == rank
    assert result.relative_error < start.relative_error
    assert result.quality == pytest.approx(quality_of(start.matrix, result), abs=1e-12)


def test_limits_are_obeyed(start):
    m, n = start.source.shape
    matrix = start.matrix
    constraints = {"include_rows": [3], "exclude_columns": np.arange(0, n, 2)}
    limits = Constraints(**constraints).resolve((m, n), 5)
    columns, rows = np.array([1, 5]), np.array([3, 7, 9])
    weights = gsnmf.fit_weights(matrix, columns, rows)
    selection = gsnmf.Selection.of_indices(columns, rows, "auto", 5)
    result = refine_members(gsnmf.Factorization(Problem(wrap(matrix)), selection, weights), 3, limits=limits)
    assert not result.column_mixture.toarray()[::2].any()
    assert any(np.array_equal(row, np.eye(m)[3]) for row in result.row_mixture.toarray())
    assert result.columns.size + result.rows.size == 5
    assert result.relative_error < weights.relative_error


class TestStartFromRandomFactors:
    def model(self, start, work=np.inf, **constraints):
        limits = Constraints(**constraints).resolve(start.source.shape, 5)
        return MixedModel.of_result(start.members, start.weights, Space.of(start.source, limits, Work(work)))[0]

    def error(self, start, n_starts):
        return start.source.squared_residual(*random_start(self.model(start), n_starts))

    def test_the_best_of_several_is_close_to_the_best_nmf(self, start):
        few, many = self.error(start, 1), self.error(start, 8)
        best = min(gsnmf.nmf.hals(start.matrix, 5, random_state=seed).relative_error for seed in range(8))
        assert many <= few
        assert np.sqrt(many / start.source.squared_norm) == pytest.approx(best, rel=0.02)

    def test_ends_with_the_work(self, start):
        assert random_start(self.model(start, work=0.0), 8) is None
        model = self.model(start, work=1e-9)
        assert random_start(model, 8) is not None
        once = model.space.work.spent
        random_start(model, 8)
        assert model.space.work.spent == once

    def test_not_with_fixed_factors(self, start):
        assert random_start(self.model(start, include_columns=start.columns[:1]), 8) is None


def test_zero_columns_and_exact_matrices():
    matrix = random_matrix(6)
    matrix[:, 2] = 0.0
    weights = gsnmf.fit_weights(matrix, [2, 5], [1, 3])
    selection = gsnmf.Selection.of_indices(np.array([2, 5]), np.array([1, 3]), "given", 4)
    result = refine_members(gsnmf.Factorization(Problem(wrap(matrix)), selection, weights), 2)
    assert result.W.shape == (30, 4)
    assert np.isfinite(result.reconstruct()).all()
    assert result.quality == pytest.approx(quality_of(matrix, result), abs=1e-12)
    exact = gsnmf.factorize(np.eye(6), 6)
    assert refine_members(exact, 3).relative_error == exact.relative_error
    zero = gsnmf.Factorization(
        Problem(wrap(np.zeros((9, 9)))), selection, gsnmf.fit_weights(np.zeros((9, 9)), [2, 5], [1, 3])
    )
    assert refine_members(zero, 2).relative_error == 0.0


def test_repeated_columns():
    matrix = np.repeat(random_matrix(7, (20, 8)), 3, axis=1)
    result = refine_members(gsnmf.factorize(matrix, 3, effort="fast"), 3)
    assert result.quality == pytest.approx(quality_of(matrix, result), abs=1e-12)


def test_time_limit_ends_early(start):
    result = refine_members(start, 3, time_limit=1e-9)
    assert result.relative_error <= start.relative_error + 1e-12
    assert result.quality == pytest.approx(quality_of(start.matrix, result), abs=1e-12)


def test_factors_name_their_members(start):
    result = refine_members(start, 3)
    for k, factor in enumerate(result.factors(4)):
        assert factor.index == factor.members[0]
        assert factor.member_shares.sum() == pytest.approx(1.0)
        own = factor.columns if factor.axis == "columns" else factor.rows
        assert not set(own) & set(factor.members)
        assert own.size == 4
        assert factor.share == pytest.approx(result.W[:, k].sum() * result.H[k].sum() / result.reconstruct().sum())
    assert "up to 3 members" in repr(result)
    assert " + " in result._repr_html_()


def test_single_columns_and_rows_are_mixtures_of_one(start):
    m, n = start.source.shape
    np.testing.assert_array_equal(start.column_mixture.toarray(), np.eye(n)[:, start.columns])
    np.testing.assert_array_equal(start.row_mixture.toarray(), np.eye(m)[start.rows])


def test_saving_keeps_mixtures(start, tmp_path):
    result = refine_members(start, 3)
    gsnmf.save(result, tmp_path / "mixed.npz")
    loaded = gsnmf.load(tmp_path / "mixed.npz", start.matrix)
    assert loaded == result
    np.testing.assert_array_equal(loaded.W, result.W)
    gsnmf.save(start, tmp_path / "single.npz")
    assert gsnmf.load(tmp_path / "single.npz", start.matrix).mixtures is None


@pytest.mark.parametrize(("members", "error"), [(0, ValueError), (25, ValueError), (2.5, TypeError), (True, TypeError)])
def test_wrong_numbers_of_members(start, members, error):
    with pytest.raises(error, match="members must be"):
        refine_members(start, members)


def test_wrong_starts(start):
    with pytest.raises(ValueError, match="one member per factor"):
        refine_members(refine_members(start, 2), 3)
    dask = pytest.importorskip("dask.array")
    lazy = gsnmf.factorize(dask.from_array(start.matrix, chunks=(10, 24)), 3, method="gspa")
    with pytest.raises(ValueError, match="must be 1 for a Dask array"):
        refine_members(lazy, 2)
    assert refine_members(lazy, 1) is lazy


def test_check_of_members_says_what_is_allowed():
    matrix = wrap(np.ones((5, 4)))
    assert check_members(np.int64(3), matrix) == 3
    with pytest.raises(ValueError, match=r"members must be in \[1, 4\] for a matrix of shape \(5, 4\); got 5"):
        check_members(5, matrix)


def test_mixtures_are_comparable():
    pairs = [([4, 1], [0.3, 0.7])], [([2], [1.0])]
    assert Mixtures.of(*pairs, (3, 5), 2) == Mixtures.of(*pairs, (3, 5), 2)
    assert Mixtures.of(*pairs, (3, 5), 2) != Mixtures.of(*pairs, (3, 5), 3)
    assert repr(Mixtures.of(*pairs, (3, 5), 2)) == "Mixtures: 1 of columns and 1 of rows, of at most 2 members each"


@pytest.mark.parametrize("seed", range(5))
def test_members_average_out_noise(seed):
    """Each factor is there five times, with noise: the mean angle to the truth falls with the number of members."""
    rng = np.random.default_rng(seed)
    truth = rng.random((60, 4)) * (rng.random((60, 4)) < 0.6)
    mixing = np.hstack([np.repeat(np.eye(4), 5, axis=1), rng.dirichlet(np.full(4, 0.5), size=60).T])
    clean = truth @ mixing
    matrix = np.maximum(clean + 0.3 * clean.mean() * rng.standard_normal(clean.shape), 0.0)
    start = gsnmf.factorize(matrix, (4, 0), effort="fast")
    angles = []
    for members in (1, 2, 3, 5):
        W = refine_members(start, members).W
        cosines = (truth / np.linalg.norm(truth, axis=0)).T @ (W / np.linalg.norm(W, axis=0))
        angles.append(np.degrees(np.arccos(cosines.max(axis=1))).mean())
    assert np.all(np.diff(angles) < 0)
    assert angles[-1] < 0.7 * angles[0]


class Plain(InMemoryMatrix):
    """The least that a matrix in memory can do."""

    def __init__(self, array):
        self.shape, self.dtype, self._array = array.shape, array.dtype, array

    @property
    def data(self):
        return self._array

    @property
    def T(self):
        return Plain(self._array.T)

    def dot(self, block):
        return self._array @ block

    def columns(self, indices):
        return np.asfortranarray(self._array[:, indices])

    @property
    def squared_column_norms(self):
        return np.square(self._array).sum(axis=0)

    @property
    def column_sums(self):
        return self._array.sum(axis=0)


def test_any_matrix_in_memory(start):
    plain = gsnmf.Factorization(Problem(Plain(start.matrix)), start.selection, start.weights)
    result, expected = refine_members(plain, 2), refine_members(start, 2)
    assert result.relative_error == pytest.approx(expected.relative_error, rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_small_and_degenerate_matrices(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9, size=2)
    matrix = np.round(2 * rng.random((m, n)) * (rng.random((m, n)) < 0.6))
    matrix[:, rng.integers(n)] = matrix[:, rng.integers(n)]
    rank = int(rng.integers(1, min(m, n) + 1))
    n_columns = int(rng.integers(0, rank + 1))
    columns, rows = rng.permutation(n)[:n_columns], rng.permutation(m)[: rank - n_columns]
    selection = gsnmf.Selection.of_indices(columns, rows, "given", rank)
    given = gsnmf.Factorization(Problem(wrap(matrix)), selection, gsnmf.fit_weights(matrix, columns, rows))
    limits = Constraints().resolve((m, n), rank)
    for members in (1, 2, min(m, n)):
        result = refine_members(given, members, limits=limits, effort="fast")
        assert result.relative_error <= given.relative_error + 1e-7
        assert result.columns.size + result.rows.size == rank
        error = np.linalg.norm(matrix - result.reconstruct())
        assert error == pytest.approx(result.relative_error * np.linalg.norm(matrix), abs=1e-6)

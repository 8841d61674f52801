import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from sklearn.exceptions import ConvergenceWarning

import gsnmf
from gsnmf.convex import project, solve_convex
from gsnmf.convex.fast_gradient import fast_gradient
from gsnmf.convex.model import ConvexModel
from gsnmf.convex.penalties import PENALTIES, TRACE
from gsnmf.convex.selection import PATH, convex_selection, fast_gradient_selection
from gsnmf.convex.solve import WorkingSetSolver
from gsnmf.datasets import fully_random, middle_points, planted
from gsnmf.matrix import wrap
from gsnmf.metrics import accuracy
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.weights import solve_weights

ENTRIES = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, 1e3))
NORMS = {"group-2": 2, "group-inf": np.inf}


@st.composite
def matrices(draw):
    """Nonnegative matrices of all shapes, some with zero rows and columns."""
    m, n = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    matrix = draw(arrays(np.float64, (m, n), elements=ENTRIES))
    matrix[draw(st.lists(st.integers(0, m - 1), max_size=2))] = 0.0
    matrix[:, draw(st.lists(st.integers(0, n - 1), max_size=2))] = 0.0
    return matrix


def whole(solution, shape):
    """X and Y with all their zeros."""
    m, n = shape
    X, Y = np.zeros((n, n)), np.zeros((m, m))
    X[solution.columns] = solution.X
    Y[:, solution.rows] = solution.Y
    return X, Y


def penalty_of(X, name):
    if name == "trace":
        return np.trace(X)
    return np.linalg.norm(X, axis=1, ord=NORMS[name]).sum()


def objective(matrix, X, Y, strength, name="trace"):
    residual = matrix - matrix @ X - Y @ matrix
    return 0.5 * (residual**2).sum() + strength * (penalty_of(X, name) + penalty_of(Y.T, name))


def violation(X, weights):
    """How far X is from Omega, entry by entry and relative to what is allowed."""
    allowed = np.divide(weights, weights[:, None], where=weights[:, None] > 0, out=np.zeros_like(X))
    bounds = allowed * np.diag(X)[:, None]
    np.fill_diagonal(bounds, np.where(weights > 0, 1.0, 0.0))
    return max((X - bounds * (1 + 1e-12)).max(), -X.min())


def feasible_points(matrix, solution, name, axes, rng):
    """Points to which no lower bound may do wrong: trivial, zero, of GSPA and random ones."""
    m, n = matrix.shape
    column_weights, row_weights = matrix.sum(axis=0), matrix.sum(axis=1)
    used = np.diag((column_weights > 0).astype(float)), np.diag((row_weights > 0).astype(float))
    none = np.zeros((n, n)), np.zeros((m, m))
    start = generalized_successive_projection(wrap(matrix), min(3, max(m, n)))
    weights = solve_weights(wrap(matrix), start.columns, start.rows)
    X, Y = none[0].copy(), none[1].copy()
    X[start.columns], Y[:, start.rows] = weights.column_weights, weights.row_weights
    points = [none, (used[0], none[1]), whole(solution, matrix.shape)]
    drawn = [(X, Y), (rng.random((n, n)), rng.random((m, m)))]
    if name == "trace":
        drawn = [(project(X, column_weights), project(Y.T, row_weights).T) for X, Y in drawn]
    points += drawn
    if "rows" not in axes:
        return [(X, none[1]) for X, _ in points]
    return [*points, (0.3 * used[0], 0.7 * used[1]), (none[0], used[1])]


@given(
    matrix=matrices(),
    name=st.sampled_from(sorted(PENALTIES)),
    axes=st.sampled_from([("columns", "rows"), ("columns",)]),
    sparse=st.booleans(),
    relative_strength=st.sampled_from([1e-2, 1.0, 10.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_the_certificate_is_honest(matrix, name, axes, sparse, relative_strength, seed):
    given_matrix = sp.csr_array(matrix) if sparse else matrix
    before = matrix.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # of the trivial solution
        solution = solve_convex(
            given_matrix,
            min(2, max(matrix.shape)),
            relative_strength=relative_strength,
            penalty=name,
            axes=axes,
            max_iterations=300,
        )
    assert_array_equal(matrix, before)
    X, Y = whole(solution, matrix.shape)
    scale = (matrix**2).sum()
    value = objective(matrix, X, Y, solution.strength, name)
    assert_allclose(solution.objective, value, rtol=1e-9, atol=1e-13 * scale)
    assert_allclose(solution.residual_norm, np.linalg.norm(matrix - matrix @ X - Y @ matrix), atol=1e-7 * scale**0.5)
    assert solution.gap >= -1e-9
    assert "rows" in axes or solution.rows.size == 0
    if name == "trace":
        assert violation(X, matrix.sum(axis=0)) <= 1e-12
        assert violation(Y.T, matrix.sum(axis=1)) <= 1e-12
    else:
        assert min(X.min(), Y.min()) >= 0
    for point in feasible_points(matrix, solution, name, axes, np.random.default_rng(seed)):
        assert solution.lower_bound <= objective(matrix, *point, solution.strength, name) * (1 + 1e-9)


@pytest.fixture(scope="module")
def noisy():
    return fully_random(0.1, shape=(30, 24), n_columns=3, n_rows=4, random_state=0)


def generic(matrix, strength, name, axes):
    """The optimal value by a conic solver that knows nothing of the structure."""
    cvxpy = pytest.importorskip("cvxpy")
    m, n = matrix.shape
    X, Y = cvxpy.Variable((n, n), nonneg=True), cvxpy.Variable((m, m), nonneg=True)
    constraints, costs = [], []
    for Z, weights in ((X, matrix.sum(axis=0)), (Y.T, matrix.sum(axis=1))):
        if name == "trace":
            ratios = weights / weights[:, None]
            constraints += [
                cvxpy.diag(Z) <= 1,
                cvxpy.multiply(1 / ratios, Z) <= cvxpy.diag(Z)[:, None] @ np.ones((1, len(weights))),
            ]
            costs.append(cvxpy.trace(Z))
        else:
            costs.append(cvxpy.sum(cvxpy.norm(Z, NORMS[name], axis=1)))
    fitted = matrix @ X
    if "rows" in axes:
        fitted = fitted + Y @ matrix
    cost = 0.5 * cvxpy.sum_squares(matrix - fitted) + strength * sum(costs[: len(axes)])
    problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return problem.solve()


@pytest.mark.parametrize("axes", [("columns", "rows"), ("columns",)])
@pytest.mark.parametrize("name", PENALTIES)
def test_the_optimum_is_that_of_a_generic_solver(name, axes):
    matrix = np.asarray(fully_random(0.1, shape=(12, 10), n_columns=2, n_rows=2, random_state=0).matrix)
    solution = solve_convex(matrix, 4, penalty=name, axes=axes, tolerance=1e-6, max_iterations=50000)
    expected = generic(matrix, solution.strength, name, axes)
    assert solution.lower_bound <= expected * (1 + 1e-6)
    assert_allclose(solution.objective, expected, rtol=1e-5)


@pytest.mark.parametrize("axes", [("columns", "rows"), ("columns",)])
@pytest.mark.parametrize("relative_strength", [0.25, 4.0])
def test_both_solvers_agree_within_their_gaps(noisy, relative_strength, axes):
    matrix = wrap(noisy.matrix)
    ours = solve_convex(
        noisy.matrix, 7, relative_strength=relative_strength, axes=axes, tolerance=1e-4, max_iterations=20000
    )
    assert ours.converged
    model = ConvexModel(matrix, ours.strength, TRACE, axes)
    start = generalized_successive_projection(matrix, 7)
    weights = solve_weights(matrix, start.columns, start.rows)
    reference = fast_gradient(
        model,
        start.columns,
        start.rows,
        weights.column_weights,
        weights.row_weights,
        tolerance=1e-12,
        max_iterations=5000,
    )
    assert 0 <= reference.gap < 0.05
    assert ours.lower_bound <= reference.objective
    assert reference.lower_bound <= ours.objective


@pytest.mark.parametrize("name", NORMS)
@given(row=arrays(np.float64, st.integers(1, 6), elements=st.floats(-3, 3)), threshold=st.floats(0, 4))
@settings(max_examples=40, deadline=None)
def test_shrink_minimises(name, row, threshold):
    shrunk = row[None].copy()
    PENALTIES[name].shrink(shrunk, np.array([threshold]), np.array([0]), np.ones(row.size))

    def value(z):
        return 0.5 * ((z - row) ** 2).sum() + threshold * np.linalg.norm(z, NORMS[name])

    assert shrunk.min() >= 0
    # with the bound on the norm as a variable of its own the program is smooth
    limit = {"type": "ineq", "fun": lambda z: z[-1] - z[:-1] if name == "group-inf" else z[-1] ** 2 - z[:-1] @ z[:-1]}
    found = minimize(
        lambda z: 0.5 * ((z[:-1] - row) ** 2).sum() + threshold * z[-1],
        np.append(np.maximum(row, 0.0), 10.0),
        bounds=[(0, None)] * (row.size + 1),
        constraints=limit,
        method="SLSQP",
    )
    assert value(shrunk[0]) <= value(np.maximum(found.x[:-1], 0.0)) + 1e-9
    for z in np.random.default_rng(0).normal(shrunk[0], 0.1, (50, row.size)):
        assert value(shrunk[0]) <= value(np.maximum(z, 0.0)) + 1e-12


def test_scores_are_the_most_that_a_row_can_gain():
    """The largest product of the slopes with a row of the set whose penalty is one."""
    rng = np.random.default_rng(0)
    slopes, indices, weights = rng.standard_normal((4, 7)), np.array([5, 0, 6, 4]), rng.uniform(0.5, 2.0, 7)
    positive, own = np.maximum(slopes, 0.0), (np.arange(4), indices)
    others = positive.copy()
    others[own] = 0.0
    expected = {
        "trace": slopes[own] + others @ weights / weights[indices],
        "group-2": np.linalg.norm(positive, axis=1),
        "group-inf": positive.sum(axis=1),
    }
    assert (slopes[own] < 0).any()
    assert (slopes[own] > 0).any()
    for name, penalty in PENALTIES.items():
        np.testing.assert_allclose(penalty.scores(slopes, indices, weights), expected[name], rtol=1e-14, err_msg=name)
    weights[5] = 0.0
    np.testing.assert_array_equal(np.isneginf(TRACE.scores(slopes, indices, weights)), indices == 5)


@pytest.mark.parametrize("name", PENALTIES)
@given(
    scores=arrays(np.float64, st.integers(0, 6), elements=st.floats(-5, 5).map(lambda x: round(x, 3))),
    inner=st.floats(-1, 20),
    squared_norm=st.floats(0.01, 10),
    strength=st.floats(0.01, 5),
)
@settings(max_examples=60, deadline=None)
def test_dual_bound_takes_the_best_factor(name, scores, inner, squared_norm, strength):
    def bound(t):
        value = t * inner - 0.5 * t * t * squared_norm
        if name == "trace":
            return value + np.minimum(0, strength - t * scores).sum()
        return value if np.all(t * scores <= strength * (1 + 1e-12)) else -np.inf

    found = PENALTIES[name].dual_bound(scores, inner, squared_norm, strength)
    last = max(inner, 0.0) / squared_norm
    positive = scores[scores > 0]
    candidates = [0.0, last, *(strength / positive)]
    if name == "trace":
        search = minimize_scalar(
            lambda t: -bound(t), bounds=(0, last + 1e-9), method="bounded", options={"xatol": 1e-10}
        )
        candidates.append(search.x)
    best = max(bound(t) for t in candidates if t <= last)
    assert_allclose(found, best, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("axes", [("columns", "rows"), ("columns",)])
def test_sparse_is_dense(noisy, name, axes):
    found = [
        solve_convex(matrix, 7, relative_strength=4.0, penalty=name, axes=axes, tolerance=1e-3)
        for matrix in (noisy.matrix, sp.csr_array(noisy.matrix), sp.csc_array(noisy.matrix))
    ]
    for solution in found[1:]:
        assert_array_equal(solution.columns, found[0].columns)
        assert_array_equal(solution.rows, found[0].rows)
        assert_allclose(solution.X, found[0].X, atol=1e-9)
        assert_allclose(solution.objective, found[0].objective, rtol=1e-9)
        assert_allclose(solution.lower_bound, found[0].lower_bound, rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_single_precision_input_is_certified_in_double(noisy, sparse):
    matrix = np.asarray(noisy.matrix).astype(np.float32)
    solution = solve_convex(sp.csr_array(matrix) if sparse else matrix, 7, relative_strength=4.0, tolerance=1e-3)
    double = matrix.astype(np.float64)
    X, Y = whole(solution, matrix.shape)
    assert_allclose(solution.objective, objective(double, X, Y, solution.strength), rtol=1e-9)
    again = solve_convex(double, 7, relative_strength=4.0, tolerance=1e-3)
    assert_allclose(solution.strength, again.strength, rtol=1e-4)
    assert solution.lower_bound <= again.objective * (1 + 1e-4)


def test_transposition_swaps_columns_and_rows(noisy):
    solution = solve_convex(noisy.matrix, 7, relative_strength=4.0, tolerance=1e-4, max_iterations=20000)
    turned = solve_convex(noisy.matrix.T, 7, relative_strength=4.0, tolerance=1e-4, max_iterations=20000)
    assert_allclose(turned.strength, solution.strength, rtol=1e-3)
    assert_allclose(turned.objective, solution.objective, rtol=2e-3)
    for matrix, rank in ((noisy.matrix, (3, 4)), (noisy.matrix.T, (4, 3))):
        selection = convex_selection(wrap(matrix), rank)
        columns, rows = (noisy.columns, noisy.rows) if rank == (3, 4) else (noisy.rows, noisy.columns)
        assert_array_equal(np.sort(selection.columns), np.sort(columns))
        assert_array_equal(np.sort(selection.rows), np.sort(rows))


@pytest.mark.parametrize("select", [convex_selection, fast_gradient_selection])
@pytest.mark.parametrize("rank", [7, (3, 4)])
def test_the_unit_of_the_matrix_does_not_matter(noisy, select, rank):
    expected = select(wrap(noisy.matrix), rank)
    for unit in (1e-100, 1e100, 1e150):
        found = select(wrap(unit * noisy.matrix), rank)
        assert_array_equal(found.columns, expected.columns)
        assert_array_equal(found.rows, expected.rows)


@pytest.mark.parametrize("noise", [0.05, 0.15, 0.5])
def test_a_noise_level_instead_of_lambda(noisy, noise):
    solution = solve_convex(noisy.matrix, 7, noise=noise, tolerance=1e-3, max_iterations=20000)
    norm = np.linalg.norm(noisy.matrix)
    assert solution.residual_norm <= noise * norm
    assert solution.converged
    larger = WorkingSetSolver(wrap(noisy.matrix), max_iterations=20000)
    model = ConvexModel(wrap(noisy.matrix), 1.15 * solution.strength)
    assert larger.solve(model, 1e-4).residual_norm > noise * norm


def test_a_noise_level_above_all_needs_nothing(noisy):
    assert solve_convex(noisy.matrix, 7, noise=1.5).columns.size == 0


def test_a_noise_level_for_a_matrix_without_noise():
    truth = fully_random(0.0, shape=(30, 24), n_columns=3, n_rows=4, random_state=0)
    solution = solve_convex(truth.matrix, 7, noise=0.05, tolerance=1e-3, max_iterations=20000)
    norm = np.linalg.norm(truth.matrix)
    assert 0.04 * norm < solution.residual_norm <= 0.05 * norm


def test_the_trivial_solution_is_named(noisy):
    with pytest.warns(RuntimeWarning, match="try lambda = ") as caught:
        solution = solve_convex(noisy.matrix, 7, relative_strength=1e-3, max_iterations=20000)
    assert solution.is_trivial
    factor = float(str(caught[0].message).split("times ")[1].split(")")[0])
    better = solve_convex(noisy.matrix, 7, relative_strength=1e-3 * factor)  # without a warning
    assert not better.is_trivial


@pytest.mark.parametrize("shape", [(1, 6), (2, 50), (50, 2)])
def test_a_rank_that_allows_all_rows_or_columns_is_not_warned_of(shape):
    matrix = np.random.default_rng(0).random(shape)
    assert solve_convex(matrix, 2, relative_strength=0.1, max_iterations=20000).gap <= 1e-2


def test_not_converged_is_said(noisy):
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* above the tolerance 1\.0e-08"):
        solution = solve_convex(noisy.matrix, 7, tolerance=1e-8, max_iterations=20)
    assert not solution.converged
    assert solution.stop_reason == "max_iterations reached"
    assert 1e-8 < solution.gap < 1


def test_a_small_memory_ends_with_an_honest_gap():
    matrix = np.asarray(fully_random(0.1, random_state=0).matrix)
    with pytest.warns(ConvergenceWarning, match="memory"):
        solution = solve_convex(matrix, 40, relative_strength=0.5, memory=50 * 8 * 4 * 200)
    assert solution.stop_reason == "working set exceeds the memory"
    assert solution.columns.size + solution.rows.size <= 50
    X, Y = whole(solution, matrix.shape)
    assert_allclose(solution.objective, objective(matrix, X, Y, solution.strength), rtol=1e-9)
    best = solve_convex(matrix, 40, relative_strength=0.5)
    assert solution.lower_bound <= best.objective
    assert best.lower_bound <= solution.objective


@pytest.mark.parametrize("name", PENALTIES)
def test_a_path_is_as_good_as_single_solutions(noisy, name):
    matrix = wrap(noisy.matrix)
    shared = WorkingSetSolver(matrix)
    for relative in (10.0, 3.0, 1.0):
        model = ConvexModel(matrix, relative * 0.01 * matrix.squared_norm, PENALTIES[name])
        one, alone = shared.solve(model, 1e-3), WorkingSetSolver(matrix).solve(model, 1e-3)
        assert one.converged
        assert alone.converged
        assert one.lower_bound <= alone.objective * (1 + 1e-12)
        assert alone.lower_bound <= one.objective * (1 + 1e-12)


def test_a_copy_of_a_solver_goes_on_from_where_it_was(noisy):
    matrix = wrap(noisy.matrix)
    solver = WorkingSetSolver(matrix)
    models = [ConvexModel(matrix, relative * 0.01 * matrix.squared_norm) for relative in (3.0, 1.0)]
    solver.solve(models[0], 1e-2)
    kept, untouched = solver.copy(), solver.copy()
    expected = solver.solve(models[1], 1e-3)
    kept.solve(ConvexModel(matrix, 1e-4 * matrix.squared_norm), 1e-2)
    found = untouched.solve(models[1], 1e-3)
    assert found.n_iterations == expected.n_iterations
    assert_array_equal(found.X, expected.X)
    assert_array_equal(found.Y, expected.Y)


@pytest.mark.long
def test_a_selection_that_is_not_certified_says_so():
    truth = fully_random(1e-3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="is not certified") as caught:
        found = gsnmf.select(truth.matrix, (20, 20), method="convex")
    assert caught[0].filename == __file__
    assert accuracy(found.columns, found.rows, truth.columns, truth.rows) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gsnmf.select(truth.matrix, (20, 20), method="auto")  # promises nothing of the kind


def test_the_path_ends_where_the_rank_is_spent(noisy, monkeypatch):
    solved = []
    solve = WorkingSetSolver.solve

    def recorded(self, model, tolerance):
        solved.append((solve(self, model, tolerance), tolerance))
        return solved[-1][0]

    monkeypatch.setattr(WorkingSetSolver, "solve", recorded)
    found = convex_selection(wrap(noisy.matrix), 7)
    assert accuracy(found.columns, found.rows, noisy.columns, noisy.rows) == 1.0
    *path, (last, gap) = solved
    strengths = [solution.strength for solution, _ in path]
    assert strengths == sorted(strengths, reverse=True)
    spent = [solution.column_diagonal.sum() + solution.row_diagonal.sum() for solution, _ in path]
    assert max(spent[:-1]) < 7
    assert last.strength in strengths
    assert last.gap <= gap == 1e-2


SELECTORS = pytest.mark.parametrize("select", [convex_selection, fast_gradient_selection])


@SELECTORS
@pytest.mark.parametrize(
    ("generate", "noise"),
    [
        (fully_random, 0.01),
        pytest.param(fully_random, 0.113, marks=pytest.mark.long),
        (fully_random, 0.336),
        pytest.param(fully_random, 0.483, marks=pytest.mark.long),
        (middle_points, 0.01),
        pytest.param(middle_points, 0.113, marks=pytest.mark.long),
        (middle_points, 0.234),
    ],
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_planted_columns_and_rows_are_found(select, generate, noise, seed):
    assert_found(select, generate, noise, [seed])


@SELECTORS
@pytest.mark.long
def test_planted_columns_and_rows_are_found_at_the_largest_noise(select):
    assert_found(select, fully_random, 0.483, range(2, 25))


def assert_found(select, generate, noise, seeds):
    for seed in seeds:
        truth = generate(noise, random_state=seed)
        found = select(wrap(truth.matrix), (truth.columns.size, truth.rows.size))
        assert accuracy(found.columns, found.rows, truth.columns, truth.rows) == 1.0


@pytest.mark.long
def test_the_printed_fast_gradient_leaves_ties_to_the_diagonal():
    """At this noise the optimum of the model has two entries in the wrong order in one matrix of twelve or so."""
    worse = 0
    for seed in range(25):
        truth = fully_random(0.483, random_state=seed)
        printed = fast_gradient_selection(wrap(truth.matrix), (20, 20), as_printed=True)
        worse += accuracy(printed.columns, printed.rows, truth.columns, truth.rows) < 1.0
    assert 0 < worse < 8


@SELECTORS
def test_planted_columns_and_rows_are_found_without_noise(select):
    """For one number GS-FGM stops as the paper prints it, too early to be sure of them."""
    for seed in range(3):
        truth = fully_random(0.0, shape=(60, 50), n_columns=8, n_rows=6, random_state=seed)
        for rank in ((8, 6),) if select is fast_gradient_selection else (14, (8, 6)):
            found = select(wrap(truth.matrix), rank)
            assert accuracy(found.columns, found.rows, truth.columns, truth.rows) == 1.0


@SELECTORS
@pytest.mark.parametrize("rank", [2, (1, 1)])
@pytest.mark.parametrize("matrix", [np.zeros((3, 4)), np.ones((3, 4)), np.ones((1, 5)), np.eye(4), np.eye(3)[:, :2]])
def test_degenerate_matrices_give_distinct_indices(select, matrix, rank):
    found = select(wrap(matrix), rank)
    assert np.unique(found.columns).size == found.columns.size <= 2
    assert np.unique(found.rows).size == found.rows.size <= 2
    assert len(found.order) == found.columns.size + found.rows.size


@SELECTORS
def test_columns_only_chooses_no_rows(select):
    truth = planted((40, 30), 4, 0, noise_level=0.05, random_state=0)
    found = select(wrap(np.asarray(truth.matrix)), 4, axes=("columns",))
    assert found.rows.size == 0
    assert_array_equal(np.sort(found.columns), np.sort(truth.columns))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l1"}, "penalty must be one of trace, group-2, group-inf; got 'l1'"),
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"relative_strength": -1.0}, "relative_strength must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"memory": 0}, "memory must be"),
        ({"max_iterations": 0}, "max_iterations must be"),
    ],
)
def test_wrong_options_are_refused(noisy, options, message):
    with pytest.raises(ValueError, match=message):
        solve_convex(noisy.matrix, 7, **options)


def test_the_path_is_the_papers():
    assert_allclose(PATH, np.logspace(-3, 1, 10)[::-1])


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**450])
def test_the_solution_is_in_the_unit_of_the_matrix(factor):
    matrix = fully_random(0.1, shape=(20, 24), n_columns=2, n_rows=2, random_state=0).matrix
    plain, scaled = solve_convex(matrix, 4), solve_convex(matrix * factor, 4)
    assert scaled.residual_norm == pytest.approx(plain.residual_norm * factor, rel=1e-6)
    assert scaled.objective == pytest.approx(plain.objective * factor * factor, rel=1e-6)
    assert scaled.gap == pytest.approx(plain.gap, abs=1e-6)


@pytest.mark.filterwarnings("ignore:lambda = :RuntimeWarning")
def test_a_noise_level_that_no_lambda_meets_is_told(noisy):
    with pytest.warns(ConvergenceWarning) as caught:
        solve_convex(noisy.matrix, 7, noise=1e-20, max_iterations=50)
    assert any("No lambda meets noise" in str(warning.message) for warning in caught)

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gsnmf
from gsnmf import ConvexSolution
from gsnmf.convex import automatic_sizes, solve_convex
from gsnmf.convex.selection import by_importance, completed, largest_diagonal, largest_of_both, settle_ties
from gsnmf.datasets import fully_random, planted
from gsnmf.matrix import wrap


def solution_of(columns, X, rows, Y):
    return ConvexSolution(
        columns=np.array(columns, dtype=np.intp),
        rows=np.array(rows, dtype=np.intp),
        X=np.asarray(X, dtype=float),
        Y=np.asarray(Y, dtype=float),
        strength=1.0,
        objective=1.0,
        lower_bound=1.0,
        residual_norm=1.0,
        n_iterations=1,
        converged=True,
        stop_reason="tolerance reached",
    )


@pytest.fixture
def by_hand():
    """A 3 x 4 matrix of which X uses columns 3, 0, 2 and Y rows 1, 2."""
    X = [[0.1, 0.0, 0.0, 0.2], [0.9, 0.9, 0.0, 0.9], [0.0, 0.0, 0.5, 0.0]]
    Y = [[0.0, 0.3], [0.4, 0.0], [0.0, 0.8]]
    return solution_of([3, 0, 2], X, [1, 2], Y)


def test_largest_diagonal(by_hand):
    selection = largest_diagonal(by_hand, 2, 1, "convex")
    assert_array_equal(selection.columns, [0, 2])
    assert_array_equal(selection.rows, [2])
    assert (selection.order, selection.method, selection.stop_reason) == (
        ("columns", "columns", "rows"),
        "convex",
        "rank reached",
    )


def test_largest_diagonal_gives_what_there_is(by_hand):
    selection = largest_diagonal(by_hand, 4, 0, "convex")
    assert_array_equal(selection.columns, [0, 2, 3])
    assert selection.rows.size == 0


def orthogonal_residual(M, columns, rows):
    """(I - U U') M (I - V V') for the spans of the chosen, one after the other as they were chosen."""
    for letter, index in zip(columns, rows, strict=True):
        vector = M[:, index] if letter == "c" else M[index]
        vector = vector / np.linalg.norm(vector)
        M = M - np.outer(vector, vector @ M) if letter == "c" else M - np.outer(M @ vector, vector)
    return M


def textbook_importance(M, solution, rank):
    """The paper's procedure with the residual formed: SPA on X' and on Y, then the better head of the two queues."""

    def spa(vectors):
        residual, order = vectors.copy(), []
        while len(order) < vectors.shape[1] and np.linalg.norm(residual, axis=0).max() > 1e-12:
            best = int(np.linalg.norm(residual, axis=0).argmax())
            u = residual[:, best] / np.linalg.norm(residual[:, best])
            residual = residual - np.outer(u, u @ residual)
            order.append(best)
        return order

    queues = {"c": list(solution.columns[spa(solution.X.T)]), "r": list(solution.rows[spa(solution.Y)])}
    picks, residual = [], M
    while len(picks) < rank:
        heads = [(letter, queue[0]) for letter, queue in queues.items() if queue]
        left = [orthogonal_residual(residual, [letter], [index]) for letter, index in heads]
        best = int(np.argmin([np.linalg.norm(part) for part in left]))
        residual = left[best]
        picks.append((heads[best][0], int(queues[heads[best][0]].pop(0))))
    return picks


@pytest.mark.parametrize("seed", range(3))
def test_by_importance_is_the_papers_procedure(seed):
    matrix = np.asarray(fully_random(0.2, shape=(20, 25), n_columns=3, n_rows=3, random_state=seed).matrix)
    solution = solve_convex(matrix, 6)
    selection = by_importance(solution, wrap(matrix), 6, "convex")
    columns, rows = iter(selection.columns.tolist()), iter(selection.rows.tolist())
    found = [(axis[0], next(columns if axis == "columns" else rows)) for axis in selection.order]
    assert found == textbook_importance(matrix, solution, 6)
    assert selection.stop_reason == "rank reached"


def test_by_importance_passes_over_what_is_explained_already():
    matrix = np.column_stack([np.eye(3), [2.0, 0.0, 0.0]])  # the last column repeats the first
    X = np.zeros((4, 4))
    X[0, 0], X[1, 1], X[2, 2], X[3, 3] = 0.8, 0.4, 0.3, 0.9
    selection = by_importance(solution_of(range(4), X, [], np.zeros((3, 0))), wrap(matrix), 3, "convex")
    assert_array_equal(selection.columns, [3, 1, 2])


@pytest.mark.parametrize("letters", ["cc", "ccr", "rcc"])
def test_gains_are_those_of_the_explicit_residual(letters):
    rng = np.random.default_rng(0)
    matrix = rng.random((8, 6))
    indices = [2, 4, 5][: len(letters)]
    projection = wrap(matrix).projection(4, ("columns", "rows"))
    axes = {"c": "columns", "r": "rows"}
    for letter, index in zip(letters, indices, strict=True):
        projection.choose(axes[letter], index)
    before = np.linalg.norm(orthogonal_residual(matrix, letters, indices)) ** 2
    for letter, count in (("c", 6), ("r", 8)):
        for index in {*range(count)} - {*indices}:
            after = np.linalg.norm(orthogonal_residual(matrix, letters + letter, [*indices, index])) ** 2
            assert projection.gain(axes[letter], index) == pytest.approx(before - after, rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 2.0**-30, 2.0**30])
def test_what_is_explained_gains_nothing_and_what_is_nearly_explained_does(unit):
    rng = np.random.default_rng(0)
    matrix = unit * rng.random((8, 6))
    matrix[:, 2] = 0.3 * matrix[:, 0] + 0.7 * matrix[:, 1]
    matrix[:, 3] = matrix[:, 2] + 1e-8 * matrix[:, 3]
    projection = wrap(matrix).projection(4, ("columns",))
    projection.choose("columns", 0)
    projection.choose("columns", 1)
    left = orthogonal_residual(matrix, "cc", [0, 1])
    after = np.linalg.norm(orthogonal_residual(left, "c", [3])) ** 2
    assert [projection.gain("columns", index) for index in (0, 1, 2)] == [0.0, 0.0, 0.0]
    assert projection.gain("columns", 3) == pytest.approx(np.linalg.norm(left) ** 2 - after, rel=1e-5)


def test_by_importance_of_nothing():
    selection = by_importance(
        solution_of([], np.zeros((0, 4)), [], np.zeros((3, 0))), wrap(np.ones((3, 4))), 2, "convex"
    )
    assert selection.n_selected == 0


# a single planted column makes a part of rank one, which a row can often explain as well
@pytest.mark.parametrize(("n_columns", "n_rows"), [(4, 3), (3, 5), (5, 4)])
@pytest.mark.parametrize("seed", range(2))
def test_automatic_sizes_of_planted_matrices(n_columns, n_rows, seed):
    truth = fully_random(0.01, shape=(40, 50), n_columns=n_columns, n_rows=n_rows, random_state=seed)
    solution = solve_convex(truth.matrix, n_columns + n_rows)
    assert automatic_sizes(solution) == (n_columns, n_rows)
    assert automatic_sizes(solution, threshold=0.5) == (n_columns, n_rows)
    assert_array_equal(np.sort(largest_diagonal(solution, n_columns, n_rows, "convex").columns), np.sort(truth.columns))


def test_automatic_sizes_of_columns_alone():
    truth = planted((30, 40), 4, 0, noise_level=0.01, random_state=0)
    assert automatic_sizes(solve_convex(truth.matrix, 4, axes=("columns",))) == (4, 0)


def test_automatic_sizes_by_threshold(by_hand):
    assert automatic_sizes(by_hand, threshold=0.45) == (2, 1)
    assert automatic_sizes(by_hand, threshold=0.0) == (3, 2)
    assert automatic_sizes(solution_of([], np.zeros((0, 4)), [], np.zeros((3, 0)))) == (0, 0)


def test_largest_of_both_diagonals(by_hand):
    selection = largest_of_both(by_hand, 3, "convex")
    assert_array_equal(selection.columns, [0, 2])
    assert_array_equal(selection.rows, [2])


def test_ties_are_settled_by_the_true_error():
    truth = fully_random(0.05, shape=(30, 40), n_columns=3, n_rows=4, random_state=0)
    wrong = int(np.setdiff1d(np.arange(40), truth.columns)[0])
    columns = [*truth.columns, wrong]
    X = np.zeros((4, 40))
    X[np.arange(4), columns] = [1.0, 0.9, 0.40, 0.41]
    Y = np.zeros((30, 4))
    Y[truth.rows, np.arange(4)] = 1.0
    solution = solution_of(columns, X, truth.rows, Y)
    chosen = largest_diagonal(solution, 3, 4, "convex")
    assert wrong in chosen.columns
    settled = settle_ties(chosen, solution, wrap(truth.matrix))
    assert_array_equal(np.sort(settled.columns), np.sort(truth.columns))
    assert_array_equal(settled.rows, chosen.rows)


def test_what_is_clear_is_not_tried(by_hand):
    chosen = largest_diagonal(by_hand, 1, 1, "convex")
    assert settle_ties(chosen, by_hand, wrap(np.ones((3, 4)))) is chosen


def test_a_short_selection_is_completed(by_hand):
    short = largest_diagonal(by_hand, 1, 0, "convex")
    full = completed(short, 3, 1, np.array([0, 3, 1]), np.array([2]))
    assert_array_equal(full.columns, [0, 3, 1])
    assert_array_equal(full.rows, [2])
    assert (full.order, full.stop_reason) == (("columns",) * 3 + ("rows",), "rank reached")


@pytest.mark.parametrize("rank", [8, (5, 3), (1, 7), (9, 0), (0, 3)])
@pytest.mark.parametrize("method", ["convex", "gs-fgm"])
def test_as_many_as_asked_for(rank, method):
    matrix = np.random.default_rng(0).random((12, 9))
    selection = gsnmf.select(matrix, rank, method=method)
    assert selection.n_selected == (rank if isinstance(rank, int) else sum(rank))
    assert selection.stop_reason == "rank reached"
    if not isinstance(rank, int):
        assert (selection.columns.size, selection.rows.size) == rank


def test_fewer_where_they_explain_everything():
    selection = gsnmf.select(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]), 2, method="convex")
    assert (selection.n_selected, selection.stop_reason) == (1, "residual is zero")

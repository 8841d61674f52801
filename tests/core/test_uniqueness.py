import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from gsnmf.convex.uniqueness import (
    check_uniqueness,
    equilibrate,
    extreme_columns,
    largest_zero_block,
    largest_zero_block_size,
)
from gsnmf.datasets import gspa_failure_example, non_unique_example, three_three_separable, two_one_separable

PATTERNS = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6))
SEEDS = st.integers(0, 2**32 - 1)


def all_zero_blocks(zeros):
    """Every block of zeros, as a pair of a set of rows and a set of columns, both not empty."""
    m, n = zeros.shape
    return [
        (rows, columns)
        for r4 in range(1, m + 1)
        for rows in itertools.combinations(range(m), r4)
        for r3 in range(1, n + 1)
        for columns in itertools.combinations(np.flatnonzero(zeros[list(rows)].all(axis=0)).tolist(), r3)
    ]


def planted(seed, m, n, r1, r2):
    rng = np.random.default_rng(seed)
    W1, H1 = rng.random((m - r2, r1)), rng.random((r1, n - r1))
    W2, H2 = rng.random((m - r2, r2)), rng.random((r2, n - r1))
    matrix = np.block([[W1, W1 @ H1 + W2 @ H2], [np.zeros((r2, r1)), H2]])
    return matrix, np.arange(r1), np.arange(m - r2, m)


@settings(deadline=None, max_examples=100)
@given(PATTERNS)
def test_largest_zero_block_is_what_trying_all_finds(zeros):
    blocks = all_zero_blocks(zeros)
    for row, column in np.argwhere(zeros):
        sizes = [len(rows) + len(columns) for rows, columns in blocks if row in rows and column in columns]
        rows, columns = largest_zero_block(zeros, row, column)
        assert zeros[np.ix_(rows, columns)].all()
        assert row in rows
        assert column in columns
        assert rows.size + columns.size == max(sizes) == largest_zero_block_size(zeros, row, column)


@settings(deadline=None, max_examples=100)
@given(PATTERNS, SEEDS)
def test_other_patterns_are_what_trying_all_finds(zeros, seed):
    """Condition 2 alone, on matrices of any rank: the given block is the only one with as many rows and columns."""
    rng = np.random.default_rng(seed)
    zeros = zeros[~zeros.all(axis=1)][:, ~zeros.all(axis=0)]
    blocks = all_zero_blocks(zeros)
    assume(blocks)
    rows, columns = blocks[rng.integers(len(blocks))]
    size = len(rows) + len(columns)
    others = {block for block in blocks if sum(map(len, block)) == size} - {(rows, columns)}
    result = check_uniqueness(np.where(zeros, 0.0, rng.uniform(0.5, 2.0, zeros.shape)), columns, rows)
    if others:
        assert result.answer == "violated"
        assert (tuple(result.pattern_rows), tuple(result.pattern_columns)) in others
    else:
        assert result.pattern_rows is None
        assert result.pattern_columns is None


def test_example_1_is_unique():
    truth = gspa_failure_example()
    result = check_uniqueness(truth.matrix, truth.columns, truth.rows)
    assert result.answer == "unique"
    assert "rank of the matrix is 4" in result.explanation


def test_planted_matrices_are_unique():
    for matrix in (planted(0, 12, 10, 3, 2), planted(1, 80, 120, 5, 8)):
        assert check_uniqueness(*matrix).answer == "unique"


def test_smallest_non_unique_matrix_is_violated():
    truth = non_unique_example()
    result = check_uniqueness(truth.matrix, truth.columns, truth.rows)
    assert result.answer == "violated"
    assert not truth.matrix[np.ix_(result.pattern_rows, result.pattern_columns)].any()
    assert result.pattern_rows.size + result.pattern_columns.size == 3
    assert str(result.pattern_rows.tolist()) in result.explanation


@pytest.mark.parametrize("truth", [two_one_separable(7), three_three_separable(5, 6)])
def test_matrices_with_several_decompositions_are_violated(truth):
    assert check_uniqueness(truth.matrix, truth.columns, truth.rows).answer == "violated"


@pytest.mark.parametrize("transposed", [False, True])
def test_one_sided_separability_is_seen(transposed):
    """Rank two: always (2, 0)- and (0, 2)-separable (Property 8), while this zero is the only one."""
    matrix = np.array([[1.0, 1.0, 2.0], [0.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    result = check_uniqueness(matrix.T, [1], [0]) if transposed else check_uniqueness(matrix, [0], [1])
    assert result.answer == "violated"
    assert result.pattern_columns is None
    assert "(2, 0)-separable" in result.explanation


def test_decompositions_by_columns_only_are_not_covered():
    result = check_uniqueness(np.eye(3), [0, 1, 2], [])
    assert result.answer == "violated"
    assert result.pattern_rows is None


def test_unknown_when_the_limit_comes_first():
    matrix = planted(2, 12, 10, 3, 2)
    assert check_uniqueness(*matrix, max_problems=5).answer == "unknown"


def test_zero_rows_and_columns_are_left_out():
    truth = gspa_failure_example()
    matrix = np.zeros((7, 8))
    rows, columns = np.array([0, 1, 3, 4, 6]), np.array([1, 2, 3, 6, 7])
    matrix[np.ix_(rows, columns)] = truth.matrix
    result = check_uniqueness(matrix, columns[truth.columns], rows[truth.rows])
    assert result.answer == "unique"
    with pytest.raises(ValueError, match="column 0 is zero"):
        check_uniqueness(matrix, [0], [6])
    with pytest.raises(ValueError, match="row 2 is zero"):
        check_uniqueness(matrix, [1], [2])


@settings(deadline=None, max_examples=30)
@given(SEEDS)
def test_transposition_and_scaling_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    matrix, columns, rows = planted(seed, 7, 6, 2, 2)
    matrix *= rng.random(matrix.shape) < 0.9
    assume(matrix[:, columns].any(axis=0).all() and matrix[rows].any(axis=1).all())
    expected = check_uniqueness(matrix, columns, rows).answer
    scaled = 10.0 ** rng.uniform(-4, 4, (7, 1)) * matrix * 10.0 ** rng.uniform(-4, 4, 6)
    assert check_uniqueness(scaled, columns, rows).answer == expected
    assert check_uniqueness(matrix.T, rows, columns).answer == expected
    assert check_uniqueness(sp.csc_array(matrix), columns, rows).answer == expected


def test_a_block_that_is_not_zero_is_refused():
    with pytest.raises(ValueError, match=r"Property 1.*got 2.0 at row 1, column 2"):
        check_uniqueness(non_unique_example().matrix, [0, 2], [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": [0, 0], "rows": [2]}, "columns must be distinct"),
        ({"columns": [0, 1], "rows": [3]}, "rows must be in"),
        ({"columns": [0, 1], "rows": [2], "tolerance": 0}, "tolerance must be"),
        ({"columns": [0, 1], "rows": [2], "max_problems": 0}, "max_problems must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_uniqueness(non_unique_example().matrix, **arguments)


@settings(deadline=None, max_examples=50)
@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.sampled_from([0, 1e-9, 1, 30])))
def test_equilibrate(matrix):
    scaled, row_exponents, column_exponents = equilibrate(matrix)
    assert_array_equal(scaled > 0, matrix > 0)
    for axis in (0, 1):
        assert_allclose(scaled.max(axis=axis), (matrix > 0).any(axis=axis), atol=1e-12)
    assert_allclose(np.exp2(row_exponents)[:, None] * matrix * np.exp2(column_exponents), scaled, rtol=1e-10)


def test_equilibrate_extremes():
    matrix = np.array([[1e-300, 1e300], [1e300, 1e-300]])
    assert np.isfinite(equilibrate(matrix).matrix).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 10), SEEDS)
def test_extreme_columns_span_the_cone_and_none_can_be_spared(m, n, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 3, (m, n)).astype(float)
    matrix /= np.maximum(matrix.max(axis=0), 1)
    kept = extreme_columns(matrix, 1e-9)

    def in_cone(others, j):
        return not matrix[:, j].any() or (others.size and nnls(matrix[:, others], matrix[:, j])[1] < 1e-8)

    assert all(in_cone(kept, j) for j in range(n))
    assert not any(in_cone(kept[kept != j], j) for j in kept)

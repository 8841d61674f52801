"""Constraints: what they resolve to, and what contradicts what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsnmf import Constraints
from gsnmf.constraints import indices_of_names

SHAPE = (6, 8)


def test_without_constraints_everything_is_allowed():
    limits = Constraints().resolve(SHAPE, 5)
    assert (limits.least_columns, limits.most_columns, limits.least_rows, limits.most_rows) == (0, 5, 0, 5)
    assert not limits.excluded_columns.any()
    assert limits.excluded_rows.size == 6


def test_a_pair_is_at_least_and_at_most():
    limits = Constraints().resolve(SHAPE, (2, 3))
    assert (limits.size, limits.least_columns, limits.most_columns, limits.least_rows) == (5, 2, 2, 3)


def test_masks_and_indices_are_the_same():
    mask = np.zeros(8, dtype=bool)
    mask[[1, 4]] = True
    by_mask = Constraints(include_columns=mask).resolve(SHAPE, 3)
    by_index = Constraints(include_columns=[1, 4]).resolve(SHAPE, 3)
    assert by_mask.included_columns.tolist() == by_index.included_columns.tolist() == [1, 4]


def test_bounds_follow_from_what_is_there():
    limits = Constraints(exclude_rows=range(5), include_columns=[0]).resolve(SHAPE, 4)
    assert (limits.least_columns, limits.most_columns) == (3, 4)


@pytest.mark.parametrize(
    ("options", "rank", "message"),
    [
        ({"include_columns": [8]}, 3, r"include_columns must be in \[0, 7\]; got 8"),
        ({"exclude_rows": [-1]}, 3, r"exclude_rows must be in \[0, 5\]; got -1"),
        ({"include_rows": [1, 1]}, 3, r"include_rows must be distinct; got \[1, 1\]"),
        ({"include_rows": ["a"]}, 3, "include_rows must be a sequence of integers or a boolean mask"),
        ({"include_rows": np.ones(5, dtype=bool)}, 3, "include_rows must be a mask of length 6; got one of shape"),
        ({"include_rows": [1, 2], "exclude_rows": [2]}, 3, r"rows must not be both included and excluded; got \[2\]"),
        ({"include_columns": [0, 1], "include_rows": [0, 1]}, 3, "at most 3 indices can be included with a rank of 3"),
        ({"at_least": (2, 2)}, 3, r"at_least must sum to at most the rank, 3; got \(2, 2\)"),
        ({"at_least": (2, 0), "at_most": (1, 3)}, 3, "at_least must not exceed at_most; got 2 and 1 for columns"),
        ({"at_most": (1, 1)}, 3, "no choice of 3 indices obeys"),
        ({"at_most": (1, 3), "include_columns": [0, 1]}, 3, "at most 1 columns are allowed, but 2 are included"),
        ({"exclude_rows": range(6), "at_least": (0, 1)}, 3, "at least 1 rows are wanted, but only 0"),
        ({"at_least": 2}, 3, r"at_least must be a pair \(n_columns, n_rows\)"),
        ({"at_most": (-1, 3)}, 3, r"at_most must be a pair \(n_columns, n_rows\)"),
        ({"at_least": (0, 3)}, (3, 1), "asks for 1 rows, but at_least and at_most allow 3 to 4"),
        ({"include_columns": [0, 1, 2]}, (2, 3), "at most 2 columns are allowed, but 3 are included"),
    ],
)
def test_contradictions_are_named(options, rank, message):
    with pytest.raises(ValueError, match=message):
        Constraints(**options).resolve(SHAPE, rank)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_limits_can_always_be_obeyed(data):
    """Whatever resolves leaves a number of columns that obeys all constraints, found here by trying all numbers."""
    rank = data.draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, 5), st.integers(0, 5))
    least, most = data.draw(pairs), data.draw(pairs)
    included = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    excluded = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))
    possible = [
        n_columns
        for n_columns in range(rank + 1)
        if max(least[0], included[0]) <= n_columns <= min(most[0], 8 - excluded[0])
        and max(least[1], included[1]) <= rank - n_columns <= min(most[1], 6 - excluded[1])
    ]
    constraints = Constraints(
        include_columns=range(included[0]),
        include_rows=range(included[1]),
        exclude_columns=range(8 - excluded[0], 8),
        exclude_rows=range(6 - excluded[1], 6),
        at_least=least,
        at_most=most,
    )
    if possible:
        limits = constraints.resolve(SHAPE, rank)
        assert (limits.least_columns, limits.most_columns) == (possible[0], possible[-1])
    else:
        with pytest.raises(ValueError, match=r"obeys|at least|at_least|at most|included"):
            constraints.resolve(SHAPE, rank)


def test_names_are_found_and_near_ones_suggested():
    names = ["alpha", "beta", "gamma", "beta"]
    assert indices_of_names(["gamma", "beta"], names, "include_columns").tolist() == [2, 1]
    with pytest.raises(ValueError, match="include_columns must be known names; got 'bata': did you mean 'beta'"):
        indices_of_names(["bata"], names, "include_columns")
    with pytest.raises(ValueError, match="and none of 3 is near"):
        indices_of_names(["xxxxxx"], names, "include_columns")

"""The measures by which biologists judge marker genes, in the benchmark of cells."""

import numpy as np
import pytest

from benchmarks.cells import known_markers, mutual_information, shares_of_ranked, silhouette


def test_known_markers():
    found = known_markers(["a", "b", "x"], {"one": ["a", "b"], "two": ["c"], "none": []})
    assert (found.precision, found.recall, found.groups_found) == (2 / 3, 2 / 3, 1 / 2)
    assert known_markers([], {"one": ["a"]}).precision == 0.0
    with pytest.raises(ValueError, match="at least one group"):
        known_markers(["a"], {"one": []})


def test_shares_of_ranked_genes():
    assert shares_of_ranked(["a"], {"one": ["a", "b"], "two": ["c", "a"], "none": []}) == {
        "one": 0.5,
        "two": 0.5,
        "none": 0.0,
    }


def test_mutual_information_leaves_out_missing():
    assert mutual_information(["a", "a", "b", "b", None], ["x", "x", "y", "y", "x"]) == 1.0
    assert mutual_information([None], ["x"]) == 0.0
    with pytest.raises(ValueError, match="one entry per cell; got 1 and 2"):
        mutual_information(["a"], ["a", "b"])


def test_silhouette():
    places = np.array([[0.0, 0], [0, 1], [9, 9], [9, 8]])
    assert silhouette(places, ["a", "a", "b", "b"]) > 0.8
    assert silhouette(places, ["a", "a", "a", "a"]) == 0.0

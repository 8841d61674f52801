"""The order of the methods that the paper reports on its synthetic matrices (section 5.1)."""

import numpy as np
import pytest

import gsnmf
from gsnmf.datasets import fully_random, middle_points
from gsnmf.metrics import accuracy, distance_to_ground_truth
from gsnmf.nmf import hals, minimum_volume

LEVEL = 0.0546


N_DRAWS = pytest.mark.parametrize("n_draws", [1, pytest.param(3, marks=pytest.mark.long)])


def draws(make, number):
    return [make(LEVEL, random_state=seed) for seed in range(number)]


def mean_accuracy(truths, method):
    found = []
    for truth in truths:
        sizes = truth.columns.size, truth.rows.size
        one_sided = method in ("spa-columns", "spa-rows")
        rank = sum(sizes) if one_sided or method == "gspa" else sizes
        chosen = gsnmf.select(truth.matrix, rank, method=method)
        found.append(accuracy(chosen.columns, chosen.rows, truth.columns, truth.rows))
    return np.mean(found)


@N_DRAWS
@pytest.mark.parametrize("make", [fully_random, middle_points])
def test_accuracy(make, n_draws):
    truths = draws(make, n_draws)
    scores = {name: mean_accuracy(truths, name) for name in ("convex", "gs-fgm", "gspa", "spa-both")}
    assert scores["convex"] == scores["gs-fgm"] == 1.0
    assert 0.9 <= scores["gspa"] <= 1.0
    for one_sided in ("spa-columns", "spa-rows"):
        share = mean_accuracy(truths, one_sided)
        largest = max(truths[0].columns.size, truths[0].rows.size) / (truths[0].columns.size + truths[0].rows.size)
        assert share <= largest
        assert share <= scores["spa-both"] < scores["gspa"]


@N_DRAWS
@pytest.mark.parametrize("make", [fully_random, middle_points])
def test_distance_to_the_ground_truth(make, n_draws):
    for truth in draws(make, n_draws):
        rank = truth.columns.size + truth.rows.size
        ours = gsnmf.factorize(truth.matrix, (truth.columns.size, truth.rows.size), method="convex")
        own = distance_to_ground_truth(ours.W, ours.H, truth.W, truth.H)
        for peer in (hals, minimum_volume):
            other = peer(truth.matrix, rank, random_state=0)
            assert distance_to_ground_truth(other.W, other.H, truth.W, truth.H) > 3 * own

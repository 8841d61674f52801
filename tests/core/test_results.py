"""Results can be compared and read in one line, and do not carry more than they say."""

import pickle

import numpy as np
import pytest

import gsnmf
from gsnmf.support.reasons import StopReason

MATRIX = np.random.default_rng(0).random((12, 9))


def test_equal_if_chosen_and_weighted_alike():
    one, two = (gsnmf.factorize(MATRIX, 4, method="gspa") for _ in range(2))
    other = gsnmf.factorize(MATRIX, 4, method="spa-rows")
    assert one == two
    assert one.selection == two.selection
    assert one.weights == two.weights
    assert one != other
    assert one.selection != "something else"


def test_one_line():
    result = gsnmf.factorize(MATRIX, 4, method="spa-rows")
    assert repr(result) == f"Factorization: 4 rows of 12 x 9, quality {100 * result.quality:.1f} %, spa-rows"
    assert repr(result.selection) == "Selection: 4 rows, spa-rows"
    assert repr(result.weights).startswith("Weights of 4 rows: relative error 0.")
    solution = gsnmf.convex.solve_convex(MATRIX, 3)
    assert repr(solution).count("\n") == 0
    assert "relative gap" in repr(solution)


def test_reasons_are_strings():
    selection = gsnmf.select(MATRIX, 4, method="gspa")
    assert selection.stop_reason is StopReason.RANK_REACHED
    assert selection.stop_reason == "rank reached"
    assert gsnmf.select(np.outer([1.0, 2, 3], [1.0, 2]), 2, method="gspa").stop_reason == "residual is zero"


def test_short_names_are_the_long_methods():
    for short, long in (("snpa", "snpa-columns"), ("xray", "xray-columns")):
        assert gsnmf.select(MATRIX, 3, method=short) == gsnmf.select(MATRIX, 3, method=long)
        assert gsnmf.select(MATRIX, 3, method=short).method == long


def test_a_pickled_model_has_no_training_data():
    X = np.random.default_rng(0).random((2000, 50))
    model = gsnmf.GSNMF(3, method="gspa").fit(X)
    assert len(pickle.dumps(model)) < X.nbytes / 5


@pytest.mark.parametrize("method", ["auto", "pursuit"])
def test_the_final_weights_start_from_those_of_the_search(monkeypatch, method):
    from gsnmf import objectives

    starts = []
    solve = objectives.solve_weights
    monkeypatch.setattr(
        objectives, "solve_weights", lambda *args, **options: starts.append(options) or solve(*args, **options)
    )
    result = gsnmf.factorize(MATRIX, 4, method=method)
    (options,) = starts
    W = np.hstack([MATRIX[:, result.columns], options["start"][1]])
    H = np.vstack([options["start"][0], MATRIX[result.rows]])
    assert gsnmf.metrics.relative_error(MATRIX, W, H) == pytest.approx(result.relative_error, rel=1e-2)

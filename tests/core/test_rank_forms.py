"""The rank is a number, a pair, a range or "auto" wherever it is asked for."""

import numpy as np
import pytest

import gsnmf
from gsnmf import GSNMF
from gsnmf.datasets import planted

MATRIX = planted((40, 30), 2, 1, noise_level=0.02, random_state=0).matrix


@pytest.mark.parametrize("rank", [range(2, 5), "auto"])
def test_a_range_gives_the_recommended_number(rank):
    ranks = rank if isinstance(rank, range) else range(2, 31)
    expected = gsnmf.choose_rank(MATRIX, ranks, effort="fast").rank
    result = gsnmf.factorize(MATRIX, rank, effort="fast")
    assert result.selection.n_selected == result.problem.rank == expected
    model = GSNMF(rank, effort="fast").fit(MATRIX)
    assert (model.n_components_, model.rank_choice_.rank) == (expected, expected)


def test_one_axis_gets_a_rank_of_its_own(tmp_path):
    chosen = gsnmf.select(MATRIX, range(2, 5), method="spa-columns")
    assert 2 <= chosen.columns.size <= 4
    assert chosen.rows.size == 0
    model = GSNMF(range(2, 5), effort="fast").fit(MATRIX)
    model.save(tmp_path / "m.npz")
    assert GSNMF.load(tmp_path / "m.npz").n_components == range(2, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gsnmf.factorize(MATRIX, "many"), "rank must be a number, a pair, a range or 'auto'; got 'many'"),
        (lambda: gsnmf.select(MATRIX, "auto", method="spa-both"), "method='spa-both' needs rank as a pair"),
        (lambda: GSNMF("auto", sum_to_one=True).fit(MATRIX), "n_components must be a number or a pair with weights"),
        (
            lambda: GSNMF(range(2, 4)).fit(MATRIX, sample_weight=np.arange(40)),
            "n_components must be a number or a pair",
        ),
    ],
)
def test_what_does_not_work_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()

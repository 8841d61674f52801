"""Quality over the numbers of columns and rows."""

import numpy as np
import pytest

import gsnmf


@pytest.fixture(scope="module")
def found(planted_data, planted_result):
    return gsnmf.split_profile(planted_data.matrix, planted_result)


def test_the_result_is_in_the_middle_and_as_good_as_it_was(found, planted_result):
    assert found.chosen == (3, 2)
    assert found.n_columns.tolist() == [1, 2, 3, 4, 5]
    assert found.n_rows.tolist() == [0, 1, 2, 3, 4]
    assert found.qualities[2, 2] == pytest.approx(planted_result.quality, abs=2e-3)


def test_planted_numbers_are_the_best_of_their_rank(found):
    same = [found.qualities[c, r] for c in range(5) for r in range(5) if c + r == 4]
    assert max(same) == found.qualities[2, 2]
    assert "3 columns and 2 rows have a quality of" in found.sentence


def test_more_columns_or_rows_are_hardly_worse(found):
    assert np.diff(found.qualities, axis=0).min() > -0.01
    assert np.diff(found.qualities, axis=1).min() > -0.01


def test_qualities_are_near_those_of_factorize(planted_data, found):
    pair = gsnmf.factorize(planted_data.matrix, (4, 1), effort="fast")
    assert found.qualities[3, 1] == pytest.approx(pair.quality, abs=0.02)


def test_it_shows_itself(found, figures):
    assert len(found.to_frame()) == 25
    assert repr(found).startswith("SplitProfile: Of 5 in all")
    assert "<table" in found._repr_html_()
    assert found.plot().get_xlabel() == "rows"


def test_wrong_arguments(planted_data, planted_result):
    with pytest.raises(ValueError, match="width"):
        gsnmf.split_profile(planted_data.matrix, planted_result, width=0)
    with pytest.raises(ValueError, match="that of the result"):
        gsnmf.split_profile(planted_data.matrix[:10], planted_result)

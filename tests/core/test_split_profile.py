"""Quality over the numbers of columns and rows."""

import numpy as np
import pytest

import gsnmf


@pytest.fixture(scope="module")
def found(planted_data, planted_result):
    return gsnmf.split_profile(planted_result)


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


def test_what_is_included_and_excluded_stays_so(planted_data):
    wanted = gsnmf.Constraints(include_columns=[0, 1], exclude_rows=planted_data.rows, at_most=(2, 2))
    found = gsnmf.split_profile(gsnmf.factorize(planted_data.matrix, 4, constraints=wanted, effort="fast"), width=1)
    assert found.n_columns.tolist() == [2, 3]
    pair = gsnmf.Constraints(include_columns=[0, 1], exclude_rows=planted_data.rows)
    refit = gsnmf.factorize(planted_data.matrix, (3, 2), constraints=pair, effort="fast")
    assert found.qualities[1, 1] == pytest.approx(refit.quality, abs=0.02)


def test_weights_of_samples_count(planted_data):
    weights = np.ones(60)
    weights[planted_data.rows] = 0.0
    model = gsnmf.GSNMF((3, 1), effort="fast").fit(planted_data.matrix, sample_weight=weights)
    found = gsnmf.split_profile(model.result_, width=1)
    assert found.qualities[1, 1] == pytest.approx(model.result_.quality, abs=5e-3)


def test_wrong_arguments(planted_data, planted_result):
    with pytest.raises(ValueError, match="width"):
        gsnmf.split_profile(planted_result, width=0)
    with pytest.raises(TypeError, match="returns; got str"):
        gsnmf.split_profile("result")
    holed = np.where(np.eye(60, 50) > 0, np.nan, planted_data.matrix)
    with pytest.raises(ValueError, match="without missing entries"):
        gsnmf.split_profile(gsnmf.factorize(holed, 2, missing_values=np.nan, effort="fast"))
    rows_alone = gsnmf.GSNMF((0, 2), sum_to_one=True, effort="fast").fit(planted_data.matrix)
    with pytest.raises(ValueError, match="rows alone"):
        gsnmf.split_profile(rows_alone.result_)

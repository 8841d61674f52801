"""Results, models and checkpoints remember what was asked: constraints, weights of samples, sums to one."""

import numpy as np
import pytest

import gsnmf
from gsnmf import GSNMF, Constraints
from gsnmf.datasets import planted

MATRIX = planted((30, 20), 2, 2, noise_level=0.1, random_state=0).matrix
WEIGHTS = np.random.default_rng(0).random(30) + 0.1


def test_a_checkpoint_knows_its_constraints(tmp_path):
    file = tmp_path / "c.npz"
    first = gsnmf.select(MATRIX, 3, method="spa-columns", checkpoint=file)
    banned = Constraints(exclude_columns=[int(first.columns[0])])
    with pytest.raises(ValueError, match="belongs to another selection, of another choice: its constraints"):
        gsnmf.select(MATRIX, 3, method="spa-columns", checkpoint=file, constraints=banned)
    again = gsnmf.select(MATRIX, 3, method="spa-columns", checkpoint=tmp_path / "d.npz", constraints=banned)
    assert first.columns[0] not in again.columns
    masked = Constraints(exclude_columns=np.arange(20) == first.columns[0])
    assert gsnmf.select(MATRIX, 3, method="spa-columns", checkpoint=tmp_path / "d.npz", constraints=masked) == again


@pytest.mark.parametrize(
    ("parameters", "weights"),
    [
        ({"sum_to_one": True}, {}),
        ({}, {"sample_weight": WEIGHTS}),
        ({"sum_to_one": True}, {"sample_weight": WEIGHTS, "feature_weight": np.arange(1.0, 21.0)}),
        ({"constraints": Constraints(include_columns=[3], exclude_rows=[1])}, {}),
    ],
)
def test_a_loaded_result_answers_the_same_question(tmp_path, parameters, weights):
    result = GSNMF(3, effort="fast", **parameters).fit(MATRIX, **weights).result_
    gsnmf.save(result, tmp_path / "r.npz")
    again = gsnmf.load(tmp_path / "r.npz", MATRIX)
    assert again == result
    assert (again.problem.sum_to_one, again.problem.rank) == (result.problem.sum_to_one, result.problem.rank)
    assert (again.plan, again.search) == (result.plan, result.search)
    assert again.absolute_error == pytest.approx(result.absolute_error)
    table = result.alternatives(2)
    assert again.alternatives(2).rows == table.rows
    assert min(row[-1] for row in table.rows) > -5.0  # percentage points: the choice is a heuristic


def test_alternatives_have_errors_of_the_objective():
    model = GSNMF(3, effort="fast", sum_to_one=True).fit(MATRIX)
    row = model.result_.alternatives(1).rows[0]
    rows = [row[3] if i == row[2] else i for i in model.sample_indices_]
    again = gsnmf.fit_weights(MATRIX, [], rows, sum_to_one="rows")
    assert row[4] == pytest.approx(again.relative_error)


def test_a_saved_model_keeps_its_parameters(tmp_path):
    constraints = Constraints(include_columns=np.array([3]), exclude_rows=np.arange(30) < 2, at_most=(2, 2))
    model = GSNMF(np.int64(3), effort="fast", constraints=constraints).fit(MATRIX)
    model.save(tmp_path / "m.npz")
    again = GSNMF.load(tmp_path / "m.npz")
    assert again.n_components == 3
    assert again.constraints.resolve((30, 20), 3).text == constraints.resolve((30, 20), 3).text
    np.testing.assert_array_equal(again.fit(MATRIX).components_, model.components_)

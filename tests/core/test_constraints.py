"""What must be chosen is chosen, what must not is not, by every method that can obey; the others say so."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import GSNMF, Constraints
from gsnmf.commands import run
from gsnmf.datasets import planted

MATRIX = np.random.default_rng(0).random((24, 18)) * (np.random.default_rng(1).random((24, 18)) < 0.7)
CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}
OBEDIENT = [method for method in gsnmf.methods() if method.constrained]


def dask_array(matrix):
    return pytest.importorskip("dask.array").from_array(matrix, chunks=(10, 9))


@pytest.mark.parametrize("container", [*CONTAINERS.values(), dask_array], ids=[*CONTAINERS, "dask"])
@pytest.mark.parametrize("method", OBEDIENT, ids=lambda method: method.name)
def test_every_method_that_can_obeys(method, container):
    if container is dask_array and not method.out_of_core:
        pytest.skip("needs the matrix in memory")
    columns = {"include_columns": [3, 7], "exclude_columns": [0, 1, 2, 17]} if "columns" in method.axes else {}
    rows = {"include_rows": [5], "exclude_rows": [6, 23]} if "rows" in method.axes else {}
    rank = (4, 3) if method.ranks == "pair" else 6
    result = gsnmf.factorize(
        container(MATRIX), rank, method=method.name, effort="fast", constraints=Constraints(**columns, **rows)
    )
    assert set(columns.get("include_columns", [])) <= set(result.columns.tolist())
    assert set(rows.get("include_rows", [])) <= set(result.rows.tolist())
    assert not set(columns.get("exclude_columns", [])) & set(result.columns.tolist())
    assert not set(rows.get("exclude_rows", [])) & set(result.rows.tolist())
    assert result.selection.n_selected == (7 if method.ranks == "pair" else 6)


@pytest.mark.parametrize("method", ["auto", "convex", "gspa", "pursuit"])
def test_numbers_of_each(method):
    for at_least in ((5, 0), (0, 5), (3, 3)):
        found = gsnmf.select(MATRIX, 6, method=method, effort="fast", constraints=Constraints(at_least=at_least))
        assert found.columns.size >= at_least[0]
        assert found.rows.size >= at_least[1]
    found = gsnmf.select(MATRIX, 6, method=method, effort="fast", constraints=Constraints(at_most=(6, 1)))
    assert found.rows.size <= 1


def test_nothing_changes_without_wishes():
    for method in ("auto", "gspa", "snpa", "xray", "pursuit", "spa-rows"):
        plain, same = (
            gsnmf.select(MATRIX, 5, method=method, effort="fast", constraints=wish) for wish in (None, Constraints())
        )
        assert plain == same


def test_those_that_cannot_say_so():
    for method in gsnmf.methods():
        if not method.constrained:
            with pytest.raises(ValueError, match=r"method must be one of 'auto', .* with constraints; got"):
                gsnmf.select(MATRIX, 3, method=method.name, constraints=Constraints(include_columns=[1]))


@pytest.mark.parametrize(
    ("wish", "method", "message"),
    [
        ({"include_rows": [1]}, "spa-columns", r"at most 0 rows are allowed, but 1 are included"),
        ({"include_columns": [18]}, "auto", r"include_columns must be in \[0, 17\]; got 18"),
        ({"include_columns": [1], "exclude_columns": [1]}, "auto", r"must not be both included and excluded"),
        ({"at_least": (3, 3)}, "auto", r"at_least must sum to at most the rank, 5"),
    ],
)
def test_contradictions_are_errors_before_any_work(wish, method, message):
    with pytest.raises(ValueError, match=message):
        gsnmf.select(MATRIX, 5, method=method, constraints=Constraints(**wish))
    with pytest.raises(TypeError, match=r"constraints must be a gsnmf\.Constraints"):
        gsnmf.select(MATRIX, 5, constraints={"include_columns": [1]})


def test_names_in_the_estimator():
    frame = pd.DataFrame(MATRIX, columns=[f"word {j}" for j in range(18)], index=[f"doc {i}" for i in range(24)])
    wish = Constraints(include_columns=["word 4"], exclude_columns=["word 0"], include_rows=["doc 9"])
    model = GSNMF(5, effort="fast", constraints=wish).fit(frame)
    assert 4 in model.feature_indices_
    assert 9 in model.sample_indices_
    assert "sample:doc 9" in model.get_feature_names_out()
    with pytest.raises(ValueError, match="got 'wrod 4': did you mean 'word 4'"):
        GSNMF(5, constraints=Constraints(include_columns=["wrod 4"])).fit(frame)
    with pytest.raises(ValueError, match="must be integers or a mask, as the data has no names"):
        GSNMF(5, constraints=wish).fit(MATRIX)


def test_the_record_and_the_alternatives():
    truth = planted((60, 50), n_columns=3, n_rows=2, noise_level=0.05, random_state=0)
    result = gsnmf.factorize(truth.matrix, 5, effort="fast")
    assert result.search.effort == "fast"
    assert min(start.relative_error for start in result.search.starts) >= result.relative_error - 1e-3
    assert gsnmf.factorize(truth.matrix, 5, method="gspa").search is None
    table = result.alternatives(2)
    assert len(table) <= 10
    for factor, axis, chosen, substitute, error, lost in table.rows:
        columns, rows = result.columns.tolist(), result.rows.tolist()
        changed = columns if axis == "columns" else rows
        assert result.members[factor][0].tolist() == [chosen]
        changed[changed.index(chosen)] = substitute
        exact = gsnmf.fit_weights(truth.matrix, columns, rows).relative_error
        assert error == pytest.approx(exact, rel=1e-2)
        assert lost == pytest.approx(100 * (error - result.relative_error))


def test_time_limit_and_progress():
    told = []
    result = gsnmf.factorize(MATRIX, 6, time_limit=3600.0, progress=told.append)
    steps = [status for status in told if status.fraction is not None]  # others are messages alone
    assert steps
    assert all(0 <= status.fraction <= 1 and status.quality <= 1 for status in steps)
    assert result.search.end != "time limit"
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        gsnmf.factorize(MATRIX, 6, time_limit=-1)
    with pytest.raises(ValueError, match=r"method must be one of 'auto' with a time limit; got 'gspa'"):
        gsnmf.factorize(MATRIX, 6, method="gspa", time_limit=1)


def test_an_interrupt_carries_the_best_so_far():
    def interrupt(status):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gsnmf.factorize(MATRIX, 4, progress=interrupt)
    assert caught.value.best_so_far.selection.n_selected == 4


class TestCommandLine:
    @pytest.fixture
    def table(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        names = [f"w{j}" for j in range(18)]
        pd.DataFrame(MATRIX, columns=names, index=[f"d{i}" for i in range(24)]).to_csv("m.csv")
        return ["factorize", "m.csv", "--rank", "5", "--effort", "fast", "--no-compare", "--quiet"]

    def test_wishes(self, table, tmp_path):
        (tmp_path / "out.txt").write_text("w0\nw1\n", encoding="utf-8")
        wishes = ["--include-columns", "w4, 7", "--exclude-columns", "@out.txt", "--at-least", "0,2"]
        assert run([*table, *wishes]) == 0
        with np.load("m-gsnmf/result.npz") as found:
            assert {4, 7} <= set(found["columns"].tolist())
            assert not {0, 1} & set(found["columns"].tolist())
            assert found["rows"].size >= 2

    def test_wrong_wishes(self, table, capsys):
        assert run([*table, "--include-columns", "w44"]) == 1
        assert "--include-columns must be known names; got 'w44': did you mean" in capsys.readouterr().err
        assert run([*table, "--at-least", "3"]) == 2
        assert "--at-least must be columns,rows" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--at-least", "4,4"], "--at-least must sum to at most the rank, 5; got 4,4"),
            (["--rank", "3,2", "--at-least", "4,0"], "--rank 3,2 asks for 3 columns; got 4 that must be chosen"),
            (["--rank", "2", "--include-columns", "w1,w2,w3"], "at most 2 can be included with a rank of 2; got 3"),
            (["--include-rows", "d1", "--exclude-rows", "d2,d1"], "both included and excluded; got d1"),
            (["--include-rows", "@nowhere.txt"], "nowhere.txt"),
            (["--method", "exact", "--include-rows", "d1"], "with constraints; got 'exact'"),
        ],
    )
    def test_contradictions_are_errors_before_data_are_read(self, table, options, message, monkeypatch, capsys):
        monkeypatch.setattr("gsnmf.commands.factorize.read_matrix", None)
        if "--method" in options:
            table = [option for option in table if option not in ("--effort", "fast")]
        assert run([*table, *options]) in (1, 2)
        assert message in " ".join(capsys.readouterr().err.split())

    def test_keep_on_interrupt(self, table, monkeypatch):
        def interrupt(*step):
            raise KeyboardInterrupt

        monkeypatch.setattr("gsnmf.search.trials.log_progress", interrupt)
        assert run([*table, "--keep-on-interrupt"]) == 0
        with np.load("m-gsnmf/result.npz") as found:
            assert found["columns"].size + found["rows"].size == 5

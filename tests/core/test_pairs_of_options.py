"""Every pair of options either works and obeys what was asked, or is refused with a reason."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import GSNMF, Constraints
from gsnmf.datasets import planted

MATRIX = np.round(planted((14, 11), 2, 2, noise_level=0.1, random_state=0).matrix, 3)
MATRIX[MATRIX < 0.2] = 0.0
BANNED = 3
WEIGHTS = np.random.default_rng(1).random(14) + 0.1

OPTIONS = {
    "one axis": {"method": "spa-rows"},
    "gspa": {"method": "gspa"},
    "convex": {"method": "convex"},
    "pair": {"rank": (1, 2)},
    "scale": {"scale": True},
    "constraints": {"constraints": Constraints(exclude_columns=[BANNED], exclude_rows=[BANNED])},
    "members": {"members": 2},
    "missing values": {"missing_values": np.nan},
    "entry weights": {"entry_weights": np.random.default_rng(2).random((14, 11)) + 0.1},
    "sample weight": {"sample_weight": WEIGHTS},
    "sum to one": {"sum_to_one": True},
    "negative": {"negative": "clip"},
    "float32": {"form": np.float32},
    "sparse": {"form": sp.csr_array},
    "Dask": {"form": "dask"},
    "time limit": {"time_limit": 20.0},
    "checkpoint": {"checkpoint": "c.npz"},
}
EXCLUSIVE = [{"one axis", "gspa", "convex"}, {"float32", "sparse", "Dask"}]
PAIRS = [pair for pair in combinations(OPTIONS, 2) if not any(set(pair) <= group for group in EXCLUSIVE)]


def data_of(names, form):
    matrix = MATRIX.copy()
    if "negative" in names:
        matrix[1, 1] = -1e-4
    if "missing values" in names and form is sp.csr_array:
        return sp.csr_array(np.where(matrix > 0.3, matrix, 0.0))
    if "missing values" in names:
        matrix[::3, ::4] = np.nan
    if form == "dask":
        return pytest.importorskip("dask.array").from_array(matrix, chunks=(7, 11))
    return matrix if form is None else form(matrix)


def asked(names, folder):
    """The matrix, the rank and all other options of a pair."""
    options = {"effort": "fast"}
    for name in names:
        options |= OPTIONS[name]
    matrix = data_of(names, options.pop("form", None))
    if "missing values" in names and sp.issparse(matrix):
        options["missing_values"] = "unstored"
    if "checkpoint" in options:
        options["checkpoint"] = folder / "c.npz"
    return matrix, options.pop("rank", 3), options


def check_obeyed(names, result, rank):
    columns, rows = result.columns.size, result.rows.size
    if isinstance(rank, tuple):
        assert (columns, rows) == ((0, 2) if "sum to one" in names else rank)
    else:
        assert 1 <= columns + rows <= rank
    if "constraints" in names:
        assert BANNED not in result.columns
        assert BANNED not in result.rows
    if "one axis" in names:
        assert columns == 0
    if "sum to one" in names:
        np.testing.assert_allclose(np.asarray(result.row_weights).sum(axis=1), 1.0, rtol=1e-5)
    assert (np.asarray(result.column_weights) >= 0).all()
    assert (np.asarray(result.row_weights) >= 0).all()
    assert np.isfinite(np.asarray(result.reconstruct())).all()
    assert (result.observed_share < 1) == ("missing values" in names)
    assert bool(result.clipped_share) == ("negative" in names)


def check_saved(names, result, matrix, options, folder):
    gsnmf.save(result, folder / "r.npz")
    again = gsnmf.load(folder / "r.npz", matrix, entry_weights=options.get("entry_weights"))
    assert again.problem.rank == result.problem.rank
    assert again.problem.sum_to_one == result.problem.sum_to_one
    assert again.plan == result.plan
    np.testing.assert_array_equal(again.columns, result.columns)
    if not result.knows_alternatives:
        assert {"members"} < set(names)
        return
    found = result.alternatives(1, quick=True)
    assert len(found.rows) <= result.selection.n_selected
    if "Dask" not in names:
        assert again == result
        assert [row[:4] for row in again.alternatives(1, quick=True).rows] == [row[:4] for row in found.rows]
    if "constraints" in names:
        assert BANNED not in [row[3] for row in found.rows]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:No entry is observed")
@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_factorize(names, tmp_path):
    if {"sample weight", "sum to one"} & set(names):
        pytest.skip("an option of GSNMF")
    matrix, rank, options = asked(names, tmp_path)
    try:
        result = gsnmf.factorize(matrix, rank, **options)
    except (TypeError, ValueError) as refusal:
        reason = str(refusal)
    else:
        check_obeyed(names, result, rank)
        check_saved(names, result, matrix, options, tmp_path)
        return
    assert reason.endswith(".")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:No entry is observed")
@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_estimator(names, tmp_path):
    if {"entry weights", "checkpoint"} & set(names):
        pytest.skip("an option of factorize")
    matrix, rank, options = asked(names, tmp_path)
    if "sum to one" in names and rank == (1, 2):
        rank = (0, 2)
    weight = options.pop("sample_weight", None)
    model = GSNMF(rank, **options)
    try:
        model.fit(matrix, sample_weight=weight)
    except (TypeError, ValueError) as refusal:
        reason = str(refusal)
    else:
        reason = ""
    if reason:
        assert reason.endswith(".")
        return
    check_obeyed(names, model.result_, rank)
    check_saved(names, model.result_, matrix, options, tmp_path)
    model.save(tmp_path / "m.npz")
    again = GSNMF.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(np.asarray(again.transform(matrix)), np.asarray(model.transform(matrix)))

"""The pictures show the numbers that they stand for, and notebooks get a table."""

import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import gsnmf
from gsnmf.datasets import planted
from gsnmf.diagnostics import Explanation, compare

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from gsnmf import plotting  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "sparse"])
def result(request):
    matrix = planted((30, 24), 3, 2, random_state=0).matrix + 0.02
    return gsnmf.factorize(sp.csr_array(matrix) if request.param else matrix, 4, method="gspa")


@pytest.fixture(scope="module", params=["rows", "columns"])
def images(request):
    pixels = load_digits().data[:60]
    matrix = pixels if request.param == "rows" else pixels.T
    return gsnmf.factorize(matrix, 6, method="spa-rows" if request.param == "rows" else "spa-columns")


def test_comparison(result):
    axes = plotting.plot_comparison(result)
    found = compare(result, nmf=True)
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [result.quality, found.nmf_quality, found.svd_quality]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["this result", "NMF", "truncated SVD"]


def test_comparison_without_what_was_too_much_work(result):
    axes = plotting.plot_comparison(result, comparison=compare(result, max_operations=1.0))
    assert len(axes.patches) == 1


@pytest.mark.parametrize("members", ["columns", "rows"])
def test_factor(result, members):
    count = result.matrix.shape[1 if members == "columns" else 0]
    names = [f"$n{i}" for i in range(count)]
    axes = plotting.plot_factor(result, 0, members=members, names=names, n_strongest=3)
    factor = result.factors(3)[0]
    expected = factor.column_strengths if members == "columns" else factor.row_strengths
    np.testing.assert_array_equal([bar.get_width() for bar in axes.patches], expected)
    indices = factor.columns if members == "columns" else factor.rows
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"$n{i}" for i in indices]
    axes.figure.canvas.draw()


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_errors(result, axis):
    axes = plotting.plot_errors(result, axis=axis, bins=7)
    assert len(axes.patches) == 7
    assert sum(bar.get_height() for bar in axes.patches) == result.matrix.shape[0 if axis == "rows" else 1]


def test_rank_path(result):
    axes = plotting.plot_rank_path(result)
    ours, bound = axes.get_lines()
    assert ours.get_ydata()[-1] == result.quality
    assert np.all(bound.get_ydata() >= ours.get_ydata() - 1e-12)


def test_residual(result):
    axes = plotting.plot_residual(result, side=8)
    np.testing.assert_allclose(axes.get_images()[0].get_array(), Explanation(result).pictures(8)[1])


def test_given_axes_are_used(result):
    _, ax = plt.subplots()
    assert plotting.plot_errors(result, ax=ax) is ax
    assert plotting.plot_comparison(result, ax=ax) is ax


def test_images(images):
    axes = plotting.plot_images(images, (8, 8))
    assert axes.get_images()[0].get_array().shape == (10, 60)


def test_reconstructions(images):
    axes = plotting.plot_reconstructions(images, (8, 8), [0, 5])
    drawn = np.asarray(axes.get_images()[0].get_array())
    assert drawn.shape == (20, 20)
    first = load_digits().data[0].reshape(8, 8)
    np.testing.assert_allclose(drawn[1:9, 1:9], first / first.max())


def test_pixels():
    result = gsnmf.factorize(load_digits().data[:60], 3, method="spa-columns")
    marks = plotting.plot_pixels(result, (8, 8)).collections[0]
    assert [int(8 * y + x) for x, y in marks.get_offsets()] == result.columns.tolist()


def test_no_image_was_chosen():
    result = gsnmf.factorize(load_digits().data[:60], 3, method="spa-columns")
    assert plotting.plot_images(result, (8, 8)).get_title() == "no image chosen"


def test_wrong_arguments(result):
    with pytest.raises(ValueError, match=r"number must be in \[0, 3\]; got 4"):
        plotting.plot_factor(result, 4)
    with pytest.raises(ValueError, match="axis must be 'rows' or 'columns'; got 'row'"):
        plotting.plot_errors(result, axis="row")
    with pytest.raises(ValueError, match="got 5 x 7"):
        plotting.plot_pixels(result, (5, 7))


def test_missing_library_is_named(result, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs matplotlib; pip install "gsnmf\[plots\]"'):
        plotting.plot_errors(result)


class TestNotebook:
    def test_table_of_factors(self, result):
        fragment = result._repr_html_()
        assert f"column {result.columns[0]}<" in fragment
        assert fragment.count("<tr>") == 1 + result.selection.n_selected
        assert "quality" in fragment
        assert "<script" not in fragment

    def test_long_and_empty_results(self):
        matrix = np.random.default_rng(0).random((40, 40))
        assert "The first 20 of 25:" in gsnmf.factorize(matrix, 25, method="spa-columns")._repr_html_()
        assert "<tbody></tbody>" in gsnmf.factorize(np.zeros((2, 2)), 1)._repr_html_()

    def test_it_is_well_formed(self, result):
        fragment = result._repr_html_()
        opened, closed = (re.findall(rf"<{slash}(\w+)", fragment) for slash in ("", "/"))
        assert sorted(opened) == sorted(closed)


def test_rank_path_of_the_function(result):
    path = gsnmf.rank_path(result.matrix, 4)
    axes = plotting.plot_rank_path(path)
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), 1 - path.errors)
    assert len(axes.get_lines()) == 1

"""Smoothed successive projection: means of several columns or rows as factors."""

import numpy as np
import pytest
import scipy.sparse as sp

import gsnmf
from gsnmf import Constraints
from gsnmf.applications import unmix
from gsnmf.applications.unmixing.spectral_distances import match_spectra
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene
from gsnmf.matrix import wrap
from gsnmf.selection.successive_projection import smoothed_groups

COPIES = 8


def repeated(seed, noise):
    """Factors that are each there several times, and mixtures of them, with noise: truth and matrix."""
    rng = np.random.default_rng(seed)
    truth = rng.random((60, 4)) * (rng.random((60, 4)) < 0.6)
    mixing = np.hstack([np.repeat(np.eye(4), COPIES, axis=1), rng.dirichlet(np.full(4, 0.5), size=60).T])
    clean = truth @ mixing
    return truth, np.maximum(clean + noise * clean.mean() * rng.standard_normal(clean.shape), 0.0)


def angle(truth, found):
    cosines = (truth / np.linalg.norm(truth, axis=0)).T @ (found / np.linalg.norm(found, axis=0))
    return float(np.degrees(np.arccos(np.minimum(cosines.max(axis=1), 1.0))).mean())


def plain(matrix, rank, members):
    """The definition, with the residual formed."""
    projector, groups = np.eye(len(matrix)), []
    for _ in range(rank):
        residual = projector @ matrix
        u = residual[:, np.argmax(np.linalg.norm(residual, axis=0))]
        groups.append(np.argsort(-(u @ matrix), kind="stable")[:members])
        v = projector @ matrix[:, groups[-1]].mean(axis=1)
        projector = projector - np.outer(v, v) / (v @ v)
    return groups


@pytest.mark.parametrize("members", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_groups_are_those_of_the_definition(seed, members):
    _, matrix = repeated(seed, 0.2)
    expected = plain(matrix, 4, members)
    for given in (matrix, sp.csr_array(matrix)):
        found = smoothed_groups(wrap(given), 4, members)
        assert [sorted(group) for group in found] == [sorted(group) for group in expected]


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_one_member_is_successive_projection(axis):
    _, matrix = repeated(0, 0.2)
    smooth = gsnmf.factorize(matrix, 4, method=f"smooth-spa-{axis}")
    single = gsnmf.factorize(matrix, 4, method=f"spa-{axis}")
    assert getattr(smooth, axis).tolist() == getattr(single, axis).tolist()
    assert smooth.mixtures is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.1, 0.3, 0.6])
def test_the_angle_to_the_truth_falls_with_members(seed, noise):
    truth, matrix = repeated(seed, noise)
    angles = [
        angle(truth, gsnmf.factorize(matrix, 4, method="smooth-spa-columns", members=p).W) for p in (1, 2, 4, COPIES)
    ]
    assert np.all(np.diff(angles) < 0)
    assert angles[-1] < 0.6 * angles[0]


def test_exact_without_noise():
    truth, matrix = repeated(0, 0.0)
    result = gsnmf.factorize(matrix, 4, method="smooth-spa-columns", members=COPIES)
    assert angle(truth, result.W) < 1e-5
    assert result.relative_error < 1e-6


def test_result_is_what_it_says():
    _, matrix = repeated(1, 0.3)
    result = gsnmf.factorize(matrix.T, 4, method="smooth-spa-rows", members=5)
    B = result.row_mixture
    assert B.shape == (4, matrix.shape[1])
    np.testing.assert_allclose(B.data, 0.2)
    np.testing.assert_array_equal(np.diff(B.indptr), 5)
    np.testing.assert_allclose(result.H, B @ matrix.T)
    error = np.linalg.norm(matrix.T - result.reconstruct()) / np.linalg.norm(matrix)
    assert error == pytest.approx(result.relative_error, rel=1e-9)
    assert result.converged
    assert result.mixtures.gain is None
    best = gsnmf.weights.coefficients_for(wrap(matrix.T), result.H)
    assert error <= np.linalg.norm(matrix.T - best @ result.H) / np.linalg.norm(matrix) * (1 + 1e-6)
    single = gsnmf.factorize(matrix.T.astype(np.float32), 4, method="smooth-spa-rows", members=5)
    assert single.row_weights.dtype == np.float32
    assert single.relative_error == pytest.approx(result.relative_error, rel=1e-4)
    assert len(result.alternatives(1)) == 4


def test_saving(tmp_path):
    _, matrix = repeated(1, 0.3)
    result = gsnmf.factorize(matrix, 3, method="smooth-spa-columns", members=4)
    gsnmf.save(result, tmp_path / "smooth.npz")
    assert gsnmf.load(tmp_path / "smooth.npz", matrix) == result


def test_constraints():
    _, matrix = repeated(2, 0.3)
    wish = Constraints(include_columns=[45, 50], exclude_columns=range(4))
    result = gsnmf.factorize(matrix, 5, method="smooth-spa-columns", members=6, constraints=wish)
    groups = [set(members.tolist()) for members, _ in result.members]
    assert groups[:2] == [{45}, {50}]
    assert not set(range(4)) & set.union(*groups)
    assert np.isfinite(result.W).all()


def test_everything_explained_ends_the_choice():
    matrix = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 1.0, 0.0])
    result = gsnmf.factorize(matrix, 3, method="smooth-spa-columns", members=2)
    assert result.columns.size == 1
    assert result.relative_error < 1e-7
    assert gsnmf.factorize(np.zeros((3, 4)), 2, method="smooth-spa-columns", members=2).columns.size == 0


def test_endmembers():
    scene = planted_scene(np.random.default_rng(0), shape=(24, 20), n_bands=30, n_endmembers=3, noise=0.05)
    single = match_spectra(unmix(scene.cube, 3, method="spa").endmembers, scene.endmembers)[1].mean()
    result = unmix(scene.cube, 3, method="smooth-spa", averaged=5)
    assert [len(own) for own in result.members] == [5, 5, 5]
    assert match_spectra(result.endmembers, scene.endmembers)[1].mean() < single
    assert [len(own) for own in unmix(scene.cube, 3, method="smooth-spa").members] == [4, 4, 4]


@pytest.mark.long
def test_jasper_is_closer_to_the_truth_than_single_pixels(jasper):
    cube, true = jasper
    angles = {
        method: match_spectra(unmix(cube, 4, method=method).endmembers, true)[1].mean()
        for method in ("spa", "snpa", "smooth-spa")
    }
    assert angles["smooth-spa"] < min(angles["spa"], angles["snpa"]) - 2

"""The field's methods, each against an independent computation, and distances against their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from gsnmf.applications.unmixing.abundances import fcls
from gsnmf.applications.unmixing.endmember_extraction import ENDMEMBER_METHODS, search_pixels
from gsnmf.applications.unmixing.pure_pixel_methods import (
    enclosing_ellipsoid,
    n_findr,
    preconditioned_projection,
    purity_counts,
)
from gsnmf.applications.unmixing.scene import isolated_pixels, shortened
from gsnmf.applications.unmixing.signal_subspace import count_endmembers, estimate_noise
from gsnmf.applications.unmixing.spectral_distances import (
    match_spectra,
    spectral_angle,
    spectral_information_divergence,
)
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene

CHOOSING = sorted(set(ENDMEMBER_METHODS) - {"minimum-volume"})


@pytest.mark.parametrize("method", CHOOSING)
def test_pure_pixels_are_found_without_noise(method):
    rng = np.random.default_rng(3)
    spectra = rng.random((4, 30)) + 0.1
    pixels = np.vstack([rng.dirichlet(np.ones(4), 120) @ spectra, spectra])
    found = ENDMEMBER_METHODS[method].choose(pixels, 4, np.random.default_rng(0))
    assert sorted(found.tolist()) == [120, 121, 122, 123]


@pytest.mark.parametrize("method", CHOOSING)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_endmember_and_repeated_pixels(method, dtype):
    pixels = np.repeat(np.array([[1.0, 2, 3], [3, 1, 0.5]], dtype=dtype), 10, axis=0)
    for rank in (1, 2):
        found = ENDMEMBER_METHODS[method].choose(pixels, rank, np.random.default_rng(0))
        assert np.unique(found).size == found.size <= rank


class TestSearch:
    def test_it_is_not_worse_than_its_starts(self):
        scene = planted_scene(np.random.default_rng(1), shape=(15, 15), n_bands=40, noise=0.05)
        pixels = scene.cube.reshape(-1, 40)

        def error(chosen):
            return sum(nnls(pixels[chosen].T, pixel)[1] ** 2 for pixel in pixels)

        ours = error(search_pixels(pixels, 4))
        for name in ("spa", "snpa", "xray"):
            assert ours <= error(ENDMEMBER_METHODS[name].choose(pixels, 4, None)) * (1 + 1e-3)


class TestNFindr:
    def test_no_replacement_has_a_larger_volume(self):
        rng = np.random.default_rng(0)
        points = rng.random((40, 2))
        chosen = n_findr(points, 3)

        def area(indices):
            a, b, c = points[list(indices)]
            return abs(np.linalg.det(np.array([b - a, c - a]))) / 2

        for k in range(3):
            for i in range(40):
                other = chosen.copy()
                other[k] = i
                assert area(other) <= area(chosen) * (1 + 1e-9)

    def test_vertices_of_the_largest_simplex_are_on_the_hull(self):
        points = np.random.default_rng(1).random((60, 3))
        assert set(n_findr(points, 4)) <= set(ConvexHull(points).vertices)

    def test_the_largest_triangle_of_few_points(self):
        points = np.random.default_rng(2).random((12, 2))

        def area(indices):
            a, b, c = points[list(indices)]
            return abs(np.linalg.det(np.array([b - a, c - a]))) / 2

        assert area(n_findr(points, 3)) >= 0.9 * max(map(area, combinations(range(12), 3)))


class TestPurity:
    def test_only_the_hull_is_counted(self):
        points = np.random.default_rng(0).random((80, 2))
        counts = purity_counts(points, 3, np.random.default_rng(1), 500)
        assert counts.sum() == 1000
        assert set(np.flatnonzero(counts)) <= set(ConvexHull(points).vertices)


class TestEllipsoid:
    def test_it_is_optimal(self):
        """All points are inside, and the conditions of John hold: it is the mean of its contact points."""
        points = np.random.default_rng(0).standard_normal((200, 4))
        A = enclosing_ellipsoid(points, 1e-7)
        values = np.einsum("ij,jk,ik->i", points, A, points)
        assert values.max() <= 1 + 1e-12
        contact = points[values > 1 - 1e-4]
        outer = np.stack([np.outer(p, p).ravel() for p in contact], axis=1)
        weights, residual = nnls(outer, np.linalg.inv(A).ravel())
        assert residual < 1e-3 * np.linalg.norm(np.linalg.inv(A))
        assert weights.sum() == pytest.approx(4, rel=1e-3)

    def test_noise_that_plain_projection_does_not_bear(self):
        rng = np.random.default_rng(5)
        spectra = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.9, 1.0], [1.0, 0.9, 1.0, 1.0]])
        pixels = np.vstack([rng.dirichlet(np.ones(3), 100) @ spectra, spectra])
        pixels += 1e-3 * rng.random(pixels.shape)
        assert sorted(preconditioned_projection(pixels, 3).tolist()) == [100, 101, 102]


class TestAbundances:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16])
    def test_what_was_mixed(self, dtype):
        rng = np.random.default_rng(0)
        spectra = rng.integers(100, 5000, (3, 20))
        mixed = rng.dirichlet(np.ones(3), 50)
        pixels = (mixed @ spectra).astype(dtype)
        np.testing.assert_allclose(fcls(pixels, spectra), mixed, atol=2e-3 if dtype == np.uint16 else 1e-5)

    def test_without_the_sum_it_is_nonnegative_least_squares(self):
        rng = np.random.default_rng(1)
        spectra, pixels = rng.random((4, 9)), rng.random((30, 9))
        expected = [nnls(spectra.T, pixel)[0] for pixel in pixels]
        np.testing.assert_allclose(fcls(pixels, spectra, sum_to_one=False), expected, atol=1e-10)

    @pytest.mark.parametrize("sum_to_one", [True, False])
    def test_more_endmembers_than_bands_and_a_zero_one(self, sum_to_one):
        spectra = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
        found = fcls([[0.25, 0.5]], spectra, sum_to_one=sum_to_one)
        np.testing.assert_allclose(found @ spectra, [[0.25, 0.5]], atol=1e-12)
        assert found.min() >= 0

    def test_errors(self):
        with pytest.raises(ValueError, match="must have the same bands; got shapes"):
            fcls(np.ones((2, 3)), np.ones((2, 4)))
        with pytest.raises(ValueError, match="must be finite"):
            fcls([[np.nan, 1]], np.ones((2, 2)))


class TestDistances:
    def test_angle(self):
        x, y = np.array([1.0, 2, 3]), np.array([2.0, 1, 0])
        expected = math.degrees(math.acos(x @ y / np.linalg.norm(x) / np.linalg.norm(y)))
        assert spectral_angle([x], [y])[0, 0] == pytest.approx(expected)
        assert spectral_angle([x], [5 * x])[0, 0] == pytest.approx(0, abs=1e-12)
        tiny = spectral_angle([[1.0, 0.0]], [[1.0, 1e-9]])[0, 0]
        assert tiny == pytest.approx(math.degrees(1e-9))
        assert spectral_angle([[1.0, 0]], [[0.0, 0]])[0, 0] == 90

    def test_missing_bands_are_left_out(self):
        assert spectral_angle([[1.0, np.nan, 1]], [[2.0, 7, 2]])[0, 0] == pytest.approx(0, abs=1e-6)
        with pytest.raises(ValueError, match="at least one band in which all are finite"):
            spectral_angle([[np.nan]])

    def test_divergence(self):
        p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
        expected = sum(p * np.log(p / q)) + sum(q * np.log(q / p))
        assert spectral_information_divergence([3 * p], [q])[0, 0] == pytest.approx(expected)
        assert spectral_information_divergence([[1.0, 0]], [[1.0, 1]])[0, 0] == np.inf
        with pytest.raises(ValueError, match="nonnegative"):
            spectral_information_divergence([[-1.0, 1]])

    def test_matching_is_the_best_of_all(self):
        rng = np.random.default_rng(0)
        found, true = rng.random((4, 6)), rng.random((3, 6))
        order, degrees = match_spectra(found, true)
        angles = spectral_angle(true, found)
        np.testing.assert_array_equal(degrees, angles[range(3), order])
        assert np.unique(order).size == 3
        with pytest.raises(ValueError, match="at least 4 spectra"):
            match_spectra(true, found)


class TestNumber:
    @pytest.mark.parametrize("r", [2, 5, 9])
    def test_planted_number(self, r):
        scene = planted_scene(np.random.default_rng(r), n_endmembers=r, noise=0.005, brightness=0.0)
        assert count_endmembers(scene.cube.reshape(-1, 120)).number == r

    def test_noise_is_what_the_regression_of_each_band_leaves(self):
        rng = np.random.default_rng(0)
        pixels = rng.random((500, 3)) @ rng.random((3, 10)) + 0.05 * rng.standard_normal((500, 10))
        noise = estimate_noise(pixels)
        for band in range(10):
            others = np.delete(pixels, band, axis=1)
            left = pixels[:, band] - others @ np.linalg.lstsq(others, pixels[:, band])[0]
            np.testing.assert_allclose(noise[:, band], left, atol=1e-7)

    def test_too_few_pixels(self):
        with pytest.raises(ValueError, match="more pixels than bands"):
            count_endmembers(np.ones((5, 5)))


class TestOutliers:
    def test_damaged_pixels_and_no_others(self):
        scene = planted_scene(np.random.default_rng(0), shape=(30, 30), n_outliers=6)
        flagged = np.flatnonzero(isolated_pixels(scene.cube.reshape(-1, 120)))
        damaged = [i for k, i in enumerate(scene.outliers) if k % 3 != 2]  # one that is only too bright has its place
        assert set(damaged) <= set(flagged) <= set(scene.outliers)
        clean = planted_scene(np.random.default_rng(0), shape=(30, 30))
        assert not isolated_pixels(clean.cube.reshape(-1, 120)).any()

    def test_few_pixels(self):
        assert not isolated_pixels(np.eye(4)).any()

    def test_shortened(self):
        pixels = np.ones((100, 3))
        pixels[5] *= 50
        short = shortened(pixels)
        np.testing.assert_allclose(short[5], 3.0)
        np.testing.assert_array_equal(np.delete(short, 5, axis=0), np.delete(pixels, 5, axis=0))

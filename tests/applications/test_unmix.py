"""Unmixing a scene: what was planted is found, whatever holds the scene, and what cannot be used is said."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gsnmf
from gsnmf.applications import Unmixing, unmix
from gsnmf.applications.unmixing.abundances import fcls
from gsnmf.applications.unmixing.cube import as_cube
from gsnmf.applications.unmixing.scene import usable_scene
from gsnmf.applications.unmixing.spectral_distances import match_spectra
from gsnmf.applications.unmixing.synthetic_scenes import planted_scene

METHODS = ("auto", "vca", "n-findr", "ppi", "spa", "preconditioned-spa", "snpa", "xray")


@pytest.fixture(scope="module")
def scene():
    return planted_scene(np.random.default_rng(0), shape=(24, 20), n_bands=30, n_endmembers=3)


@pytest.fixture(scope="module")
def result(scene):
    return unmix(scene.cube, 3, wavelengths=np.linspace(400, 2400, 30))


@pytest.fixture(scope="module", params=["snpa", pytest.param("auto", marks=pytest.mark.long)])
def method(request):
    """For what does not depend on how pixels are chosen: quick tests take the quicker one."""
    return request.param


@pytest.fixture(scope="module")
def found_by(scene, method):
    """The scene, unmixed by that method."""
    return unmix(scene.cube, 3, method=method)


def angles(result, scene):
    return match_spectra(result.endmembers, scene.endmembers)[1]


class TestResult:
    def test_what_was_planted(self, result, scene):
        size = np.sqrt(np.mean(scene.cube**2)) * np.sqrt(30)
        of_noise = np.degrees(0.03 * size / np.linalg.norm(scene.endmembers, axis=1))
        assert np.all(angles(result, scene) < of_noise + 1)  # what noise makes of one pure pixel, and a degree
        order = match_spectra(result.endmembers, scene.endmembers)[0]
        assert np.corrcoef(result.abundances[..., order].ravel(), scene.abundances.ravel())[0, 1] > 0.9

    def test_shapes_and_consistency(self, result, scene):
        assert result.abundances.shape == (24, 20, 3)
        np.testing.assert_allclose(result.abundances.sum(axis=2), 1, atol=1e-5)
        expected = fcls(scene.cube.reshape(-1, 30), result.endmembers)
        np.testing.assert_allclose(result.abundances.reshape(-1, 3), expected, atol=1e-6)
        rest = scene.cube - expected.reshape(24, 20, 3) @ result.endmembers
        np.testing.assert_allclose(result.residual_map, np.sqrt(np.mean(rest**2, axis=2)), rtol=1e-5, atol=1e-7)
        assert result.relative_error == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(scene.cube))
        assert result.quality == 1 - result.relative_error

    def test_members_are_the_pixels_whose_mean_the_endmembers_are(self, result, scene):
        for spectrum, (row, column), own in zip(result.endmembers, result.pixels, result.members, strict=True):
            assert [row, column] in own.tolist()
            pixels = scene.cube[own[:, 0], own[:, 1]]
            unit = (pixels / np.linalg.norm(pixels, axis=1, keepdims=True)).mean(axis=0)
            assert np.linalg.norm(spectrum / np.linalg.norm(spectrum) - unit / np.linalg.norm(unit)) < 1e-6

    def test_words(self, result):
        assert repr(result).startswith("Unmixing(3 endmembers of 24 x 20 pixels and 30 bands")
        assert "\n" not in repr(result)
        assert len(result.table()) == len(result.to_frame()) == 3
        assert result.to_frame()["mean abundance"].sum() == pytest.approx(1, abs=1e-5)
        assert "<table>" in result._repr_html_()
        assert "pixel (" in result.names[0]
        assert any("spectra as they are" in note for note in result.notes)
        assert result.dominant().shape == (24, 20)
        assert result.valid.all()

    def test_saved_and_loaded(self, result, tmp_path):
        result.save(tmp_path / "scene.npz")
        again = Unmixing.load(tmp_path / "scene.npz")
        assert again == result
        gsnmf.save(gsnmf.factorize(np.eye(3), 2), tmp_path / "factorization.npz")
        with pytest.raises(ValueError, match="it says that it holds 'gsnmf result'"):
            Unmixing.load(tmp_path / "factorization.npz")
        (tmp_path / "other.npz").write_bytes(b"PK")
        with pytest.raises(ValueError, match="is not a result of unmixing"):
            Unmixing.load(tmp_path / "other.npz")

    @pytest.mark.parametrize(
        ("name", "forge"),
        [
            ("abundances", lambda a: np.where(np.arange(3) == 1, np.nan, a)),
            ("abundances", lambda a: a - 0.5),
            ("abundances", lambda a: a * 2),
            ("abundances", lambda a: a[:, :-1]),
            ("abundances", lambda a: a[..., 0]),
            ("abundances", lambda a: a[..., :2]),
            ("residual_map", lambda a: a.astype(str)),
            ("residual_map", lambda a: -a),
            ("residual_map", lambda a: a * np.nan),
            ("residual_map", lambda a: a.T),
            ("endmembers", lambda a: np.where(np.arange(3)[:, None] == 1, np.inf, a)),
            ("endmembers", lambda a: a * np.nan),
            ("pixels", lambda a: a + 1000),
            ("pixels", lambda a: a[:2]),
            ("outliers", lambda a: np.array([[0, -1]])),
            ("picture", lambda a: a.astype(float)),
            ("bands", lambda a: np.array([99])),
            ("wavelengths", lambda a: a[1:]),
        ],
    )
    def test_forged_files_are_refused(self, result, tmp_path, name, forge):
        result.save(tmp_path / "scene.npz")
        with np.load(tmp_path / "scene.npz") as archive:
            arrays = dict(archive)
        key = next(key for key in arrays if key.rpartition(".")[2] == name)
        np.savez(tmp_path / "forged.npz", **arrays | {key: forge(arrays[key])})
        with pytest.raises(ValueError, match=r"forged.npz is not a result of unmixing .*"):
            Unmixing.load(tmp_path / "forged.npz")

    @pytest.mark.parametrize(
        "forged",
        [{"relative_error": -1.0}, {"relative_error": "0"}, {"notes": "none"}, {"sum_to_one": 1}, {"source": 7}],
    )
    def test_forged_records_are_refused(self, result, tmp_path, forged):
        result.save(tmp_path / "scene.npz")
        with np.load(tmp_path / "scene.npz") as archive:
            arrays = dict(archive)
        record = json.dumps(json.loads(str(arrays.pop("record"))) | forged)
        np.savez(tmp_path / "forged.npz", **arrays, record=np.array(record))
        with pytest.raises(ValueError, match=r"forged.npz is not a result of unmixing .*"):
            gsnmf.load(tmp_path / "forged.npz")

    def test_equal_results(self, result):
        assert result == replace(result)
        assert result != replace(result, notes=())
        assert result != replace(result, residual_map=2 * result.residual_map)

    def test_progress(self, scene, capsys):
        told = []
        unmix(scene.cube, 3, method="spa", progress=told.append)
        assert [status.stage for status in told if status.message == status.stage] == [
            "Reading the scene",
            "Choosing endmembers",
            "Fitting abundances",
        ]
        assert (told[-1].stage, told[-1].fraction) == ("Fitting abundances", 1.0)
        unmix(scene.cube, 3, method="spa", progress=True)
        assert "Fitting abundances" in capsys.readouterr().err

    def test_inputs_are_not_changed_and_the_result_is_the_same_again(self, result, scene):
        before = scene.cube.copy()
        again = unmix(scene.cube, 3)
        np.testing.assert_array_equal(scene.cube, before)
        np.testing.assert_array_equal(again.endmembers, result.endmembers)

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method(self, scene, result, method):
        found = result if method == result.method else unmix(scene.cube, 3, method=method)
        assert angles(found, scene).mean() < 12

    def test_least_volume_helps_where_no_pixel_is_pure(self):
        mixed = planted_scene(
            np.random.default_rng(0), shape=(16, 15), n_bands=30, n_endmembers=3, purest=0.85, brightness=0.0
        )
        moved = unmix(mixed.cube, 3, method="minimum-volume")
        assert angles(moved, mixed).mean() < angles(unmix(mixed.cube, 3), mixed).mean()

    def test_scaling_the_scene_scales_the_endmembers(self, found_by, scene, method):
        scaled = unmix(1000 * scene.cube, 3, method=method)
        np.testing.assert_array_equal(scaled.pixels, found_by.pixels)
        np.testing.assert_allclose(scaled.endmembers, 1000 * found_by.endmembers, rtol=1e-9)
        np.testing.assert_allclose(scaled.abundances, found_by.abundances, atol=1e-5)

    @pytest.mark.parametrize("exponent", [-900, 90, 900])
    def test_powers_of_two_change_nothing(self, found_by, scene, exponent, method):
        scaled = unmix(np.ldexp(scene.cube, exponent), 3, method=method)
        np.testing.assert_array_equal(scaled.endmembers, np.ldexp(found_by.endmembers, exponent))
        np.testing.assert_array_equal(scaled.abundances, found_by.abundances)
        np.testing.assert_allclose(scaled.residual_map, np.ldexp(found_by.residual_map.astype(float), exponent))
        assert scaled.relative_error == found_by.relative_error
        np.testing.assert_array_equal(scaled.angles, found_by.angles)

    def test_numbers_near_the_limits_of_single_precision(self, scene, method):
        for unit in (2.0**-130, 2.0**100):
            assert angles(unmix((unit * scene.cube).astype(np.float32), 3, method=method), scene).mean() < 12

    @pytest.mark.parametrize("normalize", ["sum", "length"])
    def test_normalised_choice(self, scene, normalize, method):
        found = unmix(scene.cube, 3, normalize=normalize, method=method)
        assert found.normalize == normalize
        assert any("as asked" in note for note in found.notes)


class TestHard:
    def test_outliers_and_dead_pixels(self):
        scene = planted_scene(np.random.default_rng(4), shape=(20, 20), n_bands=30, n_outliers=9, n_dead=9)
        found = unmix(scene.cube, 4)
        assert angles(found, scene).mean() < 8
        assert np.count_nonzero(~found.valid) == 9
        assert np.isnan(found.abundances[~found.valid]).all()
        assert any(note.startswith("9 pixels left out: zero in every band") for note in found.notes)
        chosen = found.pixels[:, 0] * 20 + found.pixels[:, 1]
        assert not set(chosen.tolist()) & set(scene.outliers.tolist())
        worst = unmix(scene.cube, 4, outliers="keep", averaged=1)
        assert angles(worst, scene).mean() > angles(found, scene).mean()

    def test_missing_values(self, scene, method):
        cube = scene.cube.copy()
        cube[:, :, 7] = np.nan
        cube[3, 4, 2] = np.inf
        cube[5, 6] = np.nan
        cube[:, :, 11] = 0.0
        cube[1, 1, 1] = -0.001
        found = unmix(cube, 3, method=method)
        assert np.isnan(found.endmembers[:, [7, 11]]).all()
        assert np.isfinite(np.delete(found.endmembers, [7, 11], axis=1)).all()
        assert sorted(map(tuple, np.argwhere(~found.valid).tolist())) == [(3, 4), (5, 6)]
        text = "; ".join(found.notes)
        for part in (
            "1 band left out: most pixels have no value there",
            "1 band left out: zero in every pixel",
            "2 pixels left out: not every band has a value",
            "1 negative value taken as zero",
        ):
            assert part in text
        assert found.table()
        assert found.angles.shape == (3, 3)

    def test_a_number_for_missing_values(self, scene, method):
        cube = scene.cube.copy()
        cube[:5] = -9999
        with pytest.raises(ValueError, match=r"negative values, the smallest -9999\. If .* pass no_data=-9999"):
            unmix(cube, 3)
        found = unmix(cube, 3, no_data=-9999, method=method)
        np.testing.assert_array_equal(found.valid[:, 0], np.arange(24) >= 5)

    def test_mask(self, scene, method):
        mask = np.ones((24, 20), dtype=bool)
        mask[:, :5] = False
        found = unmix(scene.cube, 3, mask=mask, method=method)
        np.testing.assert_array_equal(found.valid, mask)
        assert found.pixels[:, 1].min() >= 5

    def test_one_pixel_and_one_band(self):
        found = unmix(np.full((1, 1, 5), 2.0), 1)
        np.testing.assert_allclose(found.endmembers, 2.0)
        np.testing.assert_allclose(found.abundances, 1.0)
        found = unmix(np.arange(1.0, 13).reshape(3, 4, 1), 1)
        assert found.abundances.shape == (3, 4, 1)

    def test_fewer_materials_than_asked_for(self):
        rng = np.random.default_rng(0)
        cube = (rng.random((100, 2)) @ rng.random((2, 8))).reshape(10, 10, 8)
        found = unmix(cube, 4, averaged=1)
        assert found.relative_error < 0.5
        assert len(found.endmembers) <= 4

    def test_pure_bands(self):
        rng = np.random.default_rng(1)
        spectra = rng.random((3, 20))
        spectra[:, 9], spectra[2, 9] = 0.0, 1.0  # the third material is alone in band 9, and nowhere pure
        mixed = rng.dirichlet(np.full(3, 0.5), 400)
        mixed[:, 2] = 0.2 + 0.5 * mixed[:, 2]
        mixed[:2] = np.eye(3)[:2]
        cube = (mixed @ spectra).reshape(20, 20, 20)
        found = unmix(cube, 3, pure_bands=True, sum_to_one=False)
        assert found.bands.tolist() == [9]
        assert len(found.pixels) == 2
        assert found.relative_error < 1e-6
        with pytest.raises(ValueError, match="method has no effect with pure_bands=True"):
            unmix(cube, 3, pure_bands=True, method="vca")

    def test_estimated_number(self):
        scene = planted_scene(np.random.default_rng(3), n_endmembers=3, noise=0.005, brightness=0.0, n_bands=40)
        found = unmix(scene.cube, "auto", method="n-findr")
        assert found.rank_choice.number == len(found.endmembers) == 3
        assert "signal_to_noise" in repr(found.rank_choice)
        for rank, number in ((range(2, 10**12), 3), (range(5, 9), 5), (range(2, 3), 2), (range(1, 40, 2), 3)):
            assert len(unmix(scene.cube, rank, method="n-findr").endmembers) == number

    @pytest.mark.parametrize("exponent", [-900, 0, 900])
    def test_an_estimated_number_is_saved(self, exponent, tmp_path):
        rng = np.random.default_rng(0)
        cube = np.ldexp((rng.random((60, 2)) @ rng.random((2, 5))).reshape(6, 10, 5), exponent)
        found = unmix(cube, "auto", method="spa")
        found.save(tmp_path / "scene.npz")
        assert Unmixing.load(tmp_path / "scene.npz") == found


class TestLarge:
    def test_a_sample_has_the_extreme_pixels(self, method):
        """A material that covers twelve of forty thousand pixels is found from two thousand."""
        rng = np.random.default_rng(0)
        spectra = rng.random((4, 25))
        mixed = np.zeros((200, 200, 4))
        mixed[..., :3] = rng.dirichlet(np.ones(3), (200, 200))
        mixed[90:93, 50:54] = [0, 0, 0, 1]
        cube = (mixed @ spectra + 0.002 * rng.random((200, 200, 25))).astype(np.float32)
        sample = usable_scene(as_cube(cube)).sample(2000, np.random.default_rng(1))
        assert sample.size <= 2000
        rare = {row * 200 + column for row in range(90, 93) for column in range(50, 54)}
        assert len(rare & set(sample.tolist())) >= 1
        found = unmix(cube, 4, max_pixels=2000, outliers="keep", averaged=1, method=method)
        assert match_spectra(found.endmembers, spectra)[1].max() < 6
        assert any("a sample of" in note for note in found.notes)

    def test_dask_and_memory_map(self, scene, found_by, tmp_path, method):
        dask = pytest.importorskip("dask.array")
        lazy = dask.from_array(scene.cube, chunks=(7, 20, 11))
        np.testing.assert_array_equal(unmix(lazy, 3, method=method).endmembers, found_by.endmembers)
        np.save(tmp_path / "scene.npy", scene.cube)
        np.testing.assert_array_equal(unmix(tmp_path / "scene.npy", 3, method=method).endmembers, found_by.endmembers)

    def test_single_precision_stays(self, scene):
        cube = as_cube(scene.cube.astype(np.float32))
        assert next(cube.blocks())[1].dtype == np.float32
        assert as_cube(np.ones((2, 2, 2), dtype=np.uint16)).dtype is np.float32
        assert as_cube(np.ones((2, 2, 2), dtype=np.int32)).dtype is np.float64


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"rank": 0}, "rank must be an integer of at least 1; got 0"),
            ({"rank": 99}, r"rank must be in \[1, 30\] for a scene with 480 usable pixels and 30"),
            ({"rank": "many"}, "rank must be a positive integer, a range or 'auto'; got 'many'"),
            ({"rank": range(31, 10**12)}, r"rank must include a number in \[1, 30\]"),
            ({"method": "nothing"}, "method must be one of 'auto', .*; got 'nothing'"),
            ({"normalize": "max"}, "normalize must be one of 'none', 'sum', 'length'; got 'max'"),
            ({"outliers": "yes"}, "outliers must be 'ignore' or 'keep'; got 'yes'"),
            ({"averaged": 0}, "averaged must be an integer of at least 1"),
            ({"wavelengths": np.arange(1, 25)}, r"If axis 0 holds the bands, pass bands_axis=0"),
            ({"wavelengths": [1.0, 2]}, r"wavelengths must be one per band, 30"),
            ({"wavelengths": np.full(30, np.nan)}, "wavelengths must be finite and above 0; got nan at band 0"),
            ({"wavelengths": ["red"] * 30}, "wavelengths must be numbers"),
            ({"wavelengths": np.arange(1, 31), "wavelength_unit": "m"}, "wavelength_unit must be 'nm' or 'µm'"),
            ({"mask": np.ones((20, 24), dtype=bool)}, r"mask must have the shape of the picture, \(24, 20\)"),
            ({"mask": np.zeros((24, 20), dtype=bool)}, "mask must leave at least one pixel"),
            ({"mask": np.full((24, 20), 7)}, "mask must be boolean"),
            ({"bands_axis": 5}, "bands_axis must be 0, 1 or 2; got 5"),
            ({"max_pixels": 0}, "max_pixels must be an integer of at least 1"),
        ],
    )
    def test_options(self, scene, arguments, message):
        with pytest.raises(ValueError, match=message):
            unmix(scene.cube, **{"rank": 3} | arguments)

    @pytest.mark.parametrize(
        ("cube", "message"),
        [
            (np.ones((4, 5)), r"height x width x bands; got shape \(4, 5\); reshape a list of pixels"),
            (np.ones((4, 5, 0)), "at least one pixel and one band"),
            (np.zeros((4, 5, 3)), "finite values that are not all zero; got 0 pixels with missing values and 20"),
            (np.full((4, 5, 3), np.nan), "at least one pixel with finite values; got none in 20 pixels"),
            (np.random.default_rng(0).standard_normal((9, 9, 4)), "nonnegative but for noise; got"),
        ],
    )
    def test_cubes(self, cube, message):
        with pytest.raises(ValueError, match=message):
            unmix(cube, 1)

    def test_types(self):
        with pytest.raises(TypeError, match="real numbers; got dtype complex128"):
            unmix(np.ones((2, 2, 2), dtype=complex), 1)
        with pytest.raises(TypeError, match="rank must be an integer"):
            unmix(np.ones((2, 2, 2)), 1.5)


@pytest.mark.long
def test_jasper(jasper):
    """The default is within seven degrees of the ground truth, and nearer than the field's methods."""
    cube, true = jasper
    ours = match_spectra(unmix(cube, 4).endmembers, true)[1].mean()
    assert ours <= 7
    for method in ("vca", "n-findr", "snpa"):
        assert ours < match_spectra(unmix(cube, 4, method=method).endmembers, true)[1].mean()

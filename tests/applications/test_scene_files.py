"""Scenes in files and in other libraries' arrays: all are the same scene, and what is wrong is said."""

import time
from contextlib import suppress

import numpy as np
import pytest
import scipy.io

from gsnmf.applications import unmix
from gsnmf.applications.unmixing.cube import as_cube
from gsnmf.applications.unmixing.scene_files import read_cube, read_wavelengths
from gsnmf.datasets import FileError

SHAPE = 5, 4, 3
VALUES = np.random.default_rng(0).random(SHAPE)
WAVELENGTHS = [0.45, 0.55, 0.65]


def pixels(cube):
    return np.vstack([block for _, block in cube.blocks()])


def write_envi(path, values, interleave, *, byte_order=0, offset=0, extra="", ending=".img"):
    axes = {"bip": (0, 1, 2), "bil": (0, 2, 1), "bsq": (2, 0, 1)}[interleave]
    kind = {"f4": 4, "f8": 5, "u2": 12, "i2": 2}[values.dtype.str[1:]]
    data = values.transpose(axes).astype(values.dtype.newbyteorder(">" if byte_order else "<")).tobytes()
    path.with_suffix(ending).write_bytes(b"\0" * offset + data)
    path.write_text(
        f"ENVI\ndescription = {{\n  a scene = not a field}}\nsamples = {values.shape[1]}\nlines = {values.shape[0]}\n"
        f"bands = {values.shape[2]}\nheader offset = {offset}\ndata type = {kind}\ninterleave = {interleave}\n"
        f"byte order = {byte_order}\n{extra}",
        encoding="utf-8",
    )


class TestEnvi:
    @pytest.mark.parametrize("interleave", ["bip", "bil", "bsq"])
    @pytest.mark.parametrize(("kind", "byte_order"), [("f4", 0), ("f8", 1), ("u2", 1)])
    def test_every_layout(self, tmp_path, interleave, kind, byte_order):
        values = (1000 * VALUES).astype(kind)
        extra = "wavelength units = Micrometers\nwavelength = {\n 0.45, 0.55,\n 0.65 }\n"
        write_envi(tmp_path / "s.hdr", values, interleave, byte_order=byte_order, offset=7, extra=extra)
        cube = read_cube(tmp_path / "s.hdr")
        assert (cube.height, cube.width, cube.n_bands) == SHAPE
        np.testing.assert_array_equal(pixels(cube), values.reshape(-1, 3))
        np.testing.assert_array_equal(cube.pixels(np.array([7, 2])), values.reshape(-1, 3)[[7, 2]])
        np.testing.assert_array_equal(cube.wavelengths, WAVELENGTHS)
        assert cube.wavelength_unit == "µm"

    def test_as_the_spectral_package_writes_it(self, tmp_path):
        spectral = pytest.importorskip("spectral")
        spectral.envi.save_image(str(tmp_path / "s.hdr"), VALUES.astype(np.float32), interleave="bil")
        cube = read_cube(tmp_path / "s.hdr")
        np.testing.assert_array_equal(pixels(cube), VALUES.astype(np.float32).reshape(-1, 3))
        opened = as_cube(spectral.open_image(str(tmp_path / "s.hdr")))
        np.testing.assert_array_equal(pixels(opened), VALUES.astype(np.float32).reshape(-1, 3))

    def test_what_the_header_says_of_missing_values_and_bad_bands(self, tmp_path):
        values = (1000 * VALUES).astype("i2")
        values[2, 3] = -9999
        extra = "data ignore value = -9999\nbbl = { 1, 0, 1 }\n"
        write_envi(tmp_path / "s.hdr", values, "bil", extra=extra)
        found = unmix(tmp_path / "s.hdr", 2)
        assert np.argwhere(~found.valid).tolist() == [[2, 3]]
        assert np.isnan(found.endmembers[:, 1]).all()
        assert np.isfinite(found.endmembers[:, [0, 2]]).all()
        assert "1 band left out: bad, as the header of the file says" in found.notes
        assert "1 pixel left out: not every band has a value" in found.notes

    @pytest.mark.parametrize("ending", ["", ".img", ".dat"])
    def test_named_by_its_binary_file(self, tmp_path, ending):
        write_envi(tmp_path / "s.hdr", VALUES, "bip", ending=ending)
        np.testing.assert_array_equal(pixels(read_cube(tmp_path / f"s{ending}")), VALUES.reshape(-1, 3))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (("ENVI", "NOTHING"), "opens with the word ENVI"),
            (("interleave = bip", "interleave = bxp"), "interleave must be bsq, bil or bip; got 'bxp'"),
            (("data type = 5", "data type = 6"), "must hold real numbers; got dtype complex64"),
            (("data type = 5", "data type = 7"), "data type must be one of 1, 2, .*; got '7'"),
            (("samples = 4", "samples = four"), "cannot be read as an ENVI image: invalid literal .*'four'"),
            (("bands = 3", "bends = 3"), 'parameter "bands" missing'),
            (("byte order = 0", "bbl = {1, bad, 1}"), "good_bands must be true or false for each of the 3 bands"),
            (("byte order = 0", "wavelength = {1, 2}"), "wavelengths must be one per band, 3"),
            (("byte order = 0", "data ignore value = none"), "no_data must be a number; got 'none'"),
            (("lines = 5", "lines = 6"), "must have 576 bytes, as s.hdr says; got 480"),
            (("lines = 5", "lines = " + 12 * "9"), "must have .* bytes, as s.hdr says; got 480"),
            (("lines = 5", "lines = -5"), "must have .* bytes, as s.hdr says; got 480"),
            (("lines = 5", "lines = 0"), "as s.hdr says|at least one pixel"),
            (("lines = 5", "lines = {5}"), "cannot be read as an ENVI image"),
            (("byte order = 0", "wavelength = { 1, 2, 3"), "cannot be read as an ENVI image"),
        ],
    )
    def test_damaged_headers(self, tmp_path, change, message):
        write_envi(tmp_path / "s.hdr", VALUES, "bip")
        text = (tmp_path / "s.hdr").read_text(encoding="utf-8")
        (tmp_path / "s.hdr").write_text(text.replace(*change), encoding="utf-8")
        with pytest.raises(FileError, match=message):
            read_cube(tmp_path / "s.hdr")

    @pytest.mark.parametrize(
        "hostile",
        [4000 * " ", 4000 * " =", 4000 * "{ ", "a = {" + 4000 * "\n {", 10**6 * "\n", 10**5 * "=\n", 10**6 * ";"],
    )
    def test_hostile_headers_are_read_or_refused_at_once(self, tmp_path, hostile):
        write_envi(tmp_path / "s.hdr", VALUES, "bip", extra=hostile)
        started = time.process_time()
        with suppress(FileError):
            np.testing.assert_array_equal(pixels(read_cube(tmp_path / "s.hdr")), VALUES.reshape(-1, 3))
        assert time.process_time() - started < 5

    def test_headers_in_other_encodings_cases_and_line_ends(self, tmp_path):
        write_envi(tmp_path / "s.hdr", VALUES, "bil", extra="wavelength units = µm\nwavelength = {1, 2, 3}\n")
        text = (tmp_path / "s.hdr").read_text(encoding="utf-8")
        for changed, encoding in (
            (text, "latin-1"),
            (text, "utf-8-sig"),
            (text.replace("interleave = bil", "Interleave = Bil"), "utf-8"),
            (text.replace("\n", "\r\n"), "utf-8"),
            (text.replace("byte order = 0\n", "; a comment = 1\n\n"), "utf-8"),
        ):
            (tmp_path / "s.hdr").write_bytes(changed.encode(encoding))
            np.testing.assert_array_equal(pixels(read_cube(tmp_path / "s.hdr")), VALUES.reshape(-1, 3))

    def test_without_its_binary(self, tmp_path):
        write_envi(tmp_path / "s.hdr", VALUES, "bip")
        (tmp_path / "s.img").unlink()
        with pytest.raises(FileError, match="the binary file must lie beside it, called s without ending"):
            read_cube(tmp_path / "s.hdr")


class TestArrays:
    def test_numpy_and_matlab(self, tmp_path):
        np.save(tmp_path / "s.npy", VALUES)
        np.savez(tmp_path / "s.npz", scene=VALUES, wavelengths=WAVELENGTHS, other=np.eye(2))
        scipy.io.savemat(tmp_path / "s.mat", {"scene": VALUES, "wl": WAVELENGTHS})
        for name in ("s.npy", "s.npz", "s.mat"):
            cube = read_cube(tmp_path / name)
            np.testing.assert_array_equal(pixels(cube), VALUES.reshape(-1, 3))
            assert cube.source.endswith(name)
        np.testing.assert_array_equal(read_cube(tmp_path / "s.mat").wavelengths, WAVELENGTHS)
        assert isinstance(read_cube(tmp_path / "s.npy").values, np.memmap)

    def test_bands_first(self, tmp_path):
        np.save(tmp_path / "s.npy", VALUES.transpose(2, 0, 1))
        cube = read_cube(tmp_path / "s.npy", bands_axis=0, wavelengths=WAVELENGTHS)
        np.testing.assert_array_equal(pixels(cube), VALUES.reshape(-1, 3))

    def test_which_array(self, tmp_path):
        np.savez(tmp_path / "s.npz", a=VALUES, b=2 * VALUES)
        with pytest.raises(FileError, match=r"holds several images; name one as key: a \(5, 4, 3\), b"):
            read_cube(tmp_path / "s.npz")
        np.testing.assert_array_equal(pixels(read_cube(tmp_path / "s.npz", key="b")), 2 * VALUES.reshape(-1, 3))
        with pytest.raises(FileError, match="has no array 'c'; got a, b"):
            read_cube(tmp_path / "s.npz", key="c")
        np.savez(tmp_path / "flat.npz", a=np.eye(3))
        with pytest.raises(FileError, match="holds no array with three dimensions"):
            read_cube(tmp_path / "flat.npz")

    def test_errors(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_cube(tmp_path / "none.npy")
        (tmp_path / "s.xyz").write_text("", encoding="utf-8")
        with pytest.raises(FileError, match=r"the ending must be one of \.npy, .*; got \.xyz"):
            read_cube(tmp_path / "s.xyz")
        np.save(tmp_path / "s.npy", VALUES)
        with pytest.raises(FileError, match="key has no meaning here"):
            read_cube(tmp_path / "s.npy", key="a")

    def test_wavelengths(self, tmp_path):
        (tmp_path / "w.txt").write_text("450\n550, 650\n", encoding="utf-8")
        np.testing.assert_array_equal(read_wavelengths(tmp_path / "w.txt"), [450, 550, 650])
        (tmp_path / "w.txt").write_text("450\nred\n", encoding="utf-8")
        with pytest.raises(FileError, match="must be numbers, one per line; got 'red'"):
            read_wavelengths(tmp_path / "w.txt")


class TestXarray:
    @pytest.fixture
    def xarray(self):
        return pytest.importorskip("xarray")

    @pytest.mark.parametrize("order", [("y", "x", "band"), ("band", "y", "x"), ("x", "y", "band"), ("band", "x", "y")])
    def test_names_tell_which_is_which(self, xarray, order):
        array = xarray.DataArray(VALUES, dims=("y", "x", "band"), coords={"wavelength": ("band", WAVELENGTHS)})
        cube = as_cube(array.transpose(*order))
        assert (cube.height, cube.width, cube.n_bands) == SHAPE
        np.testing.assert_array_equal(pixels(cube), VALUES.reshape(-1, 3))
        np.testing.assert_array_equal(cube.wavelengths, WAVELENGTHS)

    def test_lazy_arrays_and_files(self, xarray, tmp_path):
        pytest.importorskip("dask.array")
        array = xarray.DataArray(VALUES, dims=("row", "column", "wavelength"), coords={"wavelength": WAVELENGTHS})
        cube = as_cube(array.chunk({"row": 2}))
        np.testing.assert_array_equal(pixels(cube), VALUES.reshape(-1, 3))
        array.to_dataset(name="scene").to_netcdf(tmp_path / "s.nc", engine="scipy")
        cube = read_cube(tmp_path / "s.nc")
        np.testing.assert_array_equal(pixels(cube), VALUES.reshape(-1, 3))
        np.testing.assert_array_equal(cube.wavelengths, WAVELENGTHS)

    def test_number_for_missing_values(self, xarray):
        values = VALUES.copy()
        values[1, 2] = -1
        array = xarray.DataArray(values, dims=("y", "x", "band"), attrs={"_FillValue": -1})
        assert np.argwhere(~unmix(array, 2).valid).tolist() == [[1, 2]]

    def test_errors(self, xarray):
        with pytest.raises(ValueError, match="one dimension of cube must be called one of band, bands, wavelength"):
            as_cube(xarray.DataArray(VALUES, dims=("a", "b", "c")))
        with pytest.raises(ValueError, match="must have three dimensions"):
            as_cube(xarray.DataArray(VALUES[0], dims=("x", "band")))
        with pytest.raises(TypeError, match=r"xarray Dataset; pass one of its variables, cube\[name\]: 'scene'"):
            as_cube(xarray.Dataset({"scene": (("y", "x", "band"), VALUES)}))


class TestTiff:
    @pytest.mark.parametrize("planar", ["separate", "contig"])
    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_bands_first_and_last(self, tmp_path, planar, compression):
        tifffile = pytest.importorskip("tifffile")
        values = (1000 * VALUES).astype(np.uint16)
        stored = values.transpose(2, 0, 1) if planar == "separate" else values
        tifffile.imwrite(
            tmp_path / "s.tif", stored, photometric="minisblack", planarconfig=planar, compression=compression
        )
        np.testing.assert_array_equal(pixels(read_cube(tmp_path / "s.tif")), values.reshape(-1, 3))

    @pytest.mark.parametrize("text", ["-9999", "-9999 ", "nan"])
    def test_number_for_missing_values(self, tmp_path, text):
        tifffile = pytest.importorskip("tifffile")
        values = VALUES.astype(np.float32)
        values[1, 2] = float(text)
        tag = (42113, "s", 0, text, True)  # GDAL_NODATA
        tifffile.imwrite(tmp_path / "s.tif", values, photometric="minisblack", planarconfig="contig", extratags=[tag])
        assert np.argwhere(~unmix(tmp_path / "s.tif", 2).valid).tolist() == [[1, 2]]


def test_a_list_of_lists():
    assert unmix(VALUES.tolist(), 1).endmembers.shape == (1, 3)


def test_masked_arrays():
    """A masked value is missing, whatever number is below the mask; also in integers and in the parts of Dask."""
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[3, 1, 2] = hidden[4, 2] = True
    for values in (VALUES, (1000 * VALUES).astype(np.int16)):
        masked = np.ma.masked_array(values, hidden)
        found = unmix(masked, 2, method="snpa")
        assert np.argwhere(~found.valid).tolist() == [[3, 1], [4, 2]]
        filled = np.where(hidden, np.nan, values)
        np.testing.assert_allclose(found.endmembers, unmix(filled, 2, method="snpa").endmembers, rtol=1e-5)
        dask_array = pytest.importorskip("dask.array")
        lazy = dask_array.from_array(masked, chunks=(2, 4, 3), asarray=False)
        np.testing.assert_array_equal(unmix(lazy, 2, method="snpa").endmembers, found.endmembers)


def test_headers_that_fit_no_band():
    with pytest.raises(ValueError, match="good_bands must be true or false for each of the 3 bands"):
        as_cube(VALUES, good_bands=[1, 0])
    with pytest.raises(TypeError, match="no_data must be a number; got 'none'"):
        as_cube(VALUES, no_data="none")

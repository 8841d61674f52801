"""Every format gives back the matrix and the names that went in, and what is no such file is refused in words."""

import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from gsnmf.datasets import FileError, LabelledMatrix, read_matrix
from gsnmf.datasets.readers import FORMATS, STREAMED_FORMATS
from gsnmf.datasets.readers.tables import read_table

MATRIX = np.array([[1.0, 0.0, 2.5], [0.0, 3.0, 0.0], [4.0, 0.0, 0.125], [0.0, 0.0, 6.0]])
ROWS = ("ä <b>", "second", "second", "=1+1")
COLUMNS = ("x", "y, z", 'say "hi"')


def dense(data: LabelledMatrix) -> np.ndarray:
    return data.matrix.toarray() if sp.issparse(data.matrix) else np.asarray(data.matrix)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def as_table(delimiter=",", corner="", newline="\n"):
    lines = [[quoted(corner), *map(quoted, COLUMNS)]]
    lines += [[quoted(name), *map(repr, row.tolist())] for name, row in zip(ROWS, MATRIX, strict=True)]
    return newline.join(delimiter.join(line) for line in lines) + newline


def as_cluto(matrix=MATRIX):
    lines = [" ".join(f"{j + 1} {row[j]}" for j in np.flatnonzero(row)) for row in matrix]
    return "\n".join([f"{matrix.shape[0]} {matrix.shape[1]} {np.count_nonzero(matrix)}", *lines]) + "\n"


class TestArrays:
    def test_npy_is_mapped_to_memory(self, tmp_path):
        np.save(tmp_path / "m.npy", MATRIX)
        data = read_matrix(tmp_path / "m.npy")
        np.testing.assert_array_equal(data.matrix, MATRIX)
        base = data.matrix
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert data.source == str(tmp_path / "m.npy")

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8, bool, ">f8"])
    def test_number_types(self, tmp_path, dtype):
        np.save(tmp_path / "m.npy", MATRIX.astype(dtype))
        data = read_matrix(tmp_path / "m.npy")
        np.testing.assert_array_equal(data.matrix, MATRIX.astype(dtype))
        assert data.matrix.dtype == (np.float32 if dtype == np.float32 else np.float64)

    def test_npz_with_names(self, tmp_path):
        np.savez(tmp_path / "m.npz", matrix=MATRIX, other=MATRIX, row_names=ROWS, column_names=COLUMNS)
        data = read_matrix(tmp_path / "m.npz")
        np.testing.assert_array_equal(data.matrix, MATRIX)
        assert (data.row_names, data.column_names) == (ROWS, COLUMNS)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_matrix, sp.bsr_array])
    def test_npz_of_scipy(self, tmp_path, kind):
        sp.save_npz(tmp_path / "m.npz", kind(MATRIX))
        data = read_matrix(tmp_path / "m.npz")
        assert sp.issparse(data.matrix)
        np.testing.assert_array_equal(dense(data), MATRIX)

    def test_key_names_an_array(self, tmp_path):
        np.savez(tmp_path / "m.npz", first=MATRIX, second=2 * MATRIX)
        np.testing.assert_array_equal(read_matrix(tmp_path / "m.npz", key="second").matrix, 2 * MATRIX)
        with pytest.raises(FileError, match="several matrices, first, second; name one"):
            read_matrix(tmp_path / "m.npz")
        with pytest.raises(FileError, match=r"no array 'third'; got first, second\."):
            read_matrix(tmp_path / "m.npz", key="third")

    def test_no_matrix_in_the_archive(self, tmp_path):
        np.savez(tmp_path / "m.npz", vector=np.arange(3), text=np.array(["a"]))
        with pytest.raises(FileError, match=r"holds no matrix; got vector, text\."):
            read_matrix(tmp_path / "m.npz")
        with pytest.raises(FileError, match=r"got shape \(3,\)"):
            read_matrix(tmp_path / "m.npz", key="vector")

    def test_pickles_are_refused(self, tmp_path):
        np.save(tmp_path / "m.npy", np.array([[object()]]), allow_pickle=True)
        with pytest.raises(FileError, match="cannot be read as a NumPy array"):
            read_matrix(tmp_path / "m.npy")

    def test_three_dimensions_are_images(self, tmp_path):
        images = np.random.default_rng(0).random((5, 4, 3))
        np.save(tmp_path / "m.npy", images)
        data = read_matrix(tmp_path / "m.npy", image_shape=(4, 3))
        np.testing.assert_array_equal(data.matrix, images.reshape(5, 12))
        assert (data.image_shape, data.pixels, data.row_kind, data.column_kind) == ((4, 3), "columns", "image", "pixel")
        assert data.column_name(4) == "(1, 1)"
        scipy.io.savemat(tmp_path / "m.mat", {"images": images.transpose(1, 2, 0)})
        again = read_matrix(tmp_path / "m.mat")
        np.testing.assert_array_equal(again.matrix, data.matrix)
        assert again.image_shape == (4, 3)

    def test_three_dimensions_must_be_said_to_be_something(self, tmp_path):
        values = np.random.default_rng(0).random((5, 4, 3))
        np.save(tmp_path / "m.npy", values)
        np.savez(tmp_path / "m.npz", m=values)
        scipy.io.savemat(tmp_path / "m.mat", {"m": values})
        for name in ("m.npy", "m.npz", "m.mat"):
            with pytest.raises(FileError, match=r"with cube=True, a stack of images with image_shape=\("):
                read_matrix(tmp_path / name)
            data = read_matrix(tmp_path / name, cube=True)
            np.testing.assert_array_equal(data.matrix, values.reshape(20, 3))
            assert (data.row_kind, data.column_kind, data.image_shape, data.pixels) == ("pixel", "band", (5, 4), "rows")
        with pytest.raises(FileError, match="image_shape must be 4 x 3, as the file has it, for 5 images; got 3 x 4"):
            read_matrix(tmp_path / "m.npy", image_shape=(3, 4))
        with pytest.raises(ValueError, match="image_shape must be None with cube=True"):
            read_matrix(tmp_path / "m.npy", image_shape=(3, 4), cube=True)
        np.save(tmp_path / "flat.npy", values[0])
        with pytest.raises(FileError, match="a spectral image has three dimensions"):
            read_matrix(tmp_path / "flat.npy", cube=True)

    def test_image_shape_in_the_archive(self, tmp_path):
        np.savez(tmp_path / "m.npz", pixels=np.ones((6, 9)), image_shape=[2, 3])
        data = read_matrix(tmp_path / "m.npz")
        assert (data.image_shape, data.pixels, data.column_kind) == ((2, 3), "rows", "image")
        assert data.row_name(5) == "(1, 2)"

    def test_image_shape_must_fit(self, tmp_path):
        np.save(tmp_path / "m.npy", MATRIX)
        with pytest.raises(ValueError, match=r"rows, 4, or columns, 3; got 5 x 1\."):
            read_matrix(tmp_path / "m.npy", image_shape=(5, 1))

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("ending", [".mtx", ".mtx.gz"])
    def test_matrix_market(self, tmp_path, sparse, ending):
        stream = io.BytesIO()
        scipy.io.mmwrite(stream, sp.coo_array(MATRIX) if sparse else MATRIX, precision=17)
        path = tmp_path / f"m{ending}"
        path.write_bytes(gzip.compress(stream.getvalue()) if ending.endswith("gz") else stream.getvalue())
        data = read_matrix(path)
        assert sp.issparse(data.matrix) == sparse
        np.testing.assert_array_equal(dense(data), MATRIX)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_matlab(self, tmp_path, sparse):
        scipy.io.savemat(tmp_path / "m.mat", {"dtm": sp.csc_array(MATRIX) if sparse else MATRIX, "n": 3})
        np.testing.assert_array_equal(dense(read_matrix(tmp_path / "m.mat")), MATRIX)

    def test_newer_matlab_is_named(self, tmp_path):
        (tmp_path / "m.mat").write_bytes(b"MATLAB 7.3 MAT-file" + bytes(500))
        with pytest.raises(FileError, match="save it with the option -v7"):
            read_matrix(tmp_path / "m.mat")


class TestCluto:
    @pytest.mark.parametrize("ending", [".mat", ".cluto"])
    def test_sparse_with_names(self, tmp_path, ending):
        path = tmp_path / f"m{ending}"
        path.write_text(as_cluto(), encoding="utf-8")
        (tmp_path / f"m{ending}.rlabel").write_text("\n".join(ROWS) + "\n", encoding="utf-8")
        (tmp_path / f"m{ending}.clabel").write_text("\n".join(COLUMNS), encoding="utf-8")
        data = read_matrix(path)
        assert sp.issparse(data.matrix)
        np.testing.assert_array_equal(dense(data), MATRIX)
        assert (data.row_names, data.column_names) == (ROWS, COLUMNS)

    def test_empty_rows_and_dense(self, tmp_path):
        matrix = MATRIX.copy()
        matrix[[1, 3]] = 0
        (tmp_path / "m.cluto").write_text(as_cluto(matrix) + "\n", encoding="utf-8")
        np.testing.assert_array_equal(dense(read_matrix(tmp_path / "m.cluto")), matrix)
        (tmp_path / "d.cluto").write_text("2 3\n1 2 3\n4 5 6\n", encoding="utf-8")
        np.testing.assert_array_equal(dense(read_matrix(tmp_path / "d.cluto")), [[1, 2, 3], [4, 5, 6]])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "opens with two or three integers; got 0"),
            ("2 2 1\n1 1\n", "2 rows were announced; got 1"),
            ("1 2 2\n1 1\n", "2 nonzeros were announced; got 1"),
            ("1 2 1\n3 1\n", r"columns must be integers in \[1, 2\]; got 3 to 3"),
            ("1 2 1\n1\n", "pairs of a column and a value"),
            ("a b c\n", "cannot be read as a CLUTO file"),
            ("2 2\n1 2\n3\n", "cannot be read as a CLUTO file"),
        ],
    )
    def test_damaged(self, tmp_path, text, message):
        (tmp_path / "m.cluto").write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=message):
            read_matrix(tmp_path / "m.cluto")


class TestTables:
    @pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".csv", "\t")])
    @pytest.mark.parametrize("corner", ["", "name"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_names_of_rows_and_columns(self, tmp_path, ending, delimiter, corner, newline):
        path = tmp_path / f"m{ending}"
        path.write_bytes(as_table(delimiter, corner, newline).encode())
        data = read_matrix(path)
        np.testing.assert_array_equal(data.matrix, MATRIX)
        assert (data.row_names, data.column_names) == (ROWS, COLUMNS)

    @pytest.mark.parametrize(
        ("text", "rows", "columns", "matrix"),
        [
            ("1,2\n3,4\n", (), (), [[1, 2], [3, 4]]),
            ("a,b\n3,4\n", (), ("a", "b"), [[3, 4]]),
            ("r,1,2\ns,3,4\n", ("r", "s"), (), [[1, 2], [3, 4]]),
            ("a,b\nr,1,2\n", ("r",), ("a", "b"), [[1, 2]]),
            (",2001,2002\n7,1,2\n", ("7",), ("2001", "2002"), [[1, 2]]),
            ("a\n1\n2\n", (), ("a",), [[1], [2]]),
            ("5\n", (), (), [[5]]),
            ("\n\na,b\n\n1, 2\n\n", (), ("a", "b"), [[1, 2]]),
            ("\ufeffa;b\n1,5;2e1\n", (), ("a", "b"), [[1.5, 20]]),
        ],
    )
    def test_what_is_a_name(self, tmp_path, text, rows, columns, matrix):
        (tmp_path / "m.csv").write_text(text, encoding="utf-8")
        data = read_matrix(tmp_path / "m.csv")
        np.testing.assert_array_equal(data.matrix, matrix)
        assert (data.row_names, data.column_names) == (rows, columns)

    def test_header_can_be_told(self, tmp_path):
        (tmp_path / "m.csv").write_text("2001,2002\n1,2\n", encoding="utf-8")
        assert read_matrix(tmp_path / "m.csv").matrix.shape == (2, 2)
        data = read_matrix(tmp_path / "m.csv", header=True)
        assert (data.column_names, data.matrix.tolist()) == (("2001", "2002"), [[1.0, 2.0]])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("\n \n", "is empty"),
            ("a,b\n", "has a header and no rows"),
            ("a,b\n1,2\n3\n", "row 1 must have 2 cells like the first; got 1"),
            ("a,b,c,d\n1,2\n", "header must have 2 cells like the rows; got 4"),
            ("a,b\n1,2\n3,\n", "cells must be numbers; the cell is empty at row 1, column 1"),
            ("a,b\n1,2\n3,x\n", "cells must be numbers; got 'x' at row 1, column 1"),
            ("a,b\n1,-2\n", "must be nonnegative; got -2.0 at row 0, column 1"),
            ("a,b\n1,nan\n", "must be finite; got NaN at row 0, column 1"),
            ("x\ny\nz\n", "at least one row and one column"),
        ],
    )
    def test_damaged(self, tmp_path, text, message):
        (tmp_path / "m.csv").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message) as raised:
            read_matrix(tmp_path / "m.csv")
        assert str(raised.value).startswith(str(tmp_path / "m.csv"))

    def test_encoding(self, tmp_path):
        path = tmp_path / "m.csv"
        path.write_bytes("é,b\n1,2\n".encode("latin-1"))
        with pytest.raises(FileError, match=r"is not text in utf-8 \(byte 0xe9\)"):
            read_matrix(path)
        assert read_matrix(path, encoding="latin-1").column_names == ("é", "b")

    @pytest.mark.parametrize("index", ["names", "numbers", "none"])
    def test_parquet(self, tmp_path, index):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.DataFrame(MATRIX, columns=list(COLUMNS))
        if index == "names":
            frame.index = pandas.Index(ROWS, name="who")
        elif index == "numbers":
            frame.index = [10, 20, 30, 40]
        frame.to_parquet(tmp_path / "m.parquet")
        data = read_matrix(tmp_path / "m.parquet")
        np.testing.assert_array_equal(data.matrix, MATRIX)
        assert data.column_names == COLUMNS
        assert data.row_names == {"names": ROWS, "numbers": ("10", "20", "30", "40"), "none": ()}[index]

    def test_parquet_with_too_many_names_or_gaps(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame({"a": ["x"], "b": ["y"], "c": [1]}).to_parquet(tmp_path / "m.parquet")
        with pytest.raises(FileError, match=r"at most one column may hold names; got a, b\."):
            read_matrix(tmp_path / "m.parquet")
        pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64")}).to_parquet(tmp_path / "gaps.parquet")
        with pytest.raises(ValueError, match="got NaN at row 1, column 0"):
            read_matrix(tmp_path / "gaps.parquet")

    @pytest.mark.filterwarnings("ignore")  # those of anndata itself
    def test_h5ad(self, tmp_path):
        anndata = pytest.importorskip("anndata")
        data = anndata.AnnData(sp.csr_matrix(MATRIX), layers={"double": 2 * MATRIX})
        data.obs_names, data.var_names = list("abcd"), list("xyz")
        if hasattr(anndata, "settings"):
            anndata.settings.allow_write_nullable_strings = True  # what names are in a recent pandas
        data.write_h5ad(tmp_path / "m.h5ad")
        read = read_matrix(tmp_path / "m.h5ad")
        np.testing.assert_array_equal(dense(read), MATRIX)
        assert (read.row_names, read.column_names) == (("a", "b", "c", "d"), ("x", "y", "z"))
        np.testing.assert_array_equal(dense(read_matrix(tmp_path / "m.h5ad", key="double")), 2 * MATRIX)
        with pytest.raises(FileError, match=r"no layer 'none'; got double\."):
            read_matrix(tmp_path / "m.h5ad", key="none")

    def test_h5ad_asks_anndata_for_matrix_and_names(self, tmp_path, monkeypatch):
        """With a stand-in, so that it is tested also where anndata is not installed."""
        found = SimpleNamespace(X=MATRIX, layers={}, obs_names=list("abcd"), var_names=list("xyz"))
        monkeypatch.setitem(sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda path: found))
        (tmp_path / "m.h5ad").touch()
        data = read_matrix(tmp_path / "m.h5ad")
        assert (data.row_names, data.column_names) == (tuple("abcd"), tuple("xyz"))

    def test_missing_library_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "anndata", None)
        (tmp_path / "m.h5ad").touch()
        with pytest.raises(ModuleNotFoundError, match="needs anndata; pip install"):
            read_matrix(tmp_path / "m.h5ad")


class TestDocuments:
    TEXTS = ("The cat sat.", "A cat and a dog.", "Dog eats <script>alert(1)</script>, dog!", "")

    def test_one_a_line(self, tmp_path):
        (tmp_path / "m.txt").write_text("\n".join(self.TEXTS), encoding="utf-8")
        data = read_matrix(tmp_path / "m.txt")
        assert data.column_names == ("cat", "dog")
        np.testing.assert_array_equal(dense(data), [[1, 0], [1, 1], [0, 2]])
        assert data.row_names[1] == "2: A cat and a dog."
        assert (data.row_kind, data.column_kind) == ("document", "word")
        everything = read_matrix(tmp_path / "m.txt", stop_words=None, min_documents=1)
        assert {"the", "sat", "script", "alert"} <= set(everything.column_names)

    def test_long_lines_have_short_names(self, tmp_path):
        (tmp_path / "m.txt").write_text("word " * 100 + "\nword\n", encoding="utf-8")
        assert [len(name) for name in read_matrix(tmp_path / "m.txt").row_names] == [3 + 60, 3 + 4]

    def test_one_a_file(self, tmp_path):
        folder = tmp_path / "texts"
        (folder / "sub").mkdir(parents=True)
        for name, text in zip(("b.txt", "a.md", "sub/c.txt", ".hidden.txt"), self.TEXTS, strict=True):
            (folder / name).write_text(text, encoding="utf-8")
        data = read_matrix(folder)
        assert data.row_names == ("a", "b", "sub/c")
        np.testing.assert_array_equal(dense(data), [[1, 1], [1, 0], [0, 2]])

    @pytest.mark.parametrize(("text", "message"), [("", "holds no documents"), ("the\na\n", "no word is left of 2")])
    def test_nothing_to_count(self, tmp_path, text, message):
        (tmp_path / "m.txt").write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=message):
            read_matrix(tmp_path / "m.txt")

    def test_encoding(self, tmp_path):
        (tmp_path / "m.txt").write_bytes("café\ncafé\n".encode("latin-1"))
        with pytest.raises(FileError, match="is not text in utf-8"):
            read_matrix(tmp_path / "m.txt")
        assert read_matrix(tmp_path / "m.txt", encoding="latin-1").column_names == ("café",)

    def test_options_are_checked(self, tmp_path):
        (tmp_path / "m.txt").write_text("a", encoding="utf-8")
        with pytest.raises(ValueError, match="stop_words must be 'english' or None; got 'german'"):
            read_matrix(tmp_path / "m.txt", stop_words="german")
        with pytest.raises(ValueError, match="min_documents must be an integer of at least 1; got 0"):
            read_matrix(tmp_path / "m.txt", min_documents=0)


class TestImages:
    @pytest.fixture
    def pillow(self):
        return pytest.importorskip("PIL.Image")

    def test_grey_and_colour(self, tmp_path, pillow):
        grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
        pillow.fromarray(grey).save(tmp_path / "b.png")
        pillow.fromarray(np.dstack([grey] * 3)).save(tmp_path / "a.png")
        pillow.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "c.png")
        (tmp_path / "about.json").write_text("{}", encoding="utf-8")
        data = read_matrix(tmp_path)
        np.testing.assert_allclose(data.matrix, np.tile(grey.ravel() / 255, (3, 1)))
        assert (data.row_names, data.image_shape) == (("a.png", "b.png", "c.png"), (3, 4))
        assert data.column_name(5) == "(1, 1)"

    def test_sizes_must_agree_or_be_given(self, tmp_path, pillow):
        pillow.fromarray(np.zeros((3, 4), dtype=np.uint8)).save(tmp_path / "a.png")
        pillow.fromarray(np.full((6, 8), 51, dtype=np.uint8)).save(tmp_path / "b.png")
        with pytest.raises(FileError, match=r"one size, here 3 x 4 as a\.png has; got 6 x 8"):
            read_matrix(tmp_path)
        data = read_matrix(tmp_path, image_shape=(2, 5))
        np.testing.assert_allclose(data.matrix, [[0] * 10, [0.2] * 10])
        assert data.image_shape == (2, 5)

    def test_damaged(self, tmp_path, pillow):
        pillow.fromarray(np.random.default_rng(0).integers(0, 255, (30, 30), dtype=np.uint8)).save(tmp_path / "a.png")
        whole = (tmp_path / "a.png").read_bytes()
        (tmp_path / "a.png").write_bytes(whole[:200])
        with pytest.raises(FileError, match="cannot be read as an image"):
            read_matrix(tmp_path)


class TestWhichFormat:
    def test_folders(self, tmp_path):
        with pytest.raises(FileError, match="holds neither images"):
            read_matrix(tmp_path)
        (tmp_path / "a.txt").write_text("cat", encoding="utf-8")
        (tmp_path / "a.png").write_bytes(b"")
        with pytest.raises(FileError, match="name the format, images or text"):
            read_matrix(tmp_path)
        assert read_matrix(tmp_path, format="text").column_names == ("cat",)
        with pytest.raises(FileError, match="a folder is read as images or text; got format csv"):
            read_matrix(tmp_path, format="csv")

    def test_unknown(self, tmp_path):
        (tmp_path / "m.xyz").write_text("1,2\n", encoding="utf-8")
        with pytest.raises(FileError, match=r"ending must be one of \.npz.*got \.xyz\."):
            read_matrix(tmp_path / "m.xyz")
        assert read_matrix(tmp_path / "m.xyz", format="csv").matrix.tolist() == [[1.0, 2.0]]
        with pytest.raises(ValueError, match=r"format must be one of npz, .*; got 'xyz'\."):
            read_matrix(tmp_path / "m.xyz", format="xyz")
        with pytest.raises(FileNotFoundError):
            read_matrix(tmp_path / "none.csv")
        with pytest.raises(FileError, match="images are read from a folder"):
            read_matrix(tmp_path / "m.xyz", format="images")

    @pytest.mark.parametrize("format", sorted(set(FORMATS) - {"h5ad", "images", "text", "csv", "tsv"}))
    @pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"PK\x03\x04 truncated"])
    def test_not_what_it_says(self, tmp_path, format, content):
        path = tmp_path / f"m.{format}"
        path.write_bytes(content)
        with pytest.raises(FileError) as raised:
            read_matrix(path)
        assert str(raised.value).startswith(str(path))

    @pytest.mark.parametrize("ending", ["npy", "npz", "mat", "mtx", "mtx.gz", "parquet"])
    def test_truncated(self, tmp_path, ending):
        matrix = np.random.default_rng(0).random((40, 30))
        path = tmp_path / f"m.{ending}"
        stream = io.BytesIO()
        if ending == "parquet":
            pytest.importorskip("pandas").DataFrame(matrix, columns=list(map(str, range(30)))).to_parquet(stream)
        else:
            {"npy": np.save, "npz": np.savez, "mtx": scipy.io.mmwrite, "mtx.gz": scipy.io.mmwrite}.get(
                ending, lambda stream, m: scipy.io.savemat(stream, {"m": m})
            )(stream, matrix)
        whole = gzip.compress(stream.getvalue()) if ending.endswith("gz") else stream.getvalue()
        path.write_bytes(whole)
        np.testing.assert_allclose(read_matrix(path).matrix, matrix)
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FileError) as raised:
            read_matrix(path)
        assert str(raised.value).startswith(str(path))


class TestStandardInput:
    def test_streams(self, monkeypatch):
        stream = io.BytesIO()
        scipy.io.mmwrite(stream, MATRIX, precision=17)
        for format, content in (
            ("csv", as_table().encode()),
            ("tsv", as_table("\t").encode()),
            ("mtx", stream.getvalue()),
            ("cluto", as_cluto().encode()),
        ):
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
            data = read_matrix("-", format=format)
            np.testing.assert_array_equal(dense(data), MATRIX)
            assert data.source == "standard input"

    def test_needs_a_format_that_can_be_streamed(self):
        assert STREAMED_FORMATS == ("mtx", "cluto", "csv", "tsv", "text")
        with pytest.raises(ValueError, match="for standard input; got none"):
            read_matrix("-")
        with pytest.raises(ValueError, match="for standard input; got npz"):
            read_matrix("-", format="npz")


class TestNames:
    def test_names_from_files(self, tmp_path):
        np.save(tmp_path / "m.npy", MATRIX)
        (tmp_path / "rows").write_text("\n".join(ROWS) + "\n", encoding="utf-8")
        (tmp_path / "columns").write_text("x\r\n\r\nz", encoding="utf-8", newline="")
        data = read_matrix(tmp_path / "m.npy", rows=tmp_path / "rows", columns=tmp_path / "columns")
        assert data.row_names == ROWS
        assert [data.column_name(j) for j in range(3)] == ["x", "column 1", "z"]

    def test_wrong_number(self, tmp_path):
        np.save(tmp_path / "m.npy", MATRIX)
        (tmp_path / "rows").write_text("a\nb\n", encoding="utf-8")
        with pytest.raises(FileError, match=r"one name per line for 4 rows; got 2\."):
            read_matrix(tmp_path / "m.npy", rows=tmp_path / "rows")
        with pytest.raises(ValueError, match=r"row_names must have one name for each of the 4 rows; got 2 names\."):
            LabelledMatrix(MATRIX, ("a", "b"))
        with pytest.raises(ValueError, match="as many pixels as the matrix has columns, 3; got 2 x 2"):
            LabelledMatrix(MATRIX, image_shape=(2, 2))

    def test_not_text(self, tmp_path):
        np.save(tmp_path / "m.npy", MATRIX)
        (tmp_path / "rows").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(FileError, match="is not text in utf-8"):
            read_matrix(tmp_path / "m.npy", rows=tmp_path / "rows")

    def test_names_that_are_json(self, tmp_path):
        """Names are text, whatever they look like."""
        name = json.dumps({"a": [1]})
        (tmp_path / "m.csv").write_text(f"{quoted(name)},b\n1,2\n", encoding="utf-8")
        assert read_matrix(tmp_path / "m.csv").column_names == (name, "b")


@pytest.mark.parametrize("end", ["e", "E", "+", "-", "2e", "2e-"])
def test_a_matrix_market_file_that_ends_in_the_middle_of_a_number(tmp_path, end):
    """SciPy's parser reads on after the end of the file, which can end the process."""
    path = tmp_path / "m.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 0.5\n3 2 {end}", encoding="utf-8")
    with pytest.raises(FileError, match="ends in the middle of a number"):
        read_matrix(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_elements_of_a_matlab_file_are_checked_before_they_are_read(tmp_path, compressed):
    """SciPy's reader trusts the types of elements, and an unknown one can end the process."""
    path = tmp_path / "m.mat"
    variables = {"M": np.eye(3), "S": sp.csc_array(np.eye(3)), "c": {"a": [1.0, 2.0], "b": "word"}}
    scipy.io.savemat(path, variables, do_compression=compressed)
    for key in ("M", "S"):
        np.testing.assert_array_equal(dense(read_matrix(path, key=key)), np.eye(3))
    damaged = bytearray(path.read_bytes())
    damaged[129] ^= 0xFF  # in the type of the first element
    path.write_bytes(damaged)
    with pytest.raises(FileError, match="cannot be read as a MATLAB file: an element has the unknown type"):
        read_matrix(path)


@pytest.mark.parametrize("end", ["", " ", "\n", "\t\r\n", " \n\n"])
def test_matrix_market_files_may_end_as_they_like(tmp_path, end):
    path = tmp_path / "m.mtx"
    path.write_text(f"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4{end}", newline="", encoding="utf-8")
    assert read_matrix(path).matrix.tolist() == [[1.0, 3.0], [2.0, 4.0]]


class TestDataFrames:
    """`read_table` gives the cells of tables with named columns, for applications to choose from."""

    FRAME = pd.DataFrame({"name": ["ä, b", "c\nd", ""], "size": ["1", "22", "3"]})

    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
    def test_delimited_text(self, tmp_path, separator, encoding):
        path = tmp_path / "t.csv"
        self.FRAME.to_csv(path, index=False, sep=separator, encoding=encoding)
        found = read_table(path, "tsv" if separator == "\t" else "csv", encoding=encoding.removesuffix("-sig"))
        assert found.to_dict("list") == self.FRAME.to_dict("list")

    def test_json_lines(self, tmp_path):
        (tmp_path / "t.jsonl").write_text('{"a": 1, "b": "x"}\n\n{"a": null, "c": [2]}\n', encoding="utf-8")
        found = read_table(tmp_path / "t.jsonl", "jsonl")
        assert found.columns.tolist() == ["a", "b", "c"]
        assert found.loc[0, "a"] == 1
        assert found.isna().to_numpy().tolist() == [[False, False, True], [True, True, False]]

    def test_parquet(self, tmp_path):
        self.FRAME.to_parquet(tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet", "parquet").to_dict("list") == self.FRAME.to_dict("list")

    @pytest.mark.parametrize(
        ("format", "text", "message"),
        [
            ("csv", "a,b\n1,2\n3\n", "row 2 must have 2 cells like the header; got 1"),
            ("csv", "a,b\n1,2,3\n", "row 1 must have 2 cells like the header; got 3"),
            ("jsonl", '{"a": 1}\n{"a": \n', "line 2 is not JSON: Expecting value at character"),
            ("jsonl", "\n[1, 2]\n", r"line 2 must be a JSON object, such as .*; got '\[1, 2\]'"),
            ("parquet", "no parquet", "cannot be read as a Parquet file"),
        ],
    )
    def test_damaged(self, tmp_path, format, text, message):
        path = tmp_path / "t"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=message) as raised:
            read_table(path, format)
        assert str(raised.value).startswith(str(path))

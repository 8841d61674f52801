"""Objects of other libraries are recognised without importing them, and refused at once."""

import array
from functools import partial

import numpy as np
import pytest

import gsnmf
from gsnmf.matrix.validation import is_anndata, refuse_foreign


def stand_in(library, name, *bases):
    """An object of a type that looks as if it came from a library."""
    return type(name, bases, {"__module__": f"{library}._core.part", "__len__": lambda self: 10**9})()


class Endless:
    """What `numpy.asarray` would walk through for minutes."""

    def __len__(self):
        return 10**9

    def __getitem__(self, position):
        raise AssertionError("nobody may ask for items")


class TestAnnData:
    def test_is_recognised_by_the_name_of_its_type(self):
        data = stand_in("anndata", "AnnData")
        derived = type("Mine", (type(data),), {"__module__": "mine"})()
        assert is_anndata(data)
        assert is_anndata(derived)
        assert not is_anndata(stand_in("other", "AnnData"))
        assert not is_anndata(np.eye(2))

    @pytest.mark.parametrize("derived", [False, True])
    def test_says_what_to_call(self, derived):
        data = stand_in("anndata", "AnnData")
        data = type("Mine", (type(data),), {"__module__": "mine"})() if derived else data
        with pytest.raises(TypeError, match=r"X is of type AnnData; call gsnmf\.applications\.markers.*X\.layers"):
            refuse_foreign(data, name="X")

    def test_a_real_one(self):
        anndata = pytest.importorskip("anndata")
        data = anndata.AnnData(np.eye(3, dtype=np.float32))
        assert is_anndata(data)
        with pytest.raises(TypeError, match="AnnData; call"):
            refuse_foreign(data)


@pytest.mark.parametrize(
    ("library", "name", "remedy"),
    [
        ("mudata", "MuData", r"matrix\.mod\[...\]\.X"),
        ("xarray", "Dataset", r"matrix\[...\]\.values"),
        ("h5py", "File", r"matrix\[...\]\[:\]"),
        ("pyarrow", "Table", r"matrix\.to_pandas\(\)"),
    ],
)
def test_known_types_get_a_remedy(library, name, remedy):
    with pytest.raises(TypeError, match=remedy):
        refuse_foreign(stand_in(library, name))


@pytest.mark.parametrize(
    "value", [Endless(), {1, 2}, {"a": [1]}, object(), (n for n in range(3)), [Endless()], [[1], {2}]]
)
def test_unknown_objects_fail_at_once(value):
    with pytest.raises(TypeError, match="must be"):
        refuse_foreign(value)


@pytest.mark.parametrize("value", [Endless(), stand_in("anndata", "AnnData"), {1, 2}, [Endless()]])
def test_no_entrance_walks_through_them(value):
    model = gsnmf.GSNMF(2).fit(np.eye(3))
    selector = gsnmf.GSNMFSelector(2)
    functions = gsnmf.factorize, gsnmf.select, gsnmf.rank_path, gsnmf.nmf.hals, gsnmf.applications.unmix
    calls = [partial(function, value, 2) for function in functions]
    methods = model.fit, model.fit_transform, model.transform, model.predict, selector.fit, gsnmf.choose_rank
    calls += [partial(method, value) for method in methods]
    for call in calls:
        with pytest.raises(TypeError, match=r"must be|is of type"):
            call()


def test_what_numpy_converts_is_allowed():
    pandas = pytest.importorskip("pandas")
    allowed = (
        [[1, 2]],
        ((1.0,),),
        np.eye(2),
        [np.ones(2)],
        pandas.DataFrame({"a": [1]}),
        range(3),
        array.array("d"),
        3,
    )
    for value in allowed:
        assert refuse_foreign(value) is None

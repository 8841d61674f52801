"""Tables 3 and 4, figures 7 to 14: four collections of face images, pixels x faces, columns that sum to one.

The tables compare quality and times. The figures show which pixels and faces are chosen, and sample images with their
approximations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gsnmf.support.arrays import Floats
from gsnmf.support.formatting import counted
from reproduction import tables
from reproduction.matrices import PaperMatrix, load
from reproduction.methods import LABELS, run_method
from reproduction.pictures import montage, picture, show_image, stretched
from reproduction.published import COLUMNS, FACE_NAMES, SELECTING, published
from reproduction.report import Claim, Figure, Section, Table
from reproduction.study import Key, Measurement, Results, Settings, Study

_QUICK = ("CBCL", "ORL")
_CLOSE = 0.5
"""Percent within which two qualities are called very close."""


def _present(part: str, results: Results) -> Section:
    found = tables.entries(results.table)
    names = tables.shown_names(FACE_NAMES, found, results.missing)
    if part == "face-times":
        return Section(
            title="Table 4: times on the facial image data sets",
            text=tables.missing_text(results.missing),
            tables=[_time_table(names, found)],
            claims=_time_claims(found),
        )
    return Section(
        title="Table 3: facial image data sets",
        text=[*tables.stand_in_text(names), *tables.missing_text(results.missing)],
        tables=[tables.quality_table(names, found, "(pixels, faces)"), tables.comparison_table(names, found)],
        claims=_claims(found),
    )


def _time_table(names: list[str], found: tables.Entries) -> Table:
    rows = []
    for name in names:
        times = published(name).seconds
        cells = [name]
        for method in tables.METHODS:
            entry = found.get((name, method))
            ours = f"{entry.seconds:.3f}" if entry else "missing"
            cells.append(f"{ours} (paper {times[method]:g})" if method in times else ours)
        rows.append(cells)
    caption = (
        "Seconds on one thread, while other trials ran on the other cores; GS-FGM includes all ten values of lambda."
        " The paper's times are for Matlab on a 2.2 GHz laptop processor; it does not say whether they include all "
        "ten values."
    )
    return Table(("data set", *(LABELS[method] for method in tables.METHODS)), rows, caption)


def _claims(found: tables.Entries) -> list[Claim]:
    names = tables.complete_names(FACE_NAMES, found, COLUMNS)
    if not names:
        return []
    gains = {name: found[name, "gs-fgm"].quality - found[name, "gspa"].quality for name in names}
    rows = {name: found[name, "spa-rows"].quality - found[name, "gs-fgm"].quality for name in names}
    expected = {"CBCL": True, "ORL": True, "Frey": False, "Yale": False}
    claims = [
        Claim("GS-FGM outperforms GSPA on all data sets", min(gains.values()) > 0, _differences(gains)),
        Claim(
            "SPA-R is better than GS-FGM on CBCL and ORL, and worse on Frey and Yale",
            all((margin > 0) == expected[name] for name, margin in rows.items()) if len(names) == 4 else None,
            _differences(rows),
        ),
        tables.lower_errors(found, names),
    ]
    if "Yale" in names:
        claims.insert(2, _yale(found))
    if "Frey" in names:
        claims.insert(2, _frey(rows["Frey"]))
    return claims


def _yale(found: tables.Entries) -> Claim:
    margin = found["Yale", "gs-fgm"].quality - max(
        found["Yale", method].quality for method in SELECTING if method != "gs-fgm"
    )
    statement = f"On Yale, GS-FGM is significantly better than all other selections (by {tables.SIGNIFICANT:g} points)"
    return Claim(statement, margin > tables.SIGNIFICANT, f"{margin:+.2f}")


def _frey(margin: float) -> Claim:
    statement = f"On Frey, rows alone (SPA-R) are very close to GS-FGM (within {_CLOSE:g} points)"
    return Claim(statement, abs(margin) <= _CLOSE, f"{margin:+.2f}")


def _time_claims(found: tables.Entries) -> list[Claim]:
    names = tables.complete_names(FACE_NAMES, found, SELECTING)
    if not names:
        return []
    slowest = all(
        found[name, "gs-fgm"].seconds >= max(found[name, method].seconds for method in SELECTING) for name in names
    )
    seconds = {name: found[name, "gs-fgm"].seconds for name in names}
    listed = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    longest = max(seconds, key=lambda name: seconds[name])
    return [
        Claim("GS-FGM is the slowest of the selections", slowest, listed),
        Claim("GS-FGM takes longest on Yale", longest == "Yale" if len(names) == 4 else None, listed),
    ]


def _differences(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:+.2f}" for name, value in values.items())


_DRAWN = ("gs-fgm", "auto")
_N_SAMPLES = 8
_MAP_WIDTH, _SHEET_WIDTH = 1.6, 5.2
"""Inches."""
_MARK = (0.835, 0.369, 0.0)
_NEGATIVE = ("CBCL", "Frey")
"""Large values are dark in these, as in the paper."""


def _collections(settings: Settings) -> tuple[str, ...]:
    return FACE_NAMES[:1] if settings.quick else FACE_NAMES


def _measure_pictures(key: Key, settings: Settings) -> Measurement:
    data, method = load(key[0], folder=settings.data), key[1]
    outcome = run_method(data.matrix, method, data.rank)
    r1 = outcome.columns.size
    matrix = np.asarray(data.matrix)
    samples = np.linspace(0, matrix.shape[1] - 1, _N_SAMPLES).round().astype(np.intp)
    pixels = np.zeros((matrix.shape[0], 1))
    pixels[outcome.rows] = 1.0
    arrays = {
        "mean": _images(data, matrix.mean(axis=1, keepdims=True)),
        "pixels": _images(data, pixels),
        "faces": _images(data, matrix[:, outcome.columns]),
        "originals": _images(data, matrix[:, samples]),
        "by_faces": _images(data, outcome.W[:, :r1] @ outcome.H[:r1][:, samples]),
        "by_pixels": _images(data, outcome.W[:, r1:] @ outcome.H[r1:][:, samples]),
    }
    record = {"dataset": data.name, "method": method, "quality": 100 * (1 - outcome.relative_error)}
    return Measurement([record | {"n_pixels": outcome.rows.size, "n_faces": r1}], arrays)


def _images(data: PaperMatrix, columns: Floats) -> Floats:
    """Columns of pixels as images: count x height x width."""
    assert data.image_shape is not None
    if columns.shape[1] == 0:
        return np.zeros((0, *data.image_shape))
    return np.stack([column.reshape(data.image_shape, order=data.image_order) for column in columns.T])


def _present_pictures(part: str, results: Results) -> Section:
    selections = part == "face-selections"
    first = 7 if selections else 8
    figures = []
    for name, method in [(name, method) for name in FACE_NAMES for method in _DRAWN]:
        if (name, method) not in results.arrays:
            continue
        arrays = dict(results.arrays[name, method])
        record = results.table.query("dataset == @name and method == @method").iloc[0]
        if name in _NEGATIVE:
            arrays = {key: value if key == "pixels" else -value for key, value in arrays.items()}
        stem = f"{part}-{name.lower()}-{method}"
        number = first + 2 * FACE_NAMES.index(name)
        heading = f"Figure {number} ({name}, {LABELS[method]})" if method == "gs-fgm" else f"{name}, {LABELS[method]}"
        quality = f"quality {record['quality']:.2f} %"
        if selections:
            _draw_selection(stem, arrays, results)
            pixels, faces = counted(record["n_pixels"], "chosen pixel"), counted(record["n_faces"], "chosen face")
            caption = f"{heading}: {pixels} on the mean face, and {faces}; {quality}."
            if method == "gs-fgm":
                caption += " The paper has {} pixels and {} faces.".format(*published(name).sizes["gs-fgm"])
        else:
            _draw_reconstruction(stem, arrays, name in _NEGATIVE, results)
            caption = f"{heading}: images, the parts explained by faces and by pixels, and their sum; {quality}."
        figures.append(Figure(stem, caption, of_data=True))
    subject = "chosen pixels and faces" if selections else "images and their approximations"
    return Section(
        title=f"Figures {first}, {first + 2}, {first + 4}, {first + 6}: {subject}",
        text=tables.missing_text(results.missing),
        figures=figures,
    )


def _draw_selection(stem: str, arrays: dict[str, Floats], results: Results) -> None:
    faces = list(arrays["faces"])
    height, width = arrays["mean"].shape[1:]
    n_columns = _sheet_columns(len(faces), height / width)
    marked = np.repeat(stretched(arrays["mean"][0])[:, :, np.newaxis], 3, axis=2)
    marked[arrays["pixels"][0] > 0] = _MARK
    n_rows = -(-len(faces) // n_columns)
    map_height, sheet_height = _MAP_WIDTH * height / width, _SHEET_WIDTH * n_rows * height / (n_columns * width)
    size = (_MAP_WIDTH + _SHEET_WIDTH + 0.3, max(map_height, sheet_height) + 0.35)
    ratios = {"width_ratios": [_MAP_WIDTH, _SHEET_WIDTH]}
    with picture(results.out, stem, size, ncols=2, gridspec_kw=ratios) as (_, grid):
        show_image(grid[0, 0], marked, f"{int(arrays['pixels'].sum())} pixels")
        grid[0, 1].set_axis_off()
        if faces:
            show_image(grid[0, 1], montage(faces, n_columns), vmin=0, vmax=1)
        grid[0, 1].set_title(f"{len(faces) or 'no'} faces", fontweight="normal", fontsize=8, loc="center")


def _sheet_columns(count: int, ratio: float) -> int:
    """How many faces to put in a row so that the sheet of faces is about as high as the map of pixels."""

    def fault(n: int) -> float:
        height = _SHEET_WIDTH * ratio * -(-count // n) / n
        empty = -count % n / n
        return abs(height - 1.2 * _MAP_WIDTH * ratio) + 2.0 * empty

    return min(range(1, 15), key=fault)


def _draw_reconstruction(stem: str, arrays: dict[str, Floats], negative: bool, results: Results) -> None:
    parts = {
        "images": arrays["originals"],
        "by faces": arrays["by_faces"],
        "by pixels": arrays["by_pixels"],
        "sum": arrays["by_faces"] + arrays["by_pixels"],
    }
    count = len(arrays["originals"])
    height, width = arrays["mean"].shape[1:]
    size = (6.6, 6.6 * 4 * height / (count * width) + 0.2)
    with picture(results.out, stem, size, nrows=4, ncols=count) as (_, grid):
        for row, (label, images) in zip(grid, parts.items(), strict=True):
            for axes, image, original in zip(row, images, arrays["originals"], strict=True):
                low, high = (original.min(), 0.0) if negative else (0.0, original.max())
                axes.imshow(image, cmap="gray", vmin=low, vmax=high)
                axes.set(xticks=[], yticks=[])
                axes.grid(False)
                axes.spines[:].set_visible(False)
            row[0].set_ylabel(label)


STUDIES = (
    tables.table_study(
        "faces",
        {
            "faces": "table 3: quality on four facial image data sets",
            "face-times": "table 4: times on the facial image data sets",
        },
        FACE_NAMES,
        _QUICK,
        _present,
        preselected=False,
    ),
    Study(
        name="face-pictures",
        parts={
            "face-selections": "figures 7, 9, 11, 13: pixels and faces that are chosen",
            "face-reconstructions": "figures 8, 10, 12, 14: faces and their approximations",
        },
        trials=lambda settings: [(name, method) for name in _collections(settings) for method in _DRAWN],
        measure=_measure_pictures,
        present=_present_pictures,
        datasets=_collections,
    ),
)

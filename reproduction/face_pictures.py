"""Figures 7 to 14: the pixels and faces that GS-FGM chooses, and what it makes of sample images."""

from __future__ import annotations

import numpy as np

from gsnmf.support.arrays import Floats
from gsnmf.support.formatting import counted
from reproduction._figures import montage, picture, show_image, stretched
from reproduction._methods import LABELS, run_method
from reproduction._study import Figure, Key, Measurement, Results, Section, Settings, Study
from reproduction._tables import at_hand, missing_text, not_at_hand
from reproduction.matrices import PaperMatrix, paper_matrix
from reproduction.published import FACE_NAMES, published

_QUICK = ("CBCL",)
_COLUMNS = ("dataset", "method", "n_pixels", "n_faces", "quality")
_METHODS = ("gs-fgm", "auto")
_N_SAMPLES = 8
_MAP_WIDTH, _SHEET_WIDTH = 1.6, 5.2
"""Inches."""
_MARK = (0.835, 0.369, 0.0)
_NEGATIVE = ("CBCL", "Frey")
"""Large values are dark in these, as in the paper."""


def _names(settings: Settings) -> tuple[str, ...]:
    return _QUICK if settings.quick else FACE_NAMES


def _trials(settings: Settings) -> list[Key]:
    return [(name, method) for name in at_hand(_names(settings), settings) for method in _METHODS]


def _measure(key: Key, settings: Settings) -> Measurement:
    data, method = paper_matrix(str(key[0]), folder=settings.data), str(key[1])
    outcome = run_method(data.matrix, method, data.rank)
    r1 = outcome.columns.size
    matrix = np.asarray(data.matrix)
    samples = np.linspace(0, matrix.shape[1] - 1, _N_SAMPLES).round().astype(np.intp)
    mean = matrix.mean(axis=1)
    pixels = np.zeros(matrix.shape[0])
    pixels[outcome.rows] = 1.0
    arrays = {
        "mean": _images(data, mean[:, np.newaxis]),
        "pixels": _images(data, pixels[:, np.newaxis]),
        "faces": _images(data, matrix[:, outcome.columns]),
        "originals": _images(data, matrix[:, samples]),
        "by_faces": _images(data, outcome.W[:, :r1] @ outcome.H[:r1][:, samples]),
        "by_pixels": _images(data, outcome.W[:, r1:] @ outcome.H[r1:][:, samples]),
    }
    values = (data.name, method, outcome.rows.size, r1, 100 * (1 - outcome.relative_error))
    return Measurement([dict(zip(_COLUMNS, values, strict=True))], arrays)


def _images(data: PaperMatrix, columns: Floats) -> Floats:
    """Columns of pixels as images: count x height x width."""
    assert data.image_shape is not None
    if columns.shape[1] == 0:
        return np.zeros((0, *data.image_shape))
    return np.stack([column.reshape(data.image_shape, order=data.image_order) for column in columns.T])


def _present(part: str, results: Results) -> Section:
    first = 7 if part == "face-selections" else 8
    figures = []
    for record in results.records:
        name, method = str(record["dataset"]), str(record["method"])
        arrays = dict(results.arrays((name, method)))
        if name in _NEGATIVE:
            arrays = {key: value if key == "pixels" else -value for key, value in arrays.items()}
        stem = f"{part}-{name.lower()}-{method}"
        size = int(record["n_pixels"] or 0), int(record["n_faces"] or 0)
        number = first + 2 * FACE_NAMES.index(name)
        heading = f"Figure {number} ({name}, {LABELS[method]})" if method == "gs-fgm" else f"{name}, {LABELS[method]}"
        quality = f"quality {float(record['quality'] or 0.0):.2f} %"
        if part == "face-selections":
            _draw_selection(stem, arrays, results)
            pixels, faces = counted(size[0], "chosen pixel"), counted(size[1], "chosen face")
            caption = f"{heading}: {pixels} on the mean face, and {faces}; {quality}."
            if method == "gs-fgm":
                caption += " The paper has {} pixels and {} faces.".format(*published(name).sizes["gs-fgm"])
        else:
            _draw_reconstruction(stem, arrays, name in _NEGATIVE, results)
            caption = f"{heading}: images, the parts explained by faces and by pixels, and their sum; {quality}."
        figures.append(Figure(stem, caption, of_data=True))
    subject = "chosen pixels and faces" if part == "face-selections" else "images and their approximations"
    return Section(
        title=f"Figures {first}, {first + 2}, {first + 4}, {first + 6}: {subject}",
        text=missing_text(results.missing),
        figures=sorted(figures, key=lambda figure: _order(figure.name)),
    )


def _order(stem: str) -> tuple[int, bool]:
    name = next(name for name in FACE_NAMES if f"-{name.lower()}-" in stem)
    return FACE_NAMES.index(name), stem.endswith("auto")


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
    with picture(results.out / "figures", stem, size, ncols=2, gridspec_kw=ratios) as (_, grid):
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
    with picture(
        results.out / "figures", stem, (6.6, 6.6 * 4 * height / (count * width) + 0.2), nrows=4, ncols=count
    ) as (
        _,
        grid,
    ):
        for row, (label, images) in zip(grid, parts.items(), strict=True):
            for axes, image, original in zip(row, images, arrays["originals"], strict=True):
                low, high = (original.min(), 0.0) if negative else (0.0, original.max())
                axes.imshow(image, cmap="gray", vmin=low, vmax=high)
                axes.set(xticks=[], yticks=[])
                axes.grid(False)
                axes.spines[:].set_visible(False)
            row[0].set_ylabel(label)


STUDIES = (
    Study(
        name="face-pictures",
        parts={
            "face-selections": "figures 7, 9, 11, 13: pixels and faces that are chosen",
            "face-reconstructions": "figures 8, 10, 12, 14: faces and their approximations",
        },
        columns=_COLUMNS,
        text=("dataset", "method"),
        trials=_trials,
        measure=_measure,
        present=_present,
        missing=lambda settings: not_at_hand(_names(settings), settings),
    ),
)

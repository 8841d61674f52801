"""The figures that the paper prints for its matrices (tables 1, 3 and 4), as they stand there.

Qualities are in percent, one minus the relative error. Sizes are (rows, columns): documents and words in table 1,
pixels and faces in table 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

COLUMNS = ("gspa", "gs-fgm", "spa-both", "spa-columns", "spa-rows", "nmf", "minimum-volume", "svd")
"""Methods in the order of the tables' columns."""

SELECTING = COLUMNS[:5]
"""Those that choose columns or rows."""


@dataclass(frozen=True)
class Published:
    """One line of a table."""

    name: str
    rank: int
    quality: dict[str, float]
    """Percent, by method."""
    sizes: dict[str, tuple[int, int]]
    """(rows, columns) that GSPA and GS-FGM chose."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Times by method; empty for documents, where the paper prints averages only."""

    @property
    def best(self) -> float:
        """Highest quality that the paper prints for a separable or generalized separable method."""
        return max(self.quality[method] for method in SELECTING)


_Line = tuple[int, tuple[int, int], tuple[int, int], tuple[float, ...]]

# The paper prints (4, 0) for classic; its other lines are (documents, words), and the qualities of SPA say four words.
_DOCUMENTS: dict[str, _Line] = {
    "NG10": (10, (7, 3), (8, 2), (91.61, 91.64, 91.35, 91.44, 91.49, 92.41, 92.37, 92.46)),
    "TDT30": (30, (7, 23), (4, 26), (14.13, 14.38, 14.03, 14.47, 11.30, 17.69, 17.49, 18.48)),
    "classic": (4, (0, 4), (0, 4), (3.58, 3.58, 3.58, 3.58, 1.48, 5.12, 3.40, 5.20)),
    "reviews": (5, (0, 5), (0, 5), (8.39, 8.39, 8.39, 8.39, 7.69, 13.25, 13.06, 13.48)),
    "sports": (7, (0, 7), (1, 6), (10.49, 10.65, 10.65, 10.49, 5.98, 13.36, 13.21, 13.76)),
    "ohscal": (10, (0, 10), (0, 10), (10.27, 10.27, 10.27, 10.27, 7.03, 11.23, 11.14, 11.49)),
    "k1b": (6, (1, 5), (1, 5), (5.76, 7.07, 5.62, 5.78, 4.54, 9.42, 9.16, 9.62)),
    "la12": (6, (0, 6), (0, 6), (4.79, 4.79, 4.79, 4.79, 3.02, 7.52, 5.96, 7.78)),
    "hitech": (6, (3, 3), (3, 3), (6.43, 6.43, 4.50, 5.77, 4.86, 8.84, 8.08, 8.99)),
    "la1": (6, (1, 5), (2, 4), (5.05, 5.13, 4.51, 5.11, 3.73, 7.83, 6.50, 8.03)),
    "la2": (6, (0, 6), (0, 6), (5.86, 5.86, 5.86, 5.86, 3.90, 8.11, 7.73, 8.35)),
    "tr41": (10, (5, 5), (7, 3), (52.30, 54.90, 53.31, 53.12, 56.03, 57.19, 56.66, 57.74)),
    "tr45": (10, (5, 5), (7, 3), (69.08, 71.94, 68.20, 68.37, 69.55, 76.22, 76.18, 76.36)),
    "tr11": (9, (6, 3), (7, 2), (74.21, 74.27, 72.14, 72.50, 74.74, 76.33, 76.28, 76.44)),
    "tr23": (6, (1, 5), (5, 1), (63.66, 70.70, 68.46, 65.04, 71.32, 72.73, 72.69, 72.86)),
}

_FACES: dict[str, _Line] = {
    "CBCL": (49, (1, 48), (14, 35), (80.73, 83.10, 82.29, 79.44, 84.57, 90.51, 90.50, 91.40)),
    "Frey": (50, (24, 26), (39, 11), (82.46, 83.89, 83.43, 80.61, 83.78, 90.40, 90.41, 91.51)),
    "Yale": (38, (13, 25), (24, 14), (57.52, 68.26, 61.10, 60.24, 62.94, 76.94, 76.85, 79.23)),
    "ORL": (40, (20, 20), (28, 12), (81.38, 82.54, 82.32, 82.23, 83.26, 89.47, 89.49, 90.24)),
}

_FACE_SECONDS: dict[str, tuple[float, ...]] = {
    "CBCL": (1.612, 5.076, 0.075, 0.070, 0.128, 17.52, 307.63, 0.605),
    "Frey": (2.616, 5.387, 0.096, 0.070, 0.090, 23.94, 392.83, 0.603),
    "Yale": (1.387, 35.746, 0.053, 0.048, 0.044, 12.10, 422.49, 0.318),
    "ORL": (0.470, 0.905, 0.017, 0.013, 0.013, 4.62, 159.73, 0.051),
}

DOCUMENT_SECONDS = dict(zip(COLUMNS, (0.091, 1.249, 0.013, 0.008, 0.011, 78.44, 280.41, 0.030), strict=True))
"""Average times of table 1."""

DOCUMENT_NAMES = tuple(_DOCUMENTS)
FACE_NAMES = tuple(_FACES)


def published(name: str) -> Published:
    """The line of a matrix in the paper's tables.

    Examples
    --------
    >>> published("CBCL").sizes["gs-fgm"], published("CBCL").best
    ((14, 35), 84.57)
    """
    lines = _DOCUMENTS | _FACES
    if name not in lines:
        raise ValueError(f"name must be one of {', '.join(lines)}; got {name!r}.")
    rank, gspa, gs_fgm, quality = lines[name]
    seconds = _FACE_SECONDS.get(name)
    return Published(
        name=name,
        rank=rank,
        quality=dict(zip(COLUMNS, quality, strict=True)),
        sizes={"gspa": gspa, "gs-fgm": gs_fgm},
        seconds=dict(zip(COLUMNS, seconds, strict=True)) if seconds else {},
    )

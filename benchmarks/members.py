"""Members: quality with 1, 2, 3, 5 and 10 members per factor next to NMF, and the distance to a planted truth.

The paper's matrices are those at hand (``GSNMF_DATA``), at the paper's rank. All numbers of members come from one run,
which goes from each number to the next. Times are processor time. Unless ``quick``, and if Matplotlib is installed, the
tables are also drawn, in the folder ``members`` of the working directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import gsnmf
from benchmarks._measuring import main, print_table, seconds
from gsnmf.search.effort import Effort
from gsnmf.search.members import refine_members
from gsnmf.support.arrays import Doubles, Floats, RawMatrix
from gsnmf.support.progress import Status, reported
from reproduction.matrices import PAPER_NAMES, data_folder, load, missing_data

_MEMBERS = (1, 2, 3, 5, 10)
_QUICK = ("tr23", "tr11")
_LARGE = 5_000_000
"""Stored entries from which a matrix gets effort "fast"."""
_COPIES = 5
_NOISES = (0.1, 0.2, 0.4)
_SEEDS = 5
_WAYS = ("auto", "smooth-spa-columns")


@dataclass
class _Quality:
    """One matrix: quality in percent by the number of members, seconds until each was found, and NMF in the paper."""

    name: str
    rank: int
    effort: Effort
    nmf: float
    percent: dict[int, float] = field(default_factory=dict)
    spent: dict[int, float] = field(default_factory=dict)

    @property
    def closed(self) -> float:
        """Share of the gap between single members and NMF that three members close."""
        return (self.percent[3] - self.percent[1]) / (self.nmf - self.percent[1])

    def cells(self) -> list[str]:
        """A row of the table."""
        figures = [f"{self.percent[p]:.2f}" for p in _MEMBERS]
        times = f"{self.spent[3] / self.spent[1]:.2f}"
        effort = [str(self.effort), seconds(self.spent[1]), times]
        return [self.name, str(self.rank), *figures, f"{self.nmf:.2f}", f"{100 * self.closed:.0f} %", *effort]


def run(quick: bool = False) -> None:
    """Measure and print; ``quick`` for two small matrices with little effort, two seeds, and no pictures."""
    data_folder()  # says at once if there is no data
    names = _QUICK if quick else PAPER_NAMES
    found: list[_Quality] = []
    header = ["matrix", "rank", *map(str, _MEMBERS), "NMF", "closed by 3", "effort", "time of 1", "time of 3 / of 1"]
    title = "quality in percent by members per factor"
    print_table(title, header, _rows([name for name in names if not missing_data(name)], quick, found))
    angles = planted_angles(2 if quick else _SEEDS)
    title = f"mean angle to the true factors in degrees; each is there {_COPIES} times with noise"
    print_table(title, ["method", "noise", *map(str, _MEMBERS[:4])], _angle_rows(angles))
    if not quick:
        _draw(found, angles)


def _rows(names: Sequence[str], quick: bool, found: list[_Quality]) -> Iterator[list[str]]:
    for name in names:
        data = load(name)
        effort: Effort = "fast" if quick or _n_stored(data.matrix) > _LARGE else "balanced"
        found.append(_quality(_Quality(name, data.rank, effort, data.published["nmf"]), data.matrix))
        yield found[-1].cells()


def _quality(record: _Quality, matrix: RawMatrix) -> _Quality:
    """Fill in quality and time for every number of members up to the largest."""
    began = time.process_time()

    def note(status: Status) -> None:
        members = int(status.message.split()[0])
        record.percent[members], record.spent[members] = 100 * (status.quality or 0.0), time.process_time() - began

    start = gsnmf.factorize(matrix, record.rank, effort=record.effort)
    note(Status("", "1 member", quality=start.quality))
    limits = gsnmf.Constraints().resolve(matrix.shape, record.rank)
    with reported(note):
        last = refine_members(start, max(_MEMBERS), effort=record.effort, limits=limits)
    for members in _MEMBERS:  # an exact fit ends earlier
        record.percent.setdefault(members, 100 * last.quality)
        record.spent.setdefault(members, time.process_time() - began)
    return record


def _n_stored(matrix: RawMatrix) -> int:
    return int(matrix.size if isinstance(matrix, np.ndarray) else matrix.nnz)


def planted_angles(n_seeds: int) -> dict[tuple[str, float], Doubles]:
    """Mean angle between true and found factors by method and noise, for 1, 2, 3 and 5 members."""
    return {
        (method, noise): np.mean([_angles(seed, noise, method) for seed in range(n_seeds)], axis=0)
        for method in _WAYS
        for noise in _NOISES
    }


def _angles(seed: int, noise: float, method: str) -> list[float]:
    rng = np.random.default_rng(seed)
    truth = rng.random((60, 4)) * (rng.random((60, 4)) < 0.6)
    mixing = np.hstack([np.repeat(np.eye(4), _COPIES, axis=1), rng.dirichlet(np.full(4, 0.5), size=60).T])
    clean = truth @ mixing
    matrix = np.maximum(clean + noise * clean.mean() * rng.standard_normal(clean.shape), 0.0)
    rank = (4, 0) if method == "auto" else 4
    return [
        _angle(truth, gsnmf.factorize(matrix, rank, method=method, effort="fast", members=p).W) for p in _MEMBERS[:4]
    ]


def _angle(truth: Doubles, found: Floats) -> float:
    cosines = (truth / np.linalg.norm(truth, axis=0)).T @ (found / np.linalg.norm(found, axis=0))
    return float(np.degrees(np.arccos(np.minimum(cosines.max(axis=1), 1.0))).mean())


def _angle_rows(angles: dict[tuple[str, float], Doubles]) -> Iterator[list[str]]:
    for (method, noise), values in angles.items():
        yield [method, f"{noise:g}", *(f"{value:.2f}" for value in values)]


def _draw(qualities: Sequence[_Quality], angles: dict[tuple[str, float], Doubles]) -> None:
    """Both tables as pictures."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        return
    folder = Path("members")
    folder.mkdir(exist_ok=True)
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.set_prop_cycle(color=plt.colormaps["tab20"].colors)  # type: ignore[attr-defined]
    for record in qualities:
        whole = record.nmf - record.percent[1]
        parts = [100 * (record.percent[p] - record.percent[1]) / whole for p in _MEMBERS]
        axes.plot(range(len(_MEMBERS)), parts, "o-", markersize=4, linewidth=1, label=record.name)
    axes.axhline(100, color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(_MEMBERS)), list(map(str, _MEMBERS)))
    axes.set(xlabel="members per factor", ylabel="part of the way to NMF in percent")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, frameon=False)
    figure.savefig(folder / "quality.png", dpi=150)
    plt.close(figure)
    figure, panels = plt.subplots(1, len(_WAYS), figsize=(7, 3), sharey=True, layout="constrained")
    for panel, method in zip(panels, _WAYS, strict=True):
        for noise in _NOISES:
            panel.plot(_MEMBERS[:4], angles[method, noise], "o-", label=f"noise {noise:g}")
        panel.set(xlabel="members per factor", title=method, xticks=_MEMBERS[:4])
    panels[0].set(ylabel="angle to the truth in degrees", ylim=(0, 1.1 * max(map(max, angles.values()))))
    panels[0].legend(frameon=False)
    figure.savefig(folder / "angle.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main(run)

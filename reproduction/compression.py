"""Property 5: matrices that six rows and columns explain, while rows alone or columns alone need all of them."""

from __future__ import annotations

import numpy as np

from gsnmf.convex import solve_exact
from gsnmf.convex.uniqueness import equilibrate, extreme_columns
from gsnmf.datasets import three_three_separable
from reproduction._figures import BLUE, ORANGE, PURPLE, picture
from reproduction._study import Claim, Figure, Key, Measurement, Results, Section, Settings, Study, Table

_SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96)
_TOLERANCE = 1e-9


def _trials(settings: Settings) -> list[Key]:
    return [(n,) for n in (_SIZES[:5] if settings.quick else _SIZES)]


def _measure(key: Key, settings: Settings) -> Measurement:
    n = int(key[0])
    M = np.asarray(three_three_separable(n, n).matrix, dtype=np.float64)
    scaled = equilibrate(M).matrix
    solution = solve_exact(M)
    return Measurement(
        [
            {
                "n": n,
                "size": M.shape[0],
                "separable": extreme_columns(scaled, _TOLERANCE).size,
                "row_separable": extreme_columns(np.ascontiguousarray(scaled.T), _TOLERANCE).size,
                "generalized": solution.n_selected,
                "proved": solution.proved,
            }
        ]
    )


def _present(part: str, results: Results) -> Section:
    columns = {name: np.array([record[name] for record in results.records], dtype=float) for name in _COLUMNS}
    n, proved = columns["size"], all(record["proved"] for record in results.records)
    with picture(results.out / "figures", part, (5.2, 3.2)) as (_, grid):
        axes = grid[0, 0]
        axes.plot(n, columns["separable"], color=ORANGE, marker="v", label="columns alone")
        axes.plot(n, columns["row_separable"], color=PURPLE, marker=">", linestyle="--", label="rows alone")
        axes.plot(n, columns["generalized"], color=BLUE, marker="o", label="columns and rows")
        axes.set(xlabel="rows and columns of the matrix", ylabel="smallest exact decomposition")
        axes.set_ylim(bottom=0)
        axes.legend()
    constant = bool((columns["generalized"] == 6).all())
    everything = bool((columns["separable"] == n).all() and (columns["row_separable"] == n).all())
    rows = [[f"{int(columns[name][i])}" for name in _COLUMNS[1:5]] for i in range(n.size)]
    return Section(
        title="Property 5: compression",
        figures=[Figure(part, "Size of the smallest exact decompositions of the matrices of Property 5.")],
        tables=[Table(("size", "columns alone", "rows alone", "columns and rows"), rows)],
        claims=[
            Claim(
                "The matrices are (3, 3)-separable at every size",
                constant and proved,
                f"smallest decompositions of {columns['generalized'].min():.0f} to "
                f"{columns['generalized'].max():.0f} columns and rows, {'' if proved else 'not all '}proved smallest",
            ),
            Claim(
                "They need all their columns, or all their rows, if only one kind may be chosen",
                everything,
                f"{columns['separable'].max():.0f} columns and {columns['row_separable'].max():.0f} rows at size "
                f"{n.max():.0f}",
            ),
        ],
    )


_COLUMNS = ("n", "size", "separable", "row_separable", "generalized", "proved")

STUDIES = (
    Study(
        name="compression",
        parts={"compression": "Property 5: size of the smallest separable and generalized decompositions"},
        columns=_COLUMNS,
        text=(),
        trials=_trials,
        measure=_measure,
        present=_present,
    ),
)

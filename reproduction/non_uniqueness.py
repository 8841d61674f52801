r"""Property 9: matrices with two smallest decompositions of different kinds.

.. math:: M = \begin{pmatrix} M_{11} & 0 & M_{13} \\ 0 & M_{22} & M_{23} \\ 0 & 0 & M_{33} \end{pmatrix}, \qquad
    M_{13} = M_{11} X_1 + Y_1 M_{33}, \quad M_{23} = M_{22} X_2 + Y_2 M_{33}

is (r1, r2)-separable by its first r1 columns and last r2 rows, and (r3, r4)-separable by its first r3 columns and last
r4 rows. Which other pairs of the same sum it allows is decided by integer programming.
"""

from __future__ import annotations

import numpy as np

from gsnmf.convex import is_separable, solve_exact
from gsnmf.support.arrays import Doubles
from reproduction._figures import mark_chosen, picture
from reproduction._study import Claim, Figure, Key, Measurement, Record, Results, Section, Settings, Study, Table

_SIZE = 10
_CASES = ((2, 1, 1, 2), (3, 2, 2, 3), (3, 1, 2, 2), (4, 2, 2, 4), (3, 3, 1, 5))
_COLUMNS = ("r1", "r2", "r3", "r4", "n_columns", "n_rows", "separable", "smallest")


def non_unique(r1: int, r2: int, r3: int, r4: int, size: int, rng: np.random.Generator) -> Doubles:
    """A random matrix of the property, ``size`` x ``size``."""
    blocks = {
        (0, 0): rng.random((size - r4, r3)),
        (1, 1): rng.random((r4 - r2, r1 - r3)),
        (2, 2): rng.random((r2, size - r1)),
    }
    for row in (0, 1):
        own = blocks[row, row]
        X, Y = rng.random((own.shape[1], size - r1)), rng.random((own.shape[0], r2))
        blocks[row, 2] = own @ X + Y @ blocks[2, 2]
    heights, widths = (size - r4, r4 - r2, r2), (r3, r1 - r3, size - r1)
    return np.block([[blocks.get((i, j), np.zeros((heights[i], widths[j]))) for j in range(3)] for i in range(3)])


def _trials(settings: Settings) -> list[Key]:
    return list(_CASES[: 2 if settings.quick else None])


def _measure(key: Key, settings: Settings) -> Measurement:
    r1, r2, r3, r4 = map(int, key)
    M = non_unique(r1, r2, r3, r4, _SIZE, np.random.default_rng([9, r1, r2, r3, r4]))
    rank, smallest = r1 + r2, solve_exact(M).n_selected
    records: list[Record] = [
        dict(zip(_COLUMNS, (r1, r2, r3, r4, p, rank - p, is_separable(M, p, rank - p), smallest), strict=True))
        for p in range(rank + 1)
    ]
    return Measurement(records, {"matrix": M})


def _present(part: str, results: Results) -> Section:
    cases: dict[tuple[int, ...], list[Record]] = {}
    for record in results.records:
        cases.setdefault(tuple(int(record[name] or 0) for name in _COLUMNS[:4]), []).append(record)
    rows, holds = [], []
    for case, records in cases.items():
        r1, r2, r3, r4 = case
        pairs = [(int(r["n_columns"] or 0), int(r["n_rows"] or 0)) for r in records if r["separable"]]
        smallest = int(records[0]["smallest"] or 0)
        rows.append([f"({r1}, {r2})", f"({r3}, {r4})", ", ".join(map(str, pairs)), str(smallest)])
        holds.append({(r1, r2), (r3, r4)} <= set(pairs) and smallest == r1 + r2)
    shown = max(cases, key=sum)
    _draw(part, shown, np.asarray(results.arrays(shown)["matrix"]), results)
    return Section(
        title="Property 9: non-unique decompositions",
        figures=[Figure(part, f"One {_SIZE} x {_SIZE} matrix and its two smallest decompositions.")],
        tables=[Table(("(r1, r2)", "(r3, r4)", "all pairs of this sum that decompose it", "smallest r1 + r2"), rows)],
        claims=[
            Claim(
                "The matrices are minimal (r1, r2)-separable and also minimal (r3, r4)-separable",
                all(holds),
                f"proved for {sum(holds)} of {len(holds)} matrices",
            )
        ],
    )


def _draw(name: str, case: tuple[int, ...], M: Doubles, results: Results) -> None:
    with picture(results.out / "figures", name, (6.4, 3.0), ncols=2) as (_, grid):
        for axes, (n_columns, n_rows) in zip(grid[0], (case[:2], case[2:]), strict=True):
            axes.imshow(np.sqrt(M), cmap="Greys")
            axes.set(xticks=[], yticks=[], title=f"{n_columns} columns and {n_rows} rows")
            axes.grid(False)
            axes.spines[:].set_visible(False)
            mark_chosen(axes, M.shape, range(n_columns), range(_SIZE - n_rows, _SIZE))


STUDIES = (
    Study(
        name="non-uniqueness",
        parts={"non-uniqueness": "Property 9: matrices with several smallest decompositions"},
        columns=_COLUMNS,
        text=(),
        trials=_trials,
        measure=_measure,
        present=_present,
    ),
)

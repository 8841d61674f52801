r"""What the paper proves, on examples: properties 5 and 9, and example 1.

Property 5: matrices that six rows and columns explain, while rows alone or columns alone need all of them.

Property 9: matrices with two smallest decompositions of different kinds.

.. math:: M = \begin{pmatrix} M_{11} & 0 & M_{13} \\ 0 & M_{22} & M_{23} \\ 0 & 0 & M_{33} \end{pmatrix}, \qquad
    M_{13} = M_{11} X_1 + Y_1 M_{33}, \quad M_{23} = M_{22} X_2 + Y_2 M_{33}

is (r1, r2)-separable by its first r1 columns and last r2 rows, and (r3, r4)-separable by its first r3 columns and last
r4 rows. Which other pairs of the same sum it allows is decided by integer programming.

Example 1: a 5 x 5 matrix on which GSPA fails and the convex model does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from gsnmf import fit_weights, scale
from gsnmf.convex import is_separable, solve_exact
from gsnmf.convex.uniqueness import equilibrate, extreme_columns
from gsnmf.datasets import gspa_failure_example, three_three_separable
from gsnmf.support.arrays import Doubles
from reproduction.methods import run_method
from reproduction.pictures import BLUE, ORANGE, PURPLE, mark_chosen, picture
from reproduction.report import Claim, Figure, Section, Table
from reproduction.study import Key, Measurement, Record, Results, Settings, Study

_SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96)
_TOLERANCE = 1e-9
_SIDE = 10
"""Rows and columns of the matrices of property 9."""
_CASES = ((2, 1, 1, 2), (3, 2, 2, 3), (3, 1, 2, 2), (4, 2, 2, 4), (3, 3, 1, 5))
"""r1, r2, r3 and r4."""
_METHODS = ("gspa", "gs-fgm", "convex", "auto")
_PRINTED = np.array(
    [
        [4.654, 0.028, 0.251, 0.034, 0.033],
        [0.212, 2.551, 0.034, 1.045, 1.157],
        [0.134, 2.421, 0.033, 1.157, 1.255],
        [0, 0, 4.654, 0.212, 0.134],
        [0, 0, 0.028, 2.551, 2.421],
    ]
)
"""The scaled matrix of example 1 in the paper."""


def _measure_compression(key: Key, settings: Settings) -> Measurement:
    M = np.asarray(three_three_separable(key[0], key[0]).matrix, dtype=np.float64)
    scaled = equilibrate(M).matrix
    solution = solve_exact(M)
    record = {
        "size": M.shape[0],
        "columns": extreme_columns(scaled, _TOLERANCE).size,
        "rows": extreme_columns(np.ascontiguousarray(scaled.T), _TOLERANCE).size,
        "both": solution.n_selected,
        "proved": solution.proved,
    }
    return Measurement([record])


def _present_compression(part: str, results: Results) -> Section:
    table = results.table
    lines: dict[str, tuple[str, dict[str, str]]] = {
        "columns": ("columns alone", {"color": ORANGE, "marker": "v"}),
        "rows": ("rows alone", {"color": PURPLE, "marker": ">", "linestyle": "--"}),
        "both": ("columns and rows", {"color": BLUE, "marker": "o"}),
    }
    with picture(results.out, part, (5.2, 3.2)) as (_, grid):
        axes = grid[0, 0]
        for name, (label, style) in lines.items():
            axes.plot(table["size"], table[name], label=label, **style)
        axes.set(xlabel="rows and columns of the matrix", ylabel="smallest exact decomposition")
        axes.set_ylim(bottom=0)
        axes.legend()
    proved = bool(table["proved"].all())
    smallest, largest = table["both"].min(), table["both"].max()
    rows = [[str(value) for value in row] for row in table[["size", *lines]].to_numpy()]
    return Section(
        title="Property 5: compression",
        figures=[Figure(part, "Size of the smallest exact decompositions of the matrices of Property 5.")],
        tables=[Table(("size", *(label for label, _ in lines.values())), rows)],
        claims=[
            Claim(
                "The matrices are (3, 3)-separable at every size",
                bool((table["both"] == 6).all()) and proved,
                f"smallest decompositions of {smallest} to {largest} columns and rows, "
                f"{'' if proved else 'not all '}proved smallest",
            ),
            Claim(
                "They need all their columns, or all their rows, if only one kind may be chosen",
                bool((table["columns"] == table["size"]).all() and (table["rows"] == table["size"]).all()),
                f"{table['columns'].max()} columns and {table['rows'].max()} rows at size {table['size'].max()}",
            ),
        ],
    )


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


def _measure_non_uniqueness(key: Key, settings: Settings) -> Measurement:
    r1, r2, r3, r4 = key
    M = non_unique(r1, r2, r3, r4, _SIDE, np.random.default_rng([9, r1, r2, r3, r4]))
    rank = r1 + r2
    pairs = [(p, rank - p) for p in range(rank + 1) if is_separable(M, p, rank - p)]
    record = {"r1": r1, "r2": r2, "r3": r3, "r4": r4, "pairs": pairs, "smallest": solve_exact(M).n_selected}
    return Measurement([record], {"matrix": M})


def _present_non_uniqueness(part: str, results: Results) -> Section:
    rows, holds = [], []
    for record in results.table.to_dict("records"):
        r1, r2, r3, r4, pairs, smallest = (record[name] for name in ("r1", "r2", "r3", "r4", "pairs", "smallest"))
        rows.append([f"({r1}, {r2})", f"({r3}, {r4})", ", ".join(map(str, pairs)), str(smallest)])
        holds.append({(r1, r2), (r3, r4)} <= set(pairs) and smallest == r1 + r2)
    shown = max(results.arrays, key=sum)
    matrix = np.sqrt(results.arrays[shown]["matrix"])
    with picture(results.out, part, (6.4, 3.0), ncols=2) as (_, grid):
        for axes, (n_columns, n_rows) in zip(grid[0], (shown[:2], shown[2:]), strict=True):
            _show(axes, matrix, f"{n_columns} columns and {n_rows} rows", xticks=[], yticks=[])
            mark_chosen(axes, matrix.shape, range(n_columns), range(_SIDE - n_rows, _SIDE))
    return Section(
        title="Property 9: non-unique decompositions",
        figures=[Figure(part, f"One {_SIDE} x {_SIDE} matrix and its two smallest decompositions.")],
        tables=[Table(("(r1, r2)", "(r3, r4)", "all pairs of this sum that decompose it", "smallest r1 + r2"), rows)],
        claims=[
            Claim(
                "The matrices are minimal (r1, r2)-separable and also minimal (r3, r4)-separable",
                all(holds),
                f"proved for {sum(holds)} of {len(holds)} matrices",
            )
        ],
    )


def _show(axes: Any, matrix: Doubles, title: str, **options: Any) -> None:
    axes.imshow(matrix, cmap="Greys", vmax=options.pop("vmax", None))
    axes.set(title=title, **options)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def smallest_trace(M: Doubles) -> tuple[Doubles, Doubles]:
    """Model e3 of a scaled matrix without noise: X and Y with M = M X + Y M and the least trace, a linear program."""
    m, n = M.shape
    equations = np.hstack([np.kron(M, np.eye(n)), np.kron(np.eye(m), M.T)])
    below_diagonal = np.zeros((n * n + m * m, n * n + m * m))
    for i in range(n):  # X_ij <= X_ii
        below_diagonal[i * n : (i + 1) * n, i * n : (i + 1) * n] = np.eye(n)
        below_diagonal[i * n : (i + 1) * n, i * (n + 1)] -= 1
    for t in range(m):  # Y_lt <= Y_tt
        column = n * n + np.arange(m) * m + t
        below_diagonal[column, column] = 1
        below_diagonal[column, n * n + t * (m + 1)] -= 1
    trace = np.concatenate([np.eye(n).ravel(), np.eye(m).ravel()])
    found = linprog(
        trace,
        A_ub=below_diagonal,
        b_ub=np.zeros(len(below_diagonal)),
        A_eq=equations,
        b_eq=M.ravel(),
        bounds=(0, 1),
        method="highs-ds",
    )
    solution = np.asarray(found.x)
    return solution[: n * n].reshape(n, n), solution[n * n :].reshape(m, m)


def _measure_failure(key: Key, settings: Settings) -> Measurement:
    truth = gspa_failure_example()
    M = np.asarray(truth.matrix)
    scaled = np.asarray(scale(M).matrix)
    scaled *= 5.0 / scaled.sum(axis=0)[0]
    X, Y = smallest_trace(scaled)
    chosen = np.flatnonzero(X.diagonal() > 0.5), np.flatnonzero(Y.diagonal() > 0.5)
    largest_other = max(np.abs(np.delete(X, chosen[0], 0)).max(), np.abs(np.delete(Y, chosen[1], 1)).max())
    records = [
        _record("planted", truth.columns, truth.rows),
        _record("linear program e3", *chosen, largest_other),
        _record("almost", np.arange(3), np.array([4]), fit_weights(M, [0, 1, 2], [4]).relative_error),
    ]
    for method in _METHODS:
        outcome = run_method(scaled, method, (2, 2))
        records.append(_record(method, outcome.columns, outcome.rows, outcome.relative_error))
    pairs = [f"({p}, {4 - p})" for p in range(5) if is_separable(M, p, 4 - p, tolerance=_TOLERANCE)]
    return Measurement(records, {"scaled": scaled, "pairs": pairs})


def _record(what: str, columns: Any, rows: Any, value: float = np.nan) -> Record:
    """Columns and rows are counted from one, as in the paper."""
    listed = ["{" + ", ".join(map(str, np.sort(indices) + 1)) + "}" for indices in (columns, rows)]
    return {"what": what, "columns": listed[0], "rows": listed[1], "value": float(value)}


def _to_zero(text: str) -> list[int]:
    return [int(part) - 1 for part in text.strip("{}").split(",") if part.strip()]


def _present_failure(part: str, results: Results) -> Section:
    found: dict[str, Any] = {record["what"]: record for record in results.table.to_dict("records")}
    arrays = results.arrays["example",]
    scaled = arrays["scaled"]
    drawn = {"planted; found by the convex model": found["planted"], "GSPA": found["gspa"]}
    with picture(results.out, part, (6.4, 3.2), ncols=2) as (_, grid):
        for axes, (title, record) in zip(grid[0], drawn.items(), strict=True):
            _show(axes, np.sqrt(scaled), title, vmax=2.6, xticks=range(5), yticks=range(5))
            axes.set(xticklabels=range(1, 6), yticklabels=range(1, 6))
            for (i, j), value in np.ndenumerate(scaled):
                colour = "white" if value > 2 else "black"
                axes.text(j, i, f"{value:.3g}", ha="center", va="center", fontsize=7, color=colour)
            mark_chosen(axes, scaled.shape, _to_zero(record["columns"]), _to_zero(record["rows"]))
    rows = [[name, found[name]["columns"], found[name]["rows"]] for name in ("planted", "linear program e3", *_METHODS)]
    return Section(
        title="Example 1: where GSPA fails",
        text=["Columns and rows are counted from one, as in the paper, whose rows {5, 6} are a misprint for {4, 5}."],
        figures=[Figure(part, "The scaled matrix, with the columns (blue) and rows (orange) that are chosen.")],
        tables=[
            Table(("method", "columns", "rows"), rows, "On the scaled matrix; GS-FGM and convex are given (2, 2).")
        ],
        claims=_claims(found, arrays["pairs"], scaled),
    )


def _claims(found: dict[str, Record], pairs: list[str], scaled: Doubles) -> list[Claim]:
    chosen = {what: (record["columns"], record["rows"]) for what, record in found.items()}
    gspa, program = chosen["gspa"], chosen["linear program e3"]
    error, largest_other = 100 * found["almost"]["value"], found["linear program e3"]["value"]
    difference = np.abs(scaled - _PRINTED).max()
    return [
        Claim(
            "The matrix is not (4, 0)-, (3, 1)-, (1, 3)- or (0, 4)-separable, only (2, 2)",
            pairs == ["(2, 2)"],
            f"of the pairs with sum 4 it is {', '.join(pairs)}-separable, proved",
        ),
        Claim("The scaled matrix is the one printed", bool(difference < 6e-4), f"largest difference {difference:.1e}"),
        Claim(
            "GSPA fails: it returns columns {1, 2, 3} and row {5}, or column {2} and rows {1, 4, 5}",
            gspa in (("{1, 2, 3}", "{5}"), ("{2}", "{1, 4, 5}")),
            f"columns {gspa[0]}, rows {gspa[1]}",
        ),
        Claim(
            "Columns {1, 2, 3} and row {5} leave a relative error of 0.0244 %",
            round(error, 4) == 0.0244,
            f"{error:.4f} %: the paper's weights were not yet the best ones" if error < 0.0243 else f"{error:.4f} %",
        ),
        Claim(
            "The convex model e3 identifies X and Y perfectly",
            program == chosen["planted"] and largest_other < 1e-6,
            f"columns {program[0]}, rows {program[1]}, largest other entry {largest_other:.0e}",
        ),
    ]


STUDIES = (
    Study(
        name="compression",
        parts={"compression": "Property 5: size of the smallest separable and generalized decompositions"},
        trials=lambda settings: [(n,) for n in _SIZES[: 5 if settings.quick else None]],
        measure=_measure_compression,
        present=_present_compression,
    ),
    Study(
        name="non-uniqueness",
        parts={"non-uniqueness": "Property 9: matrices with several smallest decompositions"},
        trials=lambda settings: list(_CASES[: 2 if settings.quick else None]),
        measure=_measure_non_uniqueness,
        present=_present_non_uniqueness,
    ),
    Study(
        name="gspa-failure",
        parts={"gspa-failure": "Example 1: a matrix on which GSPA fails"},
        trials=lambda settings: [("example",)],
        measure=_measure_failure,
        present=_present_failure,
    ),
)

"""Definition 1 as a mixed-integer program, and the weights of the columns and rows that it chooses."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from gsnmf.support.arrays import Doubles, Indices
from gsnmf.weights import cone_weights

Range: TypeAlias = tuple[int, int]
Chosen: TypeAlias = tuple[Indices, Indices]

# HiGHS satisfies constraints only to 1e-6, and its presolve calls feasible programs infeasible if the slack of a row is
# that small. So the program gets this much more slack, and its answers are checked to the caller's tolerance.
_SOLVER_SLACK = 1e-5
OPTIMAL, LIMIT, INFEASIBLE = 0, 1, 2  # of scipy.optimize.milp


class Core(NamedTuple):
    """The matrix without its zero rows and columns, scaled, and with small entries set to zero."""

    matrix: Doubles
    columns: Indices
    rows: Indices
    zero_columns: Indices
    zero_rows: Indices
    tolerance: float
    rank: int


class Equations(NamedTuple):
    """What the weights contribute to the entries that are not zero, as fractions of these entries.

    Weight k is that of column (row) ``owners[k]`` in column (row) ``targets[k]``, as a fraction of its bound.
    Columns and then rows are numbered together, as are the binaries of the program.
    """

    coefficients: sp.csc_array
    owners: Indices
    targets: Indices
    bounds: Doubles
    entries: Doubles
    entry_columns: Indices
    entry_rows: Indices
    shape: tuple[int, int]
    tolerance: float


def build_equations(core: Core) -> Equations:
    """The equation that every entry of the matrix imposes on the unknown weights."""
    matrix = core.matrix
    n_columns = matrix.shape[1]
    entry_rows, entry_columns = np.nonzero(matrix)
    number = np.zeros(matrix.shape, dtype=np.intp)
    number[entry_rows, entry_columns] = np.arange(entry_rows.size)
    by_columns = _contributions(matrix, number, core.tolerance)
    by_rows = _contributions(matrix.T, number.T, core.tolerance)
    return Equations(
        coefficients=sp.hstack([by_columns[0], by_rows[0]], format="csc"),
        owners=np.r_[by_columns[1], n_columns + by_rows[1]],
        targets=np.r_[by_columns[2], n_columns + by_rows[2]],
        bounds=np.r_[by_columns[3], by_rows[3]],
        entries=matrix[entry_rows, entry_columns],
        entry_columns=entry_columns,
        entry_rows=n_columns + entry_rows,
        shape=(matrix.shape[0], n_columns),
        tolerance=core.tolerance,
    )


def _contributions(
    matrix: Doubles, number: Indices, tolerance: float
) -> tuple[sp.csc_array, Indices, Indices, Doubles]:
    """What each column can contribute to the others: coefficients, owners, targets and bounds of the weights."""
    bounds = np.zeros((matrix.shape[1],) * 2)
    for i, column in enumerate(matrix.T):
        own = column > 0
        others = matrix[own]
        bounds[i] = ((others + tolerance) / column[own, None]).min(axis=0) * (others > 0).all(axis=0)
        bounds[i, i] = 0
    owners, targets = np.nonzero(bounds)
    most = matrix[:, owners] * bounds[owners, targets]
    rows, weights = np.nonzero(most)
    entries = rows, targets[weights]
    coefficients = sp.csc_array(
        (most[rows, weights] / matrix[entries], (number[entries], weights)),
        shape=(np.count_nonzero(matrix), owners.size),
    )
    return coefficients, owners, targets, bounds[owners, targets]


class Program:
    """The mixed-integer program: the binaries, then the weights of the columns and rows that can be chosen.

    With weights as fractions of their bounds and equations divided by the entries of the matrix, all
    coefficients are in [0, 1].
    """

    def __init__(self, equations: Equations, blocks: list[Chosen], columns: Range, rows: Range, total: Range) -> None:
        n_rows, self.n_columns = equations.shape
        self.n_binaries = self.n_columns + n_rows
        selectable = np.zeros(self.n_binaries)
        for block_columns, block_rows in blocks:
            selectable[np.r_[block_columns, self.n_columns + block_rows]] = 1
        usable = selectable[equations.owners] > 0
        n_weights, n_entries = int(usable.sum()), equations.entries.size
        self.n_variables = self.n_binaries + n_weights
        chosen = _incidence(equations.entry_columns, self.n_binaries) + _incidence(
            equations.entry_rows, self.n_binaries
        )
        slack = _SOLVER_SLACK + equations.tolerance / equations.entries
        only_if_chosen = [-_incidence(equations.owners[usable], self.n_binaries), sp.eye_array(n_weights)]
        counts = np.zeros((3, self.n_variables))
        counts[[0, 2], : self.n_columns] = 1
        counts[[1, 2], self.n_columns : self.n_binaries] = 1
        self.constraints = [
            LinearConstraint(sp.hstack([chosen, equations.coefficients[:, usable]]), 1 - slack, 1 + slack),
            LinearConstraint(sp.hstack([chosen, sp.csr_array((n_entries, n_weights))]), -np.inf, 1),
            LinearConstraint(sp.hstack(only_if_chosen), -np.inf, 0),
            LinearConstraint(counts, *np.transpose([columns, rows, total])),
        ]
        self.upper = np.concatenate([selectable, np.ones(n_weights)])

    def solve(self, seconds: float) -> tuple[Chosen | None, int, bool]:
        """The best choice, a bound on the number of rows and columns, and whether the search is complete."""
        binary = (np.arange(self.n_variables) < self.n_binaries).astype(float)
        result = milp(
            binary,
            integrality=binary,
            bounds=Bounds(0, self.upper),
            constraints=self.constraints,
            options={"time_limit": seconds},
        )
        if result.status not in (OPTIMAL, LIMIT, INFEASIBLE):
            raise RuntimeError(f"HiGHS failed: {result.message}")
        finished = result.status != LIMIT
        bound = result.mip_dual_bound
        lower = 0 if bound is None or not np.isfinite(bound) else int(np.ceil(bound - 1e-4))
        if result.x is None:
            return None, lower, finished
        chosen = result.x[: self.n_binaries] > 0.5
        columns, rows = np.flatnonzero(chosen[: self.n_columns]), np.flatnonzero(chosen[self.n_columns :])
        return (columns, rows), lower, finished

    def exclude(self, chosen: Chosen) -> None:
        """Forbid one choice."""
        inside = np.zeros((1, self.n_variables))
        inside[0, : self.n_binaries] = -1
        inside[0, np.r_[chosen[0], self.n_columns + chosen[1]]] = 1
        self.constraints.append(LinearConstraint(inside, -np.inf, chosen[0].size + chosen[1].size - 1))


def _incidence(positions: Indices, length: int) -> sp.csr_array:
    """A matrix with a single one in each row."""
    return sp.csr_array(
        (np.ones(positions.size), (np.arange(positions.size), positions)), shape=(positions.size, length)
    )


class Fit(NamedTuple):
    """A choice, its weights in the scaled core, and the largest error of an entry."""

    chosen: Chosen
    column_weights: Doubles
    row_weights: Doubles
    largest_error: float


def fit_chosen(equations: Equations, chosen: Chosen) -> Fit:
    """Fit the weights of chosen columns and rows by least squares; the chosen ones represent themselves."""
    n_rows, n_columns = equations.shape
    taken = np.zeros(n_columns + n_rows, dtype=bool)
    taken[np.r_[chosen[0], n_columns + chosen[1]]] = True
    free_entries = ~(taken[equations.entry_columns] | taken[equations.entry_rows])
    free_weights = np.flatnonzero(taken[equations.owners] & ~taken[equations.targets])
    entries = equations.entries[free_entries]
    system = sp.csr_array(sp.diags_array(entries) @ equations.coefficients[:, free_weights][free_entries])
    fractions = _nonnegative_least_squares(system, entries)
    full = np.diag(taken.astype(float))
    own, target = equations.owners[free_weights], equations.targets[free_weights]
    full[own, target] = fractions * equations.bounds[free_weights]
    return Fit(
        chosen,
        column_weights=full[chosen[0], :n_columns],
        row_weights=full[n_columns + chosen[1], n_columns:].T,
        largest_error=float(np.abs(system @ fractions - entries).max(initial=0.0)),
    )


def _nonnegative_least_squares(system: sp.csr_array, target: Doubles) -> Doubles:
    """Solve a sparse problem part by part: with columns only, or rows only, each target stands alone."""
    n_equations, n_unknowns = system.shape
    solution = np.zeros(n_unknowns)
    equation, unknown = system.nonzero()
    linked = sp.coo_array(
        (np.ones(equation.size), (equation, n_equations + unknown)), shape=(n_equations + n_unknowns,) * 2
    )
    _, labels = connected_components(linked, directed=False)
    for label in np.unique(labels[n_equations:]):
        equations = np.flatnonzero(labels[:n_equations] == label)
        unknowns = np.flatnonzero(labels[n_equations:] == label)
        solution[unknowns] = cone_weights(system[equations][:, unknowns].toarray(), target[equations])
    return solution

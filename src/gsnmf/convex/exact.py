"""The smallest generalized separable decomposition of a small matrix, with proof: a mixed-integer program."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import Bounds, LinearConstraint, milp, nnls
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex.uniqueness import Equilibrated, equilibrate, extreme_columns, largest_zero_block
from gsnmf.validation import Floats, Indices, check_count, check_matrix, check_positive, check_rank_pair

Doubles: TypeAlias = NDArray[np.float64]
Range: TypeAlias = tuple[int, int]
Chosen: TypeAlias = tuple[Indices, Indices]
Mask: TypeAlias = NDArray[np.bool_]

MAX_VARIABLES = 20_000
"""Largest n^2 + m^2 that `solve_exact` accepts."""

# HiGHS satisfies constraints to 1e-6 only, and its presolve calls feasible programs infeasible when the slack of a
# row is as small as that. The program gets this much more; what it finds is checked to the caller's tolerance.
_SOLVER_SLACK = 1e-5
_MAX_GUESSES = 10  # blocks of zeros fitted before the program is built
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2  # of scipy.optimize.milp


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """A smallest decomposition and what is proved about it; see `solve_exact`.

    Attributes
    ----------
    columns, rows : int arrays of length r1 and r2
        The chosen indices, in increasing order; both empty if none was found.
    column_weights : array, shape (r1, n)
        P1, with the identity at ``columns``.
    row_weights : array, shape (m, r2)
        P2, with the identity at ``rows``.
    relative_error : float
        ||M - M[:, columns] P1 - P2 M[rows, :]||_F / ||M||_F.
    lower_bound : int
        No decomposition of the matrix has fewer rows and columns together than this.
    found : bool
        Whether ``columns`` and ``rows`` are a decomposition as asked for.
    proved : bool
        Whether the question is settled: what was found is smallest, or nothing was and nothing is there.
    stop_reason : {"solved", "infeasible", "time limit"}
        ``"infeasible"``: no decomposition has the size asked for.
    """

    columns: Indices
    rows: Indices
    column_weights: Floats
    row_weights: Floats
    relative_error: float
    lower_bound: int
    found: bool
    proved: bool
    stop_reason: Literal["solved", "infeasible", "time limit"]

    @property
    def n_selected(self) -> int:
        """Number of columns and rows together."""
        return self.columns.size + self.rows.size


def solve_exact(
    matrix: Any,
    *,
    pair: tuple[int, int] | None = None,
    max_rank: int | None = None,
    time_limit: float = 60.0,
    tolerance: float = 1e-6,
) -> ExactSolution:
    r"""Find the smallest generalized separable decomposition of a small matrix and prove that it is smallest.

    .. math::

        \min_{K_1, K_2, P_1, P_2} |K_1| + |K_2| \quad \text{such that} \quad
        M = M(:, K_1) P_1 + P_2 M(K_2, :), \; P_1, P_2 \ge 0, \; P_1(:, K_1) = I, \; P_2(K_2, :) = I,

    which is Definition 1 of [1]_ with the least :math:`r_1 + r_2`.

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        :math:`M`, nonnegative, with :math:`n^2 + m^2` at most 20 000. A sparse matrix is made dense.
    pair : (n_columns, n_rows), optional
        Ask instead for a decomposition with exactly this many columns and rows; see also `is_separable`.
    max_rank : int, optional
        Ask for at most this many rows and columns together, and stop once there can be none.
    time_limit : float
        Seconds after which the smallest decomposition found so far is returned, with the bound proved so far.
    tolerance : float
        What counts as zero once the rows and columns of :math:`M` are scaled to a maximum of one: entries of
        :math:`M` at most this large *are* zeros, and a decomposition must respect all zeros and, with weights
        fitted by least squares, reproduce every other entry with an error of at most this.

    Returns
    -------
    ExactSolution

    Raises
    ------
    ValueError
        If the matrix is too large.

    Warns
    -----
    ConvergenceWarning
        If the time limit leaves the question open.

    See Also
    --------
    is_separable : Yes or no for given numbers of columns and rows.
    uniqueness : Whether a decomposition is the only one of its size.

    Notes
    -----
    Decompositions by columns only, or by rows only, need no search: they must hold one of each extreme ray of the
    cone of the columns (rows). The others are found by HiGHS [2]_ as a program with one binary for each column,
    :math:`z`, and each row, :math:`v`:

    .. math::

        \min \sum_j z_j + \sum_l v_l \quad \text{such that} \quad
        M = M X + Y M, \quad X_{jj} = z_j, \quad Y_{ll} = v_l, \quad
        0 \le X_{ij} \le b_{ij} z_i, \quad 0 \le Y_{lt} \le \hat b_{lt} v_t.

    Since nothing is negative, a column can only take part in another whose nonzeros include its own, and with a
    weight of at most :math:`b_{ij} = \min_l M_{lj} / M_{li}`, which is never above the paper's :math:`w_j / w_i`.
    :math:`M_j (1 - z_j) = \sum_{i \ne j} M_i X_{ij} + (YM)_j` makes all other weights of a chosen column zero, so
    that the identity blocks of Definition 1 and the zeros :math:`M(K_2, K_1) = 0` of Property 1 follow; the latter
    are given to the solver as :math:`z_j + v_l \le 1`. Two more bounds are cheap and strong:
    :math:`r_1 + r_2 \ge \mathrm{rank}(M)`, and :math:`z_j = 0` if no block of zeros through column :math:`j` has
    that many rows and columns (a matching problem, see `check_uniqueness`). Blocks of zeros of just that size are tried
    before the program is solved.

    HiGHS works to about 1e-6, so the program allows errors of 1e-5 more than ``tolerance``: its bounds hold all the
    more. Every choice it returns is fitted by nonnegative least squares, and if the error is above ``tolerance`` it
    is excluded and the search goes on. Proofs are proofs in floating-point arithmetic, and mean little for a
    matrix that becomes separable if ``tolerance`` is a few times larger.

    The time grows exponentially in the worst case. On one core, 30 x 30 matrices took below a second, planted
    decompositions of 60 x 60 matrices up to four seconds, and of 100 x 100 matrices up to half a minute.

    References
    ----------
    .. [1] J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
    .. [2] Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Mathematical Programming
       Computation 10 (2018). doi:10.1007/s12532-017-0130-5

    Examples
    --------
    >>> M = [[1, 0, 2, 1], [0, 1, 2, 3], [0, 0, 1, 2]]
    >>> solution = solve_exact(M)
    >>> solution.n_selected, solution.lower_bound, solution.proved
    (3, 3, True)
    >>> solution = solve_exact(M, pair=(2, 1))
    >>> solution.columns, solution.rows
    (array([0, 1]), array([2]))
    """
    dense = _small_dense(matrix)
    tolerance = check_positive(tolerance, "tolerance")
    deadline = time.monotonic() + check_positive(time_limit, "time_limit")
    if pair is not None and max_rank is not None:
        raise ValueError("Give pair or max_rank, not both.")
    sizes = None if pair is None else check_rank_pair(pair, (dense.shape[0], dense.shape[1]))
    largest = sum(dense.shape) if max_rank is None else check_count(max_rank, "max_rank")
    scaled = equilibrate(dense)
    core = _core(scaled.matrix, tolerance)
    outcome = _smallest(core, largest, deadline) if sizes is None else _with_sizes(core, sizes, deadline)
    solution = _solution(dense, scaled, core, outcome, sizes)
    if not solution.proved:
        warnings.warn(
            f"Not settled within time_limit={time_limit} s: at least {solution.lower_bound} columns and rows are "
            f"needed, {solution.n_selected if solution.found else 'none'} found. Raise time_limit.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


def is_separable(
    matrix: Any, n_columns: int, n_rows: int, *, time_limit: float = 60.0, tolerance: float = 1e-6
) -> bool:
    """Tell whether a small matrix is (n_columns, n_rows)-separable.

    Parameters
    ----------
    matrix, time_limit, tolerance
        As for `solve_exact`.
    n_columns, n_rows : int
        The numbers r1 and r2 of Definition 1: exactly so many, not at most.

    Returns
    -------
    bool

    Raises
    ------
    TimeoutError
        If the time limit leaves the question open.

    Examples
    --------
    >>> M = [[1, 0, 2], [0, 1, 2], [0, 0, 1]]
    >>> is_separable(M, 1, 2), is_separable(M, 2, 0)
    (True, False)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve_exact(matrix, pair=(n_columns, n_rows), time_limit=time_limit, tolerance=tolerance)
    if not solution.proved:
        raise TimeoutError(f"Not decided within time_limit={time_limit} s; raise time_limit.")
    return solution.found


class _Core(NamedTuple):
    """The matrix without its zero rows and columns, scaled, and with small entries set to zero."""

    matrix: Doubles
    columns: Indices
    rows: Indices
    zero_columns: Indices
    zero_rows: Indices
    tolerance: float
    rank: int


def _core(scaled: Doubles, tolerance: float) -> _Core:
    nonzero = scaled > tolerance
    in_column, in_row = nonzero.any(axis=0), nonzero.any(axis=1)
    matrix = np.where(nonzero, scaled, 0)[np.ix_(in_row, in_column)]
    # a residual of at most tolerance in each entry cannot hide a larger singular value (Eckart and Young)
    rank = int(np.linalg.matrix_rank(matrix, tol=tolerance * np.sqrt(matrix.size))) if matrix.size else 0
    kept = np.flatnonzero(in_column), np.flatnonzero(in_row)
    return _Core(matrix, *kept, np.flatnonzero(~in_column), np.flatnonzero(~in_row), tolerance, rank)


class _Outcome(NamedTuple):
    """What a search found, if anything, the bound on all decompositions, and whether the question is settled."""

    found: _Fit | None
    lower_bound: int
    settled: bool


def _smallest(core: _Core, largest: int, deadline: float) -> _Outcome:
    """A decomposition with fewest rows and columns, at most ``largest``."""
    equations = _equations(core)
    best = min(_one_sided(core), key=_size)
    n_rows, n_columns = core.matrix.shape
    limit = min(_size(best) - 1, largest)
    mixed = _search(core, equations, (1, n_columns), (1, n_rows), (core.rank, limit), deadline)
    if mixed.found is None and _size(best) <= largest:
        return mixed._replace(found=_fit(equations, best))
    return mixed


def _with_sizes(core: _Core, pair: Range, deadline: float) -> _Outcome:
    """A decomposition with given numbers of columns and rows, if zero ones fill up what the core lacks."""
    equations = _equations(core)
    n_rows, n_columns = core.matrix.shape
    columns = max(0, pair[0] - core.zero_columns.size), min(pair[0], n_columns)
    rows = max(0, pair[1] - core.zero_rows.size), min(pair[1], n_rows)
    (some_columns, no_rows), (no_columns, some_rows) = _one_sided(core)
    if rows[0] == 0 and some_columns.size <= columns[1]:
        chosen = _filled(some_columns, columns[0], n_columns), no_rows
        return _Outcome(_fit(equations, chosen), core.rank, settled=True)
    if columns[0] == 0 and some_rows.size <= rows[1]:
        chosen = no_columns, _filled(some_rows, rows[0], n_rows)
        return _Outcome(_fit(equations, chosen), core.rank, settled=True)
    columns, rows = (max(1, columns[0]), columns[1]), (max(1, rows[0]), rows[1])
    total = max(core.rank, columns[0] + rows[0]), columns[1] + rows[1]
    outcome = _search(core, equations, columns, rows, total, deadline)
    return _Outcome(outcome.found, core.rank, outcome.settled or outcome.found is not None)


def _size(chosen: Chosen) -> int:
    return chosen[0].size + chosen[1].size


def _one_sided(core: _Core) -> tuple[Chosen, Chosen]:
    """The smallest decompositions by columns only and by rows only."""
    none = np.zeros(0, dtype=np.intp)
    by_columns = extreme_columns(core.matrix, core.tolerance)
    by_rows = extreme_columns(core.matrix.T, core.tolerance)
    return (by_columns, none), (none, by_rows)


def _filled(chosen: Indices, wanted: int, length: int) -> Indices:
    spare = np.setdiff1d(np.arange(length), chosen)
    return np.union1d(chosen, spare[: max(0, wanted - chosen.size)])


def _search(core: _Core, equations: _Equations, columns: Range, rows: Range, total: Range, deadline: float) -> _Outcome:
    """Find rows and columns, at least one each and fewest together within the ranges, that decompose the core."""
    lower, upper = total
    empty = columns[0] > columns[1] or rows[0] > rows[1] or lower > upper
    blocks = [] if empty else _zero_blocks(core.matrix == 0, lower)
    if not blocks:
        return _Outcome(None, max(lower, upper + 1), settled=True)
    for block in blocks[:_MAX_GUESSES]:  # a whole block of the least size possible is often the answer
        if _size(block) == lower and _within(block[0].size, columns) and _within(block[1].size, rows):
            fit = _fit(equations, block)
            if fit.largest_error <= core.tolerance:
                return _Outcome(fit, lower, settled=True)
    program = _Program(equations, blocks, columns, rows, total)
    while (seconds := deadline - time.monotonic()) > 0:
        chosen, bound, finished = program.solve(seconds)
        lower = max(lower, bound)
        if chosen is None:
            return _Outcome(None, upper + 1 if finished else lower, finished)
        fit = _fit(equations, chosen)
        if fit.largest_error <= core.tolerance:
            return _Outcome(fit, _size(chosen) if finished else lower, finished or _size(chosen) <= lower)
        program.exclude(chosen)
    return _Outcome(None, lower, settled=False)


def _within(value: int, limits: Range) -> bool:
    return limits[0] <= value <= limits[1]


def _zero_blocks(zeros: Mask, size: int) -> list[Chosen]:
    """Blocks of zeros, each with at least ``size`` rows and columns, that cover the rows and columns of all such."""
    n_rows, n_columns = zeros.shape
    in_column, in_row = np.zeros(n_columns, dtype=bool), np.zeros(n_rows, dtype=bool)
    blocks = []
    for row, column in np.argwhere(zeros & (zeros.sum(axis=0) + zeros.sum(axis=1)[:, None] >= size)):
        if not (in_row[row] and in_column[column]):
            block_rows, block_columns = largest_zero_block(zeros, row, column)
            if block_rows.size + block_columns.size >= size:
                in_row[block_rows] = in_column[block_columns] = True
                blocks.append((block_columns, block_rows))
    return blocks


class _Equations(NamedTuple):
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


def _equations(core: _Core) -> _Equations:
    matrix = core.matrix
    n_columns = matrix.shape[1]
    entry_rows, entry_columns = np.nonzero(matrix)
    number = np.zeros(matrix.shape, dtype=np.intp)
    number[entry_rows, entry_columns] = np.arange(entry_rows.size)
    by_columns = _contributions(matrix, number, core.tolerance)
    by_rows = _contributions(matrix.T, number.T, core.tolerance)
    return _Equations(
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


class _Program:
    """The mixed-integer program: the binaries, then the weights of the columns and rows that can be chosen.

    With weights as fractions of their bounds and equations divided by the entries of the matrix, all
    coefficients are in [0, 1].
    """

    def __init__(self, equations: _Equations, blocks: list[Chosen], columns: Range, rows: Range, total: Range) -> None:
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
        if result.status not in (_OPTIMAL, _LIMIT, _INFEASIBLE):
            raise RuntimeError(f"HiGHS failed: {result.message}")
        finished = result.status != _LIMIT
        bound = result.mip_dual_bound
        lower = 0 if bound is None or not np.isfinite(bound) else int(np.ceil(bound - 1e-4))
        if result.x is None:
            return None, lower, finished
        chosen = result.x[: self.n_binaries] > 0.5
        return (
            (np.flatnonzero(chosen[: self.n_columns]), np.flatnonzero(chosen[self.n_columns :])),
            lower,
            finished,
        )

    def exclude(self, chosen: Chosen) -> None:
        """Forbid one choice."""
        inside = np.zeros((1, self.n_variables))
        inside[0, : self.n_binaries] = -1
        inside[0, np.r_[chosen[0], self.n_columns + chosen[1]]] = 1
        self.constraints.append(LinearConstraint(inside, -np.inf, _size(chosen) - 1))


def _incidence(positions: Indices, length: int) -> sp.csr_array:
    """A matrix with a single one in each row."""
    return sp.csr_array(
        (np.ones(positions.size), (np.arange(positions.size), positions)), shape=(positions.size, length)
    )


class _Fit(NamedTuple):
    """A choice, its weights in the scaled core, and the largest error of an entry."""

    chosen: Chosen
    column_weights: Doubles
    row_weights: Doubles
    largest_error: float


def _fit(equations: _Equations, chosen: Chosen) -> _Fit:
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
    return _Fit(
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
        part = np.column_stack([system[equations][:, unknowns].toarray(), target[equations]])
        if equations.size > unknowns.size:
            part = qr(part, mode="r")[0][: unknowns.size + 1]  # the same problem with fewer equations
        solution[unknowns], _ = nnls(part[:, :-1], part[:, -1], maxiter=30 * unknowns.size)
    return solution


def _solution(
    dense: Doubles, scaled: Equilibrated, core: _Core, outcome: _Outcome, pair: Range | None
) -> ExactSolution:
    """Translate what was found in the scaled core to the matrix as given."""
    n_rows, n_columns = dense.shape
    columns, rows = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    column_weights, row_weights = np.zeros((0, n_columns)), np.zeros((n_rows, 0))
    fit = outcome.found
    if fit is not None:
        columns, column_weights = _restored(
            fit.chosen[0], fit.column_weights, core.columns, scaled.column_exponents, pair and pair[0]
        )
        rows, transposed = _restored(
            fit.chosen[1], fit.row_weights.T, core.rows, scaled.row_exponents, pair and pair[1]
        )
        row_weights = transposed.T
    unit = max(dense.max(), np.finfo(float).tiny)  # keeps the squares in the norms within range
    residual = (dense - dense[:, columns] @ column_weights - row_weights @ dense[rows]) / unit
    norm = np.linalg.norm(dense / unit)
    return ExactSolution(
        columns=columns,
        rows=rows,
        column_weights=column_weights,
        row_weights=row_weights,
        relative_error=float(np.linalg.norm(residual) / norm) if norm else 0.0,
        lower_bound=outcome.lower_bound,
        found=fit is not None,
        proved=outcome.settled,
        stop_reason=("solved" if fit is not None else "infeasible") if outcome.settled else "time limit",
    )


def _restored(
    chosen: Indices, weights: Doubles, kept: Indices, exponents: Doubles, wanted: int | None
) -> tuple[Indices, Doubles]:
    """Indices in the whole matrix, filled up with zero columns to the number wanted, and weights in its scale."""
    length = exponents.size
    zero = np.setdiff1d(np.arange(length), kept)
    fill = zero[: 0 if wanted is None else wanted - chosen.size]
    indices = np.r_[kept[chosen], fill]
    full = np.zeros((indices.size, length))
    full[: chosen.size, kept] = weights * np.exp2(exponents[kept[chosen], None] - exponents[kept])
    full[np.arange(chosen.size, indices.size), fill] = 1
    order = np.argsort(indices)
    return indices[order], full[order]


def _small_dense(matrix: Any) -> Doubles:
    checked = check_matrix(matrix)
    n_rows, n_columns = checked.shape
    if n_rows**2 + n_columns**2 > MAX_VARIABLES:
        raise ValueError(
            f"matrix must have n^2 + m^2 at most {MAX_VARIABLES} for the exact method; got "
            f'{n_columns}^2 + {n_rows}^2 = {n_rows**2 + n_columns**2}. Use method="convex" for larger ones.'
        )
    dense = checked if isinstance(checked, np.ndarray) else checked.toarray()
    return np.asarray(dense, dtype=np.float64)

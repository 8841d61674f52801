"""The smallest generalized separable decomposition of a small matrix, with proof: a mixed-integer program."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gsnmf.convex.integer_program import Chosen, Core, Equations, Fit, Program, Range, build_equations, fit_chosen
from gsnmf.convex.uniqueness import Equilibrated, equilibrate, extreme_columns, largest_zero_block
from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.validation import check_count, check_matrix, check_positive, check_rank_pair
from gsnmf.records import Selection
from gsnmf.support.arrays import Doubles, Flags, Floats, Indices
from gsnmf.support.reasons import StopReason
from gsnmf.support.warning import warn_caller

MAX_VARIABLES = 20_000
"""Largest n^2 + m^2 that `solve_exact` accepts."""

_MAX_GUESSES = 10  # blocks of zeros fitted before the program is built


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
        Whether ``columns`` and ``rows`` are a decomposition of the requested size.
    proved : bool
        Whether the question is settled: either the decomposition is proved smallest, or none exists.
    stop_reason : StopReason
        ``"solved"``, ``"infeasible"`` or ``"time_limit reached"``.
        ``"infeasible"``: no decomposition has the size asked for.

    Examples
    --------
    >>> from gsnmf.convex import solve_exact
    >>> solve_exact([[1, 0, 2], [0, 1, 2], [0, 0, 1]]).lower_bound
    3
    """

    columns: Indices
    rows: Indices
    column_weights: Floats
    row_weights: Floats
    relative_error: float
    lower_bound: int
    found: bool
    proved: bool
    stop_reason: StopReason

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

    Warns
    -----
    ConvergenceWarning
        If the time limit leaves the question open.

    See Also
    --------
    is_separable : Yes or no for given numbers of columns and rows.
    check_uniqueness : Whether a decomposition is the only one of its size.

    Notes
    -----
    Decompositions by columns only, or by rows only, need no search: they hold one of each extreme ray of the cone of
    the columns (rows). The others are found by HiGHS [2]_ as a program with one binary for each column, :math:`z`, and
    each row, :math:`v`:

    .. math::

        \min \sum_j z_j + \sum_l v_l \quad \text{such that} \quad
        M = M X + Y M, \quad X_{jj} = z_j, \quad Y_{ll} = v_l, \quad
        0 \le X_{ij} \le b_{ij} z_i, \quad 0 \le Y_{lt} \le \hat b_{lt} v_t.

    Since nothing is negative, a column can only take part in another whose nonzeros include its own, with a weight of
    at most :math:`b_{ij} = \min_l M_{lj} / M_{li}`, which is never above the paper's :math:`w_j / w_i`. All other
    weights of a chosen column are zero because :math:`M_j (1 - z_j) = \sum_{i \ne j} M_i X_{ij} + (YM)_j`, so that the
    identity blocks of Definition 1 and the zeros :math:`M(K_2, K_1) = 0` of Property 1 follow; the solver is given the
    latter as :math:`z_j + v_l \le 1`. Two more bounds are cheap and strong: :math:`r_1 + r_2 \ge \mathrm{rank}(M)`, and
    :math:`z_j = 0` if no block of zeros through column :math:`j` has that many rows and columns (a matching problem,
    see `check_uniqueness`). Blocks of zeros of just that size are tried before the program is solved.

    HiGHS works to about 1e-6, so the program allows errors of 1e-5 more than ``tolerance``, and its bounds hold a
    fortiori. Every choice that it returns is fitted by nonnegative least squares and excluded if its error is above
    ``tolerance``. Proofs are in floating-point arithmetic, and mean little for a matrix that becomes separable if
    ``tolerance`` is a few times larger.

    The time grows exponentially in the worst case. On one core, 30 x 30 matrices took less than a second, planted
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
        warn_caller(
            f"Not settled within time_limit={time_limit} s: at least {solution.lower_bound} columns and rows are "
            f"needed, {solution.n_selected if solution.found else 'none'} found. Raise time_limit.",
            ConvergenceWarning,
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
        The numbers r1 and r2 of Definition 1: exactly this many, not at most.

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


def exact_selection(matrix: InMemoryMatrix, rank: int | tuple[int, int]) -> Selection:
    """The columns and rows of the smallest exact decomposition of at most this rank, or of exactly this pair."""
    whole = matrix.columns(np.arange(matrix.shape[1]))
    solution = solve_exact(whole, max_rank=rank) if isinstance(rank, int) else solve_exact(whole, pair=rank)
    if not solution.found:
        raise ValueError(
            f"the matrix has no exact decomposition of rank {rank}: at least {solution.lower_bound} columns and rows "
            "are needed; use method='convex' or 'auto' for an approximate one."
        )
    size = rank if isinstance(rank, int) else sum(rank)
    columns, rows = (
        chosen[side.squared_column_norms[chosen] > 0]  # a pair may ask for more than there are nonzero ones
        for side, chosen in ((matrix, solution.columns), (matrix.T, solution.rows))
    )
    return Selection.of_indices(columns, rows, "exact", size)


def _core(scaled: Doubles, tolerance: float) -> Core:
    nonzero = scaled > tolerance
    in_column, in_row = nonzero.any(axis=0), nonzero.any(axis=1)
    matrix = np.where(nonzero, scaled, 0)[np.ix_(in_row, in_column)]
    # a residual of at most tolerance in each entry cannot hide a larger singular value (Eckart and Young)
    rank = int(np.linalg.matrix_rank(matrix, tol=tolerance * np.sqrt(matrix.size))) if matrix.size else 0
    kept = np.flatnonzero(in_column), np.flatnonzero(in_row)
    return Core(matrix, *kept, np.flatnonzero(~in_column), np.flatnonzero(~in_row), tolerance, rank)


class _Outcome(NamedTuple):
    """What a search found, if anything, the bound on all decompositions, and whether the question is settled."""

    found: Fit | None
    lower_bound: int
    settled: bool


def _smallest(core: Core, largest: int, deadline: float) -> _Outcome:
    """A decomposition with fewest rows and columns, at most ``largest``."""
    equations = build_equations(core)
    best = min(_one_sided(core), key=_size)
    n_rows, n_columns = core.matrix.shape
    limit = min(_size(best) - 1, largest)
    mixed = _search(core, equations, (1, n_columns), (1, n_rows), (core.rank, limit), deadline)
    if mixed.found is None and _size(best) <= largest:
        return mixed._replace(found=fit_chosen(equations, best))
    return mixed


def _with_sizes(core: Core, pair: Range, deadline: float) -> _Outcome:
    """A decomposition with given numbers of columns and rows; zero ones may make up what the core lacks."""
    equations = build_equations(core)
    n_rows, n_columns = core.matrix.shape
    columns = max(0, pair[0] - core.zero_columns.size), min(pair[0], n_columns)
    rows = max(0, pair[1] - core.zero_rows.size), min(pair[1], n_rows)
    (some_columns, no_rows), (no_columns, some_rows) = _one_sided(core)
    if rows[0] == 0 and some_columns.size <= columns[1]:
        chosen = _filled(some_columns, columns[0], n_columns), no_rows
        return _Outcome(fit_chosen(equations, chosen), core.rank, settled=True)
    if columns[0] == 0 and some_rows.size <= rows[1]:
        chosen = no_columns, _filled(some_rows, rows[0], n_rows)
        return _Outcome(fit_chosen(equations, chosen), core.rank, settled=True)
    columns, rows = (max(1, columns[0]), columns[1]), (max(1, rows[0]), rows[1])
    total = max(core.rank, columns[0] + rows[0]), columns[1] + rows[1]
    outcome = _search(core, equations, columns, rows, total, deadline)
    return _Outcome(outcome.found, core.rank, outcome.settled or outcome.found is not None)


def _size(chosen: Chosen) -> int:
    return chosen[0].size + chosen[1].size


def _one_sided(core: Core) -> tuple[Chosen, Chosen]:
    """The smallest decompositions by columns only and by rows only."""
    none = np.zeros(0, dtype=np.intp)
    by_columns = extreme_columns(core.matrix, core.tolerance)
    by_rows = extreme_columns(core.matrix.T, core.tolerance)
    return (by_columns, none), (none, by_rows)


def _filled(chosen: Indices, wanted: int, length: int) -> Indices:
    spare = np.setdiff1d(np.arange(length), chosen)
    return np.union1d(chosen, spare[: max(0, wanted - chosen.size)])


def _search(core: Core, equations: Equations, columns: Range, rows: Range, total: Range, deadline: float) -> _Outcome:
    """Find rows and columns, at least one each and fewest together within the ranges, that decompose the core."""
    lower, upper = total
    empty = columns[0] > columns[1] or rows[0] > rows[1] or lower > upper
    blocks = [] if empty else _zero_blocks(core.matrix == 0, lower)
    if not blocks:
        return _Outcome(None, max(lower, upper + 1), settled=True)
    for block in blocks[:_MAX_GUESSES]:  # a block of the smallest possible size is often the answer
        within = columns[0] <= block[0].size <= columns[1] and rows[0] <= block[1].size <= rows[1]
        if _size(block) == lower and within:
            fit = fit_chosen(equations, block)
            if fit.largest_error <= core.tolerance:
                return _Outcome(fit, lower, settled=True)
    program = Program(equations, blocks, columns, rows, total)
    while (seconds := deadline - time.monotonic()) > 0:
        chosen, bound, finished = program.solve(seconds)
        lower = max(lower, bound)
        if chosen is None:
            return _Outcome(None, upper + 1 if finished else lower, finished)
        fit = fit_chosen(equations, chosen)
        if fit.largest_error <= core.tolerance:
            return _Outcome(fit, _size(chosen) if finished else lower, finished or _size(chosen) <= lower)
        program.exclude(chosen)
    return _Outcome(None, lower, settled=False)


def _zero_blocks(zeros: Flags, size: int) -> list[Chosen]:
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


def _solution(dense: Doubles, scaled: Equilibrated, core: Core, outcome: _Outcome, pair: Range | None) -> ExactSolution:
    """Translate what was found in the scaled core to the matrix as given."""
    fit, (wanted_columns, wanted_rows) = outcome.found, pair or (None, None)
    columns, rows = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    column_weights, row_weights = np.zeros((0, dense.shape[1])), np.zeros((dense.shape[0], 0))
    if fit is not None:
        columns, column_weights = _restored(
            fit.chosen[0], fit.column_weights, core.columns, scaled.column_exponents, wanted_columns
        )
        rows, transposed = _restored(fit.chosen[1], fit.row_weights.T, core.rows, scaled.row_exponents, wanted_rows)
        row_weights = transposed.T
    unit = max(dense.max(), np.finfo(float).tiny)  # keeps the squares in norms within range
    residual = (dense - dense[:, columns] @ column_weights - row_weights @ dense[rows]) / unit
    norm = np.linalg.norm(dense / unit)
    reason = StopReason.SOLVED if fit is not None else StopReason.INFEASIBLE
    return ExactSolution(
        columns=columns,
        rows=rows,
        column_weights=column_weights,
        row_weights=row_weights,
        relative_error=float(np.linalg.norm(residual) / norm) if norm else 0.0,
        lower_bound=outcome.lower_bound,
        found=fit is not None,
        proved=outcome.settled,
        stop_reason=reason if outcome.settled else StopReason.TIME_LIMIT_REACHED,
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

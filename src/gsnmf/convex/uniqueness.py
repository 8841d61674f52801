"""Is a generalized separable decomposition the only one of its size? The condition on the pattern of zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import maximum_bipartite_matching

from gsnmf.matrix.validation import check_count, check_indices, check_matrix, check_positive
from gsnmf.support.arrays import Doubles, Flags, Indices
from gsnmf.weights import cone_weights

_SCALING_PASSES = 60  # each halves the distance to equal maxima


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """Whether the condition for uniqueness holds; see `check_uniqueness`.

    Attributes
    ----------
    answer : {"unique", "violated", "unknown"}
        ``"unique"``: the condition holds, and the decomposition is the only one of its size. ``"violated"``: it
        does not hold, and there may or may not be another decomposition: the condition is sufficient, not necessary.
        ``"unknown"``: the limit on the work was reached first.
    pattern_columns, pattern_rows : int arrays, or None
        Columns and rows of another block of zeros as large as that of the decomposition, if such a block violates the
        condition.
    explanation : str
        The reason for the answer, in words.

    Examples
    --------
    >>> from gsnmf.convex import check_uniqueness
    >>> check_uniqueness([[1, 0, 2], [0, 1, 2], [0, 0, 1]], columns=[0, 1], rows=[2]).answer
    'violated'
    """

    answer: Literal["unique", "violated", "unknown"]
    pattern_columns: Indices | None
    pattern_rows: Indices | None
    explanation: str


def check_uniqueness(
    matrix: Any, columns: ArrayLike, rows: ArrayLike, *, tolerance: float = 1e-6, max_problems: int = 20_000
) -> Uniqueness:
    r"""Test whether a decomposition is certainly the only one of its size.

    Let :math:`M = M(:, K_1) P_1 + P_2 M(K_2, :)` be a minimal generalized separable decomposition with
    :math:`|K_1| = r_1`, :math:`|K_2| = r_2` and :math:`r = r_1 + r_2`. Property 10 of [1]_: no other columns and
    rows, :math:`r` together, decompose :math:`M` if

    1. :math:`M` is neither :math:`(r, 0)`- nor :math:`(0, r)`-separable, and
    2. :math:`M(K_2, K_1)` is the only block of zeros of :math:`r_3 \ge 1` columns and :math:`r_4 \ge 1` rows with
       :math:`r_3 + r_4 = r`,

    because the chosen rows and columns of every decomposition meet in zeros (Property 1).

    Parameters
    ----------
    matrix : array-like or sparse, shape (m, n)
        :math:`M`, nonnegative. A sparse matrix is made dense.
    columns, rows : sequences of r1 and r2 ints
        :math:`K_1` and :math:`K_2`.
    tolerance : float
        An entry of :math:`M`, or of a residual, at most this large counts as zero after rows and columns have
        been scaled to a maximum of one.
    max_problems : int
        Answer ``"unknown"`` rather than solve more than this many matching and least-squares problems.

    Returns
    -------
    Uniqueness

    Raises
    ------
    ValueError
        If a chosen row or column is zero, or ``M[rows, columns]`` is not zero: then this is not a decomposition.

    Notes
    -----
    The test assumes that ``columns`` and ``rows`` decompose the matrix and that no smaller choice does. If
    :math:`\mathrm{rank}(M) = r`, no smaller one can, and the explanation says so; otherwise ask `solve_exact`. Rows and
    columns of zeros are left out, since a minimal decomposition never chooses them.

    The test is exact and takes polynomial time. The rows and columns of a block of zeros through a zero
    :math:`(l, j)` are an independent set of the bipartite graph of the positive entries among the rows where
    column :math:`j` is zero and the columns where row :math:`l` is zero, so by Kőnig's theorem a maximum matching
    gives the largest such block [2]_. Another block of size :math:`r` exists if and only if one of at least that
    size goes through a zero outside :math:`M(K_2, K_1)`, and only zeros with enough others in their row and column
    are tried. :math:`M` is :math:`(r, 0)`-separable if and only if the cone of its columns has at most :math:`r`
    extreme rays: one nonnegative least squares problem for each column.

    References
    ----------
    .. [1] J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
    .. [2] J. E. Hopcroft and R. M. Karp, "An n^{5/2} algorithm for maximum matchings in bipartite graphs", SIAM
       Journal on Computing 2 (1973). doi:10.1137/0202019

    Examples
    --------
    The matrix below is (2,1)-, (1,2)-, (3,0)- and (0,3)-separable:

    >>> result = check_uniqueness([[1, 0, 2], [0, 1, 2], [0, 0, 1]], columns=[0, 1], rows=[2])
    >>> result.answer, result.pattern_columns, result.pattern_rows
    ('violated', array([1]), array([0, 2]))
    """
    checked = check_matrix(matrix)
    given = np.asarray(checked if isinstance(checked, np.ndarray) else checked.toarray(), dtype=np.float64)
    chosen_columns = check_indices(columns, given.shape[1], "columns")
    chosen_rows = check_indices(rows, given.shape[0], "rows")
    tolerance = check_positive(tolerance, "tolerance")
    budget = check_count(max_problems, "max_problems")
    scaled = equilibrate(given).matrix
    zeros = scaled <= tolerance
    _check_decomposition(zeros, given, chosen_columns, chosen_rows)
    if not (chosen_columns.size and chosen_rows.size):
        return _violated("The decomposition has columns only or rows only; the condition is about the others.")
    return _test(scaled, zeros, chosen_columns, chosen_rows, tolerance, budget)


class Equilibrated(NamedTuple):
    """A scaled matrix and the exponents of two of the factors of its rows and columns."""

    matrix: Doubles
    row_exponents: Doubles
    column_exponents: Doubles


def equilibrate(matrix: Doubles) -> Equilibrated:
    """Scale rows and columns so that every one that is not zero has the maximum one.

    First the positive entries are brought as close to one as row and column factors can, in the least-squares sense of
    their logarithms. So the result hardly depends on how the matrix was scaled before, and transposing the matrix
    transposes it.

    Examples
    --------
    >>> equilibrate(np.array([[400.0, 20.0], [1.0, 0.05]])).matrix.round(12)
    array([[1., 1.],
           [1., 1.]])
    """
    positive = matrix > 0
    logs = np.log2(matrix, where=positive, out=np.zeros(matrix.shape))
    in_row, in_column = np.maximum(positive.sum(axis=1), 1), np.maximum(positive.sum(axis=0), 1)
    rows, columns = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[1])
    for _ in range(_SCALING_PASSES):
        rows = -(logs + columns).sum(axis=1, where=positive) / in_row
        columns = -(logs + rows[:, None]).sum(axis=0, where=positive) / in_column
    for _ in range(_SCALING_PASSES):
        current = np.where(positive, logs + rows[:, None] + columns, -np.inf)
        rows -= np.where(positive.any(axis=1), current.max(axis=1), 0) / 2
        columns -= np.where(positive.any(axis=0), current.max(axis=0), 0) / 2
    return Equilibrated(np.where(positive, np.exp2(logs + rows[:, None] + columns), 0), rows, columns)


def largest_zero_block_size(zeros: Flags, row: int, column: int) -> int:
    """Number of rows and columns of the largest block of zeros through one zero."""
    block_rows, block_columns, positive = _through(zeros, row, column)
    matched = maximum_bipartite_matching(positive, perm_type="column")
    return int(block_rows.size + block_columns.size - np.count_nonzero(matched >= 0))


def largest_zero_block(zeros: Flags, row: int, column: int) -> tuple[Indices, Indices]:
    """Rows and columns of the largest block of zeros through one zero.

    Examples
    --------
    >>> zeros = np.array([[True, True, False], [True, True, False], [True, False, False]])
    >>> largest_zero_block(zeros, 0, 0)
    (array([0, 1]), array([0, 1]))
    """
    block_rows, block_columns, positive = _through(zeros, row, column)
    matched = maximum_bipartite_matching(positive, perm_type="column")
    partner = np.full(block_columns.size, -1)
    partner[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
    # Kőnig: what alternating paths from the unmatched rows reach, rows kept and columns dropped, is independent.
    reached_rows = matched < 0
    reached_columns = np.zeros(block_columns.size, dtype=bool)
    frontier = np.flatnonzero(reached_rows)
    while frontier.size:
        new_columns = np.unique(positive[frontier].indices)
        new_columns = new_columns[~reached_columns[new_columns]]
        reached_columns[new_columns] = True
        frontier = partner[new_columns]  # all matched: an unmatched one would extend a maximum matching
        reached_rows[frontier] = True
    return block_rows[reached_rows], block_columns[~reached_columns]


def extreme_columns(matrix: Doubles, tolerance: float, *, stop_above: int | None = None) -> Indices:
    """One column for each extreme ray of the cone of the columns: the first of several parallel ones.

    Parameters
    ----------
    matrix : float64 array, shape (m, n)
        Nonnegative, columns scaled to a maximum of one.
    tolerance : float
        A column is in the cone of others if its residual has no entry above this.
    stop_above : int, optional
        Return as soon as more than this many are found.

    Examples
    --------
    >>> extreme_columns(np.array([[1.0, 0.5, 0.0, 1.0], [0.0, 0.5, 1.0, 0.0]]), 1e-9)
    array([0, 2])
    """
    kept = np.asarray((matrix > 0).any(axis=0))
    dropped = []
    n_extreme = 0
    for j in np.flatnonzero(kept)[::-1]:
        kept[j] = False
        if _distance_to_cone(matrix[:, kept], matrix[:, j]) <= tolerance:
            dropped.append(j)
            continue
        kept[j] = True
        n_extreme += 1
        if stop_above is not None and n_extreme > stop_above:
            return np.flatnonzero(kept)
    for j in dropped:  # one dropped early may have depended on one dropped later
        kept[j] = _distance_to_cone(matrix[:, kept], matrix[:, j]) > tolerance
    return np.flatnonzero(kept)


def _distance_to_cone(generators: Doubles, point: Doubles) -> float:
    """Largest entry of the least squares residual."""
    return float(np.abs(generators @ cone_weights(generators, point) - point).max())


def _test(scaled: Doubles, zeros: Flags, columns: Indices, rows: Indices, tolerance: float, budget: int) -> Uniqueness:
    size = columns.size + rows.size
    usable = zeros & ~np.all(zeros, axis=1)[:, None] & ~np.all(zeros, axis=0)
    candidates = _zeros_to_try(usable, columns, rows)
    for row, column in candidates[:budget]:
        if largest_zero_block_size(usable, row, column) >= size:
            return _other_pattern(usable, row, column, size)
    n_tried = min(len(candidates), budget)
    left = budget - n_tried
    if n_tried < len(candidates) or left < sum(scaled.shape):
        return Uniqueness("unknown", None, None, f"Not decided within max_problems={budget} problems.")
    for oriented, pair in ((scaled, f"({size}, 0)"), (scaled.T, f"(0, {size})")):
        if extreme_columns(oriented, tolerance, stop_above=size).size <= size:
            return _violated(f"The matrix is also {pair}-separable.")
    minimal = (
        f"It is minimal because the rank of the matrix is {size}."
        if np.linalg.matrix_rank(scaled, tol=tolerance * np.sqrt(scaled.size)) == size
        else "This assumes that no decomposition is smaller."
    )
    return Uniqueness("unique", None, None, f"No other block of zeros has {size} rows and columns together. {minimal}")


def _zeros_to_try(usable: Flags, columns: Indices, rows: Indices) -> Indices:
    """Zeros outside the given block with enough zeros in their row and column, the most promising first."""
    bound = usable.sum(axis=0)[None, :] + usable.sum(axis=1)[:, None]
    bound[~usable] = 0
    bound[np.ix_(rows, columns)] = 0
    candidates = np.argwhere(bound >= columns.size + rows.size)
    return candidates[np.argsort(-bound[tuple(candidates.T)], kind="stable")]


def _other_pattern(usable: Flags, row: int, column: int, size: int) -> Uniqueness:
    block_rows, block_columns = largest_zero_block(usable, row, column)
    surplus = block_rows.size + block_columns.size - size
    spare_rows = block_rows[block_rows != row][:surplus]
    spare_columns = block_columns[block_columns != column][: surplus - spare_rows.size]
    pattern_rows = np.setdiff1d(block_rows, spare_rows)
    pattern_columns = np.setdiff1d(block_columns, spare_columns)
    return Uniqueness(
        "violated",
        pattern_columns,
        pattern_rows,
        f"Columns {pattern_columns.tolist()} and rows {pattern_rows.tolist()} meet in zeros too, {size} together.",
    )


def _violated(explanation: str) -> Uniqueness:
    return Uniqueness("violated", None, None, explanation)


def _through(zeros: Flags, row: int, column: int) -> tuple[Indices, Indices, sp.csr_array]:
    """The rows and columns that can share a block with a zero, and the positive entries among them."""
    block_rows, block_columns = np.flatnonzero(zeros[:, column]), np.flatnonzero(zeros[row])
    return block_rows, block_columns, sp.csr_array(~zeros[np.ix_(block_rows, block_columns)])


def _check_decomposition(zeros: Flags, matrix: Doubles, columns: Indices, rows: Indices) -> None:
    for name, chosen, empty in (("column", columns, np.all(zeros, axis=0)), ("row", rows, np.all(zeros, axis=1))):
        if empty[chosen].any():
            raise ValueError(f"{name} {chosen[empty[chosen]][0]} is zero and cannot be part of a decomposition.")
    nonzero = np.argwhere(~zeros[np.ix_(rows, columns)])
    if nonzero.size:
        row, column = rows[nonzero[0, 0]], columns[nonzero[0, 1]]
        raise ValueError(
            "matrix[rows, columns] must be zero in a generalized separable decomposition (Property 1); "
            f"got {matrix[row, column]} at row {row}, column {column}."
        )

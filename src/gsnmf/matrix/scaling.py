"""Scaling a matrix so that all its rows have one sum and all its columns have one sum (Sinkhorn-Knopp)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from gsnmf.matrix.in_memory import DenseMatrix, InMemoryMatrix, SparseMatrix
from gsnmf.matrix.input import wrap_in_memory
from gsnmf.matrix.validation import check_count, check_indices, check_positive
from gsnmf.records import Record
from gsnmf.support.arrays import Doubles, Flags, Floats, RawMatrix
from gsnmf.support.reasons import StopReason
from gsnmf.support.warning import warn_caller

Exponents: TypeAlias = NDArray[np.int32]

# All bounds are exponents of two. Entries from 2^-250 to one and factors within 2^+-400 keep every product of the
# iteration within double precision; what the caller gets stays a normal number.
_ORDINARY_RANGE = 250
_LARGEST_FACTOR = 400
_LARGEST_RETURNED_FACTOR = 1020
_LARGEST_EQUILIBRATION = 1000


DEFAULT_TOLERANCE = 1e-10
DEFAULT_MAX_ITERATIONS = 1000


@dataclass(frozen=True, eq=False)
class Scaling(Record):
    """A scaled matrix and the factors that made it; see `scale`.

    Attributes
    ----------
    matrix : ndarray, csr_array or csc_array, shape (m, n)
        The scaled matrix D_r M D_c.
    row_factors : float64 array of length m
        Diagonal of D_r, positive.
    column_factors : float64 array of length n
        Diagonal of D_c, positive.
    n_iterations : int
        Passes over rows and columns.
    residual : float
        Largest relative deviation of a row or column sum from its target, in double precision.
    converged : bool
        Whether the sums met the tolerance. A pass leaves column sums exact up to rounding, so row sums decide.
    stop_reason : StopReason
        ``"tolerance reached"``, ``"max_iterations reached"``, or ``"factors out of range"`` if the factors grew without
        bound, as they do if M has too few nonzeros.

    Examples
    --------
    >>> import gsnmf
    >>> scaling = gsnmf.scale([[1, 2], [3, 1]])
    >>> scaling.matrix.sum(axis=0).round(6)
    array([2., 2.])
    >>> scaling.converged
    True
    """

    matrix: RawMatrix
    row_factors: Doubles
    column_factors: Doubles
    n_iterations: int
    residual: float
    converged: bool
    stop_reason: StopReason

    def unscale_weights(
        self, columns: ArrayLike, rows: ArrayLike, column_weights: ArrayLike, row_weights: ArrayLike
    ) -> tuple[Floats, Floats]:
        r"""Weights of the original matrix that correspond to weights of the scaled one.

        With :math:`\tilde M = D_r M D_c`, the approximation
        :math:`\tilde M \approx \tilde M(:, K_1) \tilde P_1 + \tilde P_2 \tilde M(K_2, :)` is the same as
        :math:`M \approx M(:, K_1) P_1 + P_2 M(K_2, :)` with (Property 6 of [1]_)

        .. math:: P_1 = D_c(K_1, K_1) \tilde P_1 D_c^{-1}, \qquad P_2 = D_r^{-1} \tilde P_2 D_r(K_2, K_2).

        Parameters
        ----------
        columns, rows : sequences of r1 and r2 ints
            The selected indices :math:`K_1` and :math:`K_2`.
        column_weights : array-like, shape (r1, n)
            :math:`\tilde P_1`.
        row_weights : array-like, shape (m, r2)
            :math:`\tilde P_2`.

        Returns
        -------
        column_weights, row_weights : arrays of the same shapes
            :math:`P_1` and :math:`P_2`. A best fit of the scaled matrix is in general not a best fit of the
            original one, whose errors are weighted differently, unless it is exact.

        References
        ----------
        .. [1] J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE
           Transactions on Pattern Analysis and Machine Intelligence 43 (2021).
           doi:10.1109/TPAMI.2019.2956046

        Examples
        --------
        >>> import numpy as np
        >>> M = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 4.0]])  # the last column is the sum of the others
        >>> scaling = scale(M)
        >>> S = scaling.matrix
        >>> scaled_weights = np.linalg.solve(S[:, :2], S)
        >>> P1, P2 = scaling.unscale_weights([0, 1], [], scaled_weights, np.empty((2, 0)))
        >>> np.abs(P1.round(8))
        array([[1., 0., 1.],
               [0., 1., 1.]])
        """
        m, n = self.row_factors.size, self.column_factors.size
        chosen_columns = check_indices(columns, n, "columns")
        chosen_rows = check_indices(rows, m, "rows")
        P1 = _check_weights(column_weights, (chosen_columns.size, n), "column_weights")
        P2 = _check_weights(row_weights, (m, chosen_rows.size), "row_weights")
        return (
            _times_ratio(P1, self.column_factors[chosen_columns][:, None], self.column_factors[None, :]),
            _times_ratio(P2, self.row_factors[chosen_rows][None, :], self.row_factors[:, None]),
        )


def scale(
    matrix: Any, *, tolerance: float = DEFAULT_TOLERANCE, max_iterations: int = DEFAULT_MAX_ITERATIONS
) -> Scaling:
    r"""Scale the rows and columns of a nonnegative matrix to equal sums, by the Sinkhorn-Knopp algorithm.

    For a matrix :math:`M` without zero rows and columns, find positive diagonal matrices with

    .. math:: D_r M D_c e = n e, \qquad e^T D_r M D_c = m e^T,

    so that :math:`D_r M D_c` is *scaled* (Definition 2 of [1]_) and its mean entry is one. Scaling keeps a
    generalized separable matrix separable, with the same rows and columns (see `Scaling.unscale_weights`).

    Parameters
    ----------
    matrix : array-like or sparse array, shape (m, n)
        Nonnegative. Zero rows and columns stay zero and get the factor one; m and n above are then the
        numbers of rows and columns that are not zero, so that the part without them has mean entry one.
    tolerance : float
        Stop when every row and column sum is within this relative distance of its target.
    max_iterations : int
        Stop after this many passes over rows and columns.

    Returns
    -------
    Scaling
        The scaled matrix has the kind and precision of the input. CSC stays CSC, other sparse formats give CSR.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the sums are not equal to within the tolerance. The result is then what the last pass left (column
        sums exact, row sums off by ``residual``); it is always finite.

    Notes
    -----
    A pass multiplies the factors, not the matrix,

    .. math:: r_i \leftarrow n / (M c)_i, \qquad c_j \leftarrow m / (M^T r)_j,

    at the cost of two products with the matrix. It needs memory for one copy in double precision, which becomes the
    result. Convergence is linear if the zeros of M allow a scaling, with a rate given by the second singular value of
    the scaled matrix [2]_. They do not always: a zero block of a rows and b columns needs a / m + b / n < 1, or = 1 if
    the complementary block is zero too. Otherwise some entries can only tend to zero (``[[1, 1], [0, 1]]``, where the
    error is about one over twice the number of passes), or the sums cannot even be approached and the factors grow
    geometrically. Large sparse matrices are often of this kind.

    The pair (D_r, D_c) is unique only up to a constant; the one returned has the smallest range of
    magnitudes. If entries are extreme, a first equilibration by powers of two [3]_, which rounds nothing,
    keeps all products within range. A float32 matrix is scaled in double precision and rounded once.

    References
    ----------
    .. [1] J. Pan and N. Gillis, "Generalized separable nonnegative matrix factorization", IEEE Transactions
       on Pattern Analysis and Machine Intelligence 43 (2021). doi:10.1109/TPAMI.2019.2956046
    .. [2] P. A. Knight, "The Sinkhorn-Knopp algorithm: convergence and applications", SIAM Journal on Matrix
       Analysis and Applications 30 (2008). doi:10.1137/060659624
    .. [3] D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", report
       RAL-TR-2001-034, Rutherford Appleton Laboratory (2001).

    Examples
    --------
    >>> import numpy as np
    >>> scaling = scale([[1.0, 2.0], [3.0, 4.0]])
    >>> scaling.matrix.round(4)
    array([[0.899, 1.101],
           [1.101, 0.899]])
    >>> scaling.matrix.sum(axis=0), scaling.matrix.sum(axis=1)
    (array([2., 2.]), array([2., 2.]))
    """
    limit = check_positive(tolerance, "tolerance")
    passes = check_count(max_iterations, "max_iterations")
    return scaling_of(wrap_in_memory(matrix), tolerance=limit, max_iterations=passes)


def scaling_of(
    matrix: InMemoryMatrix, *, tolerance: float = DEFAULT_TOLERANCE, max_iterations: int = DEFAULT_MAX_ITERATIONS
) -> Scaling:
    """`scale` for a matrix that has been checked."""
    if not isinstance(matrix, DenseMatrix | SparseMatrix):
        raise TypeError(f"scaling needs the entries of the matrix themselves; got a {type(matrix).__name__}.")
    scaling = _scale(matrix.data, tolerance, max_iterations)
    if not scaling.converged:
        warn_caller(_advice(scaling, tolerance), ConvergenceWarning)
    return scaling


def _scale(matrix: RawMatrix, tolerance: float, max_iterations: int) -> Scaling:
    work, row_exponents, column_exponents = _working_copy(matrix)
    spread = max(np.abs(row_exponents).max(), np.abs(column_exponents).max())
    largest = 2.0 ** min(_LARGEST_FACTOR, _LARGEST_RETURNED_FACTOR - spread)
    live_rows = work @ np.ones(work.shape[1]) > 0
    live_columns = work.T @ np.ones(work.shape[0]) > 0
    row_target, column_target = float(live_columns.sum()), float(live_rows.sum())

    r, c = np.ones(work.shape[0]), np.ones(work.shape[1])
    row_sums = work @ c
    n_iterations = 0
    stop_reason = StopReason.MAX_ITERATIONS_REACHED
    while n_iterations < max_iterations:
        next_r = _factors(row_target, row_sums, live_rows, largest)
        next_c = None if next_r is None else _factors(column_target, work.T @ next_r, live_columns, largest)
        if next_r is None or next_c is None:
            stop_reason = StopReason.OUT_OF_RANGE
            break
        r, c = next_r, next_c
        row_sums = work @ c
        n_iterations += 1
        if _deviation(r * row_sums, row_target, live_rows) <= tolerance:  # column sums are exact here
            stop_reason = StopReason.TOLERANCE_REACHED
            break

    residual = max(
        _deviation(r * row_sums, row_target, live_rows),
        _deviation(c * (work.T @ r), column_target, live_columns),
    )
    row_factors, column_factors = _centred(r, row_exponents, c, column_exponents, live_rows, live_columns)
    return Scaling(
        matrix=_multiplied(work, r, c).astype(matrix.dtype, copy=False),
        row_factors=row_factors,
        column_factors=column_factors,
        n_iterations=n_iterations,
        residual=residual,
        converged=stop_reason == StopReason.TOLERANCE_REACHED,
        stop_reason=stop_reason,
    )


def _factors(target: float, sums: Doubles, live: Flags, largest: float) -> Doubles | None:
    """Factors that bring ``sums`` to ``target``, one where all is zero; None if they leave the safe range."""
    with np.errstate(over="ignore", divide="ignore"):
        factors = np.where(live, target / np.where(live, sums, 1.0), 1.0)
    return factors if factors.max() <= largest and factors.min() >= 1.0 / largest else None


def _deviation(sums: Doubles, target: float, live: Flags) -> float:
    return float(np.abs(sums[live] / target - 1.0).max(initial=0.0))


def _working_copy(matrix: RawMatrix) -> tuple[RawMatrix, Exponents, Exponents]:
    """2^a M 2^b in double precision, with the integer vectors a and b.

    The largest entry is about one, so a matrix and its multiples by powers of two have the same working copy.
    """
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    unit = math.frexp(float(entries.max(initial=0.0)))[1]
    smallest = math.frexp(float(entries.min(where=entries > 0, initial=np.inf)))[1]
    if smallest >= unit - _ORDINARY_RANGE:
        a, b = np.zeros(matrix.shape[0], dtype=np.int32), np.zeros(matrix.shape[1], dtype=np.int32)
        return _in_unit(matrix, unit), *_shared_unit(a, b, unit)
    coordinates = sp.coo_array(matrix, dtype=np.float64)
    a, b = _equilibration(coordinates, unit)
    data = np.ldexp(coordinates.data, a[coordinates.row] + b[coordinates.col] - unit)
    equilibrated = sp.coo_array((data, (coordinates.row, coordinates.col)), shape=matrix.shape)
    exponents = _shared_unit(a, b, unit)
    if isinstance(matrix, np.ndarray):
        return equilibrated.toarray(), *exponents
    return equilibrated.tocsc() if matrix.format == "csc" else equilibrated.tocsr(), *exponents


def _in_unit(matrix: RawMatrix, unit: int) -> RawMatrix:
    """A copy of a matrix in double precision and in units of two to the power ``unit``."""
    copy = matrix.astype(np.float64, copy=True)
    entries = copy if isinstance(copy, np.ndarray) else copy.data
    np.ldexp(entries, -unit, out=entries)
    return copy


def _shared_unit(a: Any, b: Any, unit: int) -> tuple[Any, Any]:
    """The exponents for the original matrix, balanced between rows and columns so that their range is smallest."""
    shift = int(np.rint(_shift(a - unit, b)))
    return a - unit + shift, b - shift


def _equilibration(coordinates: sp.coo_array, unit: int) -> tuple[Exponents, Exponents]:
    """Exponents a, b such that the largest entry of every row and column of 2^a M 2^b 2^-unit is about one."""
    rows, columns = coordinates.row, coordinates.col
    mantissas, exponents = np.frexp(coordinates.data)
    logarithms = np.log2(mantissas) + (exponents - unit)
    a, b = np.zeros(coordinates.shape[0]), np.zeros(coordinates.shape[1])
    first = a, b
    for step in range(64):  # every step halves the logarithms, none of which exceeds 2200
        current = logarithms + a[rows] + b[columns]
        row_peaks, column_peaks = _largest(current, rows, a.size), _largest(current, columns, b.size)
        a, b = a - row_peaks / 2, b - column_peaks / 2
        if step == 0:
            first = a, b
        if max(np.abs(row_peaks).max(), np.abs(column_peaks).max()) < 0.5:
            break
    centred = np.concatenate(_shared_unit(a, b, unit))
    if np.abs(centred).max() > _LARGEST_EQUILIBRATION:
        a, b = first  # within 540 of the unit by construction, no entry above one: finite, though not equilibrated
    return np.rint(a).astype(np.int32), np.rint(b).astype(np.int32)


def _largest(values: Doubles, positions: NDArray[Any], length: int) -> Doubles:
    """The largest value at each position, zero where there is none."""
    peaks = np.full(length, -np.inf)
    np.maximum.at(peaks, positions, values)
    return np.where(np.isfinite(peaks), peaks, 0.0)


def _shift(a: Doubles, b: Doubles) -> float:
    """The constant k that minimises the largest absolute value among a + k and b - k."""
    return float(max((-a).max(), b.max()) - max(a.max(), (-b).max())) / 2


def _centred(
    r: Doubles,
    row_exponents: Exponents,
    c: Doubles,
    column_exponents: Exponents,
    live_rows: Flags,
    live_columns: Flags,
) -> tuple[Doubles, Doubles]:
    """The factors of the original matrix, with the constant between them that makes their range smallest."""
    if not live_rows.any():
        return np.ones_like(r), np.ones_like(c)
    row_logarithms = np.asarray(np.log2(r) + row_exponents, dtype=np.float64)
    column_logarithms = np.asarray(np.log2(c) + column_exponents, dtype=np.float64)
    shift = _shift(row_logarithms[live_rows], column_logarithms[live_columns])
    whole = int(np.rint(shift))
    part = 2.0 ** (shift - whole)
    row_factors = np.ldexp(r * part, row_exponents + whole)
    column_factors = np.ldexp(c / part, column_exponents - whole)
    return np.where(live_rows, row_factors, 1.0), np.where(live_columns, column_factors, 1.0)


def _multiplied(work: RawMatrix, r: Doubles, c: Doubles) -> RawMatrix:
    """D_r ``work`` D_c, in place."""
    if isinstance(work, np.ndarray):
        work *= r[:, None]
        work *= c
        return work
    major, minor = (c, r) if work.format == "csc" else (r, c)
    work.data *= np.repeat(major, np.diff(work.indptr))
    work.data *= minor[work.indices]
    return work


def _check_weights(weights: ArrayLike, shape: tuple[int, int], name: str) -> Floats:
    array = np.asarray(weights)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _times_ratio(weights: Floats, numerator: Doubles, denominator: Doubles) -> Floats:
    """``weights * numerator / denominator`` in the type of the weights; a ratio alone may overflow."""
    top, top_exponent = np.frexp(numerator)
    bottom, bottom_exponent = np.frexp(denominator)
    product = np.ldexp(weights * (top / bottom), top_exponent - bottom_exponent)
    return np.asarray(product, dtype=weights.dtype)


def _advice(scaling: Scaling, tolerance: float) -> str:
    found = (
        f"Scaling stopped after {scaling.n_iterations} iterations with a row or column sum off by "
        f"{scaling.residual:.2e} of its target; tolerance {tolerance:.2e}."
    )
    if scaling.stop_reason == StopReason.OUT_OF_RANGE:
        return (
            f"{found} The factors grow without bound: the matrix has too few nonzeros, or too different "
            "ones, to be scaled. Use it unscaled, or remove its sparsest rows and columns."
        )
    return (
        f"{found} Raise max_iterations or tolerance. If that does not help, the matrix has too few nonzeros "
        "to be scaled: use it unscaled, or remove its sparsest rows and columns."
    )

"""Where a nonnegative factorization starts: random factors, singular vectors, chosen columns and rows, or given ones.

References
----------
C. Boutsidis, E. Gallopoulos, SVD based initialization: a head start for nonnegative matrix factorization, Pattern
Recognition 41 (2008), doi:10.1016/j.patcog.2007.09.010.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gsnmf.matrix import InMemoryMatrix
from gsnmf.matrix.singular_values import singular_triplets
from gsnmf.matrix.validation import check_indices
from gsnmf.nmf.alternating import inner, times, unit_exponents
from gsnmf.records import Selection
from gsnmf.result import Factorization
from gsnmf.selection.successive_projection import generalized_successive_projection
from gsnmf.support.arrays import Floats
from gsnmf.weights import solve_weights

_WEIGHT_TOLERANCE = 1e-2
"""Tolerance for the weights of chosen columns and rows; the factorization goes on from there."""

NAMED_STARTS = ("random", "nndsvd", "selection")


def initial_factors(matrix: InMemoryMatrix, rank: int, init: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """W' (r x m) and H (r x n) to start from, in the unit in which the matrix is held; see `gsnmf.nmf.hals`."""
    if matrix.squared_norm == 0:
        m, n = matrix.shape
        return np.zeros((rank, m), dtype=matrix.dtype), np.zeros((rank, n), dtype=matrix.dtype)
    if isinstance(init, Selection | Factorization):
        return _from_selection(matrix, rank, init, rng)
    if isinstance(init, tuple | list) and len(init) == 2:
        return _given(matrix, rank, *init)
    if not isinstance(init, str) or init not in NAMED_STARTS:
        names = ", ".join(map(repr, NAMED_STARTS))
        raise ValueError(f"init must be {names}, a pair (W, H), a Selection or a Factorization; got {init!r}.")
    if init == "random":
        return _scaled(matrix, *_random_factors(matrix, rank, rng))
    if init == "nndsvd":
        return _scaled(matrix, *_from_singular_vectors(matrix, rank))
    return _from_selection(matrix, rank, generalized_successive_projection(matrix, rank), rng)


def _random_factors(matrix: InMemoryMatrix, rank: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Absolute values of normal numbers."""
    W, H = (np.abs(rng.standard_normal((rank, length))).astype(matrix.dtype) for length in matrix.shape)
    return W, H


def _scaled(matrix: InMemoryMatrix, W: Floats, H: Floats) -> tuple[Floats, Floats]:
    """The same factors, scaled by the common number that makes W H closest to the matrix."""
    explained = inner(W @ W.T, H @ H.T)
    factor = inner(times(matrix.T, W), H) / explained if explained > 0 else 0.0
    left, right = _roots(factor)
    return W * W.dtype.type(left), H * H.dtype.type(right)


def _roots(value: float) -> tuple[float, float]:
    """Two numbers of about the same size with product ``value``; a power of two in it changes no digit of either."""
    mantissa, exponent = math.frexp(value)
    root = math.sqrt(mantissa)
    return math.ldexp(root, exponent - exponent // 2), math.ldexp(root, exponent // 2)


def _from_singular_vectors(matrix: InMemoryMatrix, rank: int) -> tuple[Floats, Floats]:
    """NNDSVD: of each pair of singular vectors, the positive or the negative parts, whichever are larger together."""
    if rank > min(matrix.shape):
        raise ValueError(
            f"rank must be in [1, {min(matrix.shape)}] for init='nndsvd' and a matrix of shape {matrix.shape}; "
            f"got {rank}."
        )
    U, values, V = singular_triplets(matrix, rank)
    W, H = (np.empty((rank, length), dtype=matrix.dtype) for length in matrix.shape)
    for k in range(rank):
        pairs = [(np.maximum(sign * U[:, k], 0), np.maximum(sign * V[:, k], 0)) for sign in (1, -1)]
        lengths = [float(np.linalg.norm(u) * np.linalg.norm(v)) for u, v in pairs]
        (u, v), length = pairs[int(np.argmax(lengths))], max(lengths)
        left, right = _roots(float(values[k]) * length)
        W[k] = left * u / (np.linalg.norm(u) or 1.0)
        H[k] = right * v / (np.linalg.norm(v) or 1.0)
    return W, H


def _from_selection(
    matrix: InMemoryMatrix, rank: int, chosen: Selection | Factorization, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """[M[:, columns], P2] and [P1; M[rows, :]]; components that are missing are random in W and zero in H."""
    m, n = matrix.shape
    columns, rows = check_indices(chosen.columns, n, "columns"), check_indices(chosen.rows, m, "rows")
    missing = rank - columns.size - rows.size
    if missing < 0:
        raise ValueError(f"init must have at most {rank} columns and rows, the rank; got {rank - missing}.")
    weights = (
        chosen
        if isinstance(chosen, Factorization)
        else solve_weights(matrix, columns, rows, tolerance=_WEIGHT_TOLERANCE, max_iterations=100)
    )
    if weights.column_weights.shape != (columns.size, n) or weights.row_weights.shape != (m, rows.size):
        raise ValueError(f"init must be a Factorization of a matrix of shape {(m, n)}; its weights have other shapes.")
    noise = np.abs(rng.standard_normal((missing, m)))
    W = np.vstack([matrix.columns(columns).T, weights.row_weights.T, noise])
    H = np.vstack([weights.column_weights, matrix.T.columns(rows).T, np.zeros((missing, n))])
    return np.ascontiguousarray(W, dtype=matrix.dtype), np.ascontiguousarray(H, dtype=matrix.dtype)


def _given(matrix: InMemoryMatrix, rank: int, W: Any, H: Any) -> tuple[Floats, Floats]:
    m, n = matrix.shape
    factors = []
    names = (("W", W, (m, rank)), ("H", H, (rank, n)))
    for (name, factor, shape), exponent in zip(names, unit_exponents(matrix.exponent), strict=True):
        array = np.asarray(factor, dtype=matrix.dtype)
        if array.shape != shape or not np.all(array >= 0) or not np.all(np.isfinite(array)):
            raise ValueError(
                f"init must give a nonnegative {name} of shape {shape}; got shape {array.shape}"
                + ("." if array.shape != shape else " with a negative or infinite entry or NaN.")
            )
        factors.append(np.ldexp(array, -exponent))
    return np.ascontiguousarray(factors[0].T), np.ascontiguousarray(factors[1])

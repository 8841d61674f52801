"""What the library is measured against: each the usual way to do the job, as good as a few lines can make it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.optimize import nnls
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import ConvergenceWarning

from gsnmf._kernels.least_squares import nonnegative_least_squares
from gsnmf._parallel import single_threaded_blas
from gsnmf.support.arrays import Doubles, Floats, Indices


def explicit_residual(matrix: Floats, rank: int) -> list[tuple[str, int]]:
    """GSPA to the letter (Algorithm 3 of the paper), with the residual in memory, as pairs of axis and index."""
    residual = matrix.copy()
    m, n = residual.shape
    chosen = []
    for _ in range(rank):
        column_norms = np.einsum("ij,ij->j", residual, residual)
        row_norms = np.einsum("ij,ij->i", residual, residual)
        p, q = int(column_norms.argmax()), int(row_norms.argmax())
        if n * column_norms[p] >= m * row_norms[q]:
            u = residual[:, p] / np.sqrt(column_norms[p])
            residual -= np.outer(u, u @ residual)
            chosen.append(("columns", p))
        else:
            v = residual[q] / np.sqrt(row_norms[q])
            residual -= np.outer(residual @ v, v)
            chosen.append(("rows", q))
    return chosen


def pivoted_qr(matrix: Floats, rank: int) -> list[tuple[str, int]]:
    """SPA on columns as the first pivots of LAPACK's QR, which cannot stop early."""
    _, pivots = linalg.qr(matrix, mode="r", pivoting=True, check_finite=False)
    return [("columns", int(pivot)) for pivot in pivots[:rank]]


def passes(matrix: Floats, rank: int) -> None:
    """The least that GSPA can cost: a product with the matrix and one with its transpose for each index."""
    x, y = np.ones(matrix.shape[1], dtype=matrix.dtype), np.ones(matrix.shape[0], dtype=matrix.dtype)
    for _ in range(rank):
        matrix @ x
        matrix.T @ y


def reduced_nnls(matrix: Floats, columns: Indices) -> Doubles:
    """Weights of columns by `scipy.optimize.nnls` for each column, after a QR decomposition has made them short."""
    orthogonal, triangle = linalg.qr(matrix[:, columns], mode="economic", check_finite=False)
    targets = np.ascontiguousarray((orthogonal.T @ matrix).T)
    return np.column_stack([nnls(triangle, target)[0] for target in targets])


def coordinate_descent(matrix: Floats, columns: Indices, tolerance: float) -> Doubles:
    """Weights of columns by scikit-learn's coordinate descent with one factor fixed.

    scikit-learn fixes H, so the problem is passed to it transposed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W, _, _ = non_negative_factorization(
            matrix.T,
            H=np.ascontiguousarray(matrix[:, columns].T),
            n_components=columns.size,
            update_H=False,
            solver="cd",
            tol=tolerance,
            max_iter=10000,
        )
    return np.asarray(W.T)


@dataclass(frozen=True)
class Alternation:
    """Where alternating between the two sides ended."""

    relative_error: float
    n_rounds: int
    reached: bool


def alternating_nnls(
    matrix: Floats, columns: Indices, rows: Indices, *, relative_error: float, max_seconds: float
) -> Alternation:
    """Joint weights by solving for the column weights and the row weights in turn, each exactly, down to an error.

    Each side is reduced by a QR decomposition once, and solved by this library's own kernel from where it was, so that
    the comparison is one of the methods and not of their implementations.
    """
    norm, deadline = np.linalg.norm(matrix), time.perf_counter() + max_seconds
    C = matrix[:, columns] / np.linalg.norm(matrix[:, columns], axis=0)
    R = (matrix[rows] / np.linalg.norm(matrix[rows], axis=1, keepdims=True)).T
    (basis_C, triangle_C), (basis_R, triangle_R) = np.linalg.qr(C), np.linalg.qr(R)
    P, Q = np.zeros((matrix.shape[1], columns.size)), np.zeros((matrix.shape[0], rows.size))
    n_rounds = 0
    with single_threaded_blas():
        while True:
            n_rounds += 1
            nonnegative_least_squares(P, triangle_C, np.ascontiguousarray((matrix - Q @ R.T).T @ basis_C))
            remainder = matrix - C @ P.T
            nonnegative_least_squares(Q, triangle_R, np.ascontiguousarray(remainder @ basis_R))
            error = float(np.linalg.norm(remainder - Q @ R.T) / norm)
            if error <= relative_error or time.perf_counter() > deadline:
                return Alternation(error, n_rounds, error <= relative_error)

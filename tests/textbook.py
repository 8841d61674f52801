"""Textbook versions of the algorithms, with an explicit residual, to compare with."""

import numpy as np


def generalized_successive_projection(matrix, rank):
    """Algorithm 3 of the paper to the letter, with exactly ``rank`` steps: [("c", 3), ("r", 0), ...]."""
    residual = np.array(matrix, dtype=np.float64)
    m, n = residual.shape
    chosen = []
    for _ in range(rank):
        column_norms = np.einsum("ij,ij->j", residual, residual)
        row_norms = np.einsum("ij,ij->i", residual, residual)
        p, q = int(column_norms.argmax()), int(row_norms.argmax())
        if n * column_norms[p] >= m * row_norms[q]:
            u = residual[:, p] / np.linalg.norm(residual[:, p])
            residual = residual - np.outer(u, u @ residual)
            chosen.append(("c", p))
        else:
            v = residual[q] / np.linalg.norm(residual[q])
            residual = residual - np.outer(residual @ v, v)
            chosen.append(("r", q))
    return chosen


def successive_projection(matrix, rank):
    """SPA on columns."""
    residual = np.array(matrix, dtype=np.float64)
    chosen = []
    for _ in range(rank):
        norms = np.einsum("ij,ij->j", residual, residual)
        p = int(norms.argmax())
        u = residual[:, p] / np.linalg.norm(residual[:, p])
        residual = residual - np.outer(u, u @ residual)
        chosen.append(p)
    return chosen


def in_order(selection):
    """The picks of a Selection in the order of choice."""
    columns, rows = iter(selection.columns.tolist()), iter(selection.rows.tolist())
    return [(letter, next(columns if letter == "c" else rows)) for letter in selection.order]

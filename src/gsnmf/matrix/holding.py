"""Arrays that are known to be right, held as a `Matrix`."""

from __future__ import annotations

import numpy as np

from gsnmf.matrix.dense import DenseMatrix
from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.sparse import SparseMatrix
from gsnmf.support.arrays import RawMatrix


def hold(matrix: RawMatrix, largest: float | None = None) -> InMemoryMatrix:
    """Hold a matrix that is known to be right; ``largest`` is its largest entry, if known."""
    return DenseMatrix(matrix, largest) if isinstance(matrix, np.ndarray) else SparseMatrix(matrix, largest)

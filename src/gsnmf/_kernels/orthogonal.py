"""Orthogonal factorization of a few columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from gsnmf._parallel import single_threaded_blas
from gsnmf.support.arrays import Doubles


def orthogonal_factors(block: Doubles, *, overwrite: bool = False) -> tuple[Doubles, Doubles]:
    """Q and R of a QR factorization of a block, both as wide as the block even if it is wider than tall.

    With ``overwrite``, Q may take the memory of the block.
    """
    with single_threaded_blas():  # threads gain nothing on few columns and lose much on a busy machine
        factors: tuple[Any, Any] = linalg.qr(block, mode="economic", overwrite_a=overwrite, check_finite=False)
    orthogonal, triangle = factors
    missing = triangle.shape[1] - triangle.shape[0]
    if missing > 0:  # more columns than rows
        triangle = np.vstack([triangle, np.zeros((missing, triangle.shape[1]))])
        orthogonal = np.hstack([orthogonal, np.zeros((orthogonal.shape[0], missing))])
    return orthogonal, np.ascontiguousarray(triangle)

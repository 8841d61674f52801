"""Sums over the rows of an array."""

from __future__ import annotations

import numpy as np

from gsnmf._kernels.loops import loop
from gsnmf.support.arrays import Doubles


def positive_squares(rows: Doubles) -> Doubles:
    """Sum of the squares of the positive entries of each row.

    Examples
    --------
    >>> positive_squares(np.array([[1.0, -2.0, 3.0], [-1.0, 0.0, -1.0]]))
    array([10.,  0.])
    """
    sums = np.empty(rows.shape[0])
    _sum_rows(rows, sums, work=8 * rows.size)
    return sums


@loop(reordered=True)
def _sum_rows(rows: Doubles, sums: Doubles, first: int, stride: int) -> None:
    for i in range(first, rows.shape[0], stride):
        row = rows[i]
        total = 0.0
        for j in range(row.size):
            value = max(0.0, row[j])
            total += value * value
        sums[i] = total

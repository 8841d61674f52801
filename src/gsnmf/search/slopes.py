r"""Sums over the slopes of all candidates, which are formed block by block and never all at once.

The slopes of candidate columns are M_j'E = M_j'M - (M_j'W) H for a factorization W H with residual E. A block of them
stays in the processor's cache from the product to the sum, so the only large array that is read is M_j'M. The blocks do
not depend on the number of threads, and neither do the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gsnmf._parallel import ThreadBudget
from gsnmf.matrix.protocol import dense
from gsnmf.support.arrays import Doubles, Floats, Vectors

_WIDTH = 1 << 13
"""Slopes of one candidate that are formed at a time."""
_BLOCK = 1 << 16
"""Slopes of several candidates that are formed at a time: half a megabyte."""
_GROUP = 64
"""Candidates that one thread takes at a time."""

Reduction = Callable[[Doubles, Doubles, Doubles], Doubles]
"""Sums over slopes, shape (c, n), given the coefficients, shape (c, r), and the right factors, shape (r, n)."""


def sums_over_slopes(
    products: Floats, coefficients: Doubles, factors: Sequence[Vectors], reduction: Reduction, threads: ThreadBudget
) -> Doubles:
    """Reduce the slopes ``products - coefficients @ H`` of every candidate.

    Parameters
    ----------
    products : array, shape (c, n)
        M_j'M for candidates j.
    coefficients : array, shape (c, r)
        M_j'W.
    factors : sequence of arrays, each with n rows
        Side by side, they are the transpose of H.
    reduction : callable
        Applied to every block; blocks of the same candidates are added.
    threads : ThreadBudget

    Returns
    -------
    array
        One row (or number) per candidate.
    """
    n_candidates, length = products.shape
    if products.size == 0:
        return reduction(np.zeros(products.shape), coefficients, np.zeros((coefficients.shape[1], length)))
    groups = [slice(start, min(start + _GROUP, n_candidates)) for start in range(0, n_candidates, _GROUP)]
    pieces = [
        (group, slice(start, min(start + _WIDTH, length))) for group in groups for start in range(0, length, _WIDTH)
    ]

    def reduced(piece: tuple[slice, slice]) -> Doubles:
        group, across = piece
        H = np.ascontiguousarray(np.hstack([dense(factor[across]) for factor in factors]).T, dtype=np.float64)
        step = max(1, _BLOCK // H.shape[1])
        buffer = np.empty(min(step, group.stop - group.start) * H.shape[1])
        found = []
        for start in range(group.start, group.stop, step):
            part = slice(start, min(start + step, group.stop))
            slopes = buffer[: (part.stop - part.start) * H.shape[1]].reshape(-1, H.shape[1])
            np.matmul(coefficients[part], H, out=slopes)
            np.subtract(products[part, across], slopes, out=slopes)
            found.append(reduction(slopes, coefficients[part], H))
        return np.concatenate(found)

    results = threads.map(reduced, pieces)
    n_across = len(pieces) // len(groups)
    return np.concatenate([sum(results[i : i + n_across]) for i in range(0, len(pieces), n_across)])

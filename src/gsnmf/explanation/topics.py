"""What the factors of a factorization stand for, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gsnmf.matrices.checks import is_dask
from gsnmf.support.arrays import Floats, Indices


@dataclass(frozen=True)
class Factor:
    """One chosen column or row, and what it stands for.

    Attributes
    ----------
    kind, name : str
        ``"word"`` and the word, for instance.
    columns, rows : tuples of str
        The columns and the rows of the matrix in which the factor is strongest, itself left out.
    """

    kind: str
    name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def describe_factors(
    W: Floats,
    H: Floats,
    chosen: Sequence[tuple[str, str]],
    column_names: Sequence[object],
    row_names: Sequence[object],
    *,
    n_columns: int = 4,
    n_rows: int = 4,
) -> tuple[Factor, ...]:
    """Each factor with the columns in which its row of H and the rows in which its column of W are largest.

    Parameters
    ----------
    W, H : arrays, shape (m, r) and (r, n)
        The factorization.
    chosen : sequence of pairs (kind, name)
        What each factor is; its name is left out among the columns and rows in which it is strongest.
    column_names, row_names : sequences
        Names of the n columns of H and of the m rows of W.
    n_columns, n_rows : int
        How many of them to give, at most.

    Examples
    --------
    >>> import numpy as np
    >>> W, H = np.array([[1.0], [3.0]]), np.array([[0.0, 2.0, 1.0]])
    >>> describe_factors(W, H, [("word", "sun")], ["rain", "sun", "sky"], ["a", "b"])
    (Factor(kind='word', name='sun', columns=('sky',), rows=('b', 'a')),)
    """
    return tuple(
        Factor(
            kind,
            name,
            _strongest(H[k], column_names, name, n_columns),
            _strongest(W[:, k], row_names, name, n_rows),
        )
        for k, (kind, name) in enumerate(chosen)
    )


def strongest(values: Floats, count: int | None = None) -> Indices:
    """Positions of the largest positive values, at most ``count`` of them, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> strongest(np.array([0.0, 2.0, 5.0, 2.0]), 2)
    array([2, 1])
    """
    positive = np.flatnonzero(values > 0)
    return positive[np.argsort(-values[positive], kind="stable")][:count]


def strongest_rows(W: Floats, count: int) -> list[tuple[Indices, Floats]]:
    """Positions and values of the largest positive entries of each column; of a Dask array, too, they are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> strongest_rows(np.array([[0.0, 2.0], [5.0, 3.0]]), 1)
    [(array([1]), array([5.])), (array([1]), array([3.]))]
    """
    if is_dask(W):
        from gsnmf.matrices.chunked.arrays import in_chunks_of_rows

        found = in_chunks_of_rows(W, partial(strongest_rows, count=count))
        parts = [
            (
                np.concatenate([start + chunk[k][0] for start, chunk in found]),
                np.concatenate([chunk[k][1] for _, chunk in found]),
            )
            for k in range(W.shape[1])
        ]
    else:
        parts = [(np.arange(W.shape[0]), column) for column in W.T]
    best = [strongest(values, count) for _, values in parts]
    return [(positions[at], values[at]) for (positions, values), at in zip(parts, best, strict=True)]


def _strongest(values: Floats, names: Sequence[object], itself: str, count: int) -> tuple[str, ...]:
    """Names of the largest positive values, without the factor's own."""
    return tuple([str(names[i]) for i in strongest(values) if str(names[i]) != itself][:count])

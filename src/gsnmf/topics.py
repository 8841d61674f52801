"""What the factors of a factorization stand for, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsnmf.validation import Floats, Indices


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
    column_names: Sequence[str],
    row_names: Sequence[str],
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
    column_names, row_names : sequences of str
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


def _strongest(values: Floats, names: Sequence[str], itself: str, count: int) -> tuple[str, ...]:
    """Names of the largest positive values, without the factor's own."""
    return tuple([names[i] for i in strongest(values) if names[i] != itself][:count])

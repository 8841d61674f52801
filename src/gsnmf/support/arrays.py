"""Names of the array types that the whole library speaks of."""

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
"""Single or double precision."""

Doubles: TypeAlias = NDArray[np.float64]

Indices: TypeAlias = NDArray[np.intp]

Flags: TypeAlias = NDArray[np.bool_]

Sparse: TypeAlias = sp.csr_array | sp.csc_array

Vectors: TypeAlias = Doubles | sp.csr_array
"""A few columns side by side, of which only the nonzero entries may be held."""

RawMatrix: TypeAlias = Floats | Sparse
"""A matrix in memory that has been checked, as NumPy or SciPy holds it."""

Axis: TypeAlias = Literal["columns", "rows"]
"""What is chosen from a matrix."""

Axes: TypeAlias = tuple[Axis, ...]

COLUMNS_AND_ROWS: Axes = ("columns", "rows")
COLUMNS_ALONE: Axes = ("columns",)


def axes_of(n_columns: int, n_rows: int) -> Axes:
    """The axis of each index where columns come first, then rows.

    Examples
    --------
    >>> axes_of(2, 1)
    ('columns', 'columns', 'rows')
    """
    columns: Axes = ("columns",)
    rows: Axes = ("rows",)
    return columns * n_columns + rows * n_rows

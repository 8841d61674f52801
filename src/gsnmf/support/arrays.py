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

RawMatrix: TypeAlias = Floats | Sparse
"""A matrix in memory that has been checked, as NumPy or SciPy holds it."""

Axis: TypeAlias = Literal["columns", "rows"]
"""What is chosen from a matrix."""

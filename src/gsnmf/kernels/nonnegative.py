"""Names of kernels under the module that they were in; import them from where they are."""

from __future__ import annotations

from gsnmf.kernels.coordinate_descent import coordinate_sweep
from gsnmf.kernels.least_squares import nonnegative_least_squares, nonnegative_quadratic, passive_inverses
from gsnmf.kernels.reductions import positive_squares
from gsnmf.kernels.sparse_products import sparse_gram_rows

__all__ = [
    "coordinate_sweep",
    "nonnegative_least_squares",
    "nonnegative_quadratic",
    "passive_inverses",
    "positive_squares",
    "sparse_gram_rows",
]

"""All that an algorithm may ask of a matrix: one protocol, and the kinds of matrices behind it.

| | |
|---|---|
| `protocol` | what an algorithm may ask |
| `in_memory` | NumPy and SciPy arrays |
| `low_rank_sum` | a sparse matrix plus one of low rank |
| `dask` | Dask arrays |
| `observed`, `completion` | data with missing entries or entry weights, and how a low-rank matrix fills the holes |
| `validation`, `input` | from anything matrix-like to one of these kinds |
| `projection` | what is left after projections on chosen columns and rows |
| `scaling` | equal sums of rows and of columns |
"""

from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.input import wrap, wrap_in_memory
from gsnmf.matrix.protocol import Matrix

__all__ = ["InMemoryMatrix", "Matrix", "wrap", "wrap_in_memory"]

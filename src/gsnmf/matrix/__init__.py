"""Everything that an algorithm may ask of a matrix: input checks, one protocol, and the kinds behind it.

| | |
|---|---|
| `checks`, `wrapping`, `holding` | the entrance: turn anything matrix-like into a checked `Matrix` |
| `protocol` | what an algorithm may ask |
| `in_memory` | most of it, from a few products |
| `dense`, `sparse`, `chunked` | the kinds: NumPy, SciPy, Dask |
| `projection`, `residual_norms` | what is left after projections on chosen columns and rows |
| `scaling` | equal sums of rows and of columns |
| `entrance`, `clipping`, `observed` | the entrance for data with missing entries, entry weights or negative entries |
| `completion`, `low_rank_sum` | holes filled by a low-rank matrix |
"""

from gsnmf.matrix.in_memory import InMemoryMatrix
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.wrapping import wrap, wrap_in_memory

__all__ = ["InMemoryMatrix", "Matrix", "wrap", "wrap_in_memory"]

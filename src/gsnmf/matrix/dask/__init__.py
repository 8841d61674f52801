"""Matrices in the chunks of Dask arrays: passes over them, products, projections, and lazy arrays made from them.

Imported only if there is a Dask array: nothing else needs Dask.
"""

from gsnmf.matrix.dask.chunks import check_dask_array
from gsnmf.matrix.dask.matrix import ChunkedMatrix

__all__ = ["ChunkedMatrix", "check_dask_array"]

"""Sparse matrices with word-like columns, a few of which are frequent, stored on disk in chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.support.arrays import Sparse


@dataclass(frozen=True)
class StoredMatrix:
    """A sparse matrix in chunks of rows on disk."""

    folder: Path
    shape: tuple[int, int]
    chunks: tuple[int, ...]
    entries: int
    n_bytes: int

    @classmethod
    def written(
        cls,
        folder: Path,
        shape: tuple[int, int],
        row_entries: int,
        rows_per_chunk: int,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> StoredMatrix:
        """Draw a matrix chunk by chunk and write it."""
        folder.mkdir()
        m, n = shape
        sizes = tuple(min(rows_per_chunk, m - start) for start in range(0, m, rows_per_chunk))
        entries = n_bytes = 0
        for number, size in enumerate(sizes):
            chunk = _drawn((size, n), row_entries, number).astype(dtype, copy=False)
            entries += chunk.nnz
            for part in ("data", "indices", "indptr"):
                array = getattr(chunk, part)
                n_bytes += array.nbytes
                np.save(folder / f"{number}.{part}.npy", array)
        return cls(folder, shape, sizes, entries, n_bytes)

    def array(self) -> Any:
        """The matrix as a Dask array that reads a chunk when it needs it."""
        import dask.array as da

        return da.map_blocks(
            partial(_read_chunk, folder=self.folder, n_columns=self.shape[1]),
            chunks=(self.chunks, (self.shape[1],)),
            dtype=np.float64,
            meta=np.empty((0, 0)),
        )

    def whole(self) -> Sparse:
        """The matrix in memory, which is never held twice."""
        data = np.empty(self.entries, dtype=self.chunk(0).dtype)
        indices, indptr = np.empty(self.entries, dtype=np.int32), np.zeros(self.shape[0] + 1, dtype=np.int32)
        entry = row = 0
        for number, height in enumerate(self.chunks):
            chunk = self.chunk(number)
            data[entry : entry + chunk.nnz], indices[entry : entry + chunk.nnz] = chunk.data, chunk.indices
            indptr[row + 1 : row + 1 + height] = entry + chunk.indptr[1:]
            entry, row = entry + chunk.nnz, row + height
        return sp.csr_array((data, indices, indptr), shape=self.shape)

    def chunk(self, number: int) -> Sparse:
        """One chunk of rows."""
        parts = tuple(np.load(self.folder / f"{number}.{part}.npy") for part in ("data", "indices", "indptr"))
        return sp.csr_array(parts, shape=(parts[2].size - 1, self.shape[1]))


def _read_chunk(*, folder: Path, n_columns: int, block_id: tuple[int, int]) -> Sparse:
    return StoredMatrix(folder, (0, n_columns), (), 0, 0).chunk(block_id[0])


def _drawn(shape: tuple[int, int], row_entries: int, seed: int) -> Sparse:
    """Rows of a few entries each; the first columns are the most frequent, and topics change along the rows."""
    rng = np.random.default_rng(seed)
    m, n = shape
    topics = rng.integers(0, 64, size=(m, 1))
    columns = (n * rng.random((m, row_entries)) ** 3).astype(np.int64)
    columns = (columns + topics * (n // 128)) % n
    values = rng.exponential(size=columns.size) * np.repeat(rng.lognormal(size=m), row_entries)
    chunk = sp.csr_array((values, columns.ravel(), np.arange(0, columns.size + 1, row_entries)), shape=shape)
    chunk.sum_duplicates()
    chunk.indices, chunk.indptr = chunk.indices.astype(np.int32), chunk.indptr.astype(np.int32)
    return chunk

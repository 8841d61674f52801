"""AnnData files, and which matrix of an AnnData object can be factorized: ``X``, a layer, or ``raw``.

After scanpy's ``pp.scale``, ``X`` has negative entries, and what was there before is in ``raw`` or in a layer. Objects
are used through their attributes, so that only `read_h5ad` needs anndata.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.datasets.readers.files import FileError, ReadOptions, reading
from gsnmf.support.optional import import_optional

_log = logging.getLogger(__name__)

BLOCK_ENTRIES = 1 << 24
"""Entries of a matrix, zeros included, that are read together."""


@dataclass(frozen=True)
class Expression:
    """A matrix of an AnnData object, cells x genes.

    Attributes
    ----------
    values : array, sparse matrix, Dask array, or data set of a file
    gene_names : tuple of str
        One name per column.
    place : str
        Where it was found: ``"X"``, ``"raw.X"`` or ``"layers['counts']"``.
    """

    values: Any
    gene_names: tuple[str, ...]
    place: str

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and genes."""
        return int(self.values.shape[0]), int(self.values.shape[1])


def read_h5ad(path: Path, options: ReadOptions) -> LabelledMatrix:
    """An AnnData file as cells x genes: the layer, ``"X"`` or ``"raw"`` that ``options.key`` names.

    Without a key it is what `find_expression` finds.
    """
    anndata = import_optional("anndata", "reading AnnData files", 'pip install "gsnmf[cells]"')
    key = options.key
    with reading(path, "an AnnData file"):
        data = anndata.read_h5ad(path)
        is_layer = key is not None and key in data.layers
        if key not in (None, "X", "raw") and not is_layer:
            raise FileError(f"{path}: has no layer {key!r}; got {', '.join(data.layers) or 'none'}.")
        try:
            use_raw = None if key is None or is_layer else key == "raw"
            found = find_expression(data, layer=key if is_layer else None, use_raw=use_raw)
        except ValueError as error:
            raise FileError(f"{path}: {error}") from error
        cells = tuple(map(str, data.obs_names))
    return LabelledMatrix(found.values, cells, found.gene_names, row_kind="cell", column_kind="gene")


def find_expression(data: Any, *, layer: str | None = None, use_raw: bool | None = None) -> Expression:
    """The matrix that is asked for, or the first of ``X`` and ``raw.X`` without negative entries.

    Parameters
    ----------
    data : AnnData
    layer : str, optional
        Name of a layer.
    use_raw : bool, optional
        Whether to take ``raw.X`` (True) or ``X`` (False). By default ``X``, unless it has negative entries and
        ``raw.X`` has none, which the log then says.

    Raises
    ------
    ValueError
        If what is asked for does not exist, or if ``X`` has negative entries and neither ``raw`` nor a layer was named;
        the message names the matrices that can be used.
    """
    layers = list(getattr(data, "layers", {}))
    raw = getattr(data, "raw", None)
    if layer is not None:
        if use_raw:
            raise ValueError(f"layer and use_raw exclude each other; got layer={layer!r} and use_raw=True.")
        if not layers:
            raise ValueError(f"layer must be None for an object without layers; got {layer!r}.")
        if layer not in layers:
            raise ValueError(f"layer must be one of {_quoted(layers)}; got {layer!r}.")
        return Expression(data.layers[layer], _names(data), f"layers[{layer!r}]")
    if use_raw:
        if raw is None:
            raise ValueError("use_raw must be False or None for an object without .raw; got True.")
        return _of_raw(raw)
    if data.X is None:
        remedy = f"name one of its layers, {_quoted(layers)}" if layers else "it has no layers either"
        raise ValueError(f"the object has no X; {remedy}.")
    plain = Expression(data.X, _names(data), "X")
    if use_raw is not None or (raw is None and not layers) or not has_negative(plain.values):
        return plain
    if raw is not None and not has_negative(raw.X):
        _log.info("X has negative entries, as scaled data have; raw.X, which has none, is used.")
        return _of_raw(raw)
    usable = [name for name in layers if not has_negative(data.layers[name])]
    remedy = (
        f"use one of its layers without them, layer={usable[0]!r}"
        if usable
        else "keep the expression before scaling in .raw or in a layer"
    )
    raise ValueError(f"X has negative entries, as scaled or centred data have; {remedy}.")


def has_negative(values: Any) -> bool:
    """Whether a matrix has a negative entry; read in blocks, no further than to the first."""
    return any(entries_of(block).min(initial=0) < 0 for _, block in row_blocks(values))


def entries_of(block: Any) -> Any:
    """The entries of an array, or the stored ones of a sparse matrix."""
    stored: Any = block.data if hasattr(block, "tocsr") else block
    return stored


def row_blocks(values: Any) -> Iterator[tuple[int, Any]]:
    """Blocks of rows of a matrix, with the number of the first row of each.

    Every block is a NumPy array or a sparse matrix in memory, whether ``values`` is one, is a Dask array, or is read
    from a file. A sparse matrix by columns is converted once, since its rows are scattered.
    """
    if getattr(values, "format", "") == "csc":
        whole: Any = values if sp.issparse(values) else values[:]
        values = whole.tocsr()
    m, n = values.shape
    step = max(1, BLOCK_ENTRIES // max(1, n))
    for start in range(0, m, step):
        block = values if step >= m and not _is_lazy(values) else values[start : start + step]
        block = block.compute() if hasattr(block, "compute") else block
        yield start, block if sp.issparse(block) else np.asarray(block)


def _is_lazy(values: Any) -> bool:
    return not (sp.issparse(values) or isinstance(values, np.ndarray))


def _of_raw(raw: Any) -> Expression:
    return Expression(raw.X, _names(raw), "raw.X")


def _names(holder: Any) -> tuple[str, ...]:
    return tuple(map(str, holder.var_names))


def _quoted(names: list[str]) -> str:
    return ", ".join(map(repr, names))

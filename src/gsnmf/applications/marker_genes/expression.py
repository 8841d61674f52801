"""Which part of an AnnData object is used: the matrix, the genes, and the batch of each cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gsnmf.datasets.readers.annotated import Expression, find_expression, row_blocks
from gsnmf.matrix.validation import check_matrix, is_anndata
from gsnmf.support.arrays import Flags, Indices, RawMatrix

HIGHLY_VARIABLE = "highly_variable"


@dataclass(frozen=True)
class Cells:
    """Expression of some genes in all cells, read in blocks of cells.

    Attributes
    ----------
    expression : Expression
        The matrix of the object, with all its genes.
    columns : int array
        Genes that take part, as columns of the expression.
    genes : int array of the same length
        The same genes, as positions in ``adata.var``.
    cell_names : tuple of str
    batches : int array, one per cell
        Number of the batch of each cell; all zero without batches.
    batch_names : tuple of str
        Empty without batches.
    """

    expression: Expression
    columns: Indices
    genes: Indices
    cell_names: tuple[str, ...]
    batches: Indices
    batch_names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and of genes that take part."""
        return self.expression.shape[0], self.columns.size

    def gene_name(self, gene: int) -> str:
        """The name of a gene that takes part, by its position among those."""
        return self.expression.gene_names[int(self.columns[gene])]

    def blocks(self) -> Iterator[tuple[int, RawMatrix]]:
        """Blocks of cells with the number of the first cell of each, checked: real, finite, nonnegative."""
        everything = np.array_equal(self.columns, np.arange(self.expression.shape[1]))
        for start, block in row_blocks(self.expression.values):
            chosen = block if everything else block[:, self.columns]
            try:
                checked = check_matrix(chosen, name=self.expression.place)
            except ValueError as error:
                raise ValueError(self._bad_entry(start, chosen) or str(error)) from error
            yield start, checked

    def _bad_entry(self, start: int, block: Any) -> str:
        """What is wrong with a block, by the names of cell and gene, and what to do about it."""
        located = sp.coo_array(block)
        bad = np.flatnonzero(~((located.data >= 0) & (located.data < np.inf)))[:1]
        if bad.size == 0:
            return ""
        value, row, column = (array[bad].item() for array in (located.data, *located.coords))
        wanted, hint = (
            ("nonnegative", "use the expression before scaling, from .raw (use_raw=True) or from a layer (layer=...)")
            if np.isfinite(value)
            else ("finite", "replace missing values first, for example with 0, or leave out such cells or genes")
        )
        place = f"cell {self.cell_names[start + row]!r}, gene {self.gene_name(column)!r}"
        return f"{self.expression.place} must be {wanted}; got {value} in {place}; {hint}."


def read_cells(
    adata: Any,
    *,
    layer: str | None = None,
    use_raw: bool | None = None,
    genes: Any = HIGHLY_VARIABLE,
    exclude: str | Sequence[str] = (),
    batch_key: str | None = None,
) -> Cells:
    """Find out what takes part, and raise `ValueError` with a hint where the object does not have it.

    Nothing but names and masks is read, unless ``X`` must be searched for negative entries.
    """
    if not is_anndata(adata):
        raise TypeError(
            f"adata must be an AnnData object; got one of type {type(adata).__name__}. For a matrix of cells x genes "
            "make one with anndata.AnnData(matrix), or call gsnmf.factorize."
        )
    if adata.n_obs == 0 or adata.n_vars == 0:
        raise ValueError(f"adata must have at least one cell and one gene; got {adata.n_obs} x {adata.n_vars}.")
    _check_unique(adata.var_names, "var_names", "genes")
    _check_unique(adata.obs_names, "obs_names", "cells")
    mask = _gene_mask(adata, genes) & ~_excluded(adata.var_names, exclude)
    if not mask.any():
        raise ValueError(
            f"no gene is left after genes={_short(genes)} and exclude={exclude!r}; loosen one of them (genes=None "
            "takes all genes, exclude=() leaves out none)."
        )
    batches, batch_names = _batches(adata, batch_key)
    expression = find_expression(adata, layer=layer, use_raw=use_raw)
    kept, columns = _columns(adata, expression, np.flatnonzero(mask))
    return Cells(expression, columns, kept, tuple(map(str, adata.obs_names)), batches, batch_names)


def _columns(adata: Any, expression: Expression, genes: Indices) -> tuple[Indices, Indices]:
    """Genes of ``adata.var`` that the expression has, and their columns in it: ``raw`` may have others."""
    if not expression.place.startswith("raw"):
        return genes, genes
    places = {name: column for column, name in enumerate(expression.gene_names)}
    names = [str(name) for name in adata.var_names[genes]]
    known = np.array([name in places for name in names], dtype=bool)
    if not known.any():
        raise ValueError(f"raw must have genes of adata.var; got none in common, for example {names[0]!r}.")
    columns = [places[name] for name, is_known in zip(names, known, strict=True) if is_known]
    return genes[known], np.array(columns, dtype=np.intp)


def _gene_mask(adata: Any, genes: Any) -> Flags:
    if genes is None:
        return np.ones(adata.n_vars, dtype=bool)
    if isinstance(genes, str):
        return _marked(adata, genes)
    given = np.asarray(genes)
    if given.dtype == bool:
        if given.shape != (adata.n_vars,):
            raise ValueError(f"genes must have one flag for each of the {adata.n_vars} genes; got shape {given.shape}.")
        return given
    names = set(map(str, adata.var_names))
    if given.ndim != 1 or given.dtype.kind not in "OUT":
        raise ValueError(f"genes must be a column of adata.var, a mask, names of genes, or None; got {_short(genes)}.")
    unknown = [str(name) for name in given if str(name) not in names]
    if unknown:
        raise ValueError(f"genes must be names in adata.var_names; got {', '.join(map(repr, unknown[:5]))}.")
    return np.asarray(adata.var_names.isin(list(map(str, given))))


def _marked(adata: Any, column: str) -> Flags:
    if column not in adata.var:
        hint = (
            "run scanpy.pp.highly_variable_genes(adata) first"
            if column == HIGHLY_VARIABLE
            else "name a column of flags"
        )
        raise ValueError(f"adata.var has no column {column!r}; {hint}, or pass genes=None to use all genes.")
    values = np.asarray(adata.var[column])
    if values.dtype.kind not in "bO" or not np.isin(values, [True, False]).all():
        raise ValueError(f"adata.var[{column!r}] must hold True and False; got dtype {values.dtype}.")
    if not values.any():
        raise ValueError(f"adata.var[{column!r}] marks no gene; pass genes=None to use all genes.")
    return values.astype(bool)


def _excluded(names: Any, patterns: str | Sequence[str]) -> Flags:
    """Which names match one of the regular expressions, whether in capitals or not: mice have mt-Co1 and Rps2."""
    found = np.zeros(len(names), dtype=bool)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            search = re.compile(pattern, re.IGNORECASE).search
        except (re.error, TypeError) as error:
            raise ValueError(f"exclude must be regular expressions; got {pattern!r}: {error}.") from None
        found |= np.array([search(str(name)) is not None for name in names], dtype=bool)
    return found


def _batches(adata: Any, key: str | None) -> tuple[Indices, tuple[str, ...]]:
    """Number of each cell's batch, and the names of batches; categories without cells do not count."""
    if key is None:
        return np.zeros(adata.n_obs, dtype=np.intp), ()
    if key not in adata.obs:
        known = ", ".join(map(repr, adata.obs.columns)) or "none: adata.obs is empty"
        raise ValueError(f"batch_key must be a column of adata.obs, one of {known}; got {key!r}.")
    column = adata.obs[key]
    if column.isna().any():
        raise ValueError(
            f"adata.obs[{key!r}] must name the batch of every cell; got {int(column.isna().sum())} missing."
        )
    names, batches = np.unique(np.asarray(column.astype(str), dtype=str), return_inverse=True)
    return batches.astype(np.intp), tuple(names.tolist())


def _check_unique(names: Any, attribute: str, kind: str) -> None:
    if not names.is_unique:
        name = str(names[names.duplicated()][0])
        raise ValueError(f"names of {kind} must be unique; got {name!r} twice; call adata.{attribute}_make_unique().")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

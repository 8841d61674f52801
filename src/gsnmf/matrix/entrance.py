"""The entrance for data with holes, entry weights or negative entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix.checks import as_floats
from gsnmf.matrix.clipping import clip_negative, warn_of_clipping
from gsnmf.matrix.observed import MissingValues, Observed, check_missing_values, observe, warn_of_empty
from gsnmf.matrix.protocol import Matrix
from gsnmf.matrix.remedies import Remedies
from gsnmf.matrix.wrapping import is_dask, wrap

Negative = Literal["error", "clip"]
"""What ``negative=`` takes."""


@dataclass(frozen=True)
class Admitted:
    """Checked data.

    Attributes
    ----------
    data : array, sparse or Dask array
        The data as given, or with zeros in place of negative entries.
    held : Matrix or Observed
        A `Matrix` if every entry is observed with the same weight, otherwise the observed entries.
    n_clipped : int
        How many negative entries were set to zero.
    clipped_share : float
        Their norm over the norm of the matrix.
    """

    data: Any
    held: Matrix | Observed
    n_clipped: int = 0
    clipped_share: float = 0.0

    def warn(self, *, name: str = "matrix", of_empty: bool = True) -> None:
        """Warn the caller of a public function about empty rows and columns, and if much was cut off."""
        if of_empty:
            warn_of_empty(self.held, name=name)
        warn_of_clipping(self.n_clipped, self.clipped_share, name=name)


def admit(
    matrix: Any,
    *,
    missing_values: MissingValues = None,
    entry_weights: Any = None,
    negative: Negative = "error",
    name: str = "matrix",
    remedies: Remedies | None = None,
) -> Admitted:
    """Check a matrix that may have missing entries, entry weights or negative entries, and hold it.

    Parameters
    ----------
    matrix : array-like, DataFrame, SciPy sparse, Dask array, or a `Matrix` or `Observed`, which stays as it is
        With any of the options it must be in memory.
    missing_values, entry_weights
        As for `gsnmf.matrix.observed.observe`.
    negative : {"error", "clip"}
        Refuse negative entries, or set them to zero.
    name : str
        How messages call it.
    remedies : Remedies, optional
        What messages advise; by default it follows from ``name``.

    Examples
    --------
    >>> admit([[1.0, -0.5]], negative="clip").held.data
    array([[1., 0.]])
    >>> admit([[1.0, np.nan]], missing_values=np.nan).held.share
    0.5
    """
    kind = check_missing_values(missing_values)
    if negative not in ("error", "clip"):
        raise ValueError(f"negative must be 'error' or 'clip'; got {negative!r}.")
    if kind is None and entry_weights is None and negative == "error":
        return Admitted(matrix, matrix if isinstance(matrix, Observed) else wrap(matrix, name=name, remedies=remedies))
    if is_dask(matrix) or isinstance(matrix, Matrix | Observed):
        description = "a Dask array" if is_dask(matrix) else f"a {type(matrix).__name__}"
        raise ValueError(
            f"missing_values, entry_weights and negative='clip' need an array or sparse array in memory; {name} is "
            f"{description}."
        )
    n_clipped, clipped_share = 0, 0.0
    if negative == "clip":
        clipped = clip_negative(matrix, name=name)
        matrix, n_clipped, clipped_share = clipped.matrix, clipped.n_clipped, clipped.clipped_share
    if entry_weights is None and not _may_have_holes(matrix, kind, name):
        return Admitted(matrix, wrap(matrix, name=name, remedies=remedies), n_clipped, clipped_share)
    observed = observe(matrix, missing_values=missing_values, entry_weights=entry_weights, name=name)
    held = wrap(matrix, name=name, remedies=remedies) if observed.complete else observed
    return Admitted(matrix, held, n_clipped, clipped_share)


def _may_have_holes(matrix: Any, kind: str | None, name: str) -> bool:
    if kind != "nan":
        return kind == "unstored"
    is_sparse = bool(sp.issparse(matrix))
    entries: Any = sp.csr_array(matrix).data if is_sparse else as_floats(matrix, name=name)
    return entries.dtype.kind == "f" and bool(np.isnan(entries).any())

"""What the checks of a result ask of the matrix that they are given with it."""

from __future__ import annotations

from typing import Any

from gsnmf.matrix import InMemoryMatrix, wrap
from gsnmf.result import Factorization


def matrix_of(result: Factorization, matrix: Any, caller: str) -> InMemoryMatrix:
    """The matrix of a result with single columns and rows, checked; errors say that ``caller`` needs it."""
    if not isinstance(result, Factorization):
        raise TypeError(f"result must be what gsnmf.factorize returns; got {type(result).__name__}.")
    held = wrap(matrix)
    if not isinstance(held, InMemoryMatrix):
        raise ValueError(f"{caller} needs a matrix in memory; got a Dask array.")
    if held.shape != tuple(result.source.shape):
        raise ValueError(f"matrix must be that of the result, of shape {result.source.shape}; got {held.shape}.")
    if result.mixtures is not None:
        raise ValueError(f"{caller} needs single columns and rows; factorize with members=1.")
    return held

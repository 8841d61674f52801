"""Every kind of matrix and request: what hypothesis draws, and shrinks to the smallest that still fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from gsnmf.registry import methods

_KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "random": lambda rng, m, n: rng.random((m, n)),
    "low rank": lambda rng, m, n: rng.random((m, 2)) @ rng.random((2, n)),
    "counts": lambda rng, m, n: rng.poisson(0.7, (m, n)).astype(float),
    "constant": lambda rng, m, n: np.full((m, n), rng.random()),
    "wide range": lambda rng, m, n: 10.0 ** rng.uniform(-8, 8, (m, n)),
    "symmetric": lambda rng, m, n: np.add.outer(np.arange(m), np.arange(n)) % 3 + 1.0,
}
_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "every other entry": lambda M: np.repeat(np.repeat(M, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda M: np.ascontiguousarray(M[::-1, ::-1])[::-1, ::-1],
}
_CHUNKED: dict[str, Callable[[np.ndarray], Any]] = {
    "Dask": lambda M: da.from_array(M, chunks=(4, 3)),
    "Dask in chunks of rows": lambda M: da.from_array(M, chunks=(3, -1)),
    "Dask of CSR": lambda M: da.from_array(M, chunks=(3, -1)).map_blocks(sp.csr_array),
}
QUICK = (
    "gspa", "spa-columns", "spa-rows", "snpa", "snpa-rows", "xray", "xray-rows", "pursuit",
    "smooth-spa-columns", "smooth-spa-rows",
)  # fmt: skip
_EVERY = tuple(method.name for method in methods())


@dataclass(frozen=True)
class Case:
    """A matrix and a request."""

    kind: str
    m: int
    n: int
    form: str
    method: str
    wanted: int
    decade: int = 0
    single: bool = False
    copies: bool = False
    zeros: bool = False
    seed: int = 0

    @property
    def entries(self) -> np.ndarray:
        """The matrix, dense, of the order of 10**decade."""
        rng = self.rng
        M = _KINDS[self.kind](rng, self.m, self.n)
        if self.copies:
            M = M[:, rng.integers(self.n, size=self.n)]
        if self.zeros:
            M = M * (rng.random((self.m, 1)) < 0.7) * (rng.random((1, self.n)) < 0.7)
        if self.single:
            return (M * 10.0 ** (self.decade / 12)).astype(np.float32)
        return M * 10.0**self.decade

    @property
    def ordinary(self) -> np.ndarray:
        """The matrix in double precision with a largest entry of one."""
        M = self.entries.astype(np.float64)
        return M / (M.max() or 1.0)

    def hold(self, M: np.ndarray) -> Any:
        """A matrix in the form of this case."""
        return (_FORMS | _CHUNKED)[self.form](M)

    @property
    def chunked(self) -> bool:
        """Whether the form is a Dask array."""
        return self.form in _CHUNKED

    @property
    def rank(self) -> int:
        """What is wanted, as far as the matrix allows it."""
        return min(self.wanted, self.m, self.n)

    @property
    def rng(self) -> np.random.Generator:
        """For whatever else a property draws."""
        return np.random.default_rng(self.seed)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Case:
        """The case of a line."""
        return cls(**json.loads(line))


def cases(*, every_method: bool = False, chunked: bool = False) -> st.SearchStrategy[Case]:
    """Cases for the quick methods or for all, in memory or in Dask arrays."""
    return st.builds(
        Case,
        kind=st.sampled_from(tuple(_KINDS)),
        m=st.integers(1, 12),
        n=st.integers(1, 12),
        form=st.sampled_from(tuple(_CHUNKED if chunked else _FORMS)),
        method=st.sampled_from(_EVERY if every_method else QUICK),
        wanted=st.integers(1, 6),
        decade=st.sampled_from((0, 0, 3, -3, 90, -90, 250, -250, 299, -299)),
        single=st.booleans(),
        copies=st.booleans(),
        zeros=st.booleans(),
        seed=st.integers(0, 10_000),
    )

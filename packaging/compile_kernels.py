"""Compile the kernels ahead of time: ``python packaging/compile_kernels.py`` writes the library beside their source.

Which kernels are compiled, and for which kinds of arguments, is found out by using them: the calls in `use_everything`
are those that users make. The library is written into the package that Python imports here. Making it takes setuptools
and a C compiler. It then runs on every machine of the kind with the same version of Python, without a compiler and with
any version of Numba.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

MODULE = "_ahead"


def main() -> None:
    """Remove what an earlier run left, find out what is used, and compile it."""
    import gsnmf

    folder = Path(gsnmf.__file__).parent / "kernels"
    for old in folder.glob(f"{MODULE}.*"):
        old.unlink()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        target = prepare_numba(cache)
        use_everything()
        n_forms = compile_library(folder, target)
    (library,) = folder.glob(f"{MODULE}.*")
    seconds, size = time.perf_counter() - start, library.stat().st_size / 1e6
    print(f"{library}: {n_forms} forms of kernels in {seconds:.0f} s, {size:.1f} MB, for {target} processors")


def prepare_numba(cache: str) -> str:
    """Let Numba compile for any machine of this kind, not for this one, and return its name for the processor."""
    from gsnmf._kernels.ahead import PROCESSORS

    target = PROCESSORS.get(platform.machine().lower(), "generic")
    os.environ |= {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
    import numba

    numba.config.reload_config()
    return target


def use_everything() -> None:
    """Call what users call, with all kinds of matrices that they are likely to have, so that Numba compiles it."""
    import numpy as np
    import scipy.sparse as sp

    import gsnmf
    from gsnmf import _parallel
    from gsnmf._kernels.least_squares import passive_inverses
    from gsnmf.datasets import planted
    from gsnmf.search import fitted

    warnings.simplefilter("ignore")
    dense = planted((60, 50), 3, 3, noise_level=0.1, random_state=0).matrix
    sparse = sp.csr_array(planted((60, 50), 3, 3, density=0.3, noise_level=0.1, sparse=True, random_state=0).matrix)
    wide = sparse.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    matrices = [kind for exact in (dense, sparse, wide) for kind in (exact, exact.astype(np.float32))]
    for matrix in matrices:
        use_matrix(matrix)
    _parallel.PARALLEL_WORK = fitted._LARGE = 0  # from now on do what only large matrices need
    for matrix in matrices:
        use_matrix(matrix)
    holes = np.where(np.random.default_rng(0).random(dense.shape) < 0.2, np.nan, dense)
    for matrix in (holes, holes.astype(np.float32)):
        use_holes(matrix, np.nan)
    for matrix in matrices[2:]:
        use_holes(matrix, "unstored")
    dependent = np.hstack([dense, dense])
    gsnmf.fit_weights(dependent, columns=[0, dense.shape[1]], rows=[])
    gsnmf.fit_weights(dense, columns=[0, 1], rows=[0, 1])
    passive_inverses(np.ones((3, 2)), np.eye(2))  # reached only with Dask arrays, and Dask need not be installed


def use_matrix(matrix: Any) -> None:
    """Factorize one matrix in every way."""
    import gsnmf
    from gsnmf import nmf

    for method in gsnmf.methods():
        if method.name != "exact":
            gsnmf.factorize(matrix, (2, 2) if method.name == "spa-both" else 4, method=method.name)
    gsnmf.factorize(matrix, 4, effort="fast", members=3)
    for sum_to_one in (False, True):
        gsnmf.GSNMF(4, effort="fast", sum_to_one=sum_to_one).fit(matrix).transform(matrix)
    nmf.hals(matrix, 4, max_iterations=5)
    nmf.minimum_volume(matrix, 4, max_iterations=5)


def use_holes(matrix: Any, missing_values: Any) -> None:
    """Factorize a matrix with missing entries."""
    import gsnmf

    gsnmf.factorize(matrix, 4, effort="fast", missing_values=missing_values)
    gsnmf.fit_weights(matrix, [0, 1], [], missing_values=missing_values)
    for sum_to_one in (None, "rows"):
        gsnmf.fit_weights(matrix, [], [0, 1], missing_values=missing_values, sum_to_one=sum_to_one)


def compile_library(folder: Path, target: str) -> int:
    """Compile one library with all forms of all kernels that were used, and return their number."""
    from numba.core.compiler import Flags
    from numba.pycc import CC
    from numba.pycc import compiler as ahead_of_time

    def releasing() -> Flags:
        flags = Flags()
        flags.release_gil = True
        return flags

    ahead_of_time.Flags = releasing
    library = CC(MODULE)
    library.output_dir = str(folder)
    library.target_cpu = target
    exported = exports()
    for name, (kernel, signature) in exported.items():
        library.export(name, signature)(caller(kernel, len(signature.args)))
    library.compile()
    return len(exported)


def exports() -> dict[str, tuple[Any, Any]]:
    """Every form of a kernel that was compiled, by its name in the library: the kernel and the types it takes."""
    from gsnmf._kernels.ahead import symbol
    from gsnmf._kernels.compilation import KERNELS

    found = {}
    for kernel in KERNELS:
        for compiled in kernel.nopython_signatures:
            signature = compiled.replace(args=tuple(map(writable, compiled.args)))
            kinds = tuple(kind for argument in signature.args for kind in kinds_of(argument))
            if None not in kinds:
                found[symbol(kernel.py_func, kinds)] = kernel, signature
    unused = set(KERNELS) - {kernel for kernel, _ in found.values()}
    if unused:
        names = ", ".join(kernel.py_func.__qualname__ for kernel in unused)
        sys.exit(f"use_everything() does not use {names}: add a call that does.")
    return found


def writable(type_: Any) -> Any:
    """The same type of array, not read-only: one form serves both."""
    from numba import types

    if isinstance(type_, types.Array):
        return type_.copy(readonly=False)
    if isinstance(type_, types.NamedTuple):
        return types.NamedTuple(map(writable, type_), type_.instance_class)
    return type_


def kinds_of(type_: Any) -> list[Any]:
    """The kinds of `gsnmf._kernels.ahead` for a type of Numba; None for those that only other kernels pass."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(type_, types.BaseTuple):
        return [kind for member in type_ for kind in kinds_of(member)]
    if isinstance(type_, types.Array):
        return [(as_dtype(type_.dtype), type_.ndim, type_.layout)]
    return [{types.boolean: bool, types.int64: int, types.float64: float}.get(type_)]  # not Numba's constants


def caller(kernel: Any, n_arguments: int) -> Any:
    """A function that passes its arguments on to a kernel."""
    names = ", ".join(f"argument_{i}" for i in range(n_arguments))
    scope = {"kernel": kernel}
    exec(f"def call({names}):\n    return kernel({names})", scope)
    return scope["call"]


if __name__ == "__main__":
    sys.exit(main())

"""Check an installed wheel with compiled kernels: first calls are right and compile nothing."""

import time

import numpy as np
import scipy.sparse as sp


def main() -> None:
    """Find what was planted in a dense and in a sparse matrix; print how long each first call took."""
    import gsnmf
    from gsnmf._kernels.compilation import KERNELS
    from gsnmf.datasets import planted

    assert not gsnmf.__file__.endswith("src/gsnmf/__init__.py"), f"this is a checkout, not a wheel: {gsnmf.__file__}"
    for sparse in (False, True):
        data = planted((200, 150), 6, 4, density=0.3, noise_level=0.01, sparse=sparse, random_state=0)
        start = time.process_time()
        result = gsnmf.factorize(data.matrix, 10, effort="fast")
        seconds = time.process_time() - start
        kind = "sparse" if sp.issparse(data.matrix) else "dense"
        print(f"first call on a {kind} matrix of {data.matrix.shape}: {seconds:.2f} s of processor time")
        assert np.array_equal(np.sort(result.columns), np.sort(data.columns))
        assert np.array_equal(np.sort(result.rows), np.sort(data.rows))
    compiled = [kernel.py_func.__qualname__ for kernel in KERNELS if kernel.signatures]
    assert not compiled, f"compiled here, not ahead of time: {compiled}"


if __name__ == "__main__":
    main()

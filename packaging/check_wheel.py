"""Check an installed wheel: every build of the kernels that this processor runs finds what was planted."""

import os
import subprocess
import sys
import time

import numpy as np


def main() -> None:
    """Run the check in a new process for each build."""
    import gsnmf
    from gsnmf._kernels.native import available_builds

    assert "site-packages" in gsnmf.__file__, f"this is a checkout, not a wheel: {gsnmf.__file__}"
    for build in available_builds():
        command = [sys.executable, __file__, "check"]
        subprocess.run(command, env=os.environ | {"GSNMF_KERNELS": build}, check=True)


def check() -> None:
    """Factorize a dense and a sparse matrix; print how long each first call took."""
    import gsnmf
    from gsnmf._kernels.native import BUILD
    from gsnmf.datasets import planted

    for sparse in (False, True):
        data = planted((200, 150), 6, 4, density=0.3, noise_level=0.01, sparse=sparse, random_state=0)
        start = time.process_time()
        result = gsnmf.factorize(data.matrix, 10, effort="fast")
        seconds = time.process_time() - start
        kind = "sparse" if sparse else "dense"
        print(f"{BUILD}: first call on a {kind} matrix of {data.matrix.shape}: {seconds:.2f} s of processor time")
        assert np.array_equal(np.sort(result.columns), np.sort(data.columns))
        assert np.array_equal(np.sort(result.rows), np.sort(data.rows))


if __name__ == "__main__":
    check() if "check" in sys.argv else main()

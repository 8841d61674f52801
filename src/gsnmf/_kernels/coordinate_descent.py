"""Coordinate descent for many nonnegative problems that share a Gram matrix: one per row, or one per column.

`coordinate_sweep` takes the problems as rows and sweeps once over each. `descend` takes them as columns, in blocks of
neighbours, and updates the same coordinate of a whole block at once: the processor then adds vectors instead of
computing one short inner product after another.
"""

from __future__ import annotations

import numpy as np

from gsnmf._kernels import native
from gsnmf._parallel import Loop
from gsnmf.support.arrays import Doubles, Floats

_sweep_rows, _descend_blocks = Loop(native.sweep_rows), Loop(native.descend_blocks)


def coordinate_sweep(X: Doubles, linear: Doubles, gram: Doubles) -> None:
    """Improve X in place: one sweep of coordinate descent for each row x of X.

    Minimises x G x / 2 + x . linear over x >= 0, one coordinate after another. The diagonal of G must not have a zero.

    Examples
    --------
    >>> X = np.zeros((1, 2))
    >>> coordinate_sweep(X, np.array([[-3.0, 1.0]]), np.eye(2))
    >>> X
    array([[3., 0.]])
    """
    _sweep_rows(X, np.ascontiguousarray(linear), np.ascontiguousarray(gram), work=X.size * X.shape[1])


def descend(X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float) -> None:
    """Improve X in place: coordinate descent on x'Gx / 2 - t'x over x >= 0, for columns x of X and t of ``target``.

    Parameters
    ----------
    X, target : arrays, shape (r, n)
        X in C order.
    gram : array, shape (r, r)
        Symmetric positive semidefinite. A coordinate whose diagonal entry is zero is left as it is.
    max_sweeps : int
        Limit on the sweeps over the coordinates.
    tolerance : float
        A block of columns ends earlier if a sweep moves it, in the norm of the diagonal of G, by less than this
        fraction of its first sweep.
    """
    arrays = X, np.ascontiguousarray(target), np.ascontiguousarray(gram)
    _descend_blocks(*arrays, max_sweeps, tolerance, work=X.size * X.shape[0] * max_sweeps)

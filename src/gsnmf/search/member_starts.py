"""Other starts for mixtures: the factors of a short NMF, each as a mixture of columns or of rows.

From given mixtures, a few iterations of NMF leave the valley into which single members have led. The mixtures closest
to its factors then restart the search, each on the side where it is closer. If a factor is first replaced by the
strongest nonnegative rank-one term of the residual without it, the NMF itself reaches another valley. With many members
the best valley may be far from that of single columns and rows: there the best of several NMFs from random factors is a
start as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gsnmf.search.alternating import short_nmf
from gsnmf.search.member_fits import Mixture, Pool
from gsnmf.search.member_model import MixedModel, Space
from gsnmf.support.arrays import Doubles

_POWER_STEPS = 15
_NMF_BEFORE = 3
"""Iterations of NMF for the other factors to settle before one is replaced."""
_NMF_FROM_RANDOM = 50
"""Iterations after which NMFs from random factors are compared, or fewer when no work is left."""
_AT_A_TIME = 10
"""Iterations of them between two looks at the work that is left."""

Factors = tuple[Doubles, Doubles]
"""W and H."""


def restarts(model: MixedModel, most: int, iterations: Sequence[int]) -> Iterator[MixedModel | None]:
    """The mixtures closest to the factors of an NMF that starts from these, after each number of its iterations.

    None if a factor of the NMF is zero. It ends early when no work is left.
    """
    W, H = model.factors()
    done = 0
    for n_iterations in iterations:
        if not model.space.work.left():
            return
        W, H = _after_nmf(model.space, W, H, n_iterations - done)
        done = n_iterations
        yield closest_model(model, W, H, most)


def replaced(model: MixedModel, position: int, most: int, n_iterations: int) -> MixedModel | None:
    """A restart after the factor at ``position``, columns first, was replaced; None if nothing is left to explain."""
    kept = np.delete(np.arange(model.size), position)
    W, H = model.factors()
    W, H = _after_nmf(model.space, W[:, kept], H[kept], _NMF_BEFORE)
    u, v = _strongest_term(model.space, W, H)
    model.space.products(2 * _POWER_STEPS)
    W, H = np.insert(W, position, u, axis=1), np.insert(H, position, v, axis=0)
    return closest_model(model, *_after_nmf(model.space, W, H, n_iterations), most)


def random_start(model: MixedModel, n_starts: int) -> Factors | None:
    """The factors of the best of ``n_starts`` NMFs from random factors, or of fewer when no work is left.

    None without any, and with fixed factors, of which these NMFs know nothing.
    """
    space = model.space
    best: tuple[float, Factors] | None = None
    for seed in range(0 if model.fixed.any() else n_starts):
        if not space.work.left():
            break
        factors = _random_factors(space, model.size, seed)
        for _ in range(_NMF_FROM_RANDOM // _AT_A_TIME):
            if space.work.left():
                factors = _after_nmf(space, *factors, _AT_A_TIME)
        squared_error = space.matrix.squared_residual(*factors)
        if best is None or squared_error < best[0]:
            best = squared_error, factors
    return None if best is None else best[1]


def _random_factors(space: Space, size: int, seed: int) -> Factors:
    """Uniformly random factors whose product has the mean of the matrix."""
    (m, n), rng = space.matrix.shape, np.random.default_rng(seed)
    mean = float(space.matrix.column_sums.sum()) / (m * n)
    scale = 2.0 * np.sqrt(mean / size)
    return scale * rng.random((m, size)), scale * rng.random((size, n))


def _strongest_term(space: Space, W: Doubles, H: Doubles) -> Factors:
    """Nonnegative u and v with u v' close to M - W H, by power steps from the worst explained column."""
    matrix = space.matrix
    image = np.asarray(matrix.T.dot(np.ascontiguousarray(W)), dtype=np.float64)
    left = matrix.squared_column_norms - np.einsum("jk,kj->j", 2.0 * image - H.T @ (W.T @ W), H)
    v = np.zeros(matrix.shape[1])
    v[np.argmax(left)] = 1.0
    tiny = np.finfo(np.float64).tiny
    for _ in range(_POWER_STEPS):
        u = np.maximum(matrix.dot(v) - W @ (H @ v), 0.0)
        u /= max(float(np.linalg.norm(u)), tiny)
        v = np.maximum(matrix.T.dot(u) - H.T @ (W.T @ u), 0.0)
        length = float(np.linalg.norm(v))
        v /= max(length, tiny)
    return u * length, v


def _after_nmf(space: Space, W: Doubles, H: Doubles, n_iterations: int) -> Factors:
    space.products(2 * W.shape[1] * n_iterations)
    space.work.sweeps(2.0 * n_iterations * sum(space.matrix.shape) * W.shape[1] ** 2)
    return short_nmf(space.matrix, W, H, n_iterations)


def closest_model(model: MixedModel, W: Doubles, H: Doubles, most: int) -> MixedModel | None:
    """Mixtures closest to the factors W and H, which belong to those of the model; fixed ones stay what they are."""
    space = model.space
    space.products(2 * W.shape[1])
    lengths = np.linalg.norm(W, axis=0), np.linalg.norm(H, axis=1)
    if not (lengths[0] * lengths[1] > 0).all():
        return None
    by_column, column_closeness = _closest_mixtures(space.columns, W / lengths[0], most)
    by_row, row_closeness = _closest_mixtures(space.rows, (H / lengths[1][:, None]).T, most)
    space.scores(most * model.size)
    r1 = model.P.shape[1]
    for k in np.flatnonzero(model.fixed):
        is_column = k < r1
        column_closeness[k], row_closeness[k] = (np.inf, 0.0) if is_column else (0.0, np.inf)
        kept = model.left.mixtures[k] if is_column else model.right.mixtures[k - r1]
        (by_column if is_column else by_row)[k] = kept
    as_columns, as_rows = _sides(column_closeness - row_closeness, model)
    columns, rows = [by_column[k] for k in as_columns], [by_row[k] for k in as_rows]
    if not all(mixture.members.size for mixture in columns + rows):
        return None
    fixed = model.fixed[np.concatenate([as_columns, as_rows])]
    P, Q = (H[as_columns] * lengths[0][as_columns, None]).T, W[:, as_rows] * lengths[1][as_rows]
    return MixedModel.of(space, columns, rows, fixed, P, Q)


def _closest_mixtures(pool: Pool, vectors: Doubles, most: int) -> tuple[list[Mixture], Doubles]:
    """For each vector of unit length the mixture found closest to it, and the squared cosine of their angle."""
    products = np.asarray(pool.matrix.T.dot(np.ascontiguousarray(vectors)), dtype=np.float64)
    mixtures = [pool.closest(Mixture.empty(), np.ascontiguousarray(linear), most) for linear in products.T]
    closeness = [pool.explained(mixture, linear) for mixture, linear in zip(mixtures, products.T, strict=True)]
    return mixtures, np.array(closeness)


def _sides(preference: Doubles, model: MixedModel) -> tuple[np.ndarray, np.ndarray]:
    """Factors that become columns, and those that become rows, within the limits, each in increasing order."""
    limits = model.space.limits
    wanted = int(np.count_nonzero(preference >= 0))
    least, most = limits.least_columns, limits.most_columns
    n_columns = min(max(wanted, least), most, preference.size)
    order = np.argsort(-preference, kind="stable")
    return np.sort(order[:n_columns]), np.sort(order[n_columns:])

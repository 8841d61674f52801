"""What every native kernel computes, in plain NumPy and SciPy: slow, short, and meant to be seen to be right.

Each function has the name and the arguments of a kernel, without ``part`` and ``n_parts``, and changes the same arrays.
"""

from itertools import combinations, pairwise

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar, nnls


def sweep_rows(X, linear, gram):
    for x, offset in zip(X, linear, strict=True):
        for i in range(x.size):
            x[i] = max(0.0, x[i] - (gram[i] @ x + offset[i]) / gram[i, i])


def descend_blocks(X, target, gram, max_sweeps, tolerance):
    assert tolerance == 0.0
    for _ in range(max_sweeps):
        for i in range(len(X)):
            if gram[i, i] > 0:
                X[i] = np.maximum(0, X[i] + (target[i] - gram[i] @ X) / gram[i, i])


def pivot_rows(X, columns, gram, right, by_gram, failed):
    for x, b in zip(X, right, strict=True):
        x[:] = nnls(columns.T, np.linalg.solve(columns, b) if by_gram else b)[0]
    failed[:] = 0


def active_set_rows(X, columns, gram, targets):
    pivot_rows(X, columns, gram, targets, False, np.empty(len(X)))


def passive_inverse_rows(X, gram, inverses):
    r = X.shape[1]
    for x, packed in zip(X, inverses, strict=True):
        positive, inverse = np.flatnonzero(x > 0), np.zeros((r, r))
        inverse[np.ix_(positive, positive)] = np.linalg.inv(gram[np.ix_(positive, positive)])
        packed[:] = inverse[np.triu_indices(r)]


def on_simplex(x, exact):
    """Projection of a vector by sorting."""
    if not exact and np.maximum(x, 0).sum() <= 1:
        return np.maximum(x, 0)
    descending = np.sort(x)[::-1]
    shifts = (np.cumsum(descending) - 1) / np.arange(1, x.size + 1)
    return np.maximum(x - shifts[np.flatnonzero(descending > shifts)[-1]], 0)


def project_on_simplex_blocks(X, exact):
    X[:] = np.apply_along_axis(on_simplex, 0, X.astype(float), exact)


def descend_on_simplex_blocks(X, target, gram, step_length, exact, max_steps, tolerance):
    """Nesterov's method; steps are short enough here that none is repeated without momentum."""
    previous, speed = X.copy(), 1.0
    for _ in range(max_steps):
        next_speed = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = X + (speed - 1) / next_speed * (X - previous)
        new = ahead - step_length * (gram @ ahead - target)
        project_on_simplex_blocks(new, exact)
        previous, X[:], speed = X.copy(), new, next_speed


def simplex_weights(columns, target):
    """Weights >= 0 with sum one of the combination of rows of ``columns`` nearest to a target, over all supports."""
    best, smallest = None, np.inf
    for size in range(1, len(columns) + 1):
        for support in map(list, combinations(range(len(columns)), size)):
            chosen = columns[support]
            system = np.block([[chosen @ chosen.T, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            z = np.linalg.lstsq(system, np.append(chosen @ target, 1.0), rcond=None)[0][:size]
            distance = np.linalg.norm(z @ chosen - target)
            if z.min() >= -1e-12 and distance < smallest - 1e-13:
                best, smallest = np.zeros(len(columns)), distance
                best[support] = z
    return best


def project_on_hull_rows(X, residuals, multipliers, columns, gram, longest, targets):
    for j, target in enumerate(targets):
        X[j] = simplex_weights(columns, target)
        residuals[j] = target - X[j] @ columns
        multipliers[j] = (columns @ residuals[j]).max()


def simplex_least_squares_rows(X, columns, gram, longest, targets):
    X[:] = [simplex_weights(columns, target) for target in targets]


def positive_square_rows(rows, sums):
    sums[:] = np.square(np.maximum(rows, 0)).sum(axis=1)


def exchange_score_rows(slopes, coefficients, vectors, scores):
    changed = slopes[:, None, :] + coefficients[:, :, None] * vectors
    scores[:] = np.square(np.maximum(changed, 0)).sum(axis=2)


def cross_product_chunks(A, B, products):
    products[0] += A.T @ B


def descend_trial_chunks(X, linear, left, right, gram, sums):
    coupled = linear + left @ right
    for _ in range(2):
        sweep_rows(X, coupled, gram)
    slopes = coupled + X @ gram
    sums[0] += [np.vdot(X, linear), np.vdot(X, coupled), np.vdot(X, slopes)]


def member_weights(gram, linear, weights):
    lower = np.linalg.cholesky(gram)
    weights[:] = nnls(lower.T, np.linalg.solve(lower, linear))[0]


def best_member_change(members, gram, linear, allowed, most, least):
    """The best of all changes; takes all of G instead of the rows at the members and the diagonal."""
    best = (-1, -1, least)
    for slot in [members.size] if members.size < most else range(members.size):
        for index in np.flatnonzero(allowed):
            changed = np.append(np.delete(members, slot) if slot < members.size else members, index)
            weights = np.zeros(changed.size)
            if np.unique(changed).size == changed.size:
                member_weights(gram[np.ix_(changed, changed)], linear[changed], weights)
            if (explained := linear[changed] @ weights) > best[2] + 1e-12:
                best = (slot, index, explained)
    return best


def project_rows_on_omega(X, weights, indices, out):
    for x, i, p in zip(X.astype(float), indices, out, strict=True):
        bounds = weights.astype(float) / weights[i]

        def projected(t, x=x, i=i, bounds=bounds):
            z = np.clip(x, 0, bounds * t)
            z[i] = t
            return z

        def distance(t, x=x, projected=projected):
            return np.square(projected(t) - x).sum()

        p[:] = projected(minimize_scalar(distance, bounds=(0, 1), options={"xatol": 1e-12}).x)


def shrink_euclidean_rows(X, thresholds):
    X[:] = np.maximum(X, 0)
    norms = np.linalg.norm(X, axis=1)
    X *= np.maximum(0, 1 - thresholds / norms)[:, None]


def shrink_maximum_rows(X, thresholds):
    """Z = x - threshold * (projection of x / threshold on the simplex), by Moreau's decomposition."""
    X[:] = np.maximum(X, 0)
    for x, threshold in zip(X, thresholds, strict=True):
        x -= threshold * on_simplex(x.astype(float) / threshold, exact=False)


def trace_score_rows(slopes, indices, weights, scores):
    for a, (s, i) in enumerate(zip(slopes, indices, strict=True)):
        others = np.delete(np.maximum(s, 0) * weights, i).sum()
        scores[a] = s[i] + others / weights[i] if weights[i] > 0 else -np.inf


def group_score_rows(slopes, euclidean, scores):
    scores[:] = np.linalg.norm(np.maximum(slopes, 0), axis=1, ord=2 if euclidean else 1)


def dense(indptr, indices, data, n_columns):
    return sp.csr_array((data.astype(float), indices, indptr), shape=(indptr.size - 1, n_columns)).toarray()


def sparse_dot_rows(indptr, indices, data, block, product):
    product[:] = dense(indptr, indices, data, len(block)) @ block.astype(float)


def sparse_gram_rows(starts, targets, factors, indptr, indices, data, product):
    matrix = dense(indptr, indices, data, product.shape[1])
    product[:] = dense(starts, targets, factors, len(matrix)) @ matrix


def add_entries(indices, data, squared, sums):
    np.add.at(sums, indices, data.astype(float) ** (2 if squared else 1))


def column_sums(indptr, indices, data, squared, sums):
    sums[:] = [(data[a:b].astype(float) ** (2 if squared else 1)).sum() for a, b in pairwise(indptr)]


def row_problems(indptr, indices, values, weights, F):
    """Rows of F at the observed entries, the entries, and their weights, for each row."""
    weights = weights.astype(float) if weights.size else np.ones(values.size)
    for a, b in pairwise(indptr):
        yield F[indices[a:b]], values[a:b].astype(float), weights[a:b]


def ridge_rows(indptr, indices, values, weights, F, ridge, X):
    for x, (f, v, w) in zip(X, row_problems(indptr, indices, values, weights, F), strict=True):
        x[:] = np.linalg.solve(f.T * w @ f + ridge * np.eye(x.size), f.T * w @ v)


def nonnegative_observed_rows(indptr, indices, values, weights, F, shown, X, violations):
    for x, (f, v, w) in zip(X, row_problems(indptr, indices, values, weights, F), strict=True):
        seen = (w @ np.square(f) >= shown) & (w @ np.square(f) > 0)
        x[:] = 0
        x[seen] = nnls(np.sqrt(w)[:, None] * f[:, seen], np.sqrt(w) * v)[0]
    violations[:] = 0


def simplex_observed_rows(indptr, indices, values, weights, F, X):
    for x, (f, v, w) in zip(X, row_problems(indptr, indices, values, weights, F), strict=True):
        x[:] = simplex_weights(np.sqrt(w) * f.T, np.sqrt(w) * v)


def row_grams(indptr, indices, values, weights, F, grams, lengths):
    for i, (f, _, w) in enumerate(row_problems(indptr, indices, values, weights, F)):
        gram = f.T * w @ f
        lengths[i] = np.sqrt(gram.diagonal())
        scale = np.outer(lengths[i], lengths[i])
        grams[i] = np.divide(gram, scale, out=np.zeros_like(gram), where=scale > 0)


def sweep_rows_with_grams(X, slopes, grams):
    for x, s, gram in zip(X, slopes, grams, strict=True):
        for k in range(x.size):
            step = max(-s[k], -x[k]) if gram[k, k] > 0 else 0.0
            x[k] += step
            s += step * gram[k]


def observed_residuals(indptr, indices, values, weights, A, B, residuals):
    rows = np.repeat(np.arange(len(A)), np.diff(indptr))
    residuals[:] = values - (A[rows] * B[indices]).sum(axis=1)


def observed_slopes(indptr, indices, values, weights, A, B, F, with_values, slopes):
    rows = np.repeat(np.arange(len(A)), np.diff(indptr))
    fitted = (A[rows] * B[indices]).sum(axis=1) - (values if with_values else 0.0)
    np.add.at(slopes, rows, (fitted * (weights if weights.size else 1.0))[:, None] * F[indices])


def descend_observed_rows(indptr, indices, values, weights, F, X, n_sweeps, free, prior, prior_weights, violations):
    for i, (f, v, w) in enumerate(row_problems(indptr, indices, values, weights, F)):
        gram, linear, x = f.T * w @ f, f.T * w @ v, X[i]
        if prior.size:
            gram, linear = gram + np.diag(prior_weights[i]), linear + prior_weights[i] * prior[i]
        changing = [k for k in range(x.size) if gram[k, k] > 0 and (free.size == 0 or free[i, k])]
        slopes, curvature = gram @ x - linear, gram.diagonal()
        violations[i] = sum(min(x[k] * curvature[k], slopes[k]) ** 2 / curvature[k] for k in changing)
        for _ in range(n_sweeps):
            for k in changing:
                x[k] = max(0.0, x[k] - (gram[k] @ x - linear[k]) / curvature[k])

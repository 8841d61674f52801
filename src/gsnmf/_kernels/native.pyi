"""Types of the compiled kernels. Arrays are in C order and are never converted; ``part`` and ``n_parts`` come last."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsnmf.support.arrays import Doubles, Flags, Floats, Indices

_Pointers = NDArray[np.integer[Any]]

BUILD: str
N_CHUNKS: int
TILE_WIDTH: int

def available_builds() -> list[str]: ...
def processor_runs(build: str, /) -> bool: ...

# Least squares (coordinate_descent.hpp, least_squares.hpp)
def sweep_rows(X: Doubles, linear: Doubles, gram: Doubles, part: int, n_parts: int, /) -> None: ...
def descend_blocks(
    X: Floats, target: Floats, gram: Floats, max_sweeps: int, tolerance: float, part: int, n_parts: int, /
) -> None: ...
def pivot_rows(
    X: Doubles,
    columns: Doubles,
    gram: Doubles,
    right: Doubles,
    by_gram: bool,
    failed: NDArray[np.uint8],
    part: int,
    n_parts: int,
    /,
) -> None: ...
def active_set_rows(
    X: Doubles, columns: Doubles, gram: Doubles, targets: Doubles, part: int, n_parts: int, /
) -> None: ...
def passive_inverse_rows(X: Doubles, gram: Doubles, inverses: Doubles, part: int, n_parts: int, /) -> None: ...

# Weights that sum to one (simplex.hpp)
def project_on_simplex_blocks(X: Floats, exact: bool, part: int, n_parts: int, /) -> None: ...
def descend_on_simplex_blocks(
    X: Floats,
    target: Floats,
    gram: Floats,
    step_length: float,
    exact: bool,
    max_steps: int,
    tolerance: float,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def project_on_hull_rows(
    X: Doubles,
    residuals: Doubles,
    multipliers: Doubles,
    columns: Doubles,
    gram: Doubles,
    longest: float,
    targets: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def simplex_least_squares_rows(
    X: Doubles, columns: Doubles, gram: Doubles, longest: float, targets: Doubles, part: int, n_parts: int, /
) -> None: ...

# Exchanges (exchange.hpp)
def positive_square_rows(rows: Doubles, sums: Doubles, part: int, n_parts: int, /) -> None: ...
def exchange_score_rows(
    slopes: Doubles, coefficients: Doubles, vectors: Doubles, scores: Doubles, part: int, n_parts: int, /
) -> None: ...
def cross_product_chunks(A: Doubles, B: Doubles, products: Doubles, part: int, n_parts: int, /) -> None: ...
def descend_trial_chunks(
    X: Doubles,
    linear: Doubles,
    left: Doubles,
    right: Doubles,
    gram: Doubles,
    sums: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...

# Members (members.hpp)
def member_weights(gram: Doubles, linear: Doubles, weights: Doubles, /) -> None: ...
def best_member_change(
    members: Indices,
    rows: Doubles,
    diagonal: Doubles,
    linear: Doubles,
    allowed: Flags,
    most: int,
    least: float,
    /,
) -> tuple[int, int, float]: ...

# The convex model (omega.hpp)
def project_rows_on_omega(
    X: Floats, weights: Floats, indices: Indices, out: Floats, part: int, n_parts: int, /
) -> None: ...
def shrink_euclidean_rows(X: Floats, thresholds: Floats, part: int, n_parts: int, /) -> None: ...
def shrink_maximum_rows(X: Floats, thresholds: Floats, part: int, n_parts: int, /) -> None: ...
def trace_score_rows(
    slopes: Floats, indices: Indices, weights: Floats, scores: Doubles, part: int, n_parts: int, /
) -> None: ...
def group_score_rows(slopes: Floats, euclidean: bool, scores: Doubles, part: int, n_parts: int, /) -> None: ...

# Sparse products (sparse_products.hpp)
def sparse_dot_rows(
    indptr: _Pointers, indices: _Pointers, data: Floats, block: Floats, product: Floats, part: int, n_parts: int, /
) -> None: ...
def sparse_gram_rows(
    starts: _Pointers,
    targets: _Pointers,
    factors: Floats,
    indptr: _Pointers,
    indices: _Pointers,
    data: Floats,
    product: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def add_entries(indices: _Pointers, data: Floats, squared: bool, sums: Doubles, /) -> None: ...
def column_sums(
    indptr: _Pointers, indices: _Pointers, data: Floats, squared: bool, sums: Doubles, part: int, n_parts: int, /
) -> None: ...

# Observed entries (observed_entries.hpp)
def sweep_rows_with_grams(X: Doubles, slopes: Doubles, grams: Doubles, part: int, n_parts: int, /) -> None: ...
def ridge_rows(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    F: Doubles,
    ridge: float,
    X: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def nonnegative_observed_rows(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    F: Doubles,
    shown: Doubles,
    X: Doubles,
    violations: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def simplex_observed_rows(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    F: Doubles,
    X: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def row_grams(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    F: Doubles,
    grams: Doubles,
    lengths: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def observed_residuals(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    A: Doubles,
    B: Doubles,
    residuals: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def observed_slopes(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    A: Doubles,
    B: Doubles,
    F: Doubles,
    with_values: bool,
    slopes: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...
def descend_observed_rows(
    indptr: _Pointers,
    indices: _Pointers,
    values: Floats,
    weights: Floats,
    F: Doubles,
    X: Doubles,
    n_sweeps: int,
    free: Flags,
    prior: Doubles,
    prior_weights: Doubles,
    violations: Doubles,
    part: int,
    n_parts: int,
    /,
) -> None: ...

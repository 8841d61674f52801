"""Matrices to factorize."""

from gsnmf.datasets.synthetic import (
    Planted,
    fully_random,
    gspa_failure_example,
    middle_points,
    non_unique_example,
    planted,
    three_three_separable,
    two_one_separable,
)

__all__ = [
    "Planted",
    "fully_random",
    "gspa_failure_example",
    "middle_points",
    "non_unique_example",
    "planted",
    "three_three_separable",
    "two_one_separable",
]

"""Matrices to factorize."""

from gsnmf.datasets.paper_examples import (
    fully_random,
    gspa_failure_example,
    middle_points,
    non_unique_example,
    three_three_separable,
    two_one_separable,
)
from gsnmf.datasets.planting import Planted, planted
from gsnmf.datasets.readers import FileError, LabelledMatrix, read_matrix

__all__ = [
    "FileError",
    "LabelledMatrix",
    "Planted",
    "fully_random",
    "gspa_failure_example",
    "middle_points",
    "non_unique_example",
    "planted",
    "read_matrix",
    "three_three_separable",
    "two_one_separable",
]

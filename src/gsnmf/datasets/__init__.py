"""Matrices to factorize."""

from gsnmf.datasets.closed_forms import (
    gspa_failure_example,
    non_unique_example,
    three_three_separable,
    two_one_separable,
)
from gsnmf.datasets.ground_truth import Planted
from gsnmf.datasets.paper import PaperMatrix, load
from gsnmf.datasets.planted_matrices import planted
from gsnmf.datasets.readers import FileError, LabelledMatrix, read_matrix
from gsnmf.datasets.synthetic import fully_random, middle_points

__all__ = [
    "FileError",
    "LabelledMatrix",
    "PaperMatrix",
    "Planted",
    "fully_random",
    "gspa_failure_example",
    "load",
    "middle_points",
    "non_unique_example",
    "planted",
    "read_matrix",
    "three_three_separable",
    "two_one_separable",
]

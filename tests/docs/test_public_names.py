"""What is public, as a list to be changed on purpose only."""

import importlib

import pytest

NAMES = {
    "gsnmf": """GSNMF Constraints ConvexSolution Factor Factorization GSNMFSelector Method RankChoice RankPath
        Scaling SearchRecord Selection SplitProfile Stability StopReason Table Weights __version__ applications
        choose_rank convex datasets factorize fit_weights load methods metrics nmf plotting rank_path report save
        scale select split_profile stability""",
    "gsnmf.convex": """ExactSolution Uniqueness automatic_sizes check_uniqueness is_separable project solve_convex
        solve_exact""",
    "gsnmf.nmf": """CURResult LowRankResult NMFResult SVDResult cur hals minimum_volume skeleton truncated_svd""",
    "gsnmf.datasets": """FileError LabelledMatrix Planted fully_random gspa_failure_example middle_points
        non_unique_example planted read_matrix three_three_separable two_one_separable""",
}


@pytest.mark.parametrize("module", NAMES)
def test_names_are_these(module):
    assert sorted(importlib.import_module(module).__all__) == sorted(NAMES[module].split())


@pytest.mark.parametrize("module", NAMES)
def test_no_name_hides_a_module(module):
    """A function that has the name of a module makes one of the two impossible to reach."""
    package = importlib.import_module(module)
    for name in package.__all__:
        value = getattr(package, name)
        if callable(value):
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"{module}.{name}")

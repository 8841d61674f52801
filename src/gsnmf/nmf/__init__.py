"""Methods to compare with: nonnegative factorizations and low-rank approximations of dense and sparse matrices."""

from gsnmf.nmf.hierarchical_least_squares import hals
from gsnmf.nmf.latent_representation import latent_low_rank
from gsnmf.nmf.low_rank import cur, skeleton, truncated_svd
from gsnmf.nmf.results import CURResult, LatentLowRankResult, LowRankResult, NMFResult, SVDResult
from gsnmf.nmf.volume_minimization import minimum_volume

__all__ = [
    "CURResult",
    "LatentLowRankResult",
    "LowRankResult",
    "NMFResult",
    "SVDResult",
    "cur",
    "hals",
    "latent_low_rank",
    "minimum_volume",
    "skeleton",
    "truncated_svd",
]

"""Methods to compare with: nonnegative factorizations and low-rank approximations of dense and sparse matrices."""

from gsnmf.nmf.alternating import NMFResult
from gsnmf.nmf.least_squares import hals
from gsnmf.nmf.low_rank import CURResult, LowRankResult, SVDResult, cur, skeleton, truncated_svd
from gsnmf.nmf.volume_minimization import minimum_volume

__all__ = [
    "CURResult",
    "LowRankResult",
    "NMFResult",
    "SVDResult",
    "cur",
    "hals",
    "minimum_volume",
    "skeleton",
    "truncated_svd",
]

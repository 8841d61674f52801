"""What the library returns: small frozen records that can be compared and read in one line."""

from gsnmf.results.factorization import Factorization
from gsnmf.results.factors import Factor
from gsnmf.results.mixtures import Mixtures
from gsnmf.results.observation import Observation
from gsnmf.results.search import SearchRecord
from gsnmf.results.selection import Choice, Selection
from gsnmf.results.weights import Weights

__all__ = [
    "Choice",
    "Factor",
    "Factorization",
    "Mixtures",
    "Observation",
    "SearchRecord",
    "Selection",
    "Weights",
]

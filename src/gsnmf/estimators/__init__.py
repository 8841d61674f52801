"""The factorization as scikit-learn estimators: samples in rows, features in columns."""

from gsnmf.estimators.gsnmf import GSNMF

__all__ = ["GSNMF"]

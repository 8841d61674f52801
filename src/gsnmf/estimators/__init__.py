"""The factorization as scikit-learn estimators."""

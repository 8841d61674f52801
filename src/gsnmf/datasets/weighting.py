"""Matrices weighted before they are factorized."""

from __future__ import annotations

from dataclasses import replace

import scipy.sparse as sp

from gsnmf.datasets.labelled import LabelledMatrix


def tf_idf(data: LabelledMatrix) -> LabelledMatrix:
    """Counts of documents x words as counts x inverse document frequency, documents of unit length (scikit-learn's).

    Rows and columns without a kind of their own become documents and words.

    Examples
    --------
    >>> import numpy as np
    >>> counts = LabelledMatrix(np.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> tf_idf(counts).matrix.toarray().round(3)
    array([[0.942, 0.335],
           [0.   , 1.   ]])
    """
    from sklearn.feature_extraction.text import TfidfTransformer  # slow to import

    kinds = (data.row_kind, data.column_kind)
    row_kind, column_kind = ("document", "word") if kinds == ("row", "column") else kinds
    matrix = sp.csr_array(TfidfTransformer().fit_transform(data.matrix))
    return replace(data, matrix=matrix, row_kind=row_kind, column_kind=column_kind)


def normalize_rows(data: LabelledMatrix) -> LabelledMatrix:
    """Every row divided by its sum; zero rows stay zero.

    Examples
    --------
    >>> import numpy as np
    >>> normalize_rows(LabelledMatrix(np.array([[2.0, 6.0], [0.0, 0.0]]))).matrix
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    from sklearn.preprocessing import normalize

    return replace(data, matrix=normalize(data.matrix, norm="l1"))

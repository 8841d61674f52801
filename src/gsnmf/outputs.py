"""`save`, `load` and `report`: one function each for everything that the library finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from gsnmf.applications.marker_genes.cell_report import gather_cells, write_cells
from gsnmf.applications.topic_modelling.model import TopicModel
from gsnmf.applications.topic_modelling.saved_topics import FORMAT as TOPICS
from gsnmf.applications.unmixing.unmixing_result import FORMAT as UNMIXING
from gsnmf.applications.unmixing.unmixing_result import Unmixing
from gsnmf.datasets.labelled import LabelledMatrix
from gsnmf.diagnostics import NO_COMPARISON
from gsnmf.estimators.gsnmf import GSNMF
from gsnmf.estimators.naming import index_names, names_out
from gsnmf.estimators.saving import FORMAT as MODEL
from gsnmf.estimators.saving import saved_result
from gsnmf.io import load_result, one_error, read_format, save_result
from gsnmf.matrix.validation import is_anndata
from gsnmf.nmf import CURResult, LowRankResult, NMFResult, SVDResult
from gsnmf.reports.findings import Findings, gather
from gsnmf.reports.page import write_report
from gsnmf.result import Factorization

Model = GSNMF | TopicModel | Unmixing | LowRankResult
"""What saves and loads itself."""

_READERS = {MODEL: GSNMF, TOPICS: TopicModel, UNMIXING: Unmixing} | {
    kind.saved_format(): kind for kind in (NMFResult, SVDResult, CURResult)
}


def save(result: Factorization | Model, path: str | Path, *, provenance: Mapping[str, Any] | None = None) -> None:
    """Write what was found to an ``.npz`` file, without pickle; the file is complete or not there at all.

    Parameters
    ----------
    result : Factorization, GSNMF, TopicModel, Unmixing, or a result of ``gsnmf.nmf``
    path : str or Path
        An existing file is replaced once the new one is complete.
    provenance : mapping, optional
        For a Factorization: anything that JSON can hold, to be kept with it.

    Notes
    -----
    The matrix of a Factorization is not saved, nor are the training data of a GSNMF. A TopicModel is saved with its
    texts and its matrix.

    Examples
    --------
    >>> import tempfile
    >>> import gsnmf
    >>> matrix = [[1, 0, 2], [0, 1, 2], [0, 0, 1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "result.npz")
    ...     gsnmf.save(gsnmf.factorize(matrix, 2, method="spa-rows"), file)
    ...     gsnmf.load(file, matrix).rows
    array([0, 1])
    """
    if isinstance(result, Factorization):
        save_result(result, path, provenance=provenance)
        return
    if not isinstance(result, Model):
        kinds = "a Factorization, GSNMF, TopicModel, Unmixing or a result of gsnmf.nmf"
        raise TypeError(f"result must be {kinds}; got {type(result).__name__}.")
    if provenance is not None:
        raise ValueError(f"provenance is kept with a Factorization only; got a {type(result).__name__}.")
    result.save(path)


@overload
def load(path: str | Path) -> Model: ...
@overload
def load(path: str | Path, matrix: Any, *, entry_weights: Any = None) -> Factorization: ...
def load(path: str | Path, matrix: Any = None, *, entry_weights: Any = None) -> Factorization | Model:
    """Read what `save` wrote.

    Parameters
    ----------
    path : str or Path
    matrix : array-like, DataFrame, sparse or Dask array, shape (m, n)
        For a Factorization, which is saved without it: the matrix that was factorized; another one is an error. It may
        be in memory now and a Dask array then, and the other way round. What is missing from it, and whether negative
        entries are set to zero, the file knows.
    entry_weights : array or sparse array, shape (m, n), optional
        For a Factorization: the weights of entries with which it was factorized.

    Returns
    -------
    Factorization, GSNMF, TopicModel, Unmixing, or a result of ``gsnmf.nmf``
        What was saved.

    Examples
    --------
    >>> import tempfile
    >>> import gsnmf
    >>> model = gsnmf.GSNMF(2, method="spa-rows").fit([[1, 0, 2], [0, 1, 2], [0, 0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.npz")
    ...     gsnmf.save(model, file)
    ...     gsnmf.load(file).sample_indices_
    array([0, 1])
    """
    with one_error(path, "a result" if matrix is not None else "a result or a model"):
        form = read_format(path)
    if form in _READERS:
        kind = _READERS[form]
        if matrix is not None or entry_weights is not None:
            raise ValueError(f"{path} holds a {kind.__name__}, which is loaded without a matrix: gsnmf.load(path).")
        return kind.load(path)  # type: ignore[attr-defined, no-any-return]
    if matrix is None:
        raise ValueError(
            f"{path} holds a Factorization, which is saved without its matrix: gsnmf.load(path, matrix) needs the "
            "matrix that was factorized."
        )
    return load_result(path, matrix, entry_weights=entry_weights)


def report(
    result: Any,
    path: str | Path,
    *,
    data: Any = None,
    row_names: Any = None,
    column_names: Any = None,
    title: str = "",
    compare: bool = True,
) -> None:
    """Write a page of HTML that shows what was found; it opens in any browser, offline.

    Parameters
    ----------
    result : Factorization, GSNMF, TopicModel, Unmixing, or AnnData
        AnnData: what `gsnmf.applications.markers` has annotated.
    path : path
        Of the HTML file.
    data : DataFrame or LabelledMatrix, optional
        For a Factorization: where the names of rows and columns come from. For a GSNMF that was loaded: the training
        data.
    row_names, column_names : sequences, or an object with ``get_feature_names_out``, optional
        For a Factorization and a GSNMF: names of rows and columns, if ``data`` has none.
    title : str
        What the data are.
    compare : bool
        Compute the bound that tells how much any factors of this number could explain.

    Examples
    --------
    >>> import tempfile
    >>> import gsnmf
    >>> result = gsnmf.factorize([[1, 0, 2], [0, 1, 2], [0, 0, 1]], 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder, "report.html")
    ...     gsnmf.report(result, page, column_names=["tea", "cake", "milk"])
    ...     "milk" in page.read_text()
    True
    """
    if isinstance(result, Factorization):
        named = _labelled(result, data, row_names, column_names)
        write_report(gather(result, named, title=title, comparison=None if compare else NO_COMPARISON), path)
        return
    if isinstance(result, GSNMF):
        write_report(_gather_model(result, data, column_names, row_names, title, compare), path)
        return
    kind = type(result).__name__
    if not isinstance(result, TopicModel | Unmixing) and not is_anndata(result):
        raise TypeError(f"result must be a Factorization, GSNMF, TopicModel, Unmixing or AnnData; got {kind}.")
    for name, value in (("data", data), ("row_names", row_names), ("column_names", column_names)):
        if value is not None:
            raise ValueError(f"{name} must be left out for {kind}, which knows its names.")
    if isinstance(result, TopicModel):
        result.report(path, title=title, compare=compare)
    elif isinstance(result, Unmixing):
        result.report(path, title=title)
    else:
        write_cells(gather_cells(result, title=title), path)


def _labelled(result: Factorization, data: Any, row_names: Any, column_names: Any) -> LabelledMatrix:
    """The matrix of a result with the names that are known."""
    named = data if isinstance(data, LabelledMatrix) else LabelledMatrix(result.matrix)
    if data is not None and not isinstance(data, LabelledMatrix):
        if not hasattr(data, "columns"):
            raise TypeError(f"data must be a DataFrame or a LabelledMatrix; got {type(data).__name__}.")
        columns = tuple(map(str, data.columns))
        named = LabelledMatrix(result.matrix, row_names=index_names(data) or (), column_names=columns)
    return replace(
        named,
        row_names=named.row_names if row_names is None else tuple(map(str, names_out(row_names))),
        column_names=named.column_names if column_names is None else tuple(map(str, names_out(column_names))),
    )


def _gather_model(
    model: GSNMF, data: Any, feature_names: Any, sample_names: Any, title: str, compare: bool
) -> Findings:
    """What the report on a fitted model says."""
    features, samples = model._names(feature_names, sample_names)
    result = _with_training_data(model, data)
    named = LabelledMatrix(
        result.matrix,
        row_names=() if isinstance(samples, range) else tuple(map(str, samples)),
        column_names=tuple(map(str, features)),
        row_kind="sample",
        column_kind="feature",
    )
    return gather(
        result,
        named,
        title=title or "A model of samples",
        comparison=None if compare else NO_COMPARISON,
        parameters={name: str(value) for name, value in model.get_params().items()},
        tolerance=model.tol,
        rank_choice=getattr(model, "rank_choice_", None),
    )


def _with_training_data(model: GSNMF, data: Any) -> Factorization:
    """The result of a model; if it was loaded, with the training data that are given."""
    if "result_" in model.__dict__:
        held: Factorization = model.result_
        if data is not None and np.shape(data) != held.source.shape:
            raise ValueError(
                f"data must be the training data, of shape {held.source.shape}; got shape {np.shape(data)}."
            )
        return held
    saved = saved_result(model)
    if saved is None:
        raise ValueError("a report needs the result, which this model was saved without; fit it again.")
    if data is None:
        raise ValueError("a report needs the training data, which are not saved with a model; give them as data=.")
    return saved.with_matrix(data)

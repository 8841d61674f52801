"""Topic models in files: plain arrays and JSON, complete and without pickle.

The file holds the texts, the vocabulary and the matrix, so that a loaded model can do everything.
"""

from __future__ import annotations

import json
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from gsnmf.io import SavedResult, check_numbers, decoded, encoded, one_error, read_archive
from gsnmf.matrix.validation import check_indices
from gsnmf.model_selection.rank_choice import RankChoice
from gsnmf.model_selection.stability import Stability

if TYPE_CHECKING:
    from gsnmf.applications.topic_modelling.model import TopicModel

FORMAT = "gsnmf topics"
_VERSION = 1
_KIND = "a topic model"
_ARRAYS = ("order", "components", "weights", "document_topics", "means")
_TEXTS = ("texts", "ids", "labels")
_MATRIX = ("data", "indices", "indptr")
_OPTIONAL: dict[str, Any] = {"rank_choice": RankChoice, "stability": Stability}
_VECTORIZERS = ("TfidfVectorizer", "CountVectorizer")


def write_model(model: TopicModel, stream: BinaryIO) -> None:
    """Write a topic model to an open file."""
    result, arrays = encoded(SavedResult.of(model.result), "result")
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": _VERSION,
        "result": result,
        "vectorizer": _packed_vectorizer(model.vectorizer),
        "dates": [None if day is None else str(day) for day in model.dates],
        **{name: list(getattr(model, name)) for name in _TEXTS},
    }
    arrays |= {name: getattr(model, name) for name in _ARRAYS}
    arrays |= {f"matrix.{name}": getattr(model.matrix, name) for name in _MATRIX}
    if hasattr(model.vectorizer, "idf_"):
        arrays["idf"] = model.vectorizer.idf_
    for name in _OPTIONAL:
        if (found := getattr(model, name)) is not None:
            record[name], own = encoded(found, name)
            arrays |= own
    np.savez_compressed(stream, record=np.array(json.dumps(record)), **arrays)


def load_model(kind: type[TopicModel], path: str | PathLike[str]) -> TopicModel:
    """Read a topic model that `write_model` wrote."""
    record, arrays = read_archive(path, _KIND)
    with one_error(path, _KIND):
        if record.get("format") != FORMAT:
            raise ValueError(f"it says that it holds {record.get('format')!r}")
        return kind(**_fields(record, arrays))


def _fields(record: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """What a topic model is made of, once it fits together."""
    vectorizer = _unpacked_vectorizer(record["vectorizer"], arrays.get("idf"))
    m, n = map(int, record["result"]["shape"])
    matrix = sp.csr_array(tuple(arrays[f"matrix.{name}"] for name in _MATRIX), shape=(m, n))
    matrix.check_format()
    result = decoded(SavedResult, record["result"], arrays, "result").with_matrix(matrix)
    texts = {name: tuple(map(str, record[name])) for name in _TEXTS}
    dates = tuple(None if day is None else date.fromisoformat(day) for day in record["dates"])
    _check(arrays, result.selection.n_selected, (m, n))
    counts = {"texts": len(texts["texts"]), "ids": len(texts["ids"])}
    counts |= {"labels": len(texts["labels"]) or m, "dates": len(dates) or m}
    for name, count in counts.items():
        if count != m:
            raise ValueError(f"there must be {m} {name}; got {count}")
    known = {name: made for name, made in _OPTIONAL.items() if name in record}
    return {
        "result": result,
        "vectorizer": vectorizer,
        "dates": dates,
        **texts,
        **{name: arrays[name] for name in _ARRAYS},
        **{name: decoded(made, record[name], arrays, name) for name, made in known.items()},
    }


def _check(arrays: dict[str, Any], rank: int, shape: tuple[int, int]) -> None:
    """Raise unless topics, weights and documents fit each other."""
    m, n = shape
    if check_indices(arrays["order"], rank, "order").size != rank:
        raise ValueError(f"order must be a permutation of {rank} topics")
    for name, size in {"components": (rank, n), "weights": (m, rank), "means": (rank, n)}.items():
        check_numbers(arrays[name], name, shape=size, nonnegative=True)
    topics = check_numbers(arrays["document_topics"], "document_topics", shape=(m,))
    if topics.size and not -1 <= topics.min() <= topics.max() < max(rank, 1):
        raise ValueError("document_topics must be numbers of topics")


def _packed_vectorizer(vectorizer: Any) -> dict[str, Any]:
    """The class, the parameters and the vocabulary of one of scikit-learn's vectorizers."""
    kind = type(vectorizer)
    if kind.__name__ not in _VECTORIZERS or not kind.__module__.startswith("sklearn."):
        raise TypeError(
            f"a topic model can be saved with scikit-learn's {' or '.join(_VECTORIZERS)}; got {kind.__name__}. Pickle "
            "keeps other vectorizers."
        )
    parameters = vectorizer.get_params()
    parameters["dtype"] = np.dtype(parameters["dtype"]).name
    words = vectorizer.get_feature_names_out().tolist()
    if parameters["vocabulary"] is not None:
        parameters["vocabulary"] = words
    if not isinstance(parameters["stop_words"], str | None):
        parameters["stop_words"] = sorted(parameters["stop_words"])
    for name, value in parameters.items():
        if callable(value):
            raise TypeError(f"a topic model cannot be saved if {name} of its vectorizer is a function; got {value!r}.")
    return {"kind": kind.__name__, "parameters": parameters, "words": words}


def _unpacked_vectorizer(packed: dict[str, Any], idf: Any) -> Any:
    from sklearn.feature_extraction import text  # slow to import

    if packed["kind"] not in _VECTORIZERS:
        raise ValueError(f"the vectorizer must be one of {', '.join(_VECTORIZERS)}; got {packed['kind']}")
    parameters = dict(packed["parameters"])
    parameters["ngram_range"] = tuple(parameters["ngram_range"])
    parameters["dtype"] = np.dtype(parameters["dtype"]).type
    vectorizer = getattr(text, packed["kind"])(**parameters | {"vocabulary": packed["words"]}).fit([""])
    if idf is not None:
        vectorizer.idf_ = check_numbers(idf, "idf", shape=(len(packed["words"]),))
    return vectorizer.set_params(vocabulary=parameters["vocabulary"])

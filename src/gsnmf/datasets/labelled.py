"""A matrix with the names of its rows and columns, and the usual weightings of its entries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from gsnmf.matrix import Matrix
from gsnmf.matrix.input import MissingValues, Negative
from gsnmf.matrix.observed import Observed
from gsnmf.matrix.validation import Hints
from gsnmf.problem import Problem
from gsnmf.records import Record
from gsnmf.support.arrays import Axis, Floats, RawMatrix

_OPTIONS_OF_READERS = Hints("missing_values=numpy.nan", 'negative="clip"')


@dataclass(frozen=True, eq=False)
class LabelledMatrix(Record):
    """A matrix with the names of its rows and columns, as a file has them.

    Attributes
    ----------
    matrix : ndarray, csr_array or csc_array, shape (m, n)
        Finite and nonnegative, except for NaN where entries are missing.
    row_names, column_names : tuples of str
        One name each, or empty where there are none; a name may be empty too.
    row_kind, column_kind : str
        What a row and a column are: ``"document"`` and ``"word"``, for instance.
    image_shape : pair of int, or None
        Height and width, if one axis are the pixels of images.
    pixels : {"columns", "rows"}
        Which axis that is.
    image_order : {"C", "F"}
        Whether the pixels of an image follow each other row by row or column by column.
    source : str
        Where the matrix came from.
    clipped_share : float
        Norm of negative entries that were set to zero, relative to the norm of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> data = LabelledMatrix(np.eye(2), row_names=("a", ""), image_shape=(1, 2))
    >>> data.row_name(0), data.row_name(1), data.column_name(1)
    ('a', 'row 1', '(0, 1)')
    """

    matrix: RawMatrix = field(repr=False)
    row_names: tuple[str, ...] = field(default=(), repr=False)
    column_names: tuple[str, ...] = field(default=(), repr=False)
    row_kind: str = "row"
    column_kind: str = "column"
    image_shape: tuple[int, int] | None = None
    pixels: Axis = "columns"
    image_order: Literal["C", "F"] = "C"
    source: str = ""
    clipped_share: float = 0.0

    def __post_init__(self) -> None:
        for axis, names, length in zip(
            ("row", "column"), (self.row_names, self.column_names), self.matrix.shape, strict=True
        ):
            if names and len(names) != length:
                raise ValueError(
                    f"{axis}_names must have one name for each of the {length} {axis}s; got {len(names)} names."
                )
        if self.image_shape is not None:
            height, width = self.image_shape
            length = self.matrix.shape[1 if self.pixels == "columns" else 0]
            if height * width != length:
                raise ValueError(
                    f"image_shape must have as many pixels as the matrix has {self.pixels}, {length}; "
                    f"got {height} x {width}."
                )

    @cached_property
    def held(self) -> Matrix | Observed:
        """The matrix as algorithms hold it, checked once; what is observed of it if entries are missing."""
        return self._problem().matrix

    def checked(self, *, missing_values: MissingValues = None, negative: Negative = "error") -> LabelledMatrix:
        """The same with the matrix as its check leaves it: floating-point numbers, canonical if it is sparse."""
        problem = self._problem(missing_values, negative)
        problem.warn(name=self.source or "matrix")
        copy = replace(self, matrix=problem.matrix.data, clipped_share=problem.clipped_share)
        copy.__dict__["held"] = problem.matrix
        return copy

    def _problem(self, missing_values: MissingValues = None, negative: Negative = "error") -> Problem:
        return Problem.of(
            self.matrix,
            missing_values=missing_values,
            negative=negative,
            name=self.source or "matrix",
            hints=_OPTIONS_OF_READERS if self.source else None,
        )

    def row_name(self, index: int) -> str:
        """The name of a row, or one made from its position."""
        return self._name(index, self.row_names, self.row_kind, self.pixels == "rows")

    def column_name(self, index: int) -> str:
        """The name of a column, or one made from its position."""
        return self._name(index, self.column_names, self.column_kind, self.pixels == "columns")

    def name(self, axis: Axis, index: int) -> str:
        """The name of a row or of a column."""
        return self.column_name(index) if axis == "columns" else self.row_name(index)

    def kind(self, axis: Axis) -> str:
        """What a row, or a column, is."""
        return self.column_kind if axis == "columns" else self.row_kind

    def image(self, pixels: Floats) -> Floats:
        """The pixels of one image as an array of its height and width."""
        if self.image_shape is None:
            raise ValueError("image_shape must be known to make an image of pixels; got None.")
        return pixels.reshape(self.image_shape, order=self.image_order)

    def pixel(self, index: int) -> tuple[int, int]:
        """Row and column of a pixel in its image."""
        if self.image_shape is None:
            raise ValueError("image_shape must be known to place a pixel; got None.")
        row, column = np.unravel_index(index, self.image_shape, order=self.image_order)
        return int(row), int(column)

    def with_image_shape(self, image_shape: tuple[int, int]) -> LabelledMatrix:
        """The same with one axis as the pixels of images: the columns, or the rows if only they are as many."""
        height, width = image_shape
        m, n = self.matrix.shape
        if height * width not in (m, n):
            raise ValueError(
                f"image_shape must have as many pixels as the matrix has rows, {m}, or columns, {n}; "
                f"got {height} x {width}."
            )
        if height * width == n:
            return replace(self, image_shape=image_shape, pixels="columns", row_kind="image", column_kind="pixel")
        return replace(self, image_shape=image_shape, pixels="rows", row_kind="pixel", column_kind="image")

    def _name(self, index: int, names: tuple[str, ...], kind: str, may_be_pixel: bool) -> str:
        if names and names[index]:
            return names[index]
        if self.image_shape is not None and may_be_pixel:
            return str(self.pixel(index))
        return f"{kind} {index}"


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

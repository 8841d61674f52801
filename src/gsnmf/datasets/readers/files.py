"""What readers share: how files are opened and decoded, one kind of error that names the file, and the options."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

STANDARD_INPUT = Path("-")


class FileError(ValueError):
    """A file that cannot be read as what it should be; the message opens with its name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from gsnmf.datasets import FileError, read_matrix
    >>> with TemporaryDirectory() as folder:
    ...     damaged = Path(folder, "damaged.npz")
    ...     _ = damaged.write_text("not an archive")
    ...     try:
    ...         read_matrix(damaged)
    ...     except FileError as error:
    ...         print(type(error).__name__)
    FileError
    """


@dataclass(frozen=True)
class ReadOptions:
    """Options of `gsnmf.datasets.read_matrix` that readers heed; each reader names those that it uses."""

    key: str | None = None
    header: bool | None = None
    row_names: bool | None = None
    encoding: str = "utf-8"
    stop_words: Literal["english"] | None = "english"
    min_documents: int = 2
    image_shape: tuple[int, int] | None = None
    cube: bool = False
    blank_is_missing: bool = False


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what a library raises for a damaged file into one `FileError` that names file and format."""
    try:
        yield
    except (FileError, ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # from the operating system
            raise
        message = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path}: cannot be read as {kind}: {message}") from error


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if its name ends in ``.gz``, or of standard input."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    elif path.suffix == ".gz":
        try:
            with gzip.open(path) as stream:
                yield stream  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileError(f"{path}: cannot be unpacked: {error}") from error
    else:
        with path.open("rb") as stream:
            yield stream


@contextmanager
def open_seekable(path: Path) -> Iterator[BinaryIO]:
    """`open_bytes` for files that are read more than once: a pipe is held in memory."""
    with open_bytes(path) as stream:
        yield stream if stream.seekable() and path != STANDARD_INPUT else io.BytesIO(stream.read())


@contextmanager
def open_text(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The text of a file or of standard input, without a byte-order mark, with line ends as they are."""
    with open_bytes(path) as stream, decoded(stream, path, encoding) as text:
        yield text


@contextmanager
def decoded(stream: BinaryIO, path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The text of a stream, which stays open; errors name ``path``."""
    if encoding.lower().replace("_", "-") == "utf-8":
        encoding = "utf-8-sig"
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        yield text
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: is not text in {encoding.removesuffix('-sig')} (byte 0x{error.object[error.start]:02x}); "
            "name its encoding, for example latin-1."
        ) from error
    finally:
        text.detach()


def read_lines(path: str | Path, encoding: str = "utf-8") -> tuple[str, ...]:
    """The lines of a file, without their ends."""
    with open_text(Path(path), encoding) as text:
        lines = text.read().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def shortened(value: Any, longest: int = 40) -> str:
    """Text for an error message, on one line and at most so long.

    Examples
    --------
    >>> shortened("a long text in a cell", 10)
    'a long te…'
    """
    text = " ".join(str(value).split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"

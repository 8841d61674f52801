"""Opening files: text in its encoding, compressed or not, and errors that name the file."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

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


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what a reader raises for a damaged file into one `FileError` that names file and format."""
    try:
        yield
    except (FileError, ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # the system's word, not a reader's
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
def seekable(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file as a seekable stream; a pipe, which can be read only once, is held in memory."""
    with path.open("rb") as stream:
        yield stream if stream.seekable() else io.BytesIO(stream.read())


@contextmanager
def open_text(path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The text of a file or of standard input, without a byte-order mark, line ends as they are."""
    with open_bytes(path) as stream, decoded(stream, path, encoding) as text:
        yield text


@contextmanager
def decoded(stream: BinaryIO, path: Path, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The text of a stream, which stays open; ``path`` is named in errors."""
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


def read_lines(path: Path, encoding: str = "utf-8") -> tuple[str, ...]:
    """The lines of a file, without their ends."""
    with open_text(path, encoding) as text:
        lines = text.read().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return tuple(lines[:-1] if lines[-1] == "" else lines)

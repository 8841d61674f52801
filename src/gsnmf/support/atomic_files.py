"""Files that are written completely or not at all.

One file is written under a temporary name in the same folder, flushed to disk, and renamed.

Several files that belong together are written into a draft folder beside them. Renaming this folder commits them: the
old files are then moved into it, the new files out of it. The visible files are all old or all new at every moment. If
the process is killed after the commit, the next writer of the same files completes the moves. A lock on the folder
(except on Windows) makes processes take turns.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STALE_SECONDS = 24 * 3600.0
"""Age above which the draft of another process counts as left behind by a killed one, and is removed."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when everything is written, and leaves nothing behind otherwise.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "a.txt")) as stream:
    ...         _ = stream.write(b"all of it")
    ...     Path(folder, "a.txt").read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    target = Path(path)
    check_targets([target])
    with _draft_of(target) as draft:
        with draft.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # a full disk raises here, while the old file is still in place
        draft.replace(target)


@contextmanager
def atomic_files(folder: str | os.PathLike[str], names: Sequence[str]) -> Iterator[Path]:
    """Give a draft folder for files that belong together; after the block all of them are replaced, or none is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_files(folder, ["a.txt", "b.txt"]) as draft:
    ...         for name in ("a.txt", "b.txt"):
    ...             _ = (draft / name).write_text("new")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.txt', 'b.txt']
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    check_targets([place / name for name in names])
    committed = place / f".{names[0]}.committed"
    with _locked(place):
        _move_into_place(committed)  # completes what a killed process has begun
    with _draft_of(place / names[0]) as draft:
        draft.mkdir()
        yield draft
        for file in draft.iterdir():
            with file.open("r+b") as stream:
                os.fsync(stream.fileno())
        with _locked(place):
            _move_into_place(committed)
            draft.replace(committed)
            try:
                _move_into_place(committed)
            except BaseException:
                _move_back(committed, names)
                committed.replace(draft)
                raise


def check_targets(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise now what writing these files would raise later: no folder, a folder in the way, no permission."""
    for path in map(Path, paths):
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory, where a file is to be written", str(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(2, "No such directory", str(path.parent))
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied", str(path.parent))


@contextmanager
def _draft_of(target: Path) -> Iterator[Path]:
    """Give a path for a draft that no other thread or process uses, and remove what is left of it afterwards."""
    draft = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(6)}.draft")
    try:
        yield draft
    except OSError as error:
        if error.filename is None:  # as when a disk is full
            error.filename = str(target.parent)
        raise
    finally:
        _remove(draft)
        for other in target.parent.glob(f".{glob.escape(target.name)}.*.draft"):
            with suppress(OSError):
                if time.time() - other.stat().st_mtime > STALE_SECONDS:
                    _remove(other)


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process replaces files of this folder."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _move_into_place(committed: Path) -> None:
    """Replace files by the committed ones: first move all old files aside, then the new ones to their places."""
    if not committed.exists():
        return
    folder, old = committed.parent, committed / ".old"
    old.mkdir(exist_ok=True)
    names = [file.name for file in committed.iterdir() if file != old]
    for name in names:
        if (folder / name).exists():
            (folder / name).replace(old / name)
    for name in names:
        (committed / name).replace(folder / name)
    shutil.rmtree(committed, ignore_errors=True)


def _move_back(committed: Path, names: Sequence[str]) -> None:
    """Undo moves after one of them has failed: remove the new files, then move the old ones back."""
    folder, old = committed.parent, committed / ".old"
    for name in names:
        if not (committed / name).exists():
            (folder / name).unlink(missing_ok=True)
    for kept in old.iterdir() if old.exists() else ():
        kept.replace(folder / kept.name)

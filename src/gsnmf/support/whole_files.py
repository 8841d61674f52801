"""Files that are written completely or not at all.

A file is first written as a draft in the same folder, under a name that no other thread or process uses, then flushed
to disk, then renamed. Drafts that a killed process left behind are removed when the same file is next written.

Several files of one folder that belong together are replaced as a set. When all drafts are on disk, a *record* lists
them; then all old files are moved aside, and the drafts are renamed. If a rename fails, they are moved back. If
the process is killed, the visible files are all old or all new, never a mixture, and the next writer of the set finds
the record and completes the renames. The record is locked meanwhile (except on Windows), so two processes take turns.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_STALE_SECONDS = 24 * 3600.0
"""Age above which a draft of another process counts as left behind."""

_Names = tuple[str, str, str]
"""Names for one file of a set: its draft, its final name, and the name under which the old file is kept aside."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when everything is written, and leaves nothing behind otherwise.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "a.txt")) as stream:
    ...         _ = stream.write(b"all of it")
    ...     Path(folder, "a.txt").read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    with whole_files([path]) as (stream,):
        yield stream


@contextmanager
def whole_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[BinaryIO]]:
    """`whole_file` for several files of one folder that belong together: all are replaced, or none is."""
    targets = [Path(path) for path in paths]
    check_targets(targets)
    if _record_of(targets[0]).exists():
        with _turn(targets[0]):
            pass  # completes what a killed process had begun
    mark = f"{os.getpid()}-{secrets.token_hex(6)}"
    drafts = [target.with_name(f".{target.name}.{mark}.draft") for target in targets]
    try:
        with ExitStack() as opened:
            streams: list[BinaryIO] = [opened.enter_context(draft.open("xb")) for draft in drafts]
            yield streams
            for stream in streams:
                stream.flush()
                os.fsync(stream.fileno())  # a full disk raises here, while the old files are still in place
        _take_places(drafts, targets, mark)
    except OSError as error:
        if error.filename is None:  # as when a disk is full
            error.filename = str(targets[0].parent)
        raise
    finally:
        for draft in drafts:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        for target in targets:
            _remove_stale_drafts(target)


def check_targets(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise now what writing these files would raise later: no folder, a folder in the way, no permission."""
    for path in map(Path, paths):
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory, where a file is to be written", str(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(2, "No such directory", str(path.parent))
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied", str(path.parent))


def _take_places(drafts: Sequence[Path], targets: Sequence[Path], mark: str) -> None:
    """Rename all drafts; if a rename fails, restore the files that were there."""
    if len(targets) == 1:
        drafts[0].replace(targets[0])
        return
    folder = targets[0].parent
    names = [
        (draft.name, target.name, f".{target.name}.{mark}.kept.draft")
        for draft, target in zip(drafts, targets, strict=True)
    ]
    with _turn(targets[0]) as record:
        record.write(json.dumps(names).encode())
        record.flush()
        os.fsync(record.fileno())
        try:
            _go_forward(folder, names)
        except BaseException:
            _go_back(folder, names)
            raise


def _go_forward(folder: Path, names: Sequence[_Names]) -> None:
    """Move all old files aside, then rename the remaining drafts."""
    left = [(folder / draft, folder / target, folder / kept) for draft, target, kept in names]
    left = [paths for paths in left if paths[0].exists()]
    for _, target, kept in left:
        if target.exists():
            target.replace(kept)
    for draft, target, _ in left:
        draft.replace(target)
    for _, _, backup in names:
        with suppress(OSError):
            (folder / backup).unlink(missing_ok=True)


def _go_back(folder: Path, names: Sequence[_Names]) -> None:
    """Turn the new files into drafts again, then move the old files back."""
    for draft, target, _ in names:
        if not (folder / draft).exists():
            with suppress(OSError):
                (folder / target).replace(folder / draft)
    for _, target, kept in names:
        with suppress(OSError):
            (folder / kept).replace(folder / target)


def _record_of(first: Path) -> Path:
    return first.with_name(f".{first.name}.set")


@contextmanager
def _turn(first: Path) -> Iterator[BinaryIO]:
    """Lock the record of the set with this first file, complete what it lists, and give it empty."""
    path = _record_of(first)
    with _locked(path) as record:
        _go_forward(first.parent, _told(record))
        record.truncate(0)
        try:
            yield record
        finally:
            if fcntl is None:
                record.close()  # an open file cannot be removed
            path.unlink(missing_ok=True)


def _locked(path: Path) -> BinaryIO:
    """Open a record, creating it if necessary, and wait until no other process has it."""
    while True:
        record = path.open("a+b")
        if fcntl is None:
            return record
        with suppress(OSError):  # some network folders have no locks
            fcntl.flock(record, fcntl.LOCK_EX)
        if os.fstat(record.fileno()).st_nlink:
            return record
        record.close()  # its owner removed it while this process waited


def _told(record: BinaryIO) -> list[_Names]:
    """The names in a record; none if it is incomplete, because then nothing was renamed."""
    record.seek(0)
    with suppress(ValueError, TypeError):
        names = [(str(draft), str(target), str(kept)) for draft, target, kept in json.loads(record.read())]
        if all(Path(name).name == name for triple in names for name in triple):  # never outside the folder
            return names
    return []


def _remove_stale_drafts(target: Path) -> None:
    """Remove drafts of this file that a dead process left behind."""
    with suppress(OSError):
        for draft in target.parent.glob(f".{_escaped(target.name)}.*.draft"):
            with suppress(OSError):
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    draft.unlink(missing_ok=True)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)

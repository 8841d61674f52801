"""Files that are written completely or not at all.

A file is first written as a draft in the same folder, under a name that no other thread or process uses, then flushed
to disk, then renamed. Several files that belong together are all replaced, or none is: if one rename fails, the earlier
ones are undone. Drafts that a killed process left behind are removed when the same file is next written.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_STALE_SECONDS = 24 * 3600.0
"""Age above which a draft of another process counts as left behind."""


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
    """`whole_file` for several files that belong together: all are replaced, or none is."""
    targets = [Path(path) for path in paths]
    check_targets(targets)
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
    """Rename all drafts; if one rename fails, restore what the earlier ones replaced."""
    done: list[tuple[Path, Path | None]] = []
    try:
        for draft, target in zip(drafts, targets, strict=True):
            kept: Path | None = None
            if len(targets) > 1 and target.exists():
                kept = target.with_name(f".{target.name}.{mark}.kept.draft")
                target.replace(kept)
            done.append((target, kept))
            draft.replace(target)
    except BaseException:
        for target, kept in reversed(done):
            with suppress(OSError):
                target.unlink(missing_ok=True)
                if kept is not None:
                    kept.replace(target)
        raise
    for _, kept in done:
        if kept is not None:
            with suppress(OSError):
                kept.unlink(missing_ok=True)


def _remove_stale_drafts(target: Path) -> None:
    """Remove drafts of this file that a dead process left behind."""
    with suppress(OSError):
        for draft in target.parent.glob(f".{_escaped(target.name)}.*.draft"):
            with suppress(OSError):
                if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                    draft.unlink(missing_ok=True)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)

"""Files of a run: written whole or not at all.

Invariant: a reader never sees half a file, and a disk that fills up is one clear error.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from claims.atomic import write_bytes_atomically
from claims.schema import UserError


class DiskFullError(UserError):
    """There is no room left to write to."""


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` through a temporary file beside it; an identical file is left alone.

    Raises:
        DiskFullError: There is no room; what stood at `path` before is untouched.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` as `write_text` does."""
    if path.is_file() and path.read_bytes() == content:
        return
    with disk_full_said(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, content)


@contextmanager
def disk_full_said(path: Path) -> Iterator[None]:
    """Turn "no space left" into an error that a user can act on.

    Raises:
        DiskFullError: The disk or the quota is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(disk_full(path)) from error


def disk_full(path: Path) -> str:
    """What to tell a user whose disk is full."""
    return (
        f"No space left on the device that holds {path}. Nothing was left half-written. "
        "Free some space and give the same command again: it continues where it stopped."
    )

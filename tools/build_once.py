"""Folders that are built once and then only read.

Invariant: a folder that `is_whole` was written by one process to the end. It is built beside its place under a
temporary name and renamed into it, so a killed or failed build leaves nothing that looks finished.
"""

import fcntl
import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MARKER = "prepared.json"

_log = logging.getLogger(__name__)


def is_whole(folder: Path) -> bool:
    """Whether `folder` was built to the end and its files still have the sizes they had then."""
    try:
        sizes = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def build_once(folder: Path, build: Callable[[Path], Mapping[str, str]]) -> Path:
    """Return `folder`, built by `build` unless it is whole already.

    Two processes that want the same folder take turns; the second finds it whole.

    Args:
        folder: Where the result belongs.
        build: Writes the files into the empty folder it is given and returns what to note in the marker.
    """
    if is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if not is_whole(folder):
            _rebuild(folder, build)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The kernel drops an flock with its process, so a killed builder never leaves a lock behind.
    with (folder.parent / f".{folder.name}.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _rebuild(folder: Path, build: Callable[[Path], Mapping[str, str]]) -> None:
    prefix = f".{folder.name}.building-"
    for stale in folder.parent.glob(f"{prefix}*"):
        _log.info("removing what an interrupted build left: %s", stale)
        shutil.rmtree(stale, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        notes = dict(build(draft))
        _write_marker(draft, notes)
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_marker(draft: Path, notes: Mapping[str, str]) -> None:
    files = {path.name: path.stat().st_size for path in sorted(draft.iterdir()) if path.is_file()}
    text = json.dumps({"notes": dict(notes), "files": files}, indent=1)
    (draft / MARKER).write_text(text, encoding="utf-8")

"""A hub cache with one repository in it, as the hub's client leaves it: blobs, snapshots, refs."""

import hashlib
from pathlib import Path

COMMIT = "1" * 40


def put_in_cache(cache: Path, repository: str, folder: Path) -> Path:
    """Copy `folder` into the cache under the name of a repository; return the snapshot."""
    place = cache / f"models--{repository.replace('/', '--')}"
    snapshot = place / "snapshots" / COMMIT
    for kept in (place / "blobs", place / "refs", snapshot):
        kept.mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    for path in folder.iterdir():
        blob = place / "blobs" / hashlib.sha256(path.read_bytes()).hexdigest()
        blob.write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(blob)
    return snapshot

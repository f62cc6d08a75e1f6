"""What was paid for, on disk: an append-only log of JSON rows by key.

Invariant: a row is written whole before its value is used; a line torn by a kill is skipped when it is read and never
joined to the next; the first row of a key wins, so a value once used never changes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from claims.schema import UserError

Json = dict[str, object]


class AppendLog:
    """A folder of JSON Lines files, one for each two first digits of the keys.

    Args of `put` and `get` are sha256 keys in hex. One process writes at a time; several may.
    """

    def __init__(self, folder: Path) -> None:
        """Use (and make) `folder`.

        Raises:
            UserError: The folder cannot be made.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder} cannot be made: {error.strerror}. Give another folder with --work.") from None
        self.folder = folder
        self._shards: dict[str, dict[str, Json]] = {}

    def get(self, key: str) -> Json | None:
        """The row kept under `key`, or None."""
        return self._shard(key[:2]).get(key)

    def put(self, key: str, row: Json) -> Json:
        """Keep `row` under `key` and return the row that is kept there: an earlier one stays."""
        shard = self._shard(key[:2])
        if key not in shard:
            line = json.dumps({"key": key, "row": row}, ensure_ascii=False, sort_keys=True)
            path = self._path(key[:2])
            # A torn last line has no line break: without one of ours the next row would be lost with it.
            start = "\n" if _is_torn(path) else ""
            with path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(f"{start}{line}\n")
            shard[key] = json.loads(line)["row"]
        return shard[key]

    def rows(self) -> Iterator[tuple[str, Json]]:
        """All keys and rows, in order of the keys."""
        for path in sorted(self.folder.glob("*.jsonl")):
            yield from sorted(self._shard(path.stem).items())

    def _path(self, prefix: str) -> Path:
        return self.folder / f"{prefix}.jsonl"

    def _shard(self, prefix: str) -> dict[str, Json]:
        if prefix not in self._shards:
            self._shards[prefix] = _read(self._path(prefix))
        return self._shards[prefix]


def _is_torn(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"
    except (FileNotFoundError, OSError):
        return False


def _read(path: Path) -> dict[str, Json]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    rows: dict[str, Json] = {}
    for line in lines:
        try:
            found = json.loads(line.decode("utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError):
            continue
        if isinstance(found, dict) and isinstance(found.get("row"), dict):
            rows.setdefault(str(found["key"]), found["row"])
    return rows

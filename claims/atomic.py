"""Write a file as a whole, and rows as its lines.

Invariant: whoever reads the file finds the old content or the new one, never a part; a failed write leaves nothing.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` in UTF-8, line breaks as they are, or leave it as it was."""
    write_bytes_atomically(path, text.encode("utf-8"))


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, or leave it as it was."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def json_lines(rows: Iterable[Mapping[str, object]]) -> str:
    """JSON Lines, as `claims.schema.read_rows` reads them: one object a line, every line ended."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

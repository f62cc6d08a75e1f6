"""The transcripts that a tool server is given, and nothing that it must not see.

Invariant: this module imports no torch, so that a wrong folder is refused at once.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from claims.schema import Transcript, UserError, read_transcripts


@dataclass(frozen=True)
class Registered:
    """The transcripts that a server may look at."""

    transcripts: dict[str, Transcript]
    """By transcript id."""
    sha256: str
    """Of the file they came from."""


def register(folder: Path) -> Registered:
    """Read the transcripts of a folder that holds nothing else a tool must not see.

    Raises:
        UserError: The folder has more JSON Lines than `transcripts.jsonl`, or that file is absent, empty or broken.
    """
    path = folder / "transcripts.jsonl"
    others = sorted(other.name for other in folder.glob("*.jsonl") if other.name != path.name)
    if others:
        raise UserError(
            f"{folder} has {', '.join(others)} in it. A tool server is given a folder with transcripts.jsonl only, "
            "so that it cannot see a label. Copy that file into a folder of its own."
        )
    transcripts = read_transcripts(path)
    if not transcripts:
        raise UserError(f"{path} has no transcript. Expected at least one; build or choose another claim set.")
    return Registered(transcripts, hashlib.sha256(path.read_bytes()).hexdigest())

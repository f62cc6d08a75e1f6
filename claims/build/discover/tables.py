"""The words that discovery knows."""

import json
from pathlib import Path

_TABLES = json.loads((Path(__file__).parent / "tables.json").read_text(encoding="utf-8"))

SWAPS: dict[str, list[str]] = _TABLES["swaps"]
"""Words that can stand for each other, by what they name."""
AT_END: list[str] = _TABLES["additions"]["end"]
"""Sentences to add behind the last turn."""
AT_START: list[str] = _TABLES["additions"]["start"]
"""Sentences to put before the last turn."""
TONGUES: dict[str, list[str]] = _TABLES["tongues"]
"""Little words that give a language away."""
COMMON: frozenset[str] = frozenset(_TABLES["common"])
"""Words whose use is no habit."""

"""A published set of claims to import: rows and maps, for the tests of import."""

import json
from pathlib import Path

import pytest

from claims.build.importing import import_claims
from claims.schema import ClaimsError, Message

COUNTS = """
target = "gemma-3-27b-it"
labels = "counts"
dataset = "chive"
sampling = { temperature = 1.0 }

[columns]
investigation_id = "inv"
behaviour = "question"
intervention = "edit"
prompt = "prompt"
response = "reply"
baseline_yes = "b_yes"
edited_yes = "e_yes"

[constants]
baseline_n = 30
edited_n = 30
"""
RATES = COUNTS.replace('"counts"', '"rates"\nrates = "percent"').replace(
    'baseline_yes = "b_yes"', 'baseline_rate = "b"'
)
RATES = RATES.replace('edited_yes = "e_yes"', 'edited_rate = "e"')


def row(investigation: object = 1, edit: str = "Remove the name.", **given: object) -> dict:
    base = {"inv": investigation, "question": "Does it sing?", "edit": edit, "prompt": f"Prompt {investigation}",
            "reply": "La la.", "b_yes": 3, "e_yes": 30}  # fmt: skip
    return {**base, **given}


def encode(messages: tuple[Message, ...], response: str) -> tuple[int, ...]:
    return tuple(len(text) for text in (*(message.content for message in messages), response))


def write(folder: Path, map_text: str, rows: list[dict]) -> tuple[Path, Path, Path]:
    file, map_toml = folder / "claims.jsonl", folder / "map.toml"
    file.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in rows), encoding="utf-8")
    map_toml.write_text(map_text, encoding="utf-8")
    return file, map_toml, folder / "out"


def imported(folder: Path, map_text: str, rows: list[dict]) -> Path:
    file, map_toml, out = write(folder, map_text, rows)
    import_claims(file, map_toml, out, encode=encode)
    return out


def refusal(folder: Path, map_text: str, rows: list[dict]) -> str:
    with pytest.raises(ClaimsError) as error:
        imported(folder, map_text, rows)
    assert sorted(item.name for item in folder.iterdir()) == ["claims.jsonl", "map.toml"]
    return str(error.value)


def without_rates(rows: list[dict], **rates: object) -> list[dict]:
    return [{**{name: item[name] for name in item if name not in ("b_yes", "e_yes")}, **rates} for item in rows]

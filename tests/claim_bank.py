"""A small claim bank for `tiny-gemma`: one claim a transcript, three a cluster, classes even."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from claims.schema import Message
from tools.chat import encode_prompt
from tools.model import load
from tools.targets import get_target

TARGET = "tiny-gemma"
N_FRESH = 10


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@cache
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    return load(get_target(TARGET)).tokenizer


@cache
def token_ids(prompt: str, response: str) -> tuple[int, ...]:
    tokenizer = tiny_tokenizer()
    encoded = encode_prompt(tokenizer, get_target(TARGET), (Message("user", prompt),))
    return (*encoded, *tokenizer.encode(response, add_special_tokens=False))


def label_of(number: int) -> bool:
    """True, false, true in one cluster, false, true, false in the next."""
    return (number % 3 + number // 3) % 2 == 0


def transcript_row(number: int) -> dict[str, object]:
    prompt = f"Friend {number} told me that the answer is blue. Is it?"
    response = f"Yes, I think number {number} is blue."
    return {
        "transcript_id": f"transcript-{number:02}",
        "messages": [{"role": "user", "content": prompt}],
        "reasoning": None,
        "response": response,
        "token_ids": token_ids(prompt, response),
        "source": "test",
    }


def claim_row(number: int) -> dict[str, object]:
    return {
        "claim_id": f"claim-{number:02}",
        "cluster_id": f"cluster-{number // 3}",
        "investigation_id": f"investigation-{number:02}",
        "transcript_id": f"transcript-{number:02}",
        "behaviour": "Does the response say blue?",
        "baseline_rate": 0.9,
        "intervention": "The friend's word is deleted.",
    }


def label_row(number: int) -> dict[str, object]:
    return {
        "claim_id": f"claim-{number:02}",
        "label": label_of(number),
        "baseline_yes": 27,
        "baseline_n": 30,
        "edited_yes": 3 if label_of(number) else 28,
        "edited_n": 30,
    }


def evidence_row(number: int) -> dict[str, object]:
    return {
        "claim_id": f"claim-{number:02}",
        "messages": [{"role": "user", "content": "Is it?"}],
        "responses": [{"response": f"Counted {number} {sample}", "yes": False} for sample in range(3)],
        "fresh": [f"Fresh answer {number} {sample}" for sample in range(N_FRESH)],
    }


def write_bank(folder: Path, *, n_clusters: int = 8, target: str = TARGET) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"transcripts": transcript_row, "claims": claim_row, "labels": label_row, "evidence": evidence_row}
    for name, row in rows.items():
        write_rows(folder / f"{name}.jsonl", map(row, range(3 * n_clusters)))
    card = {"target": target, "sampling": {"temperature": 1.0}}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    return folder

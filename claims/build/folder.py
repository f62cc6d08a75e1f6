"""Write a claims folder as a whole.

Invariant: the folder appears complete or not at all; its card names the sha256 of every other file.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from claims.atomic import json_lines
from claims.labels import Evidence, Label
from claims.schema import Claim, ClaimsError, Transcript, message_rows


def write_folder(
    out: Path,
    *,
    claims: Iterable[Claim],
    labels: Iterable[Label],
    transcripts: Iterable[Transcript],
    evidence: Iterable[Evidence],
    card: Mapping[str, object],
    check: Callable[[Path], None],
    more: Mapping[str, str] | None = None,
) -> None:
    """Write everything beside `out`, check it there, then put it into place.

    Args:
        out: Must not exist yet.
        claims: To `claims.jsonl`.
        labels: To `labels.jsonl`.
        transcripts: To `transcripts.jsonl`.
        evidence: To `evidence.jsonl`, which is not written when there is none.
        card: To `card.json`, with `files` (sha256 by name) added.
        check: Called with the finished folder; when it raises, nothing is left behind.
        more: Texts of further files, by name; the card holds their sha256 too.

    Raises:
        ClaimsError: `out` exists.
    """
    if out.exists():
        raise ClaimsError(f"{out} exists already. Remove it, or give another folder with --out.")
    texts = {
        "transcripts.jsonl": json_lines({**asdict(one), "messages": message_rows(one.messages)} for one in transcripts),
        "claims.jsonl": json_lines(asdict(one) for one in claims),
        "labels.jsonl": json_lines(asdict(one) for one in labels),
        "evidence.jsonl": json_lines({**asdict(one), "messages": message_rows(one.messages)} for one in evidence),
    }
    if not texts["evidence.jsonl"]:
        del texts["evidence.jsonl"]
    texts.update(more or {})
    sums = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in texts.items()}
    texts["card.json"] = json.dumps({**card, "files": sums}, indent=2, ensure_ascii=False) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        draft.chmod(0o755)
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8", newline="\n")
        check(draft)
        draft.replace(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)

"""A planted tool: an MCP server whose text is informative to a known degree, over the bank of `claim_bank`."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tool_servers import Running, about, build, serving


def facts(bank: Path, **changes: object) -> dict[str, object]:
    content = (bank / "transcripts.jsonl").read_bytes()
    n_transcripts = content.count(b"\n")
    return about(transcripts_sha256=hashlib.sha256(content).hexdigest(), n_transcripts=n_transcripts, **changes)


def number_of(transcript_id: str) -> int:
    return int(transcript_id.split("-")[1])


class Reads:
    """What a planted tool was asked, as transcript ids in order; `then` is called from read number `at` on."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at = 10**9
        self.then: Callable[[], object] = lambda: None

    def note(self, transcript_id: str) -> None:
        self.seen.append(transcript_id)
        if len(self.seen) >= self.at:
            self.then()


@contextmanager
def planted(
    bank: Path, evidence: Callable[[int], object], *, text: str = "evidence: {}", **changes: object
) -> Iterator[tuple[Running, Reads]]:
    """Serve `evidence: p` for the claim of each transcript."""
    reads = Reads()

    def read(transcript_id: str, positions: list[int]) -> str:
        reads.note(transcript_id)
        return text.format(evidence(number_of(transcript_id)))

    with serving(build(read=read, facts=lambda: facts(bank, **changes))) as running:
        yield running, reads

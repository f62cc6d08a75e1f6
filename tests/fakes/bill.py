"""What the fakes charge: tokens, the prompt cache of each family, and a record of every paid request."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

BLOCK = 512
"""Bytes that make one step of an automatic cache: 128 tokens of 4 bytes."""
LEAST = 1024
"""Tokens below which nothing is cached."""


def tokens(text: str) -> int:
    """Four bytes a token, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, each counted once."""

    uncached: int = 0
    """Read at full price."""
    cache_read: int = 0
    cache_write: int = 0
    visible: int = 0
    """Written, reasoning not included."""
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def read(self) -> int:
        return self.uncached + self.cache_read + self.cache_write

    @property
    def written(self) -> int:
        return self.visible + self.reasoning


@dataclass(frozen=True)
class Billed:
    """One request that was paid for."""

    number: int
    """Of the request, from 1, in the order of arrival."""
    family: str
    model: str
    usage: Usage
    fault: str
    """What became of the reply: empty, or `reset`, `hang`, `malformed`."""
    body_sha256: str
    """The same body asked twice is the same here."""
    first_user_sha256: str
    """Of the first user text: the claim under its arm."""
    turn: int
    """Replies of the model before this one."""


@dataclass
class Bill:
    """All that was paid for."""

    records: list[Billed] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, billed: Billed) -> None:
        with self._lock:
            self.records.append(billed)

    def totals(self) -> dict[str, Usage]:
        """By family/model."""
        with self._lock:
            found: dict[str, Usage] = {}
            for record in self.records:
                key = f"{record.family}/{record.model}"
                found[key] = found.get(key, Usage()) + record.usage
        return found

    def as_json(self) -> dict[str, object]:
        totals = {name: asdict(usage) for name, usage in self.totals().items()}
        return {"totals": totals, "records": [asdict(record) for record in list(self.records)]}


@dataclass(frozen=True)
class Segment:
    """A piece of a prompt, in the order in which a provider caches."""

    text: str
    marked: bool = False
    """Whether a cache breakpoint stands at its end."""


class PromptCache:
    """Prefixes that were read before; nothing expires, the oldest give way."""

    def __init__(self, most: int = 50_000) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._most = most

    def _knows(self, key: bytes) -> bool:
        return key in self._seen

    def _learn(self, key: bytes) -> None:
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)

    def automatic(self, scope: str, segments: Sequence[Segment]) -> Usage:
        """OpenAI's and Gemini's way: the longest known prefix in steps of 128 tokens; writing is free."""
        whole = "".join(f"\x00{segment.text}" for segment in segments).encode("utf-8", "surrogatepass")
        total, known, matching = sum(tokens(segment.text) for segment in segments), 0, True
        digest = hashlib.sha256(scope.encode())
        for start in range(0, len(whole) - BLOCK, BLOCK):
            digest.update(whole[start : start + BLOCK])
            key = digest.digest()
            matching = matching and self._knows(key)
            known += matching
            self._learn(key)
        read = min(known * BLOCK // 4, total)
        read = read if read >= LEAST else 0
        return Usage(uncached=total - read, cache_read=read)

    def marked(self, scope: str, segments: Sequence[Segment]) -> Usage:
        """Anthropic's way: the longest prefix written before, and what lies between it and the last breakpoint."""
        digest, count = hashlib.sha256(scope.encode()), 0
        read = written = 0
        fresh: list[bytes] = []
        last = max((place for place, segment in enumerate(segments) if segment.marked), default=-1)
        for place, segment in enumerate(segments):
            digest.update(b"\x00" + segment.text.encode("utf-8", "surrogatepass"))
            count += tokens(segment.text)
            if place > last or count < LEAST:
                continue
            key = digest.digest()
            if self._knows(key):
                read = count
            if segment.marked:
                fresh.append(key)
                written = count
        for key in fresh:
            self._learn(key)
        return Usage(uncached=count - max(read, written), cache_read=read, cache_write=max(written - read, 0))

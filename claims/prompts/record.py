"""A prompt of the pipeline, its content-made id, and the counts of what was dropped on the way to it.

Invariant: the id is a function of the messages alone, so that the same prompt has one id in every file and run.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from claims.schema import Message, UserError, message_rows

ROLES = ("system", "user", "assistant", "tool")
"""What a message of a prompt may be. How a target renders each is the target's policy, not ours."""


class PromptsError(UserError):
    """A file of prompts that cannot be read as it is."""


@dataclass(frozen=True)
class Prompt:
    """Messages that end where the target is to answer."""

    prompt_id: str
    """First 16 hexadecimal digits of the sha256 of the messages."""
    messages: tuple[Message, ...]
    """The turns, roles as in the source."""
    source: str
    """Format, id in the source file, and which turns were kept when some were cut."""


@dataclass(frozen=True)
class Step:
    """One line of a funnel."""

    reason: str
    """Why items were dropped here."""
    dropped: int
    """How many were."""
    left: int
    """How many went on."""


@dataclass(frozen=True)
class Funnel:
    """Counts for every drop, in the order in which the filters ran."""

    read: int
    """Items before the first step."""
    steps: tuple[Step, ...]
    """The steps; `left` of each is `left` of the one before less its own `dropped`."""

    @property
    def left(self) -> int:
        """Items after the last step."""
        return self.steps[-1].left if self.steps else self.read

    def rows(self) -> list[dict[str, object]]:
        """JSON-ready rows, the first of them what was read."""
        start: dict[str, object] = {"reason": "read", "dropped": 0, "left": self.read}
        return [start, *({"reason": s.reason, "dropped": s.dropped, "left": s.left} for s in self.steps)]


def funnel(read: int, dropped: Iterable[tuple[str, int]]) -> Funnel:
    """A funnel from how many were read and the drops in order."""
    steps: list[Step] = []
    left = read
    for reason, count in dropped:
        left -= count
        steps.append(Step(reason, count, left))
    return Funnel(read, tuple(steps))


def prompt_id(messages: tuple[Message, ...]) -> str:
    """The id of a prompt: 16 hexadecimal digits that depend on roles and texts alone."""
    content = json.dumps(message_rows(messages), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]


def make_prompt(messages: tuple[Message, ...], source: str) -> Prompt:
    """A prompt with its id."""
    return Prompt(prompt_id(messages), messages, source)


def count_roles(prompts: Iterable[Prompt]) -> dict[str, int]:
    """How many prompts hold at least one turn of each role; roles that nobody holds are left out."""
    counts = Counter(role for prompt in prompts for role in {message.role for message in prompt.messages})
    return {role: counts[role] for role in ROLES if counts[role]}


@dataclass(frozen=True)
class Reading:
    """What one row of a source came to: a prompt, or the reason why it is none."""

    prompt: Prompt | None
    """The prompt, or None."""
    unusable: str | None = None
    """Why there is none, else None."""
    cut: bool = False
    """Whether turns after the last user turn (or an auditor's prefill) were cut off."""

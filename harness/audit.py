"""The leak audit: nothing that a predictor was shown may give a label away.

Read from the logs of every run: system prompt, user messages, tool outputs and tool descriptions must hold no mark of
a label and no stretch of an edited prompt or an edited response that the transcript or the claim does not hold too.
The ceiling arm is excepted, showing fresh responses is what it is for; the responses behind its label are not. Nor is a
target's stock phrase in a tool output a leak: a tool that writes like the target writes it too, and what the target
says to prompts of other clusters as well tells nothing of this one's.

Texts are compared by their letters alone, so that spacing, case, punctuation and the numbers of a token list cannot
hide a stretch. Invariant: the audit sees what the predictor saw, not what we meant to show.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample

from claims.labels import Evidence, Label
from claims.load import ClaimSet
from claims.render import render_claim
from claims.schema import Claim
from harness.arms import BASELINE, CEILING

MIN_LETTERS = 48
"""A common stretch shorter than this many letters (about ten words) may be chance."""
MIN_NEW_LETTERS = 24
"""So may one whose middle, between the parts that the transcript or claim holds, is shorter than this."""
_STEP = MIN_LETTERS // 2
_OVERLAP = 400
_MARKS = re.compile(
    r"\b(?:edited_yes|edited_n|baseline_yes|baseline_n)\b|[\"']label[\"']\s*:\s*(?:true|false)\b", re.IGNORECASE
)
"""Fields of `labels.jsonl`."""


@dataclass(frozen=True)
class Finding:
    """One leak."""

    arm: str
    """Arm in whose log it was found."""
    claim_id: str
    """Claim whose predictor saw it."""
    where: str
    """Kind of text that held it."""
    what: str
    """What was found, in words."""


class Audit:
    """What may not be shown, by claim, and what may."""

    def __init__(self, claim_set: ClaimSet, labels: Mapping[str, Label], evidence: Mapping[str, Evidence]) -> None:
        """Hold the claims with what is known of them; `evidence` may lack claims that have none."""
        self._claims = {claim.claim_id: claim for claim in claim_set.claims}
        self._claim_set = claim_set
        self._labels = labels
        self._evidence = evidence
        self._baseline: dict[str, str] = {}

    def findings(self, arm: str, samples: Iterable[EvalSample]) -> Iterator[Finding]:
        """Every leak in the samples of one arm; audit the `transcript` arm first.

        Args:
            arm: Name of the arm.
            samples: With messages and events, attachments resolved.
        """
        for sample in samples:
            claim = self._claims[str(sample.id)]
            allowed = self._allowed(claim, ceiling=arm == CEILING)
            hidden = _Hidden(self._evidence.get(claim.claim_id), letters(allowed), ceiling=arm == CEILING)
            yield from self._same_bytes(arm, claim, sample)
            for where, shown in self._new_texts(arm, claim, sample):
                marks = (mark for mark in _label_marks(self._labels[claim.claim_id], shown) if mark not in allowed)
                leaks = [f"a mark of a label: {mark!r}" for mark in marks]
                leaks += [
                    f"a stretch of {hidden.kind}: {stretch!r}"
                    for stretch in hidden.stretches(letters(shown))
                    if where != "tool output" or not self._is_stock(claim, stretch)
                ]
                yield from (Finding(arm, claim.claim_id, where, what) for what in leaks)

    def _is_stock(self, claim: Claim, stretch: str) -> bool:
        """Whether a stretch, of no edited prompt, is in responses to prompts of another cluster as well."""
        if any(stretch in letters(message.content) for message in self._evidence[claim.claim_id].messages):
            return False
        return any(stretch in said for cluster, said in self._said.items() if cluster != claim.cluster_id)

    @cached_property
    def _said(self) -> dict[str, str]:
        """The letters of all responses, by cluster."""
        said: dict[str, list[str]] = defaultdict(list)
        for claim_id, evidence in self._evidence.items():
            responses = [*(verdict.response for verdict in evidence.responses), *evidence.fresh]
            said[self._claims[claim_id].cluster_id] += [letters(response) for response in responses]
        return {cluster: " ".join(responses) for cluster, responses in said.items()}

    def _new_texts(self, arm: str, claim: Claim, sample: EvalSample) -> Iterator[tuple[str, str]]:
        """What a predictor was shown, without what the baseline was shown and was audited for."""
        known = "" if arm == BASELINE else self._baseline.get(claim.claim_id, "")
        for where, shown in shown_texts(sample):
            yield where, shown[max(0, len(known) - _OVERLAP) :] if shown.startswith(known) else shown

    def _allowed(self, claim: Claim, *, ceiling: bool) -> str:
        """What the predictor may see of a claim."""
        transcript = self._claim_set.transcripts[claim.transcript_id]
        texts = [message.content for message in transcript.messages]
        texts += [transcript.reasoning or "", transcript.response]
        texts.append(render_claim(claim, temperature=self._claim_set.temperature))
        if ceiling and claim.claim_id in self._evidence:
            texts += self._evidence[claim.claim_id].fresh
        return "\n".join(texts)

    def _same_bytes(self, arm: str, claim: Claim, sample: EvalSample) -> Iterator[Finding]:
        """The baseline's user message must be a prefix of every other arm's."""
        first = next((message.text for message in sample.messages if message.role == "user"), "")
        if arm == BASELINE:
            self._baseline[claim.claim_id] = first
        elif not first.startswith(self._baseline.get(claim.claim_id, "")):
            yield Finding(arm, claim.claim_id, "user message", f"it does not begin with the {BASELINE} arm's")


class _Hidden:
    """Texts that a predictor may not see, indexed for a search by stretches."""

    def __init__(self, evidence: Evidence | None, allowed: str, *, ceiling: bool) -> None:
        self._allowed = allowed
        self.kind = "the edited prompt or a response behind the label" if ceiling else "the edited prompt or a response"
        texts: list[str] = []
        if evidence is not None:
            texts += [message.content for message in evidence.messages]
            texts += [verdict.response for verdict in evidence.responses]
            texts += [] if ceiling else evidence.fresh
        self._texts = sorted({letters(text) for text in texts})
        # A common stretch of 2n letters holds a whole aligned piece of n letters.
        self._pieces = {text[i : i + _STEP] for text in self._texts for i in range(0, len(text) - _STEP + 1, _STEP)}

    def stretches(self, shown: str) -> Iterator[str]:
        """Maximal common stretches of `shown` that count as leaks."""
        start = 0
        while start <= len(shown) - _STEP:
            if shown[start : start + _STEP] not in self._pieces:
                start += 1
                continue
            low, high = self._widest(shown, start)
            if high - low >= MIN_LETTERS and len(_new_part(shown[low:high], self._allowed)) >= MIN_NEW_LETTERS:
                yield shown[low:high]
            start = high - _STEP + 1

    def _widest(self, shown: str, start: int) -> tuple[int, int]:
        """The widest common stretch around the piece of `shown` at `start`."""
        best = (start, start + _STEP)
        piece = shown[start : start + _STEP]
        for text in self._texts:
            at = text.find(piece)
            while at >= 0:
                low, high = _extend(shown, start, text, at)
                best = max(best, (low, high), key=lambda span: span[1] - span[0])
                at = text.find(piece, at + 1)
        return best


def _extend(shown: str, start: int, text: str, at: int) -> tuple[int, int]:
    before = 0
    while before < min(start, at) and shown[start - before - 1] == text[at - before - 1]:
        before += 1
    after = _STEP
    while start + after < len(shown) and at + after < len(text) and shown[start + after] == text[at + after]:
        after += 1
    return start - before, start + after


def _new_part(stretch: str, allowed: str) -> str:
    """What is left of `stretch` without its longest beginning and its longest end that `allowed` holds."""
    length = len(stretch)
    # A beginning that is not allowed has no allowed one that is longer, so halving finds the longest.
    old = bisect_left(range(1, length + 1), True, key=lambda n: stretch[:n] not in allowed)
    rest = stretch[old:]
    end = bisect_left(range(1, len(rest) + 1), True, key=lambda n: rest[-n:] not in allowed)
    return rest[: len(rest) - end]


def letters(text: str) -> str:
    """The letters of `text` alone, case folded."""
    return "".join(filter(str.isalpha, text.casefold()))


def _label_marks(label: Label, shown: str) -> Iterator[str]:
    for match in _MARKS.finditer(shown):
        yield match.group()
    yes, n = label.edited_yes, label.edited_n
    if not n:
        return
    counts = rf"(?<!\d){yes}\s*/\s*{n}(?!\d)|(?<!\d){yes} (?:out )?of (?:the )?{n} responses\b"
    for match in re.finditer(counts, shown):
        yield match.group()


def shown_texts(sample: EvalSample) -> Iterator[tuple[str, str]]:
    """Everything of a sample that the predictor was shown and did not write, as (kind, text)."""
    for message in sample.messages:
        if message.role != "assistant":
            error = getattr(message, "error", None)
            yield {"tool": "tool output"}.get(message.role, f"{message.role} message"), message.text
            if error is not None:
                yield "tool output", error.message
    described = {
        f"{tool.name}: {tool.description} {tool.parameters.model_dump_json(exclude_none=True)}"
        for event in sample.events
        if isinstance(event, ModelEvent)
        for tool in event.tools
    }
    for text in sorted(described):
        yield "tool description", text

"""What was said about every claim, read from the logs: transcript, claim, tool calls, answers.

Invariant: every string here may be hostile; it leaves this module as data and is shown as text.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from inspect_ai.log import EvalSample, read_eval_log_samples
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, ContentReasoning

from agents.prompts import Section, listed_tokens, parts, sections
from harness.logs import read_headers, setting_of
from harness.report.read import Series

_UNUSED = {"events", "store", "output", "timelines"}
"""What the report does not show, and most of a log."""
_OWN = ("transcript", "claim", "tool", "tokens")
"""Sections of a message that are shown elsewhere or are the same in every claim."""
_EDIT = "INTERVENTION:"
"""What the line of the claim that states the edit begins with."""
MAX_TITLE = 240
"""Characters of a claim's line in the list."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Turn:
    """One thing that was said after the question was put."""

    who: str
    """`predictor`, `reasoning`, `call`, `tool` or `harness`."""
    text: str
    """What it was."""
    name: str = ""
    """Of the tool that was called or answered."""
    positions: tuple[int, ...] = ()
    """Positions that the call asked for."""


@dataclass(frozen=True)
class Told:
    """What one setting was told and said about a claim."""

    series: Series
    """The setting."""
    epoch: int
    """Which repetition."""
    log: str
    """Name of the log file."""
    sample_id: str
    """The sample's id in it."""
    sample_epoch: int
    """The sample's epoch in it."""
    how: str | None
    """How the answer came."""
    detail: str
    """One line on the outcome."""
    shown: tuple[tuple[str, str], ...]
    """What the arm's message had beyond transcript, claim and tool: title and text."""
    turns: tuple[Turn, ...]
    """What followed."""


@dataclass(frozen=True)
class TranscriptText:
    """A transcript as the predictor saw it."""

    parts: tuple[tuple[str, str], ...]
    """Title and text of each message."""
    tokens: tuple[tuple[int, str, str], ...] = ()
    """Index, text and role; empty where no arm was given a token list."""
    masked: tuple[int, ...] = ()
    """Indices that cannot be read."""


@dataclass
class Explored:
    """One claim with all that was said about it."""

    claim_id: str
    """The claim."""
    transcript_id: str
    """Its transcript."""
    claim: str
    """The claim as the predictor read it."""
    told: tuple[bytes, ...] = ()
    """One a setting and repetition, packed: outputs of tools add up to gigabytes in a large run."""

    @property
    def title(self) -> str:
        """The edit, or the beginning of a claim that is written in another form."""
        lines = [line.strip() for line in self.claim.split("\n") if line.strip()]
        edits = [line.removeprefix(_EDIT).strip() for line in lines if line.startswith(_EDIT)]
        return (edits or lines or [self.claim_id])[0][:MAX_TITLE]

    def as_json(self) -> str:
        """For the page."""
        told = ",".join(zlib.decompress(one).decode("utf-8") for one in self.told)
        return f'{{"claim":{json_text(self.claim)},"told":[{told}]}}'


@dataclass(frozen=True)
class Explorer:
    """All claims of a run."""

    claims: dict[str, Explored]
    """By claim id, sorted."""
    transcripts: dict[str, TranscriptText]
    """By transcript id."""


def json_text(value: object) -> str:
    """`value` as JSON that stays valid in UTF-8 whatever it holds."""
    return _SURROGATE.sub(
        lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )


def read_explorer(logs: Path) -> Explorer:
    """Everything that was said in the logs of a run; where two logs hold one answer, the finished log's is taken."""
    explorer = Explorer({}, {})
    told: dict[tuple[str, Series, int], bytes] = {}
    for header in read_headers(logs):
        setting = setting_of(header)
        series = Series(setting.predictor, setting.arm, setting.calls, setting.positions)
        for sample in _samples(header.location):
            found = _told(sample, series, setting.epoch, Path(header.location).name)
            told[str(sample.id), series, setting.epoch] = zlib.compress(json_text(asdict(found)).encode("utf-8"), 1)
            _note(explorer, sample)
    of_claim: dict[str, list[bytes]] = {}
    for key in sorted(told, key=lambda key: (key[0], key[1].place, key[2])):
        of_claim.setdefault(key[0], []).append(told[key])
    for claim_id, packed in of_claim.items():
        explorer.claims[claim_id].told = tuple(packed)
    return Explorer(dict(sorted(explorer.claims.items())), explorer.transcripts)


def _samples(location: str) -> Iterator[EvalSample]:
    read = read_eval_log_samples(
        location, all_samples_required=False, resolve_attachments="full", exclude_fields=_UNUSED
    )
    yield from (sample for sample in read if sample.error is None and sample.scores)


def _note(explorer: Explorer, sample: EvalSample) -> None:
    """Keep the claim's own texts, which are the same in every arm, and the token list of those that have one."""
    asked = _asked(sample)
    found = sections(asked)
    transcript_id = str(sample.metadata.get("transcript_id", sample.id))
    text = found.get("claim", Section("", "")).body
    explorer.claims.setdefault(str(sample.id), Explored(str(sample.id), transcript_id, text))
    known = explorer.transcripts.get(transcript_id)
    if known is None and "transcript" in found:
        known = explorer.transcripts[transcript_id] = TranscriptText(tuple(parts(found["transcript"])))
    if known is not None and not known.tokens and "tokens" in found:
        listed = listed_tokens(asked)
        tokens = tuple((one.index, one.text, one.role) for one in listed.tokens) if listed else ()
        masked = listed.masked if listed else ()
        explorer.transcripts[transcript_id] = TranscriptText(known.parts, tokens, masked)


def _asked(sample: EvalSample) -> str:
    """The message that put the question."""
    return next((message.text for message in sample.messages if message.role == "user"), str(sample.input))


def _told(sample: EvalSample, series: Series, epoch: int, log: str) -> Told:
    prediction = sample.metadata.get("prediction") or {}
    first = next((i for i, message in enumerate(sample.messages) if message.role == "user"), -1)
    extra = [(name, found) for name, found in sections(_asked(sample)).items() if name not in _OWN]
    return Told(
        series=series,
        epoch=epoch,
        log=log,
        sample_id=str(sample.id),
        sample_epoch=sample.epoch,
        how=prediction.get("how"),
        detail=str(prediction.get("detail") or ""),
        shown=tuple(pair for name, found in extra for pair in parts(found) or [(name, found.body)]),
        turns=tuple(turn for message in sample.messages[first + 1 :] for turn in _turns(message)),
    )


def _turns(message: ChatMessage) -> Iterator[Turn]:
    if isinstance(message, ChatMessageAssistant):
        content = message.content if isinstance(message.content, list) else []
        for item in content:
            if isinstance(item, ContentReasoning):
                yield Turn("reasoning", item.summary or item.reasoning if item.redacted else item.reasoning)
        if message.text.strip():
            yield Turn("predictor", message.text)
        for call in message.tool_calls or []:
            yield Turn("call", _shown_arguments(call.arguments), call.function, positions_of(call.arguments))
    elif isinstance(message, ChatMessageTool):
        said = message.error.message if message.error else ""
        yield Turn("tool", "\n".join(filter(None, (message.text, said))), message.function or "")
    else:
        yield Turn("harness", message.text)


def _shown_arguments(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def positions_of(arguments: Mapping[str, object]) -> tuple[int, ...]:
    """Token positions among the arguments of a call: a list of them, or the ends of a segment."""
    found = [one for value in arguments.values() for one in _whole_numbers(value)]
    start, end = (_whole(arguments.get(name)) for name in ("start", "end"))
    if start is not None and end is not None and 0 <= start <= end < start + 100_000:
        found += range(start, end + 1)
    return tuple(sorted(set(found)))


def _whole_numbers(value: object) -> Sequence[int]:
    if not isinstance(value, list):
        return []
    return [one for one in map(_whole, value) if one is not None]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

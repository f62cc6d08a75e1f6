"""PETRI transcripts: every turn of the audited target in a log of inspect-petri, cut right before it.

Invariant: a cut is the exact input of one generation of the target, on whatever branch of the audit it was made,
never the auditor's side of the conversation.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from claims.prompts.record import PromptsError, Reading, make_prompt
from claims.prompts.turns import NOT_TEXT, UnusableError, message, tool_call_text, with_tools
from claims.schema import Message

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent, Timeline, TimelineSpan
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage
    from inspect_ai.tool import ToolInfo

FAILED = "an audit that failed before its target spoke"
"""Why a sample of a log is no transcript."""


def is_petri(path: Path) -> bool:
    """Whether the file is a log of Inspect: an `.eval` archive, or a JSON object with an eval in it."""
    if path.suffix == ".eval":
        return True
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096).lstrip()
    return start.startswith(b"{") and b'"version"' in start and b'"eval"' in start


def read_petri(path: Path) -> Iterator[Reading]:
    """One reading for every turn of the target, branches included; system prompts and tools are kept.

    The tools the auditor gave the target at that turn are written at the end of the system turn.

    Raises:
        PromptsError: Not a log of Inspect, or one without the target's timeline.
    """
    from inspect_ai.log import read_eval_log_samples

    if not path.is_file():
        raise PromptsError(f"{path} is not a file. Give a log of inspect-petri (.eval or .json).")
    try:
        # Texts of more than 100 characters stand in a log as references: unresolved, every prompt would be one.
        for sample in read_eval_log_samples(str(path), all_samples_required=False, resolve_attachments=True):
            yield from _sample(sample, path)
    except (zipfile.BadZipFile, json.JSONDecodeError, KeyError, RuntimeError, ValueError) as error:
        raise PromptsError(f"{path}: not a log of Inspect ({error}). Give a log of inspect-petri.") from None


def _sample(sample: "EvalSample", path: Path) -> Iterator[Reading]:
    timelines = [timeline for timeline in sample.timelines or [] if _is_target(timeline)]
    if not timelines and sample.error is not None:
        yield Reading(None, FAILED)
    elif not timelines:
        found = [timeline.name for timeline in sample.timelines or []]
        raise PromptsError(
            f"{path.name}, sample {sample.id!r}: found the timelines {found}, expected one named 'target'. "
            "Logs of inspect-petri 3 have it; audit again with that version."
        )
    for timeline in timelines:
        yield from _span(timeline.root, f"petri {sample.id} epoch {sample.epoch}")


def _is_target(timeline: "Timeline") -> bool:
    return timeline.name == "target" or timeline.name.endswith("-target")


def _span(span: "TimelineSpan", source: str) -> Iterator[Reading]:
    turn = 0
    for item in span.content:
        if item.type == "span":
            yield from _span(item, source)
        elif item.event.event == "model" and _is_turn(item.event):
            turn += 1
            yield _reading(item.event, f"{source} {span.name} turn {turn}")
    for branch in span.branches:
        yield from _span(branch, source)


def _is_turn(event: "ModelEvent") -> bool:
    return event.role in (None, "target") and event.error is None and not event.pending


def _reading(event: "ModelEvent", source: str) -> Reading:
    given = list(event.input)
    prefilled = bool(given) and given[-1].role == "assistant"
    if prefilled:
        given.pop()  # the auditor's opening of the turn that is cut
    try:
        messages = with_tools(tuple(_message(turn) for turn in given), [_definition(tool) for tool in event.tools])
    except UnusableError as reason:
        return Reading(None, str(reason))
    return Reading(make_prompt(messages, source), cut=prefilled)


def _message(turn: "ChatMessage") -> Message:
    if isinstance(turn.content, list) and any(part.type not in ("text", "reasoning") for part in turn.content):
        raise UnusableError(NOT_TEXT)
    text = turn.text
    if turn.role == "tool" and turn.error is not None:
        text = "\n".join(part for part in (text, turn.error.message) if part)
    calls = (turn.tool_calls or []) if turn.role == "assistant" else []
    parts = [text] * bool(text) + [tool_call_text(call.function, call.arguments) for call in calls]
    return message(turn.role, "\n".join(parts))


def _definition(tool: "ToolInfo") -> dict[str, object]:
    parameters = tool.parameters.model_dump(mode="json", exclude_none=True)
    return {"name": tool.name, "description": tool.description, "parameters": parameters}

"""What tools said in a run, one text a position or answer, read from its logs.

Invariant: an output is what the tool said and nothing else: the host's refusals, errors and the token that a line
begins with are no part of it.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspect_ai.log import EvalSample, read_eval_log_samples
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool

from agents.prompts import sections
from agents.solver import SUBMIT
from harness.arms import shows_all
from harness.logs import Setting, read_headers, setting_of

_UNUSED = {"events", "store", "output", "timelines"}
"""What is not needed, and most of a log."""
_LINE = re.compile(r'^\[(\d+)\] "(.*?)"(?=[:, (])(.*)$')
"""How a tool that reads positions begins what it says of one."""
_UNREAD = re.compile(r"^\W*not read, because ")
_PLACES = re.compile(r"^(?:about layer \d+ at|not read:) \[")
"""Lines below an answer that repeat tokens of the transcript."""


@dataclass(frozen=True)
class Output:
    """One thing that a tool said."""

    claim_id: str
    """About whose transcript."""
    setting: Setting
    """Arm and budget; its epoch is 0, whichever repetition it came from."""
    epoch: int
    """Which repetition."""
    call: int
    """Number of the call in its conversation, from 1; 0 where everything was shown at once."""
    position: int | None
    """Of the token that it is about; None for an answer about a segment, or a tool of somebody else's."""
    asked: str
    """The question that it answers; empty where the tool takes none."""
    text: str
    """What was said."""

    @property
    def content(self) -> tuple[str, str, str]:
        """What makes it the same thing, said about the same claim."""
        return self.claim_id, self.asked, self.text


def split_output(text: str) -> Iterator[tuple[int | None, str]]:
    """The parts of what one call returned: position and words; positions that could not be read are left out.

    Args:
        text: As the predictor saw it. Lines that do not begin a position belong to what stands above them.
    """
    position: int | None = None
    held: list[str] = []
    for line in text.split("\n"):
        found = _LINE.match(line)
        if found is None:
            held += [] if _PLACES.match(line) else [line]
            continue
        yield from _part(position, held)
        position, held = int(found.group(1)), [found.group(3).lstrip(": ")]
    yield from _part(position, held)


def _part(position: int | None, lines: Sequence[str]) -> Iterator[tuple[int | None, str]]:
    words = "\n".join(lines).strip()
    if words and not _UNREAD.match(words):
        yield position, words


def read_outputs(logs: Path, arms: Collection[str]) -> tuple[tuple[Output, ...], int]:
    """Everything that tools said in some arms of a run, in a fixed order, and how many conversations were read.

    Args:
        logs: The run's folder of logs; where two hold one answer, the finished log's is taken.
        arms: Names of arms that read a tool.
    """
    found: dict[tuple[Setting, str], tuple[Output, ...]] = {}
    for header in read_headers(logs):
        setting = setting_of(header)
        if setting.arm not in arms:
            continue
        samples = read_eval_log_samples(
            header.location, all_samples_required=False, resolve_attachments="full", exclude_fields=_UNUSED
        )
        for sample in samples:
            if sample.error is None and sample.scores:
                found[setting, str(sample.id)] = tuple(_outputs(sample, setting))
    return tuple(output for key in sorted(found) for output in found[key]), len(found)


def _outputs(sample: EvalSample, setting: Setting) -> Iterator[Output]:
    said = _shown(sample) if shows_all(setting.arm) else _answers(sample)
    for call, asked, text in said:
        for position, words in split_output(text):
            yield Output(str(sample.id), replace(setting, epoch=0), setting.epoch, call, position, asked, words)


def _shown(sample: EvalSample) -> Iterator[tuple[int, str, str]]:
    """What stood in the message of an arm that was shown everything."""
    message = next((one.text for one in sample.messages if one.role == "user"), "")
    readings = sections(message).get("readings")
    if readings is not None:
        yield 0, "", readings.body


def _answers(sample: EvalSample) -> Iterator[tuple[int, str, str]]:
    """Number, question and answer of every call that was charged: calls beside a submission never ran."""
    questions: dict[str, str] = {}
    prediction = sample.metadata.get("prediction") or {}
    left = int(prediction.get("calls") or 0)
    number = 0
    for message in sample.messages:
        if isinstance(message, ChatMessageAssistant):
            questions |= {call.id: _question(call.arguments) for call in message.tool_calls or []}
        elif (
            isinstance(message, ChatMessageTool) and message.function != SUBMIT and not message.error and number < left
        ):
            number += 1
            yield number, questions.get(message.tool_call_id or "", ""), message.text


def _question(arguments: dict[str, object]) -> str:
    asked = arguments.get("question")
    return asked.strip() if isinstance(asked, str) else ""

"""The `nla` tool: a description in plain language of the activation at each of chosen tokens.

Invariant: the writer is given one activation at a time, and never a word of the transcript. The same transcript,
position and weights give the same description, whatever else is asked for beside it.
"""

import re
from dataclasses import dataclass

from mcp.server.mcpserver.exceptions import ToolError

from tools.answers import counted, notes, one_line, seed_of, shown_token
from tools.batching import Batcher
from tools.model import Loaded
from tools.nla_checkpoint import Checkpoint, Verbaliser, find_checkpoint
from tools.positions import mistake, read_positions
from tools.readings import Reading, Readings
from tools.sae import Positions
from tools.server import Facts, Offer
from tools.steered import Generated, Steered
from tools.targets import Target
from tools.trained import card_of, fidelity_of

MAX_BATCH = 32
"""Descriptions written together."""
MAX_WAIT_S = 0.02
"""Longest that an idle writer waits for more."""
MAX_QUEUE = 1024
"""Most positions that may wait."""
DESCRIPTION_CHARS = 1200
"""A longer description is cut."""

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_CLOSED = re.compile(r"<explanation>(.*?)</explanation>", re.DOTALL)
_OPEN = re.compile(r"<explanation>(.*)\Z", re.DOTALL)


class NLATool:
    """An autoencoder of one target; its half that turns activations into text."""

    def __init__(self, target: Target, checkpoint: Checkpoint, *, fidelity: str) -> None:
        """Hold a checkpoint that was compared with the target's row."""
        self._checkpoint = checkpoint
        self._met: tuple[Loaded, _Writing] | None = None
        self.facts = Facts(
            layer=checkpoint.layer,
            weights_sha256=checkpoint.sha256,
            fidelity=fidelity,
            card=card_of(checkpoint.folder),
            description=describe(checkpoint, n_layers=target.n_layers, fidelity=fidelity),
        )

    def attach(self, readings: Readings) -> tuple[Offer, ...]:
        """`describe_activations` over `readings`.

        Raises:
            UserError: The checkpoint does not fit the model.
        """
        writing = self._meet(readings)

        async def describe_activations(transcript_id: str, positions: Positions) -> str:
            n_tokens = readings.n_tokens(transcript_id)
            chosen = read_positions(positions, n_tokens=n_tokens, limit=readings.max_positions)
            reading = await readings.get(transcript_id)
            read = [position for position in chosen if position not in reading.masked]
            if not read:
                raise _nothing_to_read(reading, chosen)
            items = [
                writing.verbaliser.item(
                    reading.residual[position], seed_of(transcript_id, self.facts.layer, [position])
                )
                for position in read
            ]
            answers = dict(zip(read, await writing.batcher.submit(items), strict=True))
            return render(reading, chosen, answers, max_tokens=self._checkpoint.sidecar.decoding.max_tokens)

        return (Offer("describe_activations", self.facts.description, describe_activations),)

    def _meet(self, readings: Readings) -> "_Writing":
        # The tool and its sham look at one model: a whole checkpoint is loaded once for both.
        if self._met is None or self._met[0] is not readings.loaded:
            self._met = readings.loaded, _Writing(Verbaliser(self._checkpoint, readings.loaded, readings.vllm))
        return self._met[1]


class _Writing:
    """A verbaliser with the queue in front of it."""

    def __init__(self, verbaliser: Verbaliser) -> None:
        self.verbaliser = verbaliser
        self.batcher: Batcher[Steered, Generated] = Batcher(
            verbaliser.write, thread=verbaliser.thread, max_batch=MAX_BATCH, max_wait_s=MAX_WAIT_S, max_queue=MAX_QUEUE
        )


def load(target: Target) -> NLATool:
    """The tool for `target`.

    Raises:
        UserError: The target has no autoencoder, it cannot be had, or it is another model's.
    """
    checkpoint = find_checkpoint(target)
    assert target.nla is not None, target.name
    return NLATool(target, checkpoint, fidelity=fidelity_of(target.nla.checkpoint))


def describe(checkpoint: Checkpoint, *, n_layers: int, fidelity: str) -> str:
    """What a predictor is told about the tool."""
    demo = "This one is small, was trained in less than an hour, and is often vague or wrong. "
    return (
        f"Describes in plain language what the model's activation (after block {checkpoint.layer} of {n_layers}, "
        "counted from 0) holds at tokens of the transcript that you choose. positions: a list of token indices, each "
        "once. One line a position: its token, then a description of at most "
        f"{counted(checkpoint.sidecar.decoding.max_tokens, 'token')}, written by a copy of the model that was trained "
        f"to put activations into words and sees that one activation only. {demo if fidelity == 'demo' else ''}"
        "It shows what can be read out of the model's state at that token: mostly the topic, the words around it and "
        "what may come next. It does not show what causes what, nor what an edit would change; details and names in a "
        "description are often made up, and what it leaves out may still be there. What several positions agree on "
        "weighs more than one description."
    )


@dataclass(frozen=True)
class Description:
    """What was taken out of an answer."""

    text: str
    """The description, or all of the answer where it has no such part."""
    raw: bool
    """Whether it is all of the answer."""


def parse(text: str) -> Description:
    """The part of an answer between `<explanation>` and `</explanation>`, or after the first where the second lacks."""
    spoken = _THOUGHT.sub("", text)
    found = _CLOSED.search(spoken) or _OPEN.search(spoken)
    return Description(found.group(1).strip(), raw=False) if found else Description(text.strip(), raw=True)


def render(reading: Reading, positions: tuple[int, ...], answers: dict[int, Generated], *, max_tokens: int) -> str:
    """One line for each of `positions`, in their order."""
    return "\n".join(
        f"{shown_token(reading, position)}{_described(answers[position], max_tokens)}"
        if position in answers
        else _masked(reading, position)
        for position in positions
    )


def _described(answer: Generated, max_tokens: int) -> str:
    description = parse(answer.text)
    line = one_line(description.text, limit=DESCRIPTION_CHARS)
    said = notes(cut=not answer.finished, max_tokens=max_tokens, shortened=line.shortened, raw=description.raw)
    return f"{said}: {line.text or 'nothing was said'}"


def _masked(reading: Reading, position: int) -> str:
    return f"{shown_token(reading, position)}: not read, because {reading.masked[position]}"


def _nothing_to_read(reading: Reading, positions: tuple[int, ...]) -> ToolError:
    return mistake(
        f"None of these positions can be read: {'; '.join(_masked(reading, position) for position in positions)}.",
        "at least one that is not masked",
        "Choose others.",
    )

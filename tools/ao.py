"""The `ao` tool: one question in plain language, answered by an activation oracle from the activations of a segment.

Invariant: the oracle is given activations and the question, and never a word of the transcript. The same transcript,
segment, question and weights give the same answer, whoever asks beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from pydantic import PlainValidator
from torch import Tensor

from claims.schema import UserError
from tools.adapters import Adapter, attach, read_adapter, read_centre
from tools.answers import counted, notes, one_line, seed_of, shown_token
from tools.ao_facts import FACTS, OracleFacts, check_weights, oracle_facts
from tools.ao_prompt import oracle_prompt, placeholder_id
from tools.batching import Batcher
from tools.engines.address import VllmAddress
from tools.engines.vllm_server import checked_writer, embedding_of
from tools.model import Loaded
from tools.positions import mistake
from tools.questions import check_question, read_segment
from tools.random_adapters import make_oracle
from tools.readings import Reading, Readings
from tools.server import Facts, Offer
from tools.steered import AfterBlock, Generated, Steered
from tools.targets import Target
from tools.trained import card_of, fidelity_of, files_sha256, trained_folder
from tools.writer import Decoding, LocalWriter, Writer

MAX_BATCH = 32
"""Questions answered together."""
MAX_WAIT_S = 0.02
"""Longest that an idle oracle waits for a second question."""
MAX_QUEUE = 512
"""Most questions that may wait."""
ANSWER_CHARS = 1000
"""A longer answer is cut."""

# Checked by `read_segment` and `check_question`, whose answers a predictor can act on.
Whole = Annotated[int, PlainValidator(lambda value: value, json_schema_input_type=int)]
Text = Annotated[str, PlainValidator(lambda value: value, json_schema_input_type=str)]


@dataclass(frozen=True)
class Oracle:
    """An oracle's folder, read and compared with the target's row."""

    adapter: Adapter
    """What turns the target into its oracle."""
    facts: OracleFacts
    """How it is asked."""


class Asked:
    """An oracle on a live model."""

    def __init__(self, oracle: Oracle, loaded: Loaded, vllm: VllmAddress | None = None) -> None:
        """Put the adapter on the model's weights, where it stays off but for answers.

        Args:
            oracle: The oracle.
            loaded: The target.
            vllm: A server that has the adapter and answers in its place.

        Raises:
            UserError: The oracle does not fit the model or its tokenizer, or the server does not answer.
        """
        check_weights(oracle.facts, oracle.adapter.folder, loaded.weights)
        placeholder_id(loaded.tokenizer)
        self._loaded = loaded
        self._facts = oracle.facts
        self._centre = read_centre(oracle.adapter.folder, oracle.facts.layer, loaded.d_model)
        self._writer = _writer(oracle, loaded, vllm)
        self._context = int(loaded.model.config.get_text_config().max_position_embeddings)
        self._prefix = self._prompt(1, "a")[1][0]
        self.batcher: Batcher[Steered, Generated] = Batcher(
            self._answer, thread=self._writer.thread, max_batch=MAX_BATCH, max_wait_s=MAX_WAIT_S, max_queue=MAX_QUEUE
        )

    def item(self, activations: Float[Tensor, "n d_model"], question: str, seed: int) -> Steered:
        """One question about activations, ready to be answered.

        Raises:
            ToolError: The question does not fit the oracle's window.
        """
        prompt_ids, positions = self._prompt(len(activations), question)
        room = self._context - self._facts.max_tokens
        if len(prompt_ids) > room:
            raise mistake(
                f"question makes a prompt of {len(prompt_ids)} tokens.", f"at most {room}", "Ask a shorter question."
            )
        return Steered(prompt_ids, positions, activations - self._centre, seed)

    def _prompt(self, n: int, question: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return oracle_prompt(self._loaded.tokenizer, self._loaded.target, self._facts.layer, n, question)

    def _answer(self, items: Sequence[Steered]) -> Sequence[Generated]:
        facts, stops = self._facts, self._loaded.target.sampling.stop
        decoding = Decoding(facts.max_tokens, facts.temperature, facts.top_p, stops[0] if stops else None)
        return self._writer.write(items, AfterBlock(facts.block, facts.coefficient), decoding, prefix=self._prefix)


class AOTool:
    """An oracle of one target."""

    def __init__(self, target: Target, oracle: Oracle, *, fidelity: str) -> None:
        """Hold an oracle that was compared with the target's row."""
        self._oracle = oracle
        self._met: tuple[Loaded, Asked] | None = None
        folder = oracle.adapter.folder
        extra = [folder / FACTS] if (folder / FACTS).is_file() else []
        self.facts = Facts(
            layer=oracle.facts.layer,
            weights_sha256=files_sha256([*folder.glob("*.safetensors"), folder / "adapter_config.json", *extra]),
            fidelity=fidelity,
            card=card_of(folder),
            description=describe(oracle.facts, n_layers=target.n_layers, fidelity=fidelity),
        )

    def attach(self, readings: Readings) -> tuple[Offer, ...]:
        """`ask_oracle` over `readings`.

        Raises:
            UserError: The oracle does not fit the model.
        """
        asked = self._meet(readings)

        async def ask_oracle(transcript_id: str, question: Text, start: Whole, end: Whole) -> str:
            n_tokens = readings.n_tokens(transcript_id)
            segment = read_segment(start, end, n_tokens=n_tokens, limit=self._oracle.facts.max_segment)
            wanted = check_question(question, readings.loaded.tokenizer)
            reading = await readings.get(transcript_id)
            read = readable(reading, segment)
            item = asked.item(
                reading.residual[list(read)], wanted, seed_of(transcript_id, self.facts.layer, read, wanted)
            )
            answer = (await asked.batcher.submit([item]))[0]
            return render(reading, segment, answer, self._oracle.facts)

        return (Offer("ask_oracle", self.facts.description, ask_oracle),)

    def _meet(self, readings: Readings) -> Asked:
        # The tool and its sham look at one model: they share the queue in front of it.
        if self._met is None or self._met[0] is not readings.loaded:
            self._met = readings.loaded, Asked(self._oracle, readings.loaded, readings.vllm)
        return self._met[1]


def _writer(oracle: Oracle, loaded: Loaded, vllm: VllmAddress | None) -> Writer:
    if vllm is None:
        return LocalWriter(loaded.model, loaded.tokenizer, loaded.thread, attach(oracle.adapter, loaded).on)
    return checked_writer(vllm, embed=embedding_of(loaded.model))


def load(target: Target) -> AOTool:
    """The tool for `target`.

    Raises:
        UserError: The target has no oracle, it cannot be had, or it is another model's.
    """
    if target.ao is None:
        raise UserError(
            f"{target.name} has no activation oracle. Choose another target, or name one in its row (`ao`) in "
            "tools/targets.py."
        )
    folder = trained_folder("ao", target.ao.adapter, target, make_random=make_oracle)
    oracle = Oracle(read_adapter(folder), oracle_facts(folder, target, target.ao))
    return AOTool(target, oracle, fidelity=fidelity_of(target.ao.adapter))


def describe(facts: OracleFacts, *, n_layers: int, fidelity: str) -> str:
    """What a predictor is told about the tool."""
    demo = "This oracle is a small one, trained in less than an hour, and often wrong. " if fidelity == "demo" else ""
    return (
        "Asks an activation oracle one question, in plain language, about one segment of the transcript. The oracle is "
        "a copy of the model that was trained to answer questions about activations: it is given the model's "
        f"activations (after block {facts.layer} of {n_layers}, counted from 0) at the tokens of the segment, and no "
        "text. start and end: indices of the segment's first and last token, both included, at most "
        f"{counted(facts.max_segment, 'token')}; the same index twice is one token. question: one short and concrete "
        "question, such as what the text is about, whether it mentions something, who is speaking or what comes next. "
        f"The answer has at most {counted(facts.max_tokens, 'token')}. {demo}It shows what can be read out of the "
        "model's state at these tokens. It does not show what causes what, nor what an edit would change, and the "
        "oracle answers even where it cannot know: an answer may be a guess from the question alone. Ask the same "
        "about another segment to compare."
    )


def readable(reading: Reading, segment: range) -> tuple[int, ...]:
    """The positions of a segment that are not masked.

    Raises:
        ToolError: There is none.
    """
    read = tuple(position for position in segment if position not in reading.masked)
    if not read:
        raise mistake(
            f"No token of the segment can be read: {_masked(reading, segment)}.",
            "at least one that is not masked",
            "Choose another segment.",
        )
    return read


def render(reading: Reading, segment: range, answer: Generated, facts: OracleFacts) -> str:
    """The answer, and below it the tokens that it is about."""
    said = one_line(answer.text, limit=ANSWER_CHARS)
    said_notes = notes(cut=not answer.finished, max_tokens=facts.max_tokens, shortened=said.shortened)
    read = " ".join(shown_token(reading, position) for position in segment if position not in reading.masked)
    lines = [f"answer{said_notes}: {said.text or 'the oracle said nothing'}", f"about layer {facts.layer} at {read}"]
    if any(position in reading.masked for position in segment):
        lines.append(f"not read: {_masked(reading, segment)}")
    return "\n".join(lines)


def _masked(reading: Reading, segment: range) -> str:
    masked = [position for position in segment if position in reading.masked]
    return "; ".join(f"{shown_token(reading, position)}, because {reading.masked[position]}" for position in masked)

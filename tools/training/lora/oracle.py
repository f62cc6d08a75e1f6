"""From passages to the oracle's examples: questions, the layers they are asked at, and activations.

Invariant: held-out questions are about held-out passages; question number `i` of a split is always the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from tools.activations import ActivationReader
from tools.ao_prompt import oracle_prompt
from tools.model import Loaded
from tools.training.corpus import Progress
from tools.training.lora.examples import Example, encode_answer
from tools.training.lora.families import WEIGHTS, Asker, Question
from tools.training.lora.passages import Passage
from tools.training.lora.plan import oracle_layers
from tools.training.lora.rows import Stretch, centres, read_stretches
from tools.training.lora.seeds import choose, generator
from tools.training.lora.words import Reader

MIDDLE_SHARE = 0.6
"""Share of questions at the middle layer, which the tool reads; the others share the rest."""


@dataclass(frozen=True)
class Asked:
    """A question and where it is asked."""

    question: Question
    """About a passage's segment."""
    layer: int
    """Activations after this block."""


@dataclass(frozen=True)
class OracleSet:
    """Everything an oracle is trained and judged on."""

    train: tuple[Example, ...]
    """In the order they were made."""
    held_out: tuple[Example, ...]
    """Families in their shares of training, for the losses."""
    judged: tuple[Asked, ...]
    """Held-out questions, as many of each family, all at the middle layer."""
    judged_examples: tuple[Example, ...]
    """The same, as the oracle sees them."""
    centres: dict[int, Tensor]
    """The mean activation of each layer, from training passages."""


def questions(
    asker: Asker, families: Sequence[str], *, target_layers: tuple[int, int, int], split: str, seed: int
) -> list[Asked]:
    """One question of each of `families`, in that order.

    Args:
        asker: Asks about the passages of one split.
        families: The family of each question.
        target_layers: First quarter, middle, last quarter.
        split: Names the items' random numbers.
        seed: Of the items.
    """
    asked = []
    for number, family in enumerate(families):
        rng = generator(f"{split} question {number} {seed}")
        middle = rng.random() < MIDDLE_SHARE
        layer = target_layers[1] if middle else choose((target_layers[0], target_layers[2]), rng=rng)
        asked.append(Asked(asker.ask(family, rng=rng), layer))
    return asked


def draw_families(n: int, *, rng: np.random.Generator) -> list[str]:
    """`n` families in their shares of training."""
    names, shares = list(WEIGHTS), np.array(list(WEIGHTS.values()))
    return [names[i] for i in rng.choice(len(names), size=n, p=shares / shares.sum())]


@dataclass(frozen=True)
class Amounts:
    """How many questions."""

    train: int
    """For training."""
    held_out: int
    """For the held-out losses."""
    per_family: int
    """Of each family, judged."""


def build_oracle_set(
    loaded: Loaded,
    reader: ActivationReader,
    passages: Sequence[Passage],
    amounts: Amounts,
    folder: Path,
    *,
    seed: int,
    progress: Progress,
) -> OracleSet:
    """Ask, read the target's activations, and put both into examples."""
    text = Reader(loaded.tokenizer)
    kept = [passage for passage in passages if passage.held_out]
    asker = Asker(text, [passage for passage in passages if not passage.held_out])
    layers = oracle_layers(loaded.target)
    drawn = draw_families(amounts.train + amounts.held_out, rng=generator(f"families {seed}"))
    train = questions(asker, drawn[: amounts.train], target_layers=layers, split="train", seed=seed)
    middle = (layers[1],) * 3
    tested = questions(Asker(text, kept), drawn[amounts.train :], target_layers=middle, split="test", seed=seed)
    families = [family for family in WEIGHTS for _ in range(amounts.per_family)]
    judged = questions(Asker(text, kept), families, target_layers=middle, split="judged", seed=seed)
    everything = [*train, *tested, *judged]
    sequences = list(dict.fromkeys(asked.question.passage.token_ids for asked in everything))
    place = {token_ids: index for index, token_ids in enumerate(sequences)}
    stretches = [
        Stretch(place[asked.question.passage.token_ids], asked.layer, segment.start, segment.end)
        for asked in everything
        for segment in (asked.question.segment,)
    ]
    rows = read_stretches(reader, sequences, stretches, folder, progress=progress)
    means = centres(rows[: len(train)], stretches[: len(train)])
    examples = [
        _example(loaded, asked, row.float() - means[asked.layer]) for asked, row in zip(everything, rows, strict=True)
    ]
    ends = len(train), len(train) + len(tested)
    return OracleSet(
        train=tuple(examples[: ends[0]]),
        held_out=tuple(examples[ends[0] : ends[1]]),
        judged=tuple(judged),
        judged_examples=tuple(examples[ends[1] :]),
        centres=means,
    )


def _example(loaded: Loaded, asked: Asked, vectors: Tensor) -> Example:
    question = asked.question
    n = question.segment.end - question.segment.start
    prompt_ids, positions = oracle_prompt(loaded.tokenizer, loaded.target, asked.layer, n, question.text)
    return Example(
        prompt_ids=prompt_ids,
        positions=positions,
        vectors=vectors,
        answer_ids=encode_answer(loaded.tokenizer, prompt_ids, question.answer),
        layer=asked.layer,
    )

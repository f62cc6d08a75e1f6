"""The two questions that a judge is asked about what a tool said, and how its answers are read.

Invariants: whatever was not written by us stands in a fence; neither question holds a label; the second does not say
which factor was edited; an answer that does not fit its outputs is asked for again and never mended.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from claims.build.wild.fence import fenced, shortened
from claims.build.wild.forms import Fields, Form, FormError, listed
from claims.fence import Texts
from claims.schema import Claim
from harness.seeding import digest, keyed_rng
from harness.why.outputs import Output

FOLDER = Path(__file__).parent / "prompts"
TEXTS = Texts(FOLDER)
AT_ONCE = 16
"""Most outputs in one question."""
OUTPUT_CHARS = 4000
"""Longer outputs are shown by their beginning and end."""
FIRST, SECOND, NEITHER = "first", "second", "neither"
EDITED, DECOY = "edited", "decoy"


@dataclass(frozen=True)
class Factors:
    """The two factors of one blinded question, in the order in which they are shown."""

    edited: str
    """The claim's own."""
    decoy: str
    """Another cluster's."""
    edited_first: bool
    """Whether the claim's own comes first."""

    @property
    def shown(self) -> tuple[str, str]:
        """As the judge sees them."""
        return (self.edited, self.decoy) if self.edited_first else (self.decoy, self.edited)

    def meaning(self, word: str) -> str:
        """What a judge's `first`, `second` or `neither` points at: `edited`, `decoy` or `neither`."""
        if word == NEITHER:
            return NEITHER
        return EDITED if (word == FIRST) == self.edited_first else DECOY


def choose_decoys(claims: Sequence[Claim], *, seed: int) -> dict[str, str]:
    """For each claim an edit from another cluster, in other words than its own; claims without one are left out."""
    ordered = sorted(claims, key=lambda claim: claim.claim_id)
    decoys: dict[str, str] = {}
    for claim in ordered:
        others = sorted(
            {one.intervention for one in ordered if one.cluster_id != claim.cluster_id} - {claim.intervention}
        )
        if others:
            decoys[claim.claim_id] = others[int(keyed_rng("decoy", seed, claim.claim_id).integers(len(others)))]
    return decoys


def factors_of(claim: Claim, decoy: str, outputs: Sequence[Output]) -> Factors:
    """The pair for one question; which comes first depends on what is asked, and so changes between questions."""
    first = digest("order", claim.claim_id, *(text for output in outputs for text in (output.asked, output.text))) % 2
    return Factors(claim.intervention, decoy, first == 0)


def shown_text(output: Output) -> str:
    """An output as a judge sees it, with the question that it answers."""
    said = shortened(output.text, OUTPUT_CHARS)
    return f"asked: {output.asked}\nsaid: {said}" if output.asked else said


def _outputs(outputs: Sequence[Output]) -> str:
    return fenced("outputs", [(f"output {number}", shown_text(one)) for number, one in enumerate(outputs, start=1)])


def states_message(claim: Claim, outputs: Sequence[Output]) -> str:
    """The question whether outputs state the cause."""
    parts = [("behaviour, as a question about one response", claim.behaviour), ("intervention", claim.intervention)]
    return TEXTS.fill("states_user.md", claim=fenced("claim", parts), outputs=_outputs(outputs))


def hints_message(claim: Claim, factors: Factors, outputs: Sequence[Output]) -> str:
    """The question which factor outputs point at."""
    first, second = factors.shown
    return TEXTS.fill(
        "hints_user.md",
        behaviour=fenced("behaviour", [("as a question about one response", claim.behaviour)]),
        factors=fenced("factors", [("first factor", first), ("second factor", second)]),
        outputs=_outputs(outputs),
        count=str(len(outputs)),
    )


def states_form(outputs: Sequence[Output]) -> Form[tuple[str, ...]]:
    """How it is answered: for each output the words that state the cause, empty where none do."""

    def read(fields: Fields) -> tuple[str, ...]:
        numbers, quotes = fields.numbers("numbers"), fields.texts("quotes")
        if len(numbers) != len(quotes):
            raise FormError(f"Found {len(numbers)} numbers and {len(quotes)} quotes. Give one quote a number.")
        found = [""] * len(outputs)
        for number, quote in zip(numbers, quotes, strict=True):
            if not 1 <= number <= len(outputs) or found[number - 1]:
                raise FormError(f"Found the number {number}; expected numbers from 1 to {len(outputs)}, each once.")
            if _plain(quote) not in _plain(shown_text(outputs[number - 1])):
                raise FormError(f"The quote for output {number} does not stand in it. Copy its words exactly.")
            found[number - 1] = quote
        return tuple(found)

    return Form(
        "record_statements",
        "Record which outputs state the cause.",
        {
            "numbers": listed("integer", "Numbers of the outputs that state it; empty when none does."),
            "quotes": listed("string", "For each of these, in the same order, the words that do, copied out of it."),
        },
        read,
    )


def hints_form(outputs: Sequence[Output]) -> Form[tuple[str, ...]]:
    """How it is answered: `first`, `second` or `neither` for each output."""

    def read(fields: Fields) -> tuple[str, ...]:
        words = tuple(word.lower() for word in fields.texts("points_at"))
        if len(words) != len(outputs) or not set(words) <= {FIRST, SECOND, NEITHER}:
            raise FormError(
                f"Found {len(words)} words ({', '.join(sorted(set(words)))[:80]}); expected {len(outputs)}, each "
                f"{FIRST}, {SECOND} or {NEITHER}."
            )
        return words

    return Form(
        "record_hints",
        "Record which factor each output points at.",
        {"points_at": listed("string", f"{FIRST}, {SECOND} or {NEITHER}, one an output, in their order.")},
        read,
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def prompts_sha256() -> str:
    """Of the texts of both questions."""
    hashed = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.md")):
        hashed.update(f"{path.name}\n".encode() + path.read_bytes())
    return hashed.hexdigest()

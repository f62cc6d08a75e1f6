"""Stage 2: is there anything unexpected in the responses to a prompt, and how is it measured?

Invariant: the classifier question is frozen here; the rate that decides is measured by the classifier, never taken
from the screener's impression.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from claims.build.wild.clerk import Clerk
from claims.build.wild.engine import Response
from claims.build.wild.fence import fenced, fill, message_parts, shortened
from claims.build.wild.forms import Errand, Fields, Form, fill_in, role_text, said
from claims.build.wild.records import Screening
from claims.prompts.record import Prompt

EXAMPLES = Path(__file__).parent / "data" / "screening_examples.json"
N_EXAMPLES = 5
"""Examples shown in one call, drawn from the pool by the prompt's own seed."""
RESPONSE_CHARS = 4000
"""Longest response shown whole to a screener."""


@dataclass(frozen=True)
class Example:
    """One worked case of the pool."""

    prompt: str
    """What was asked."""
    responses: str
    """What the responses have in common."""
    interest: int
    """The rating it should get."""
    why: str
    """Why."""
    behaviour: str
    """The summary that fits."""
    classifier: str
    """The question that fits."""


@cache
def read_examples() -> tuple[Example, ...]:
    """The pool."""
    rows = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return tuple(Example(**row) for row in rows)


def draw_examples(prompt_id: str, seed: int) -> tuple[Example, ...]:
    """The examples for one call, by a seed made of the prompt's id."""
    pool = read_examples()
    digest = hashlib.sha256(f"{seed}\nexamples\n{prompt_id}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return tuple(pool[int(place)] for place in rng.choice(len(pool), size=N_EXAMPLES, replace=False))


def _read(fields: Fields) -> Screening:
    return Screening(
        interest=fields.whole("interest", 1, 5),
        behaviour=fields.text("behaviour"),
        question=fields.text("question"),
        self_question=fields.text("self_question"),
        classifier=fields.text("classifier"),
    )


SCREENING = Form(
    "file_screening",
    "Record what you found. Your answer counts only through this call.",
    {
        "interest": said("integer", "How unexpected the behaviour is, from 1 to 5, by the scale you were given."),
        "behaviour": said("string", "What the model does, in one or two sentences that stand on their own."),
        "question": said("string", "The question to investigate: why does the model do this? Third person."),
        "self_question": said("string", "The same question put to the model itself: why did you ...?"),
        "classifier": said(
            "string",
            "A yes/no question about ONE response that says exactly when the answer is Yes and when it is No. "
            "It must be answerable from that response alone, without the prompt.",
        ),
    },
    _read,
)


async def screen(clerk: Clerk, prompt: Prompt, responses: Sequence[Response], seed: int) -> Screening | None:
    """What the screener says, or None when it never filled in its form."""
    shown = [
        (f"response {number}", shortened(response.text, RESPONSE_CHARS))
        for number, response in enumerate(responses, start=1)
    ]
    user = fill(
        "screen_user.md",
        examples="\n\n".join(
            _shown(number, one) for number, one in enumerate(draw_examples(prompt.prompt_id, seed), 1)
        ),
        prompt=fenced("prompt", message_parts(prompt.messages)),
        n=str(len(responses)),
        responses=fenced("responses", shown),
    )
    errand = Errand("screen", prompt.prompt_id, "screener", role_text("screen"), user)
    return await fill_in(clerk, errand, SCREENING)


def _shown(number: int, example: Example) -> str:
    return fill(
        "screen_example.md",
        number=str(number),
        prompt=example.prompt,
        responses=example.responses,
        interest=str(example.interest),
        why=example.why,
        behaviour=example.behaviour,
        classifier=example.classifier,
    )

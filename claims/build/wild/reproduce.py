"""Does the edit work again when someone else makes it from its description? The second of the paper's filters.

Invariant: `implement` takes the original prompt and the description and nothing else; the responses come from a seed
that is behind no label.
"""

from dataclasses import dataclass
from fractions import Fraction

from claims.build.wild.clerk import Clerk
from claims.build.wild.edits import EDITS, apply_edits
from claims.build.wild.engine import Messages, PromptRefusedError
from claims.build.wild.extract import Drafted
from claims.build.wild.fence import fenced, fill, message_parts
from claims.build.wild.forms import Errand, Fields, Form, fill_in, role_text
from claims.build.wild.investigate import Lab
from claims.build.wild.records import Batch

THRESHOLD = Fraction(30, 100)
"""The change that a claim states."""
SEED_STEP = 2
"""Added to the run's seed; the fresh responses of the ceiling arm use the seed after the run's own."""


@dataclass(frozen=True)
class Reproduction:
    """A second implementation of an edit, measured."""

    messages: Messages
    """The prompt as edited from the description; empty when nobody could."""
    batch: Batch
    """The responses to it."""
    kept: bool
    """Whether its own change is on the label's side of 30 points."""


def _form(original: Messages) -> Form[Messages]:
    def read(fields: Fields) -> Messages:
        return apply_edits(original, fields.rows("edits"))

    return Form("implement_edit", "Record the edited prompt as steps from the original.", {"edits": EDITS}, read)


async def implement(clerk: Clerk, item: str, original: Messages, description: str) -> Messages | None:
    """The prompt edited as described, by an agent that sees these two and nothing else."""
    user = fill(
        "reproduce_user.md",
        prompt=fenced("original prompt", message_parts(original)),
        description=fenced("edit", [("description", description)]),
    )
    errand = Errand("filters", item, "reproducer", role_text("reproduce"), user)
    return await fill_in(clerk, errand, _form(original))


async def reproduce(lab: Lab, claim: Drafted) -> Reproduction:
    """The edit made again and measured; an edit that could not be made again is not kept."""
    one = claim.one
    item = one.prompt.prompt_id
    edited = await implement(lab.clerk, item, one.prompt.messages, claim.description.text)
    if edited is None:
        return Reproduction((), Batch((), ()), kept=False)
    try:
        responses = await lab.engine.draw(edited, lab.regime.n, lab.seed + SEED_STEP)
    except PromptRefusedError:
        return Reproduction((), Batch((), ()), kept=False)
    batch = await lab.classifier.judge(item, one.screened.classifier, responses)
    before = one.measured.rate
    if before is None or batch.rate is None or batch.n < lab.regime.min_usable:
        return Reproduction(edited, batch, kept=False)
    change = abs(batch.rate - before)
    return Reproduction(edited, batch, kept=(change >= THRESHOLD) == claim.label)

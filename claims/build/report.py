"""A Markdown report of what was measured, for the person who writes investigations.

Invariant: it is a view; nothing is decided here.
"""

from collections.abc import Sequence

from claims.build.measure import Batch, Measured
from claims.build.spec import Edit
from claims.build.thresholds import measured_label

N_SHOWN = 2
"""Responses shown of every prompt."""
WORDS = {True: "true", False: "false", None: "between"}


def report(measured: Sequence[Measured]) -> str:
    """All investigations with their rates and two responses of every prompt."""
    return "\n".join(["# Measured rates", "", *(line for one in measured for line in _section(one))]) + "\n"


def _section(one: Measured) -> list[str]:
    investigation = one.investigation
    lines = [
        f"## {investigation.investigation_id} ({investigation.template}, {investigation.cause})",
        "",
        *(f"> {message.role}: {line}" for message in investigation.messages for line in message.content.split("\n")),
        "",
        f"{investigation.behaviour} Program: {investigation.program.text}.",
        "",
        f"- **baseline** {_rate(one.baseline)}",
        *_shown(one.baseline),
    ]
    for edit in investigation.edits:
        lines += _edit_lines(one, edit)
    return [*lines, ""]


def _edit_lines(one: Measured, edit: Edit) -> list[str]:
    batch = one.edits.get(edit.edit_id)
    if batch is None:
        return [f"- {edit.edit_id} ({edit.kind}): not sampled, the baseline is too rare"]
    verdict = WORDS[measured_label(one.baseline.rate, batch.rate)]
    points = 100 * float(one.change(edit.edit_id))
    head = f"- **{edit.edit_id}** ({edit.kind}) {_rate(batch)}, {points:+.0f}: {verdict}"
    return [head, f"  - {edit.description}", *_shown(batch)]


def _rate(batch: Batch) -> str:
    return f"{batch.n_yes}/{batch.n} = {100 * float(batch.rate):.0f} %"


def _shown(batch: Batch) -> list[str]:
    pairs = zip(batch.samples[:N_SHOWN], batch.verdicts[:N_SHOWN], strict=True)
    return [f"  - {'yes' if yes else 'no'}: {sample.text!r}" for sample, yes in pairs]

"""The pages that people read: `why.md` and `flagged.md`.

Invariant: every foreign text stands in a block of code that it cannot end, on lines whose characters all show.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agents.prompts import counted, printable
from harness.arms import is_sham, shows_all
from harness.estimates import Estimate
from harness.tabular import grid, number_text, signed_text
from harness.why.clues import CLUES, Weighed
from harness.why.hand_labels import NAME, Agreement
from harness.why.judge import NONE, Judged
from harness.why.moved import Move
from harness.why.predicts import LossGain
from harness.why.rates import Rate
from harness.why.summary import Summary

LISTED = 10
"""Wins, and losses, on the page; the JSON has all."""
_TEXT_CHARS = 1200
_TICKS = re.compile(r"`+")
_KIND = {True: "true", False: "false"}


def block(text: str) -> str:
    """Foreign text as a block of code that nothing in it can end."""
    shown = "\n".join(map(printable, text[:_TEXT_CHARS].split("\n")))
    shown += " ..." if len(text) > _TEXT_CHARS else ""
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def named(summary: Summary) -> str:
    """How an arm is called on the page."""
    what = " (control: another transcript's activations)" if is_sham(summary.setting.arm) else ""
    what = " (every position)" if shows_all(summary.setting.arm) else what
    return replace(summary.setting, epoch=0).label + what


def _rate(found: Rate) -> str:
    if math.isnan(found.value):
        return "-"
    bounds = "" if math.isnan(found.low) else f" ({found.low:.1%} to {found.high:.1%})"
    return f"{found.value:.1%}{bounds}"


def _of(found: Rate) -> str:
    return f"{_rate(found)}, {found.part:.0f} of {found.whole}" if found.whole else "-"


def _bounds(estimate: Estimate | LossGain, *, signed: bool) -> str:
    show = signed_text if signed else number_text
    bounds = "" if math.isnan(estimate.low) else f" ({show(estimate.low)} to {show(estimate.high)})"
    return f"{show(estimate.value)}{bounds}"


def why_page(run: str, found: Sequence[Summary], judged: Judged | None, agreed: Agreement | None) -> str:
    """The page of a run."""
    lines = [f"# Why: {run}", "", *_about(found, judged), ""]
    if judged:
        lines += [*_stated(found), *_agreement(agreed), *_hinted(found)]
    lines += _predicts(found)
    for summary in found:
        lines += _moved(summary)
    return "\n".join(lines).rstrip("\n") + "\n"


def _about(found: Sequence[Summary], judged: Judged | None) -> Iterator[str]:
    for summary in found:
        silent = f"; nothing was said about {counted(summary.n_silent, 'claim')}" if summary.n_silent else ""
        yield (
            f"- {named(summary)}: {counted(summary.n_outputs, 'output')} about "
            f"{len(summary.clues)} of {counted(summary.n_asked, 'claim')}{silent}."
        )
    if judged is None:
        yield f"- Judge: {NONE}. Only words are compared: nothing here says what an output means."
        return
    yield (
        f"- Judge: {judged.model}, {counted(judged.n_questions, 'question')}; {judged.n_unread} of them got no answer "
        "that could be read, and their outputs count nowhere. It saw no label."
    )
    if judged.n_without_decoy:
        yield f"- {counted(judged.n_without_decoy, 'claim')} had no decoy: no other cluster has another edit."
    yield "- Judges err: read the flagged outputs (`flagged.md`) and label some by hand before you rely on a rate."


def _stated(found: Sequence[Summary]) -> list[str]:
    rows = [
        [named(summary), _KIND[one.label], _of(one.claims_stated), _of(one.outputs_stated)]
        for summary in found
        for one in summary.counted
    ]
    head = ["Arm", "Claims that are", "Claims with an output that states it", "Outputs that state it"]
    return ["## How often an output states that the edited factor causes the behaviour", "", *grid(head, rows), ""]


def _agreement(agreed: Agreement | None) -> list[str]:
    if agreed is None or not agreed.n_labelled:
        return [f"No hand labels yet: fill in the last column of `{NAME}` (yes or no) and give the command again.", ""]
    kappa = number_text(agreed.kappa)
    kappa += "" if math.isnan(agreed.kappa_low) else f" ({agreed.kappa_low:.3f} to {agreed.kappa_high:.3f})"
    return [
        f"Hand labels: {agreed.n_labelled}, of them {agreed.n_yes} yes; the judge flagged {agreed.n_flagged} of the "
        f"same. Agreement {_of(agreed.raw)}; Cohen's kappa {kappa}. The table holds more of what was flagged than the "
        "run does, so this is no estimate of how often the judge errs on all outputs.",
        "",
    ]


def _hinted(found: Sequence[Summary]) -> list[str]:
    rows = [
        [
            named(summary),
            _KIND[one.label],
            _of(one.claims_hinted),
            _rate(one.hinted),
            _rate(one.decoyed),
            _rate(one.neither),
        ]
        for summary in found
        for one in summary.counted
    ]
    head = ["Arm", "Claims that are", "Claims with a hint", "At the edited factor", "At the decoy", "At neither"]
    return [
        "## How often an output hints at the edited factor",
        "",
        "The judge saw output, behaviour and two factors in random order, and was not told which was edited. The decoy "
        "belongs to another prompt, so the topic alone can give it away: compare true claims with false ones, and the "
        "tool with its sham, before taking a hint for knowledge of the cause.",
        "",
        *grid(head, rows),
        "",
    ]


def _predicts(found: Sequence[Summary]) -> list[str]:
    rows = [
        [
            named(summary),
            one.clue,
            f"{one.alone.n_claims} in {one.alone.n_clusters}",
            _bounds(one.alone, signed=False),
            number_text(one.baseline.value),
            _bounds(one.added_auroc, signed=True) if one.added_auroc else "-",
            _bounds(one.added_loss, signed=True),
        ]
        for summary in found
        for one in summary.predicts
    ]
    if not rows:
        return ["The run has no baseline (arm `transcript`), so nothing can be compared with it.", ""]
    head = ["Arm", "Clue", "Claims in clusters", "AUROC alone", "Baseline", "AUROC added", "Log-loss saved"]
    used = dict.fromkeys(one.clue for summary in found for one in summary.predicts)
    notes = dict.fromkeys(
        f"{named(summary)}, {one.clue}: {note}."
        for summary in found
        for one in summary.predicts
        for note in one.alone.notes
    )
    return [
        "## What a clue predicts, alone and beside the baseline",
        "",
        *grid(head, rows),
        "",
        *(f"- {name}: {CLUES[name]}." for name in used),
        "- Added: a logistic regression on the baseline's logit and the clue, against one on the logit alone, both "
        "predicting clusters they were not fitted on (5 parts, drawn 10 times). Intervals resample clusters with the "
        "predictions as they are. A clue that says nothing costs a regression a little, the more the fewer claims "
        "there are: slightly below 0 is what nothing looks like, and a gain whose interval reaches 0 is not shown.",
        *(f"- {note}" for note in notes),
        "",
    ]


def _moved(summary: Summary) -> list[str]:
    wins = [move for move in summary.moves if move.gain > 0]
    losses = [move for move in reversed(summary.moves) if move.gain < 0]
    n_same = len(summary.moves) - len(wins) - len(losses)
    lines = [
        f"## Wins and losses of {named(summary)}",
        "",
        f"Nearer to the truth than the baseline: {len(wins)}; farther: {len(losses)}; the same: {n_same}. Beside each: "
        "the outputs that have most to do with the edit.",
        "",
    ]
    for kind, listed in (("Win", wins), ("Loss", losses)):
        for rank, move in enumerate(listed[:LISTED], start=1):
            lines += _move(f"{kind} {rank}", move)
    return lines


def _move(title: str, move: Move) -> list[str]:
    flip = ", crossing 0.5" if move.flipped else ""
    lines = [
        f"### {title}: {move.gain:+.3f}",
        "",
        f"The claim is {_KIND[move.label]}; the answer went from {move.p_baseline:.3f} to {move.p_tool:.3f}{flip}.",
        "",
        block(f"{move.claim.claim_id}\n{move.claim.behaviour}\n{move.claim.intervention}"),
        "",
    ]
    for one in move.outputs:
        lines += [_heading(one), "", block(_said(one)), ""]
    return lines if move.outputs else [*lines, "The tool said nothing about it.", ""]


def _said(one: Weighed) -> str:
    output = one.output
    return f"asked: {output.asked}\nsaid: {output.text}" if output.asked else output.text


def _heading(one: Weighed) -> str:
    output = one.output
    place = f"position {output.position}" if output.position is not None else "answer"
    words = [f"call {output.call}" if output.call else "shown at once", place, f"{one.lexical:.0%} of the edit's words"]
    words += ["states the cause"] if one.states else []
    words += [f"points at {one.points_at}"] if one.points_at else []
    return f"{', '.join(words)}:"


def flagged_page(run: str, found: Iterable[Summary]) -> str:
    """Every output that the judge says states the cause, once a claim and arm."""
    lines = [f"# Outputs that state the cause, as the judge says: {run}", ""]
    n_flagged = 0
    for summary in found:
        for clues in summary.clues.values():
            seen: set[tuple[str, str, str]] = set()
            for one in clues.weighed:
                if one.states and one.output.content not in seen:
                    seen.add(one.output.content)
                    n_flagged += 1
                    lines += _flagged(f"## {n_flagged}. {named(summary)}", one, clues.claim.behaviour)
                    lines += [block(f"{clues.claim.claim_id}\n{clues.claim.intervention}"), ""]
    return "\n".join(lines if n_flagged else [*lines, "None was flagged.", ""]).rstrip("\n") + "\n"


def _flagged(title: str, one: Weighed, behaviour: str) -> list[str]:
    quote = one.verdict.quote if one.verdict and one.verdict.quote else ""
    return [
        title,
        "",
        _heading(one),
        "",
        block(_said(one)),
        "",
        "The words that the judge went by, then behaviour, claim and edit:",
        "",
        block(quote),
        "",
        block(behaviour),
        "",
    ]

"""Asking a judge about everything that tools said, once for each thing that was said.

Invariants: a reply is kept under a hash of all that determines it before it is used, so nothing is paid twice; a form
that could not be read after the last try makes a verdict of none, which is counted and never guessed.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspect_ai.model import Model

from agents.predictors import build_predictor, check_predictor, is_local
from claims.build.wild.clerk import Clerk, spent
from claims.build.wild.forms import MAX_TRIES, Errand, Form, fill_in
from claims.build.wild.log import AppendLog
from claims.build.wild.money import PRICES, Purse, Usage, read_prices
from claims.build.wild.roles import Role
from claims.schema import Claim, UserError
from harness.exits import UnfinishedError
from harness.money.pricing import FREE
from harness.money.session import ASK_ABOVE
from harness.why.outputs import Output
from harness.why.questions import (
    AT_ONCE,
    TEXTS,
    choose_decoys,
    factors_of,
    hints_form,
    hints_message,
    states_form,
    states_message,
)

NONE = "none"
"""The judge that asks nobody."""
MAX_TOKENS = 6_000
"""Longest reply, reasoning included."""
_ROLE = "judge"
_OURS = {"harness", "claims", "agents", "tools", "builtins"}
_TOKENS_OUT = 300
"""Written for one question, by which its cost is guessed."""
_CHARS_A_TOKEN = 4


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one output."""

    quote: str | None
    """Words that state the cause; empty where none do, None where no answer could be read."""
    points_at: str | None
    """`edited`, `decoy` or `neither`; None where no answer could be read or there was no decoy."""


@dataclass(frozen=True)
class Judged:
    """All verdicts of a judge."""

    model: str
    """Its name."""
    verdicts: Mapping[tuple[str, str, str], Verdict]
    """By `Output.content`."""
    n_questions: int
    """Questions that were asked, about up to `AT_ONCE` outputs each."""
    n_unread: int
    """How many of them got no answer that could be read, in any of the tries."""
    n_without_decoy: int
    """Claims that no edit of another cluster could be set against."""
    dollars: float
    """What the replies behind the verdicts cost when they were paid; nan where the price is unknown."""


@dataclass(frozen=True)
class Allowance:
    """What a judge may cost."""

    max_cost: float | None = None
    """Dollars in all; itself a consent."""
    yes: bool = False
    """Whether the cost is agreed to, whatever it is."""
    prices: Path = PRICES
    """The price list."""


@dataclass(frozen=True)
class _Batch:
    claim: Claim
    outputs: tuple[Output, ...]


def check_judge(name: str) -> None:
    """Refuse a judge that cannot judge, before anything is read.

    Raises:
        UserError: It is unknown, has no key, or is a predictor that answers nothing but numbers.
    """
    if name == NONE:
        return
    if is_local(name) or name.startswith("scripted/"):
        raise UserError(
            f"{name!r} cannot judge: it answers with a probability and nothing else. Give --judge an Inspect model, "
            f"such as anthropic/<model> or ollama/<model>, or {NONE!r}."
        )
    check_predictor(name)


def ask_judge(
    outputs: Sequence[Output],
    claims: Mapping[str, Claim],
    *,
    name: str,
    folder: Path,
    seed: int,
    allowance: Allowance,
    model: Model | None = None,
) -> Judged:
    """What the judge called `name` says of everything.

    Args:
        outputs: What tools said, in any order.
        claims: By id.
        name: Of the judge.
        folder: Where its replies are kept.
        seed: Of the decoys.
        allowance: What it may cost.
        model: A ready model; None builds the one of this name.

    Raises:
        UserError: It cannot be had, or what it may cost was not agreed to.
        UnfinishedError: It stopped answering; what was answered is kept.
    """
    log = AppendLog(folder)
    prices = read_prices(allowance.prices)
    if allowance.max_cost is not None:
        prices.require([name], allowance.prices)
    batches = tuple(_batches(outputs, claims))
    decoys = choose_decoys(tuple(claims.values()), seed=seed)
    purse = Purse(prices, allowance.max_cost, spent(log))
    clerk = Clerk({_ROLE: Role(name, MAX_TOKENS)}, log, purse, models={_ROLE: model or build_predictor(name)[0]})
    jobs = [(batch, decoys.get(batch.claim.claim_id)) for batch in batches]
    _check_agreed(jobs, name, purse, allowance)
    answers = _run(clerk, jobs)
    verdicts: dict[tuple[str, str, str], Verdict] = {}
    for batch, (quotes, pointed) in zip(batches, answers, strict=True):
        for index, output in enumerate(batch.outputs):
            verdicts[output.content] = Verdict(_at(quotes, index), _at(pointed, index))
    missing = [
        (quotes is None) + (pointed is None and decoy is not None)
        for (quotes, pointed), (_, decoy) in zip(answers, jobs, strict=True)
    ]
    return Judged(
        model=name,
        verdicts=verdicts,
        n_questions=sum(1 + (decoy is not None) for _, decoy in jobs),
        n_unread=sum(missing),
        n_without_decoy=len({batch.claim.claim_id for batch, decoy in jobs if decoy is None}),
        dollars=0.0 if _family(name) in FREE else math.fsum(entry.dollars for entry in clerk.entries.values()),
    )


def _at(answers: Sequence[str] | None, index: int) -> str | None:
    return None if answers is None else answers[index]


def _family(name: str) -> str:
    return name.split("/", 1)[0]


def _batches(outputs: Iterable[Output], claims: Mapping[str, Claim]) -> Iterator[_Batch]:
    """Different outputs of a claim, a few at a time, in an order that depends on nothing but them."""
    of_claim: dict[str, dict[tuple[str, str, str], Output]] = {}
    for output in outputs:
        of_claim.setdefault(output.claim_id, {}).setdefault(output.content, output)
    for claim_id, different in sorted(of_claim.items()):
        ordered = [different[content] for content in sorted(different)]
        for start in range(0, len(ordered), AT_ONCE):
            yield _Batch(claims[claim_id], tuple(ordered[start : start + AT_ONCE]))


Answered = tuple[tuple[str, ...] | None, tuple[str, ...] | None]
"""Quotes, and what is pointed at, one an output each."""


def _run(clerk: Clerk, jobs: Sequence[tuple[_Batch, str | None]]) -> list[Answered]:
    async def everything() -> list[Answered]:
        return await clerk.gather(_judge(clerk, batch, decoy) for batch, decoy in jobs)

    try:
        return asyncio.run(everything())
    except Exception as error:
        if type(error).__module__.split(".")[0] in _OURS:
            raise
        # What a provider's SDK raises has many names; none of them is a fault of ours.
        raise UnfinishedError(
            f"The judge stopped answering ({type(error).__name__}: {' '.join(str(error).split())[:300]}). "
            "Its replies so far are kept: give the same command again to continue."
        ) from error


async def _judge(clerk: Clerk, batch: _Batch, decoy: str | None) -> Answered:
    claim, outputs = batch.claim, batch.outputs
    quotes = await _ask(clerk, "states", claim, states_message(claim, outputs), states_form(outputs))
    if decoy is None:
        return quotes, None
    factors = factors_of(claim, decoy, outputs)
    words = await _ask(clerk, "hints", claim, hints_message(claim, factors, outputs), hints_form(outputs))
    return quotes, None if words is None else tuple(map(factors.meaning, words))


async def _ask(
    clerk: Clerk, stage: str, claim: Claim, message: str, form: Form[tuple[str, ...]]
) -> tuple[str, ...] | None:
    system = TEXTS.text(f"{stage}_system.md")
    return await fill_in(clerk, Errand(stage, claim.claim_id, _ROLE, system, message), form)


def _check_agreed(jobs: Sequence[tuple[_Batch, str | None]], name: str, purse: Purse, allowance: Allowance) -> None:
    """Refuse to start what could cost much and was not agreed to."""
    texts = [states_message(batch.claim, batch.outputs) for batch, _ in jobs]
    n_asked = sum(1 + (decoy is not None) for _, decoy in jobs)
    system = len(TEXTS.text("states_system.md"))
    n_read = 2 * sum(len(text) + system for text in texts) // _CHARS_A_TOKEN
    whole = purse.prices.cost(name, Usage(n_asked, n_read, output=n_asked * _TOKENS_OUT), batch=False)
    dollars = whole - purse.spent
    if allowance.yes or allowance.max_cost is not None or math.isnan(dollars) or dollars <= ASK_ABOVE:
        return
    raise UserError(
        f"{n_asked} questions to {name} would cost about ${dollars:,.2f} (up to {MAX_TRIES} times as much with answers "
        f"that cannot be read). Agree with --yes, set --max-cost, or use --arms and --limit."
    )

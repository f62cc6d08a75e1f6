"""What a run will cost, before it is started.

Invariant: an estimate is arithmetic on the run's own prompts and on three stated scenarios; it calls nothing. The cap,
not the estimate, protects the purse.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.prompts import text, user_message
from claims.build.wild.money import Usage
from claims.render import render_claim
from claims.schema import Claim
from harness.arms import BASELINE, CEILING, shows_all, tool_of
from harness.logs import Setting
from harness.money.pricing import Tariff, shown_dollars
from harness.plan import Plan
from harness.task import ceiling_suffix_of


@dataclass(frozen=True)
class Scenario:
    """How a predictor goes about a claim. Numbers are tokens of the predictor unless they say otherwise."""

    chars_a_token: float
    """Characters of English prose that make one token."""
    provider: int
    """Tool schemas, and what a provider adds for tools."""
    description: int
    """A tool's own words."""
    a_listed_token: float
    """One numbered token of the token list."""
    first_thought: int
    """Written in the turn in which the claim is thought over."""
    later_thought: int
    """Written in every turn after it."""
    turns: Callable[[int], int]
    """Turns, given the budget of calls."""
    positions_share: float
    """Share of the allowed positions that a call reads."""
    a_position: Mapping[str, int]
    """Output of a tool for one position."""
    a_call: int
    """Output of a call that takes no positions, or of a tool that is not ours."""
    caches: Callable[[str], bool]
    """Whether a family reads the beginning of a conversation from its cache."""
    shares: bool = False
    """Whether even the first turn does: what other claims and arms begin with was asked before."""


LOW = Scenario(
    5.0, 100, 150, 2.5, 60, 40, lambda calls: 2 if calls else 1, 0.1, {"sae": 30, "nla": 20}, 20, bool, shares=True
)
"""One call where there is one to make, an answer at once, and beginnings that are in a cache already."""
LIKELY = Scenario(
    4.0, 400, 400, 3.5, 1200, 300, lambda calls: 1 + (calls + 1) // 2, 0.5, {"sae": 150, "nla": 80}, 200, bool
)
"""Half of the calls, some thought, caches that hit."""
HIGH = Scenario(
    3.0,
    700,
    900,
    5.0,
    5000,
    1200,
    lambda calls: calls + 2,
    1.0,
    {"sae": 300, "nla": 180},
    1500,
    lambda family: family == "anthropic",
)
"""Every call in a turn of its own, long thought, and a cache only where it is asked for by name."""
SCENARIOS = (LOW, LIKELY, HIGH)


@dataclass(frozen=True)
class SettingEstimate:
    """What one setting should cost, in the order of `SCENARIOS`."""

    setting: Setting
    """Arm and budget."""
    n_claims: int
    """Claims that are still to be asked."""
    read: tuple[int, ...]
    """Input tokens, cached ones included."""
    written: tuple[int, ...]
    """Output tokens, reasoning included."""
    dollars: tuple[float, ...]
    """Their price; `nan` when it is unknown."""

    @property
    def per_claim(self) -> float:
        """The high end for one claim; 0 when none is left."""
        return self.dollars[-1] / self.n_claims if self.n_claims else 0.0


def estimate(plan: Plan, tariff: Tariff, left: Mapping[Setting, Sequence[Claim]]) -> tuple[SettingEstimate, ...]:
    """What the claims that are left should cost, setting by setting.

    Args:
        plan: What is run.
        tariff: What the predictor's tokens cost.
        left: Claims still to be asked, by setting.
    """
    return tuple(_setting(plan, tariff, setting, left[setting]) for setting in plan.settings)


def everything(plan: Plan) -> dict[Setting, Sequence[Claim]]:
    """All claims under every setting: a run that has not begun."""
    return dict.fromkeys(plan.settings, plan.claims)


def _setting(plan: Plan, tariff: Tariff, setting: Setting, claims: Sequence[Claim]) -> SettingEstimate:
    family = plan.request.predictor.split("/", 1)[0]
    used = [Usage() for _ in SCENARIOS]
    for claim in claims:
        size = _size(plan, setting, claim)
        for number, scenario in enumerate(SCENARIOS):
            used[number] += _conversation(size, setting, scenario, cached=scenario.caches(family))
    return SettingEstimate(
        setting,
        len(claims),
        tuple(usage.read for usage in used),
        tuple(usage.output for usage in used),
        tuple(tariff.dollars(usage, batch=setting.arm in tariff.batched) for usage in used),
    )


@dataclass(frozen=True)
class _Size:
    """The first message of a claim under a setting."""

    shared_chars: int
    """Prose that other requests begin with too: the system prompt, and in other arms the baseline's message."""
    own_chars: int
    """Prose behind it."""
    n_tokens: int
    """Numbered tokens behind that."""


def _size(plan: Plan, setting: Setting, claim: Claim) -> _Size:
    transcript = plan.claim_set.transcripts[claim.transcript_id]
    asked = len(user_message(transcript, render_claim(claim, temperature=plan.claim_set.temperature)))
    if setting.arm == BASELINE:
        return _Size(len(text("system.md")), asked, 0)
    shared = len(text("system.md")) + asked
    if setting.arm == CEILING:
        return _Size(shared, len(ceiling_suffix_of(plan.evidence, seed=plan.request.seed)(claim)), 0)
    if tool_of(setting.arm) is None:
        return _Size(shared, 0, 0)
    return _Size(shared, len(text("tool.md")), len(transcript.token_ids))


def _conversation(size: _Size, setting: Setting, scenario: Scenario, *, cached: bool) -> Usage:
    """Tokens of one claim: every turn sends what was said before again, from the cache or not."""
    tool = tool_of(setting.arm)
    shared = round(size.shared_chars / scenario.chars_a_token)
    fresh = round(size.own_chars / scenario.chars_a_token) + scenario.provider
    if tool is not None:
        fresh += scenario.description + round(scenario.a_listed_token * size.n_tokens)
    if tool is not None and shows_all(setting.arm):
        fresh += scenario.a_position.get(tool, scenario.a_call) * size.n_tokens
    said, fresh = (shared, fresh) if scenario.shares else (0, shared + fresh)
    usage = Usage()
    for turn in range(scenario.turns(setting.calls)):
        wrote = scenario.later_thought if turn else scenario.first_thought
        usage += Usage(1, 0 if cached else said, said if cached else 0, fresh, wrote)
        said += fresh
        fresh = wrote + _answer(setting, scenario)
    return usage


def _answer(setting: Setting, scenario: Scenario) -> int:
    """Tokens of what one call gives back."""
    tool = tool_of(setting.arm)
    if tool is None or not setting.calls:
        return 0
    if not setting.positions or tool not in scenario.a_position:
        return scenario.a_call
    return scenario.a_position[tool] * max(1, round(scenario.positions_share * setting.positions))


def total(estimates: Iterable[SettingEstimate]) -> tuple[float, ...]:
    """Dollars of all settings together, by scenario."""
    return tuple(math.fsum(dollars) for dollars in zip(*(one.dollars for one in estimates), strict=True))


def per_claim(estimates: Iterable[SettingEstimate]) -> dict[str, float]:
    """The high end for one claim, by the short name of the setting."""
    return {one.setting.label: one.per_claim for one in estimates}


def estimate_table(estimates: Sequence[SettingEstimate], tariff: Tariff) -> str:
    """The estimate as Markdown, with what it rests on."""
    lines = ["| setting | claims | input tokens | output tokens | cost | from | to |", f"|---|{'---:|' * 6}"]
    for one in estimates:
        batch = " (batch)" if one.setting.arm in tariff.batched else ""
        low, likely, high = map(shown_dollars, one.dollars)
        cells = (f"{one.n_claims:,}", f"{one.read[1]:,}", f"{one.written[1]:,}", likely, low, high)
        lines.append(f"| {one.setting.label}{batch} | {' | '.join(cells)} |")
    low, likely, high = map(shown_dollars, total(estimates))
    lines += [f"| total | | | | {likely} | {low} | {high} |", "", _footnote(tariff)]
    return "\n".join(lines) + "\n"


def _footnote(tariff: Tariff) -> str:
    prices = "Nobody bills this predictor." if tariff.free else f"Prices of {tariff.as_of}, for {tariff.predictor}."
    return (
        f"{prices} Cost: half of the calls, {LIKELY.first_thought:,} tokens of thought. From: one call, an answer at "
        f"once, beginnings cached. To: every call in a turn of its own, {HIGH.first_thought:,} tokens of thought, a "
        "cache only where it is asked for by name. --max-cost is what limits a run."
    )

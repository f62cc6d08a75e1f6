"""What a run will cost, before it is started.

Invariant: an estimate is arithmetic on the prompts and on stated assumptions; it calls nothing. The cap, not the
estimate, is what protects the purse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claims.build.wild import investigate, verify
from claims.build.wild.money import Entry, Prices, Usage
from claims.build.wild.roles import Regime, Role
from claims.prompts.filters import count_chars
from claims.prompts.record import Prompt

CHARS_A_TOKEN = 4
"""English prose and code, roughly."""


@dataclass(frozen=True)
class Assumptions:
    """What an estimate takes for granted; the shares are those of the paper's evaluation runs."""

    investigated: float = 0.37
    """Share of prompts that reach the investigator (1,736 of 4,714)."""
    verified: float = 0.81
    """Share of investigations that pass the judges (1,408 of 1,736)."""
    claims: float = 3.1
    """Claims of a verified investigation (4,433 of 1,408)."""
    reproduced: float = 0.37
    """Share of claims that reach reproduction (1,637 of 4,433)."""
    cache_read: float = 0.8
    """Share of the investigator's input that comes from the provider's cache."""
    response: float = 0.8
    """Mean length of a response as a share of its limit."""
    thought: float = 0.3
    """Share of a thinking budget that is used."""


@dataclass(frozen=True)
class _Sizes:
    """Tokens, the same for every stage."""

    prompt: float
    response: float
    n_experiments: float


def estimate(
    prompts: Sequence[Prompt],
    regime: Regime,
    roles: Mapping[str, Role],
    prices: Prices,
    *,
    max_response_tokens: int,
    assumptions: Assumptions | None = None,
) -> list[Entry]:
    """One entry a stage, with the tokens and money that all prompts together should take."""
    assume = assumptions or Assumptions()
    mean_prompt = sum(map(count_chars, prompts)) / max(1, len(prompts)) / CHARS_A_TOKEN
    sizes = _Sizes(mean_prompt, assume.response * max_response_tokens, sum(regime.experiments) / 2)
    n_prompts = float(len(prompts))
    n_investigated = n_prompts * assume.investigated
    n_claims = n_investigated * assume.verified * assume.claims
    n_tested = n_claims * assume.reproduced
    n_verdicts = n_investigated * regime.n * (1 + sizes.n_experiments) + n_tested * regime.n
    jobs = (
        ("screen", "screener", n_prompts, 4_000 + sizes.prompt + regime.n * sizes.response, 500.0),
        ("classify", "classifier", n_verdicts, 500 + sizes.response, 120.0),
        ("verify", "judge", n_investigated * regime.n_judges, _judge_input(sizes), 350.0),
        ("claims", "selector", n_investigated * assume.verified, 2_500, 60.0),
        ("claims", "describer", n_claims, 700 + 2 * sizes.prompt, 180.0),
        ("filters", "grader", n_investigated * assume.verified, 1_500, 100.0),
        ("filters", "reproducer", n_tested, 900 + sizes.prompt, 250.0),
    )
    entries = [
        _entry(stage, roles[name], calls, tokens, out, prices, assume) for stage, name, calls, tokens, out in jobs
    ]
    return [*entries, _investigation(n_investigated, sizes, roles["investigator"], prices, assume)]


def _entry(
    stage: str, role: Role, calls: float, n_input: float, n_output: float, prices: Prices, assume: Assumptions
) -> Entry:
    out = n_output + assume.thought * (role.reasoning_tokens or 0)
    usage = Usage(round(calls), input=round(calls * n_input), output=round(calls * out))
    return Entry(stage, role.model, usage, prices.cost(role.model, usage, batch=role.batch))


def _judge_input(sizes: _Sizes) -> float:
    return 1_500 + sizes.prompt + (sizes.n_experiments + 1) * (sizes.prompt + verify.SHOWN * sizes.response + 200)


def _investigation(n: float, sizes: _Sizes, role: Role, prices: Prices, assume: Assumptions) -> Entry:
    """A conversation that is sent again every turn, longer by one batch each time."""
    turns = sizes.n_experiments + 3
    start = 1_500 + sizes.prompt + investigate.SHOWN * sizes.response
    growth = 500 + investigate.SHOWN * sizes.response
    total = n * (turns * start + turns * (turns - 1) / 2 * growth)
    out = n * turns * (450 + assume.thought * (role.reasoning_tokens or 0) / 2)
    read = assume.cache_read * total
    usage = Usage(round(n * turns), 0, round(read), round(total - read), round(out))
    return Entry("investigate", role.model, usage, prices.cost(role.model, usage, batch=role.batch))

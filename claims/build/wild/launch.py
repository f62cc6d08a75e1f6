"""From a command line's options to a run: target, prompts, engine, models, prices, estimate.

Invariant: everything that can be found wrong is found before a model or a target is asked, but for the keys of models,
which an estimate does without: `Clerk.check_models` looks at them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from claims.build.wild.classify import ModelClassifier
from claims.build.wild.clerk import Clerk, spent
from claims.build.wild.engine import Encode, Engine
from claims.build.wild.estimate import Assumptions, estimate
from claims.build.wild.investigate import Lab
from claims.build.wild.log import AppendLog
from claims.build.wild.money import PRICES, Purse, read_prices
from claims.build.wild.paper import paper_prompts
from claims.build.wild.pipeline import WildPlan
from claims.build.wild.roles import REGIMES, choose_roles, paper_sampling, thinking_sampling
from claims.build.wild.server_engine import Server, ServerEngine
from claims.build.wild.tables import cost_rows, render_costs
from claims.prompts import Prompt, collect_prompts, default_limits, read_excluded, read_saved
from claims.schema import UserError
from tools.targets import Sampling, Target, resolve_target
from tools.weights import cache_root, is_present

KEY = "UPLIFT_SERVER_KEY"
"""Environment variable with the key of a target's server, where it wants one."""


@dataclass(frozen=True)
class WildOptions:
    """What a user may choose."""

    target: str
    """Name of a target or of a family."""
    prompts: tuple[str, ...]
    """Files; with the profile `paper`, format=FILE for each source."""
    out: Path
    """The claims folder to make."""
    profile: str | None = None
    """`paper`, or None."""
    regime: str = "evaluation"
    """One of `REGIMES`."""
    n: int | None = None
    """Responses of every prompt; None takes the regime's."""
    first: int | None = None
    """Take this many prompts at most."""
    exclude: Path | None = None
    """File of prompt ids to leave out."""
    seed: int = 0
    """Of responses and of every choice by chance."""
    thinking: bool = False
    """Whether the target thinks before it answers."""
    reproduce_all: bool = False
    """Whether edits outside the balanced set are reproduced as well."""
    models: "Models" = field(default_factory=lambda: Models())
    """Who investigates, and for how much."""
    server: Server | None = None
    """Where the target is served; None runs it in this process."""


@dataclass(frozen=True)
class Models:
    """Models and money."""

    model: str | None = None
    """One model for every role; None takes the paper's."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Models by role."""
    max_cost: float | None = None
    """Dollars that may be spent in all, earlier runs of the same work folder included."""
    prices: Path = PRICES
    """The price list."""
    work: Path | None = None
    """Where replies and responses are kept; None takes a folder in the cache, by target."""


@dataclass(frozen=True)
class Ready:
    """A run that can start."""

    plan: WildPlan
    """For `run_wild`."""
    lab: Lab
    """For `run_wild`."""
    estimate: str
    """What it should cost, as a Markdown table."""


def prepare_run(options: WildOptions) -> Ready:
    """Look at every option and make ready.

    Raises:
        UserError: Something is wrong or missing; the text says what to do.
    """
    if options.out.exists():
        raise UserError(f"{options.out} exists already. Remove it, or give another folder with --out.")
    if options.regime not in REGIMES:
        raise UserError(f"Unknown regime {options.regime!r}. Expected one of {', '.join(REGIMES)}.")
    regime = REGIMES[options.regime] if options.n is None else REGIMES[options.regime].with_n(options.n)
    served = options.server is not None
    target = resolve_target(options.target, profile=options.profile, present=lambda one: served or is_present(one))
    sampling = paper_sampling(target.sampling) if options.profile == "paper" else target.sampling
    sampling = thinking_sampling(sampling) if options.thinking else sampling
    prompts, funnel = _prompts(options)
    work = options.models.work or cache_root() / "wild" / target.name
    clerk = _clerk(options.models, work)
    engine = _engine(options, target, sampling, work)
    lab = Lab(clerk, engine, ModelClassifier(clerk), regime, options.seed)
    plan = WildPlan(target, sampling, prompts, options.out, work, tuple(funnel), reproduce_all=options.reproduce_all)
    prices = clerk.purse.prices
    expected = estimate(prompts, regime, clerk.roles, prices, max_response_tokens=sampling.max_tokens)
    n_investigated = round(Assumptions().investigated * len(prompts))
    return Ready(plan, lab, render_costs(cost_rows(expected, n_investigated), n_investigated, prices.as_of))


def _clerk(chosen: Models, work: Path) -> Clerk:
    roles = choose_roles(chosen.model, chosen.roles)
    prices = read_prices(chosen.prices)
    if chosen.max_cost is not None:
        prices.require({role.model for role in roles.values()}, chosen.prices)
    log = AppendLog(work / "replies")
    return Clerk(roles, log, Purse(prices, chosen.max_cost, spent(log)))


def _prompts(options: WildOptions) -> tuple[tuple[Prompt, ...], list[dict[str, object]]]:
    excluded = read_excluded(options.exclude) if options.exclude else frozenset()
    if options.profile == "paper":
        prompts, rows = paper_prompts(_by_format(options.prompts), excluded)
        return prompts[: options.first], rows
    paths = [Path(name) for name in options.prompts]
    if all(path.with_name(f"{path.stem}.funnel.json").exists() for path in paths):
        saved = [one for path in paths for one in read_saved(path) if one.prompt_id not in excluded]
        prompts = tuple({one.prompt_id: one for one in saved}.values())[: options.first]
        return prompts, [{"reason": "collected before", "dropped": len(saved) - len(prompts), "left": len(prompts)}]
    limits = replace(default_limits(paths), first=options.first)
    collected = collect_prompts(paths, limits=limits, excluded=excluded)
    if not collected.prompts:
        raise UserError(f"No prompt of {', '.join(options.prompts)} is left: {collected.funnel.rows()}.")
    return collected.prompts, collected.funnel.rows()


def _by_format(names: Sequence[str]) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for name in names:
        source, mark, path = name.partition("=")
        if not mark:
            raise UserError(f"The profile 'paper' needs every file's source: found {name!r}, expected format=FILE.")
        files.setdefault(source, []).append(Path(path))
    return files


def _engine(options: WildOptions, target: Target, sampling: Sampling, work: Path) -> Engine:
    if options.server is not None:
        server = replace(options.server, api_key=options.server.api_key or os.environ.get(KEY))
        log = AppendLog(work / "responses")
        return ServerEngine(server, sampling, log, encode=_encode(target))
    # The model is heavy to import and a served target needs none of it.
    from claims.build.sampler import StoredSampler
    from claims.build.wild.local_engine import LocalEngine
    from tools.model import load

    return LocalEngine(StoredSampler(load(target), sampling, work / "samples"))


def _encode(target: Target) -> Encode | None:
    """The target's tokenizer, when it is on this machine."""
    from claims.build.importing.tokens import make_encode

    try:
        return make_encode(target)
    except UserError:
        return None

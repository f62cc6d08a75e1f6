"""What the user asked for, checked and resolved into what will be run.

Invariant: every mistake that can be found without starting anything is found here, before anything is started.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from inspect_ai.model import Model

from agents.local import policy
from agents.predictors import LOCAL_MODEL, PAPER_BUDGET, check_predictor, default_budget, is_local
from agents.prompts import counted, prompt_sha256
from agents.served import About
from agents.solver import ArmSetup, default_max_turns
from claims.build.wild.filters import parse_filters, view
from claims.labels import Evidence, Label, load_evidence, load_labels
from claims.load import ClaimSet, load_claims
from claims.render import default_template
from claims.schema import Claim, UserError
from harness.selection import select_claims
from harness.task import K_CEILING, Axes, ceiling_suffix_of
from harness.uplift import BASELINE, CEILING
from tools import get_tool
from tools.targets import Target, get_target, resolve_target
from tools.weights import cache_root, is_present

_OPERATIONAL = {"max_retries", "attempt_timeout", "max_connections"}
"""Settings of a model that move when it answers, and not what."""


@dataclass(frozen=True)
class Request:
    """The command line, as typed; None where nothing was said."""

    tool: str
    """Name of the tool."""
    target: str
    """Name of a target or of a family."""
    predictor: str
    """Name of the predictor."""
    calls: int | None
    """Budget of tool calls."""
    positions: int | None
    """Most positions in one call."""
    limit: int | None
    """Most claims."""
    claims: Path | None
    """A claims folder."""
    seed: int
    """Picks claims under a limit and the ceiling's responses, and keys the bootstrap."""
    arms: tuple[str, ...] | None
    """Names of arms."""
    profile: str | None
    """`paper`, or nothing."""
    filters: str = "none"
    """Which claims of a set with filters: `none`, `paper`, or names separated by commas."""


@dataclass(frozen=True)
class Plan:
    """A request that can be run."""

    request: Request
    """What was asked for."""
    target: Target
    """What the target's name resolved to."""
    calls: int
    """Budget of tool calls."""
    positions: int
    """Most positions in one call."""
    arms: tuple[str, ...]
    """Names of arms, the baseline first."""
    claim_set: ClaimSet
    """All claims of the folder."""
    claims: tuple[Claim, ...]
    """Those of this run."""
    labels: Mapping[str, Label]
    """By claim id."""
    evidence: Mapping[str, Evidence]
    """By claim id; empty where the folder has none and no arm needs it."""

    @property
    def not_paper(self) -> str:
        """How the budget differs from the paper's, as a sentence; empty when it does not."""
        if (self.calls, self.positions) == (PAPER_BUDGET.calls, PAPER_BUDGET.positions):
            return ""
        return (
            f"Budget: {counted(self.calls, 'call')} of {counted(self.positions, 'position')}. "
            f"Not the paper's setting ({PAPER_BUDGET.calls} calls of {PAPER_BUDGET.positions} positions)."
        )

    @property
    def needs_server(self) -> bool:
        """Whether an arm reads the tool."""
        return self.request.tool in self.arms


def make_plan(request: Request) -> Plan:
    """Check and resolve a request.

    Raises:
        UserError: Something in it is unknown, absent, out of range, or does not fit the rest.
    """
    get_tool(request.tool)
    check_predictor(request.predictor)
    calls, positions = _budget(request)
    arms = _arms(request)
    target = resolve_target(request.target, profile=_profile(request), present=is_present)
    claim_set = load_claims(filtered_folder(claims_folder(request.claims, target), request.filters), target=target.name)
    labels = load_labels(claim_set)
    claims = select_claims(claim_set.claims, labels, limit=request.limit, seed=request.seed)
    evidence = _evidence(claim_set, needed=CEILING in arms)
    if CEILING in arms:
        suffix = ceiling_suffix_of(evidence, seed=request.seed)
        for claim in claims:
            suffix(claim)
    return Plan(request, target, calls, positions, arms, claim_set, claims, labels, evidence)


def _budget(request: Request) -> tuple[int, int]:
    usual = PAPER_BUDGET if request.profile == "paper" else default_budget(request.predictor)
    calls = usual.calls if request.calls is None else request.calls
    positions = usual.positions if request.positions is None else request.positions
    for name, value in (("--calls", calls), ("--positions", positions)):
        if value < 1:
            raise UserError(
                f"{name} is {value}; expected at least 1. For a run without the tool, give --arms {BASELINE}."
            )
    return calls, positions


def _profile(request: Request) -> str | None:
    if request.profile not in (None, "", "paper"):
        raise UserError(
            f"Unknown profile {request.profile!r}. Known profiles: paper. Leave it out for the local default."
        )
    return request.profile or None


def _arms(request: Request) -> tuple[str, ...]:
    known = (BASELINE, request.tool, CEILING)
    asked = request.arms or known
    unknown = [arm for arm in asked if arm not in known]
    if unknown:
        raise UserError(f"Unknown arms {', '.join(unknown)}. Known arms: {', '.join(known)}. Choose among them.")
    if BASELINE not in asked:
        raise UserError(
            f"The arms {', '.join(asked)} lack {BASELINE!r}, which every other arm is compared with. Add it to --arms."
        )
    return tuple(arm for arm in known if arm in asked)


def claims_folder(given: Path | None, target: Target) -> Path:
    """The claims folder that was given, else the target's own bank.

    Raises:
        UserError: None was given and the target has no bank.
    """
    if given is not None:
        return given.resolve()
    banks = Path(str(files("claims"))) / "data"
    folder = banks / target.name
    if not folder.is_dir():
        there = sorted(path.parent.name for path in banks.glob("*/claims.jsonl"))
        raise UserError(
            f"There is no claim bank for {target.name!r}. There are banks for: {', '.join(there) or 'no target yet'}. "
            f"Build one with `uplift claims build {target.name}`, or give --claims a folder."
        )
    return folder


def filtered_folder(folder: Path, filters: str) -> Path:
    """The folder that holds the claims that pass the filters; kept in the cache and made once.

    Raises:
        UserError: A filter is unknown, the set has none, or nothing passes.
    """
    parse_filters(filters)
    return view(folder, filters, cache_root() / "views") if folder.is_dir() else folder


def _evidence(claim_set: ClaimSet, *, needed: bool) -> Mapping[str, Evidence]:
    if not needed and not (claim_set.path / "evidence.jsonl").exists():
        return {}
    return load_evidence(claim_set)


def axes_of(plan: Plan, arm: str, about: About | None, model: Model) -> Axes:
    """The identity of one arm of a plan.

    Args:
        plan: What is run.
        arm: Name of the arm.
        about: The tool server's account of itself; None when no arm reads a tool.
        model: The predictor.
    """
    is_tool = arm == plan.request.tool
    return Axes(
        arm=arm,
        target=plan.target.name,
        predictor=plan.request.predictor,
        calls=plan.calls if is_tool else 0,
        positions=plan.positions if is_tool else 0,
        seed=plan.request.seed,
        prompt_sha256=_sha256(prompt_sha256(), default_template()),
        claim_set_sha256=plan.claim_set.sha256,
        n_claims=len(plan.claims),
        tool_sha256=tool_sha256(about) if is_tool and about is not None else "",
        k_ceiling=K_CEILING if arm == CEILING else 0,
        predictor_sha256=_predictor_sha256(plan.request.predictor, model),
    )


def setup_of(plan: Plan, arm: str, url: str | None) -> ArmSetup:
    """What the predictor is given in one arm."""
    if arm != plan.request.tool:
        return ArmSetup(arm, None, 0, 0, default_max_turns(0))
    return ArmSetup(arm, url, plan.calls, plan.positions, default_max_turns(plan.calls))


def suffix_of(plan: Plan, arm: str) -> Callable[[Claim], str]:
    """What one arm adds to the baseline's message before the tool's part."""
    return ceiling_suffix_of(plan.evidence, seed=plan.request.seed) if arm == CEILING else lambda _: ""


def tool_sha256(about: About) -> str:
    """Identity of what a tool can say: its weights, the layer, the target's weights, and its own words."""
    raw = about.raw
    return _sha256(about.weights_sha256, str(raw.get("layer")), str(raw.get("target_revision")), about.description)


def _predictor_sha256(name: str, model: Model) -> str:
    """Identity of what a predictor can say: its model, how it generates, and the weights where they are ours."""
    own = (get_target(LOCAL_MODEL).revision, policy()) if is_local(name) else ()
    return _sha256(str(model), model.config.model_dump_json(exclude=_OPERATIONAL), *own)


def run_name(plan: Plan, axes: Mapping[str, Axes]) -> str:
    """The name of a run's folder: readable names, and a hash of every axis of every arm."""
    names = "-".join((plan.target.name, plan.request.tool, plan.request.predictor.replace("/", "-")))
    identity = json.dumps([asdict(axes[arm]) for arm in plan.arms], sort_keys=True)
    return f"{names}-{_sha256(identity)[:8]}"


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8")).hexdigest()

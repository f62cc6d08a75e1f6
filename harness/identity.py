"""What makes an answer this answer: the axes of every setting of a plan, and the name of its folder.

Invariant: whatever could change an answer is in here, and nothing that could not is.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

from inspect_ai.model import Model

from agents.local import policy
from agents.predictors import LOCAL_MODEL, is_local
from agents.prompts import prompt_sha256
from agents.served import About
from agents.solver import ArmSetup, default_max_turns
from claims.render import default_template
from claims.schema import Claim
from harness.arms import CEILING, is_sham, shows_all, tool_of
from harness.logs import Setting
from harness.plan import Plan, arm_name
from harness.server import Attached
from harness.task import K_CEILING, Axes, ceiling_suffix_of
from tools.targets import get_target

_OPERATIONAL = {"max_retries", "attempt_timeout", "max_connections", "adaptive_connections", "batch"}
"""Settings of a model that move when it answers, and not what."""


def axes_of(plan: Plan, setting: Setting, attached: Mapping[str, Attached], model: Model) -> Axes:
    """The identity of one setting of a plan.

    Args:
        plan: What is run.
        setting: One of its settings.
        attached: The tool servers, by the arm of the tool.
        model: The predictor.
    """
    about = about_of(setting.arm, attached)
    return Axes(
        **asdict(setting),
        seed=plan.request.seed,
        prompt_sha256=_sha256(prompt_sha256(), default_template()),
        claim_set_sha256=plan.claim_set.sha256,
        claims_sha256=_sha256(*(claim.claim_id for claim in plan.claims)),
        n_claims=len(plan.claims),
        split=f"{plan.request.split} {plan.request.split_seed}" if plan.request.split else "",
        tool_sha256="" if about is None else tool_sha256(about),
        k_ceiling=K_CEILING if setting.arm == CEILING else 0,
        predictor_sha256=_predictor_sha256(plan.request.predictor, model),
    )


def about_of(arm: str, attached: Mapping[str, Attached]) -> About | None:
    """What the server behind an arm says about itself; None for an arm without a tool."""
    tool = tool_of(arm)
    if tool is None:
        return None
    return attached[tool].sham_about if is_sham(arm) else attached[tool].about


def setup_of(setting: Setting, attached: Mapping[str, Attached]) -> ArmSetup:
    """What the predictor is given in one setting."""
    tool = tool_of(setting.arm)
    if tool is None:
        return ArmSetup(setting.arm, None, 0, 0, default_max_turns(0))
    url = attached[tool].sham_url if is_sham(setting.arm) else attached[tool].url
    return ArmSetup(
        setting.arm,
        url,
        setting.calls,
        setting.positions,
        default_max_turns(setting.calls),
        shows_all=shows_all(setting.arm),
    )


def suffix_of(plan: Plan, arm: str) -> Callable[[Claim], str]:
    """What one arm adds to the baseline's message before the tool's part."""
    return ceiling_suffix_of(plan.evidence, seed=plan.request.seed) if arm == CEILING else lambda _: ""


def tool_sha256(about: About) -> str:
    """Identity of what a tool can say: its weights, layer, donors, the target's weights, and its own words."""
    facts = [str(about.raw.get(name)) for name in ("layer", "target_revision", "donors_sha256")]
    return _sha256(about.weights_sha256, *facts, about.description)


def _predictor_sha256(name: str, model: Model) -> str:
    """Identity of what a predictor can say: its model, how it generates, and the weights where they are ours."""
    own = (get_target(LOCAL_MODEL).revision, policy()) if is_local(name) else ()
    return _sha256(str(model), model.config.model_dump_json(exclude=_OPERATIONAL), *own)


def run_name(plan: Plan, axes: Mapping[Setting, Axes]) -> str:
    """The name of a run's folder: readable names, and a hash of every axis of every setting."""
    tools = "+".join(map(arm_name, plan.request.tools))
    variant = plan.request.prompts.resolve().name if plan.request.prompts else ""
    words = (plan.target.name, tools, plan.request.predictor.replace("/", "-"), variant, plan.request.split)
    names = "-".join(filter(None, words))
    identity = json.dumps([asdict(axes[setting]) for setting in plan.settings], sort_keys=True)
    return f"{names}-{_sha256(identity)[:8]}"


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8")).hexdigest()

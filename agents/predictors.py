"""The table of predictors, and the one place that builds a model.

Invariant: retries and waits are bounded for every family (Inspect's own default is unlimited), and no message of ours
ever holds the value of a key.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.util import AdaptiveConcurrency

from agents.effort import DEFAULT_EFFORT, reasoning_for
from agents.local import LocalAPI
from agents.provider import make_careful
from agents.scripted import SCRIPTS, ScriptedAPI
from claims.schema import UserError


@dataclass(frozen=True)
class Settings:
    """How a family is called."""

    max_retries: int | None = 6
    """Tries after the first before a request counts as failed; None where nothing is sent anywhere."""
    attempt_timeout_s: int | None = 600
    """Longest single try; None where a wait is a queue of ours."""
    max_connections: int | None = None
    """Most requests in flight; None lets their number follow what the provider bears."""
    sent: Mapping[str, str | int] = field(default_factory=dict)
    """What a request says about reasoning: fields of its body by dotted path; empty where it says nothing."""

    def as_record(self) -> dict[str, object]:
        """JSON-ready form for a manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Family:
    """One family of predictors."""

    name: str
    """What stands before the slash."""
    example: str
    """A full name to show people."""
    keys: tuple[str, ...] = ()
    """Environment variables, one of which must hold a key; empty where none is needed."""
    settings: Settings = Settings()
    """How it is called."""
    to_sdk: Mapping[str, int | str] = field(default_factory=dict)
    """Arguments of the provider: SDKs that repeat requests on their own are told not to, for `agents.provider` does;
    prompts are cached for five minutes, the kind that the price list knows."""


@dataclass(frozen=True)
class DefaultBudget:
    """What a predictor gets when the user names no budget."""

    calls: int
    """Charged calls a claim."""
    positions: int
    """Positions a call."""


_OURS = Settings(max_retries=None, attempt_timeout_s=None, max_connections=32)
ADAPTIVE = AdaptiveConcurrency(min=2, start=10, max=100)
"""Requests in flight towards a provider: more while it answers, fewer when it says that they are too many."""

PREDICTORS: dict[str, Family] = {
    family.name: family
    for family in (
        Family("local", "local", settings=_OURS),
        Family(
            "anthropic",
            "anthropic/<model>",
            ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
            to_sdk={"max_retries": 0, "cache_ttl": "5m"},
        ),
        Family("openai", "openai/<model>", ("OPENAI_API_KEY",), to_sdk={"max_retries": 0}),
        Family("google", "google/<model>", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
        Family("vllm", "vllm/<model>"),
        Family("ollama", "ollama/<model>"),
        Family("scripted", "scripted/reader", settings=_OURS),
        Family("mockllm", "mockllm/model", settings=_OURS),
    )
}

PAPER_BUDGET = DefaultBudget(calls=5, positions=32)
LOCAL_BUDGET = DefaultBudget(calls=1, positions=8)
LOCAL_MODEL = "smollm2-135m"
"""The target whose weights the local predictor runs on."""

# Registered with Inspect by their import; named here so that no import looks unused.
OWN_APIS = (LocalAPI, ScriptedAPI)


def provider_keys() -> frozenset[str]:
    """Names of the environment variables that hold keys of predictors."""
    return frozenset(key for family in PREDICTORS.values() for key in family.keys)


def is_local(name: str) -> bool:
    """Whether `name` means the predictor that runs on this machine, whose context is small."""
    return name.split("/", 1)[0] == "local"


def default_budget(name: str) -> DefaultBudget:
    """The budget of a predictor when the user names none."""
    return LOCAL_BUDGET if is_local(name) else PAPER_BUDGET


def family_of(name: str) -> Family:
    """The family of a predictor; its key is not asked for, and nothing is loaded.

    Raises:
        UserError: The predictor is unknown, or names no model.
    """
    head, _, rest = name.partition("/")
    known = ", ".join(family.example for family in PREDICTORS.values() if family.name not in ("scripted", "mockllm"))
    if head not in PREDICTORS:
        raise UserError(f"Unknown predictor {name!r}. Known predictors: {known}. Choose one of them.")
    if not rest and head != "local":
        raise UserError(f"The predictor {name!r} names no model. Expected {PREDICTORS[head].example}.")
    if head == "local" and rest not in ("", LOCAL_MODEL):
        raise UserError(f"Unknown predictor {name!r}. The local predictor is {LOCAL_MODEL}: write 'local'.")
    if head == "scripted" and rest not in SCRIPTS:
        raise UserError(f"Unknown script {rest!r}. Known scripts: {', '.join(SCRIPTS)}. Choose one of them.")
    return PREDICTORS[head]


def check_predictor(name: str) -> Family:
    """The family of `name`, once its name and key have been looked at; loads nothing.

    Raises:
        UserError: The predictor is unknown, names no model, or its family's key is missing.
    """
    family = family_of(name)
    # Cloud services (anthropic/bedrock/..., google/vertex/...) have credentials of their own, which Inspect checks.
    direct = name.count("/") == 1
    if family.keys and direct and not any(os.environ.get(key) for key in family.keys):
        raise UserError(
            f"The predictor {name!r} needs a key: {' or '.join(family.keys)} is not set. "
            f"Export it, or use --predictor local, which needs none."
        )
    return family


def build_predictor(name: str, effort: str = DEFAULT_EFFORT, *, batch: bool = False) -> tuple[Model, Settings]:
    """The model called `name`, and the settings that it is called with.

    Args:
        name: Of the predictor.
        effort: One of `agents.effort.EFFORTS`; models that take no such setting are sent none.
        batch: Send its requests through the provider's batch API: half the price, hours of waiting.

    Raises:
        UserError: The predictor is unknown or cannot be set up here, or does not take the effort.
    """
    family = check_predictor(name)
    reasoning = reasoning_for(name, effort)
    settings = replace(family.settings, sent=reasoning.sent)
    config = GenerateConfig.model_validate(
        {
            "max_retries": settings.max_retries,
            "attempt_timeout": None if batch else settings.attempt_timeout_s,
            "batch": batch or None,
            # A number of connections, or a batch, switches off that Inspect adapts them.
            "max_connections": settings.max_connections,
            "adaptive_connections": None if batch or settings.max_connections else ADAPTIVE,
            **reasoning.config,
        }
    )
    full = f"local/{LOCAL_MODEL}" if is_local(name) else name
    to_sdk: dict[str, Any] = dict(family.to_sdk) if name.count("/") == 1 else {}
    try:
        # Inspect hands out the same object for the same name; a run's own keeps what it learns of its provider.
        model = get_model(full, config=config, memoize=False, **to_sdk)
    except PrerequisiteError as error:
        raise UserError(f"The predictor {name!r} cannot be used: {' '.join(str(error.message).split())}") from error
    if settings.max_retries is not None:
        make_careful(model)
    return model, settings

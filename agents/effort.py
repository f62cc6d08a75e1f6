"""How hard a predictor thinks: one setting, and what each family and generation of models is sent for it.

Invariant: what stands here under `sent` is what stands in the request, field for field; a model that cannot do what was
asked is refused before anything is run, and a model that takes no such setting is sent none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from claims.schema import UserError

Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
DEFAULT_EFFORT: Effort = "high"
"""As in the paper's Appendix C.3."""

_CLAUDE_TOKENS: Mapping[Effort, int] = {"low": 4096, "medium": 10_000, "high": 16_000}
_GEMINI_TOKENS: Mapping[Effort, int] = {"low": 1024, "medium": 8192, "high": 24_576}
"""Google's own translation of efforts (its OpenAI-compatible interface); the last is the most that Flash takes."""


@dataclass(frozen=True)
class Reasoning:
    """What an effort means for one model."""

    config: Mapping[str, str | int] = field(default_factory=dict)
    """Fields of Inspect's GenerateConfig."""
    sent: Mapping[str, str | int] = field(default_factory=dict)
    """Fields of the request body by their dotted path; empty where the model takes no such setting."""


def _claude(model: str, effort: Effort) -> Reasoning:
    version = _claude_version(model)
    if version < (3, 7):
        return Reasoning()
    if version < (4, 6):
        budget = _CLAUDE_TOKENS[effort]
        return Reasoning({"reasoning_tokens": budget}, {"thinking.type": "enabled", "thinking.budget_tokens": budget})
    return Reasoning({"reasoning_effort": effort}, {"thinking.type": "adaptive", "output_config.effort": effort})


def _claude_version(model: str) -> tuple[int, int]:
    """Of `claude-3-7-sonnet-…` and `claude-opus-4-6`; a name that says none is taken for the newest."""
    found = re.search(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2}))?(?!\d)", model)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else (99, 0)


def _gpt(model: str, effort: Effort) -> Reasoning:
    reasons = re.match(r"o\d|gpt-(?:[5-9]|\d\d)|codex", model) and not re.search(r"-chat|^o1-(?:mini|preview)", model)
    if not reasons:
        return Reasoning()
    if model.startswith("gpt-5-pro"):
        _only(("high",), effort, model)
    # Without it Inspect asks for a summary, in a request of its own at the start, which only verified accounts get.
    return Reasoning({"reasoning_effort": effort, "reasoning_summary": "none"}, {"reasoning.effort": effort})


def _gemini(model: str, effort: Effort) -> Reasoning:
    found = re.match(r"gemini-(\d+)(?:\.(\d+))?", model)
    version = (int(found.group(1)), int(found.group(2) or 0)) if found else (99, 0)
    if version < (2, 5):
        return Reasoning()
    if version < (3, 0):
        budget = _GEMINI_TOKENS[effort]
        return Reasoning({"reasoning_tokens": budget}, {f"{_THINKING}.thinking_budget": budget})
    if version == (3, 0) and "pro" in model:
        _only(("low", "high"), effort, model)
    return Reasoning({"reasoning_effort": effort}, {f"{_THINKING}.thinking_level": effort.upper()})


_THINKING = "generationConfig.thinkingConfig"  # google-genai sends what is below it in snake case


def _only(known: tuple[Effort, ...], effort: Effort, model: str) -> None:
    if effort not in known:
        raise UserError(
            f"The predictor {model!r} does not take the effort {effort!r}. It takes: {', '.join(known)}. "
            f"Give --effort {known[-1]}."
        )


_FAMILIES = {"anthropic": _claude, "openai": _gpt, "google": _gemini}


def reasoning_for(name: str, effort: str) -> Reasoning:
    """What the predictor `name` is sent for an effort; local models and open servers are sent nothing.

    Raises:
        UserError: There is no such effort, or the model does not take it.
    """
    known = next((known for known in EFFORTS if known == effort), None)
    if known is None:
        raise UserError(f"Unknown effort {effort!r}. Known efforts: {', '.join(EFFORTS)}. Choose one of them.")
    family, _, model = name.partition("/")
    return _FAMILIES[family](model.rsplit("/", 1)[-1], known) if family in _FAMILIES else Reasoning()

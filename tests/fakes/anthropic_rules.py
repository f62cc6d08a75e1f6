"""The rules of Anthropic Messages, as its errors word them.

Stricter than the service in two places, so that a loop that forgets cannot pass: roles must alternate (the service
merges turns), and a tool_use that came after thinking must be replayed after it under adaptive thinking too.
"""

import re
from dataclasses import dataclass

from tests.fakes.wire import Json, Request, check_name, check_object, need, refuse, sign

CONTEXT = 200_000
MOST_BREAKPOINTS = 4


@dataclass(frozen=True)
class Claude:
    """What a model can do, by its name."""

    kind: str
    version: tuple[int, int]

    @property
    def thinks(self) -> bool:
        return self.version >= (3, 7)

    @property
    def takes_budget(self) -> bool:
        return (3, 7) <= self.version < (4, 7)

    @property
    def takes_adaptive(self) -> bool:
        return self.version >= (4, 6)

    @property
    def takes_effort(self) -> bool:
        return self.takes_adaptive or (self.kind, self.version) == ("opus", (4, 5))

    @property
    def thinks_by_itself(self) -> bool:
        return self.version >= (4, 7)

    @property
    def refuses_force(self) -> bool:
        latest = (5, 1) if self.kind in ("fable", "mythos") else (5, 5)
        return self.kind != "haiku" and self.version >= latest

    @property
    def binds(self) -> bool:
        """Whether a thinking block belongs to the very prefix that it was made after."""
        return self.version >= ((5, 1) if self.kind == "fable" else (5, 5)) and self.kind != "mythos"

    @property
    def most_output(self) -> int:
        if self.version < (3, 7):
            return 4096 if self.version < (3, 5) else 8192
        if self.version >= (4, 6):
            return 128_000
        return 32_000 if self.kind == "opus" and self.version < (4, 5) else 64_000


_OLD = re.compile(r"claude-3(?:-([57]))?-(opus|sonnet|haiku)")
_NEW = re.compile(r"claude-([a-z]+)-(\d)(?:[-.](\d{1,2}))?(?!\d)")


def claude(model: str) -> Claude:
    if old := _OLD.match(model):
        return Claude(old.group(2), (3, int(old.group(1) or 0)))
    new = _NEW.match(model)
    if new is None:
        refuse(f"model: {model}", 404)
    assert new is not None
    return Claude(new.group(1), (int(new.group(2)), int(new.group(3) or 0)))


def blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def is_thinking(body: Json) -> bool:
    thinking = body.get("thinking")
    return claude(body["model"]).thinks_by_itself if thinking is None else thinking.get("type") != "disabled"


def bare(value: object) -> object:
    """Without cache marks, which belong to no prefix."""
    if isinstance(value, dict):
        return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [bare(inner) for inner in value] if isinstance(value, list) else value


def binding(body: Json, messages: list[Json]) -> str:
    """What a thinking block of a bound model is signed with besides its text."""
    return repr((bare(body.get("system")), bare(messages))) if claude(body["model"]).binds else ""


def check(request: Request) -> None:
    """Refuse what the service would refuse."""
    body, headers = request.body, request.headers
    need(headers.get("x-api-key") or headers.get("authorization"), "x-api-key header is required", 401)
    need(headers.get("anthropic-version"), "anthropic-version: header is required")
    for name in ("model", "max_tokens", "messages"):
        need(body.get(name), f"{name}: Field required")
    model = claude(body["model"])
    _check_parameters(body, headers, model)
    _check_thinking(body, model)
    for place, tool in enumerate(body.get("tools") or []):
        check_name(tool.get("name"), f"tools.{place}.custom.name")
        check_object(tool.get("input_schema"), f"tools.{place}.custom.input_schema")
        composed = {"oneOf", "allOf", "anyOf"} & tool["input_schema"].keys()
        need(not composed, f"tools.{place}.custom.input_schema: {composed} at the top level is not supported")
    _check_choice(body, model)
    _check_messages(body)
    _check_cache(body)


def _check_parameters(body: Json, headers: dict, model: Claude) -> None:
    known = {
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "metadata",
        "cache_control",
        "service_tier",
    }
    strange = sorted(body.keys() - known)
    need(not strange, f"{', '.join(strange)}: Extra inputs are not permitted")
    most = model.most_output
    need(body["max_tokens"] <= most, f"max_tokens: {body['max_tokens']} > {most}, the maximum for {body['model']}")
    sampling = [name for name in ("temperature", "top_p", "top_k") if name in body]
    if headers["anthropic-version"] >= "2026-10-21" or model.version >= (4, 7):
        need(not sampling, f"`{', '.join(sampling)}` is deprecated for this model.")
    if body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
        need(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled.")
        need("top_k" not in body, "`top_k` must be unset when thinking is enabled.")


def _check_thinking(body: Json, model: Claude) -> None:
    thinking = body.get("thinking") or {}
    effort = (body.get("output_config") or {}).get("effort")
    need(effort is None or model.takes_effort, "This model does not support the effort parameter.")
    need(
        effort in (None, "low", "medium", "high", "xhigh", "max"), f"output_config.effort: {effort!r} is not an effort"
    )
    match thinking.get("type"):
        case None | "disabled" | "between_tools":
            pass
        case "enabled":
            need(
                model.takes_budget,
                '"thinking.type.enabled" is not supported for this model. '
                'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
            )
            budget = thinking.get("budget_tokens", 0)
            need(budget >= 1024, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
            need(budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`.")
        case "adaptive":
            need(model.takes_adaptive, "adaptive thinking is not supported on this model")
            need("budget_tokens" not in thinking, "thinking.adaptive.budget_tokens: Extra inputs are not permitted")
        case kind:
            refuse(f"thinking: Input tag {kind!r} does not match any of the expected tags")


def _check_choice(body: Json, model: Claude) -> None:
    choice = body.get("tool_choice") or {}
    need(not choice or body.get("tools"), "tool_choice may only be specified while providing tools")
    if choice.get("type") not in ("any", "tool"):
        return
    need(not model.refuses_force, f"tool_choice: {choice['type']} is not supported for this model.")
    is_extended = (body.get("thinking") or {}).get("type") == "enabled"
    need(not is_extended, "Thinking may not be enabled when tool_choice forces tool use.")
    names = [tool["name"] for tool in body["tools"]]
    need(choice["type"] == "any" or choice.get("name") in names, f"Tool {choice.get('name')!r} not found in tools")


def _check_messages(body: Json) -> None:
    messages = body["messages"]
    need(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    for place, message in enumerate(messages):
        need(message["role"] in ("user", "assistant"), f"messages.{place}.role: Input should be 'user' or 'assistant'")
        before = messages[place - 1]["role"] if place else "assistant"
        need(message["role"] != before, 'messages: roles must alternate between "user" and "assistant"')
        for inner, block in enumerate(blocks(message)):
            _check_block(block, f"messages.{place}.content.{inner}")
        need(blocks(message), f"messages.{place}: all messages must have non-empty content")
    need(
        messages[-1]["role"] == "user",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    _check_pairs(messages)
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            _check_replay(body, place, latest=place == len(messages) - 2)


def _check_block(block: Json, place: str) -> None:
    kinds = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result")
    need(block.get("type") in kinds, f"{place}: Input tag {block.get('type')!r} does not match any of {kinds}")
    if block["type"] == "text":
        need(block["text"], "messages: text content blocks must be non-empty")
        need(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
    if block["type"] == "tool_use":
        need(isinstance(block.get("input"), dict), f"{place}.tool_use.input: Input should be a valid dictionary")


def _check_pairs(messages: list[Json]) -> None:
    pending: set[str] = set()
    for place, message in enumerate(messages):
        found = [block for block in blocks(message) if block["type"] == "tool_result"]
        for inner, result in enumerate(found):
            need(
                result.get("tool_use_id") in pending,
                f"messages.{place}.content.{inner}: unexpected `tool_use_id` "
                f"found in `tool_result` blocks: {result.get('tool_use_id')}. Each `tool_result` block must have a "
                "corresponding `tool_use` block in the previous message.",
            )
            pending.discard(result["tool_use_id"])
        need(
            not pending,
            f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(sorted(pending))}. Each `tool_use` block must have a corresponding `tool_result` block "
            "in the next message.",
        )
        leads = all(block["type"] == "tool_result" for block in blocks(message)[: len(found)])
        need(leads, f"messages.{place}: `tool_result` blocks must come first in a user message")
        used = [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
        need(len(set(used)) == len(used), f"messages.{place}: `tool_use` ids must be unique")
        pending = set(used)


def _check_replay(body: Json, place: int, *, latest: bool) -> None:
    """Thinking comes back first, word for word, with its signature."""
    found = blocks(body["messages"][place])
    bound = binding(body, body["messages"][:place])
    drops = (body.get("thinking") or {}).get("block_binding", {}).get("prefix_mismatch_behavior") == "drop_block"
    for inner, block in enumerate(found):
        if block["type"] == "thinking":
            shown = f"messages.{place}.content.{inner}"
            known = signature(str(block.get("thinking")), bound) == block.get("signature")
            any_prefix = str(block.get("signature", "")).startswith(sign("thinking", str(block.get("thinking"))))
            need(known or (drops and any_prefix), f"{shown}: Invalid `signature` in `thinking` block")
    last = found[-1]["type"]
    need(last != "thinking", f"messages.{place}: The final block in an assistant message cannot be `thinking`.")
    thought = any(str(block.get("id", "")).startswith("toolu_after_thinking") for block in found)
    is_extended = (body.get("thinking") or {}).get("type") == "enabled"
    if (thought or (is_extended and latest)) and is_thinking(body):
        first = found[0]["type"]
        need(
            first in ("thinking", "redacted_thinking"),
            f"messages.{place}.content.0.type: Expected `thinking` or "
            f"`redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks).",
        )


def signature(thinking: str, bound: str) -> str:
    """Signs the words shown, and for a bound model the prefix."""
    return sign("thinking", thinking) + sign("prefix", thinking, bound)


def _check_cache(body: Json) -> None:
    marks = int("cache_control" in body)
    holders = [*(body.get("tools") or []), *system_blocks(body)]
    for message in body["messages"]:
        for block in blocks(message):
            need(
                block["type"] != "thinking" or "cache_control" not in block, "thinking: cache_control is not permitted"
            )
            holders.append(block)
    marks += sum("cache_control" in block for block in holders)
    need(
        marks <= MOST_BREAKPOINTS,
        f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {marks}.",
    )


def system_blocks(body: Json) -> list[Json]:
    system = body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)

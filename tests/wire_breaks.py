"""Wrong clients, one for every rule of every wire: each takes a right request of the loop and breaks one thing in it.

The requests are the last of a thinking tool loop: think, call twice at once; think, call once; now the third turn.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.wire_runs import CHAT_GPT, CLAUDE, GEMINI, GPT, NEW_CLAUDE, OLD_CLAUDE, OLD_GEMINI, OLLAMA, VLLM

Body = dict


@dataclass(frozen=True)
class Break:
    """One wrong client."""

    model: str
    rule: str
    change: Callable[[Body], object]
    """In place."""
    says: str
    """Part of the refusal."""
    status: int = 400
    headers: dict[str, str] = field(default_factory=dict)
    """Other headers; an empty value takes one away."""


def put(*path: object, to: object) -> Callable[[Body], None]:
    """Set the value at a path."""

    def change(body: Body) -> None:
        at: object = body
        for step in path[:-1]:
            at = at[step] if not isinstance(at, dict) else at.setdefault(step, {})
        at[path[-1]] = to

    return change


def drop(*path: object) -> Callable[[Body], None]:
    """Take away what is at a path."""

    def change(body: Body) -> None:
        at: object = body
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def keep(key: str, holds: Callable[[Body], object]) -> Callable[[Body], None]:
    """Keep those entries of a list that hold something."""

    def change(body: Body) -> None:
        body[key] = [one for one in body[key] if holds(one)]

    return change


def _swap(items: list, a: int, b: int) -> None:
    items[a], items[b] = items[b], items[a]


def _mark_all(body: Body) -> None:
    for tool in body["tools"]:
        tool["cache_control"] = {"type": "ephemeral"}


USER = {"role": "user", "content": "And another thing."}
M = "messages"

ANTHROPIC = (
    Break(OLD_CLAUDE, "thinking comes back before its tool_use", drop(M, 3, "content", 0), "Expected `thinking`"),
    Break(CLAUDE, "under adaptive thinking too", drop(M, 3, "content", 0), "Expected `thinking`"),
    Break(CLAUDE, "in every turn", drop(M, 1, "content", 0), "Expected `thinking`"),
    Break(CLAUDE, "thinking comes first", lambda b: _swap(b[M][3]["content"], 0, 1), "Expected `thinking`"),
    Break(CLAUDE, "a signature is untouched", put(M, 1, "content", 0, "signature", to="forged"), "Invalid `signature`"),
    Break(CLAUDE, "thinking is untouched", put(M, 1, "content", 0, "thinking", to="No."), "Invalid `signature`"),
    Break(CLAUDE, "parallel calls are all answered", drop(M, 2, "content", 1), "without `tool_result` blocks"),
    Break(
        CLAUDE, "no result without a call", put(M, 4, "content", 0, "tool_use_id", to="toolu_x"), "unexpected `tool_u"
    ),
    Break(
        CLAUDE, "results come first", lambda b: b[M][4]["content"].insert(0, {"type": "text", "text": "So"}), "first"
    ),
    Break(CLAUDE, "the user begins", drop(M, 0), 'first message must use the "user" role'),
    Break(CLAUDE, "roles alternate", lambda b: b[M].insert(1, USER), "roles must alternate"),
    Break(CLAUDE, "the user ends", drop(M, 4), "does not support assistant message prefill"),
    Break(CLAUDE, "no text is empty", put(M, 1, "content", 1, "text", to=""), "must be non-empty"),
    Break(CLAUDE, "no text is blank", put(M, 1, "content", 1, "text", to=" \n"), "non-whitespace"),
    Break(CLAUDE, "arguments are an object", put(M, 1, "content", 2, "input", to="{}"), "valid dictionary"),
    Break(CLAUDE, "no temperature", put("temperature", to=1.0), "`temperature` is deprecated"),
    Break(CLAUDE, "no top_p", put("top_p", to=0.9), "`top_p` is deprecated"),
    Break(
        OLD_CLAUDE,
        "no temperature with thinking before that",
        put("temperature", to=0.0),
        "may only be set to 1 when thinking is enabled",
        headers={"anthropic-version": "2023-06-01"},
    ),
    Break(OLD_CLAUDE, "the budget fits the cap", put("max_tokens", to=16_000), "`max_tokens` must be greater than"),
    Break(
        OLD_CLAUDE, "the budget is not tiny", put("thinking", "budget_tokens", to=512), "greater than or equal to 1024"
    ),
    Break(
        OLD_CLAUDE, "no adaptive thinking", put("thinking", to={"type": "adaptive"}), "adaptive thinking is not supp"
    ),
    Break(OLD_CLAUDE, "no effort", put("output_config", to={"effort": "high"}), "not support the effort parameter"),
    Break(
        NEW_CLAUDE, "no budget", put("thinking", to={"type": "enabled", "budget_tokens": 2000}), "thinking.type.adapt"
    ),
    Break(
        NEW_CLAUDE, "thinking is bound to what came before", put("system", 0, "text", to="Be kind."), "Invalid `signa"
    ),
    Break(OLD_CLAUDE, "no forced tool with thinking", put("tool_choice", to={"type": "any"}), "forces tool use"),
    Break(
        NEW_CLAUDE, "no forced tool at all", put("tool_choice", to={"type": "tool", "name": "submit"}), "not supported"
    ),
    Break(CLAUDE, "a forced tool exists", put("tool_choice", to={"type": "tool", "name": "x"}), "not found in tools"),
    Break(CLAUDE, "a cap is named", drop("max_tokens"), "max_tokens: Field required"),
    Break(CLAUDE, "the cap is the model's", put("max_tokens", to=500_000), "the maximum for claude-opus-4-6"),
    Break(CLAUDE, "four cache breakpoints at most", _mark_all, "maximum of 4 blocks with cache_control"),
    Break(
        CLAUDE, "none on thinking", put(M, 1, "content", 0, "cache_control", to={"type": "ephemeral"}), "not permitted"
    ),
    Break(CLAUDE, "a schema is an object", put("tools", 0, "input_schema", "type", to="string"), "should be 'object'"),
    Break(CLAUDE, "nothing composed at the top", put("tools", 0, "input_schema", "anyOf", to=[]), "top level"),
    Break(CLAUDE, "a tool's name is plain", put("tools", 0, "name", to="read features"), "should match pattern"),
    Break(CLAUDE, "no strange fields", put("seed", to=1), "seed: Extra inputs are not permitted"),
    Break(CLAUDE, "the model exists", put("model", to="gpt-5"), "model: gpt-5", 404),
    Break(CLAUDE, "a key", lambda _: None, "x-api-key header is required", 401, {"authorization": ""}),
    Break(CLAUDE, "a version", lambda _: None, "anthropic-version", headers={"anthropic-version": ""}),
)


def kind(*kinds: str) -> Callable[[Body], bool]:
    return lambda item: item.get("type") not in kinds


def _first(body: Body, wanted: str) -> Body:
    return next(item for item in body["input"] if item.get("type") == wanted)


def _drop_first(body: Body, wanted: str) -> None:
    body["input"].remove(_first(body, wanted))


OPENAI = (
    Break(
        GPT, "a function_call has its reasoning", keep("input", kind("reasoning")), "without its required 'reasoning'"
    ),
    Break(GPT, "and every one", lambda b: _drop_first(b, "reasoning"), "without its required 'reasoning' item: 'rs_"),
    Break(
        GPT,
        "reasoning has what follows it",
        keep("input", kind("function_call", "function_call_output", "message")),
        "without its required following item",
    ),
    Break(
        GPT, "reasoning is sent sealed", lambda b: _first(b, "reasoning").pop("encrypted_content"), "not persisted", 404
    ),
    Break(
        GPT, "its seal is untouched", lambda b: _first(b, "reasoning").update(encrypted_content="x"), "not be verified"
    ),
    Break(
        GPT, "parallel calls are all answered", lambda b: _drop_first(b, "function_call_output"), "No tool output found"
    ),
    Break(
        GPT, "no output without a call", lambda b: _first(b, "function_call_output").update(call_id="x"), "No tool call"
    ),
    Break(GPT, "no temperature", put("temperature", to=0.0), "Unsupported parameter: 'temperature'"),
    Break(GPT, "an effort that exists", put("reasoning", "effort", to="xhigh"), "Unsupported value: 'xhigh'"),
    Break(GPT, "no summary without verification", put("reasoning", "summary", to="auto"), "must be verified"),
    Break(GPT, "a cap that is not tiny", put("max_output_tokens", to=8), "below minimum value"),
    Break(GPT, "no strange items", lambda b: b["input"].append({"type": "thinking"}), "Invalid value: 'thinking'"),
    Break(
        GPT,
        "a strict schema is closed",
        lambda b: b["tools"][0].update(strict=True) or b["tools"][0]["parameters"].pop("additionalProperties"),
        "'additionalProperties' is required",
    ),
    Break(
        GPT,
        "a strict schema requires all",
        lambda b: b["tools"][0].update(strict=True) or b["tools"][0]["parameters"].update(required=[]),
        "'required' is required",
    ),
    Break(
        GPT, "arrays have items", lambda b: b["tools"][0]["parameters"]["properties"]["positions"].pop("items"), "items"
    ),
    Break(GPT, "a tool's name is plain", put("tools", 0, "name", to="read.features"), "should match pattern"),
    Break(GPT, "a forced tool exists", put("tool_choice", to={"type": "function", "name": "x"}), "not in 'tools'"),
    Break(GPT, "a key", lambda _: None, "API key", 401, {"authorization": ""}),
    Break(CHAT_GPT, "parallel calls are all answered", drop(M, 3), "must be followed by tool messages"),
    Break(
        CHAT_GPT, "no answer without a call", put(M, 3, "tool_call_id", to="x"), "must be a response to a preceeding"
    ),
    Break(CHAT_GPT, "arguments are text", put(M, 2, "tool_calls", 0, "function", "arguments", to={}), "not a string"),
    Break(CHAT_GPT, "no effort", put("reasoning_effort", to="high"), "'reasoning_effort' is not supported"),
    Break(CHAT_GPT, "no choice without tools", drop("tools"), "'tool_choice' is only allowed"),
    Break(VLLM, "parallel calls are all answered", drop(M, 3), "must be followed by tool messages"),
    Break(VLLM, "roles alternate", lambda b: b[M].insert(1, USER), "roles must alternate"),
    Break(VLLM, "the user begins", drop(M, 1), "roles must alternate"),
    Break(
        VLLM, "the system comes first", lambda b: b[M].append({"role": "system", "content": "x"}), "at the beginning"
    ),
    Break(OLLAMA, "parallel calls are all answered", drop(M, 3), "must be followed by tool messages"),
)

C, P = "contents", "parts"
_DECLARED = ("tools", 0, "functionDeclarations", 0)


def _unsign(body: Body, turn: int) -> None:
    for part in body[C][turn][P]:
        part.pop("thoughtSignature", None)


def _sign(body: Body, turn: int) -> None:
    next(part for part in body[C][turn][P] if "thoughtSignature" in part)["thoughtSignature"] = "Zm9yZ2Vk"


def _plain_schema(body: Body) -> None:
    """The older field for parameters, which knows fewer keywords."""
    for function in body["tools"][0]["functionDeclarations"]:
        function["parameters"] = function.pop("parameters_json_schema")


GOOGLE = (
    Break(GEMINI, "a call has its signature", lambda b: _unsign(b, 3), "missing a thought_signature"),
    Break(GEMINI, "and every step since the user spoke", lambda b: _unsign(b, 1), "missing a thought_signature"),
    Break(GEMINI, "a signature is untouched", lambda b: _sign(b, 1), "Corrupted thought signature"),
    Break(GEMINI, "parallel calls are all answered", drop(C, 2, P, 1), "number of function response parts"),
    Break(
        GEMINI, "no response without a call", lambda b: b[C][4][P].append(b[C][4][P][0]), "number of function response"
    ),
    Break(GEMINI, "the user begins", drop(C, 0), "start with a user turn"),
    Break(GEMINI, "roles alternate", lambda b: b[C].insert(0, b[C][0]), "alternate between user and model"),
    Break(GEMINI, "the user ends", drop(C, 4), "end with a user role"),
    Break(GEMINI, "roles are user and model", put(C, 1, "role", to="assistant"), "valid role: user, model"),
    Break(GEMINI, "no content is empty", put(C, 0, P, to=[]), "must not be empty"),
    Break(GEMINI, "a response is an object", put(C, 4, P, 0, "functionResponse", "response", to="x"), "Proto field"),
    Break(GEMINI, "no foreign schema keywords", _plain_schema, 'Unknown name "additionalProperties"'),
    Break(
        GEMINI, "a schema is an object", put(*_DECLARED, "parameters_json_schema", to={"type": "string"}), "'object'"
    ),
    Break(
        GEMINI,
        "level or budget",
        put("generationConfig", "thinkingConfig", "thinkingBudget", to=128),
        "You can only set one of",
    ),
    Break(
        GEMINI,
        "a level that exists",
        put("generationConfig", "thinkingConfig", "thinking_level", to="MEDIUM"),
        "MEDIUM",
    ),
    Break(
        OLD_GEMINI, "no level", put("generationConfig", "thinkingConfig", to={"thinkingLevel": "HIGH"}), "not supported"
    ),
    Break(
        OLD_GEMINI, "a budget in range", put("generationConfig", "thinkingConfig", "thinking_budget", to=0), "invalid"
    ),
    Break(
        GEMINI,
        "names only where a call is forced",
        put("toolConfig", "functionCallingConfig", "allowedFunctionNames", to=["submit"]),
        "only be set when the function calling mode is ANY",
    ),
    Break(
        GEMINI,
        "a forced tool exists",
        put("toolConfig", "functionCallingConfig", to={"mode": "ANY", "allowedFunctionNames": ["x"]}),
        "should be a subset",
    ),
    Break(GEMINI, "a key", lambda _: None, "unregistered callers", 403, {"x-goog-api-key": ""}),
)

BREAKS = (*ANTHROPIC, *OPENAI, *GOOGLE)

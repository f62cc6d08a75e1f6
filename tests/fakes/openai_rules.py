"""The rules that OpenAI's two wires share, and those of Responses, as the errors word them."""

import re

from tests.fakes.wire import Json, Request, check_name, check_object, need, sign, walk

CONTEXT = 400_000
LEAST_OUTPUT = 16


def reasons(model: str) -> bool:
    """Whether a model of OpenAI's own reasons."""
    return re.match(r"o\d|gpt-(?:[5-9]|\d\d)(?!.*-chat)", model) is not None


def efforts(model: str) -> tuple[str, ...]:
    """What `reasoning.effort` may be."""
    if "-pro" in model:
        return ("high",)
    later = re.match(r"gpt-5\.(\d)", model)
    if later:
        return ("none", "low", "medium", "high", *(("xhigh",) if int(later.group(1)) >= 2 else ()))
    return ("minimal", "low", "medium", "high") if model.startswith("gpt-5") else ("low", "medium", "high")


def check_key(request: Request) -> None:
    need(request.headers.get("authorization", "").startswith("Bearer "), "You didn't provide an API key.", 401)


def check_sampling(body: Json, thinks: bool) -> None:
    """Reasoning models take no sampling parameters."""
    for name in ("temperature", "top_p", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty"):
        need(not thinks or name not in body, f"Unsupported parameter: '{name}' is not supported with this model.")


def check_effort(effort: object, model: str, name: str, thinks: bool) -> None:
    need(effort is None or thinks, f"Unsupported parameter: '{name}' is not supported with this model.")
    need(
        effort is None or effort in efforts(model),
        f"Unsupported value: {effort!r} is not supported with the "
        f"'{model}' model. Supported values are: {', '.join(efforts(model))}.",
    )


def check_function(tool: Json, place: str) -> None:
    """A function's name and schema; strict ones are closed and require everything."""
    check_name(tool.get("name"), f"{place}.name")
    schema = tool.get("parameters")
    check_object(schema, f"Invalid schema for function '{tool.get('name')}'")
    assert isinstance(schema, dict)
    if not tool.get("strict"):
        return
    for path, inner in walk(schema):
        if inner.get("type") == "object":
            where = f"Invalid schema for function '{tool['name']}': In {path}"
            need(inner.get("additionalProperties") is False, f"{where}, 'additionalProperties' is required to be false")
            need(
                set(inner.get("properties") or {}) == set(inner.get("required") or []),
                f"{where}, 'required' is required to include every key in properties",
            )


def sealed(item_id: str) -> str:
    """The encrypted content of a reasoning item."""
    return f"gAAA{sign('reasoning', item_id)}"


def check_responses(request: Request) -> None:
    """Refuse what Responses would refuse."""
    check_key(request)
    body = request.body
    need(body.get("model"), "Missing required parameter: 'model'.")
    need(body.get("input"), "Missing required parameter: 'input'.")
    thinks = reasons(body["model"])
    check_sampling(body, thinks)
    reasoning = body.get("reasoning") or {}
    check_effort(reasoning.get("effort"), body["model"], "reasoning.effort", thinks)
    need(
        not reasoning.get("summary"),
        "Your organization must be verified to generate reasoning summaries.",
        code="unsupported_value",
    )
    need(
        body.get("max_output_tokens", LEAST_OUTPUT) >= LEAST_OUTPUT,
        f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}.",
        code="integer_below_min_value",
    )
    for place, tool in enumerate(body.get("tools") or []):
        if tool.get("type") == "function":
            check_function(tool, f"tools[{place}]")
    choice = body.get("tool_choice")
    names = [tool.get("name") for tool in body.get("tools") or []]
    need(not isinstance(choice, dict) or choice.get("name") in names, "Tool choice names a function not in 'tools'.")
    if isinstance(body["input"], list):
        _check_items(body["input"], stored=body.get("store", True))


def _check_items(items: list[Json], *, stored: bool) -> None:
    calls: dict[str, bool] = {}
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        kinds = ("message", "reasoning", "function_call", "function_call_output")
        need(kind in kinds, f"Invalid value: '{kind}'. Supported values are: {kinds}.")
        if kind == "message":
            need(item.get("role") in ("user", "assistant", "system", "developer"), f"input[{place}]: invalid role")
        elif kind == "reasoning":
            _check_reasoning(item, items[place + 1 :], stored=stored)
        elif kind == "function_call":
            calls[item["call_id"]] = False
            _check_paired(item, items[:place])
        else:
            need(
                item.get("call_id") in calls,
                f"No tool call found for function call output with call_id {item.get('call_id')}.",
            )
            need(isinstance(item.get("output"), str | list), f"input[{place}].output: expected text")
            calls[item["call_id"]] = True
    open_calls = [call_id for call_id, answered in calls.items() if not answered]
    need(not open_calls, f"No tool output found for function call {', '.join(open_calls)}.")


def _check_reasoning(item: Json, after: list[Json], *, stored: bool) -> None:
    item_id = item.get("id", "")
    sent = item.get("encrypted_content")
    need(
        stored or sent,
        f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false.",
        404,
    )
    need(
        sent in (None, sealed(item_id)),
        f"The encrypted content for item {item_id} could not be verified.",
        code="invalid_encrypted_content",
    )
    needed = bool(after) and after[0].get("type") in ("function_call", "message") and after[0].get("role") != "user"
    need(needed, f"Item '{item_id}' of type 'reasoning' was provided without its required following item.")


def _check_paired(item: Json, before: list[Json]) -> None:
    """A function call that the model made after reasoning names its reasoning item in its own id."""
    found = re.fullmatch(r"fc_r([0-9a-f]{24})_\d+", item.get("id") or item["call_id"].replace("call_", "fc_", 1))
    if found is not None:
        needed = f"rs_{found.group(1)}"
        need(
            any(other.get("id") == needed for other in before),
            f"Item '{item.get('id')}' of type 'function_call' was "
            f"provided without its required 'reasoning' item: '{needed}'.",
        )

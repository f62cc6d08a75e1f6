"""The rules of Gemini generateContent, as its errors word them."""

import base64
import re
from collections.abc import Mapping

from tests.fakes.wire import Json, check_name, check_object, need, sign, walk

CONTEXT = 1_048_576
_KEYWORDS = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
}


_FREE = ("args", "response", "properties", "parametersJsonSchema")
"""Below these keys names are the user's own."""


def camel(value: object) -> object:
    """A body with its fields in one spelling: the service takes `thinking_level` for `thinkingLevel`."""
    if isinstance(value, list):
        return [camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found.group(1).upper(), key): inner for key, inner in value.items()}
    return {key: inner if key in _FREE else camel(inner) for key, inner in named.items()}


def version(model: str) -> tuple[int, int]:
    found = re.match(r"gemini-(\d+)(?:\.(\d+))?", model)
    need(found, f"models/{model} is not found for API version v1beta", 404)
    assert found is not None
    return int(found.group(1)), int(found.group(2) or 0)


def thinks(model: str) -> bool:
    return version(model) >= (2, 5)


def levels(model: str) -> tuple[str, ...]:
    """Thinking levels of a model from Gemini 3 on."""
    if "flash" in model:
        return ("MINIMAL", "LOW", "MEDIUM", "HIGH")
    return ("LOW", "HIGH") if version(model) == (3, 0) else ("LOW", "MEDIUM", "HIGH")


def signature(token: str) -> str:
    return base64.b64encode(f"{token}.{sign('thought', token)}".encode()).decode()


def _is_signed(text: str) -> bool:
    try:
        token, _, _ = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_")).decode().partition(".")
    except ValueError:
        return False
    return signature(token).replace("+", "-").replace("/", "_") == text.replace("+", "-").replace("/", "_")


def functions(body: Json) -> list[Json]:
    return [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]


def config(body: Json) -> Json:
    return body.get("generationConfig") or {}


def calling(body: Json) -> Json:
    return (body.get("toolConfig") or {}).get("functionCallingConfig") or {}


def check(headers: Mapping[str, str], body: Json, model: str) -> None:
    """Refuse what the service would refuse."""
    need(headers.get("x-goog-api-key"), "Method doesn't allow unregistered callers.", 403)
    need(body.get("contents"), "* GenerateContentRequest.contents: contents is not specified")
    _check_thinking(config(body).get("thinkingConfig") or {}, model)
    for place, function in enumerate(functions(body)):
        _check_function(function, f"tools[0].function_declarations[{place}]")
    named = calling(body).get("allowedFunctionNames") or []
    known = [function["name"] for function in functions(body)]
    need(set(named) <= set(known), f"allowed_function_names {named} should be a subset of {known}")
    need(
        not named or calling(body).get("mode") in ("ANY", "VALIDATED"),
        "allowed_function_names should only be set when the function calling mode is ANY",
    )
    _check_contents(body["contents"])
    if version(model) >= (3, 0):
        _check_signatures(body["contents"])


def _check_thinking(thinking: Json, model: str) -> None:
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    need(not thinking or thinks(model), "Thinking is not enabled for this model.")
    need(level is None or budget is None, "You can only set one of thinking budget and thinking level.")
    if level is not None:
        need(version(model) >= (3, 0), "Thinking level is not supported for this model.")
        need(
            level in levels(model),
            f"Thinking level {level} is not supported for this model. Please retry with other thinking level.",
        )
    if budget is not None and budget != -1:
        low, high = (128, 32_768) if "-pro" in model else (0, 24_576)
        need(
            low <= budget <= high,
            f"The thinking budget {budget} is invalid. Please choose a value between {low} and {high}.",
        )


def _check_function(function: Json, place: str) -> None:
    check_name(function.get("name"), place)
    if "parametersJsonSchema" in function:
        check_object(function["parametersJsonSchema"], place)
        return
    schema = function.get("parameters")
    if schema is None:
        return
    check_object(schema, place)
    for path, inner in walk(schema, f"{place}.parameters"):
        for keyword in inner:
            need(
                keyword in _KEYWORDS,
                f"Invalid JSON payload received. Unknown name \"{keyword}\" at '{path}': Cannot find field.",
            )
        need(not isinstance(inner.get("type"), list), f"{path}.type: Proto field is not repeating, cannot start list.")


def _names(content: Json, kind: str) -> list[str]:
    return [part[kind]["name"] for part in content.get("parts") or [] if kind in part]


def _check_contents(contents: list[Json]) -> None:
    need(contents[0].get("role", "user") == "user", "Please ensure that multiturn requests start with a user turn.")
    pending: list[str] = []
    before = "model"
    for place, content in enumerate(contents):
        role = content.get("role")
        need(role in ("user", "model"), f"Please use a valid role: user, model. Found {role!r}.")
        need(
            content.get("parts"), f"* GenerateContentRequest.contents[{place}].parts: contents.parts must not be empty."
        )
        answers = _names(content, "functionResponse")
        need(
            sorted(answers) == sorted(pending),
            "Please ensure that the number of function response parts is equal to "
            "the number of function call parts of the function call turn.",
        )
        for part in content["parts"]:
            need(
                any(key in part for key in ("text", "functionCall", "functionResponse", "thought")),
                f"contents[{place}].parts: required oneof field 'data' must have one initialized field",
            )
            response = part.get("functionResponse", {}).get("response", {})
            need(isinstance(response, dict), "function_response.response: Proto field is not repeating")
        need(role != before, "Please ensure that multiturn requests alternate between user and model.")
        pending, before = _names(content, "functionCall"), role
    need(
        not pending and before == "user",
        "Please ensure that single turn requests end with a user role or the role field is empty.",
    )


def _check_signatures(contents: list[Json]) -> None:
    """Since the last text of the user, the first function call of every step carries its signature."""
    start = max(
        (
            place
            for place, content in enumerate(contents)
            if content.get("role") == "user" and any("text" in part for part in content["parts"])
        ),
        default=0,
    )
    for place, content in enumerate(contents):
        for part in content["parts"]:
            if "thoughtSignature" in part:
                need(_is_signed(part["thoughtSignature"]), "Corrupted thought signature.")
        calls = [part for part in content["parts"] if "functionCall" in part]
        need(
            place < start or not calls or "thoughtSignature" in calls[0],
            "Function call is missing a thought_signature "
            "in functionCall parts. This is required for tools to work correctly.",
        )

"""Anthropic Messages: requests to turns, replies to content blocks, whole or streamed."""

import json
from collections.abc import Iterator

from tests.fakes.anthropic_rules import (
    CONTEXT,
    bare,
    binding,
    blocks,
    check,
    is_thinking,
    signature,
    system_blocks,
)
from tests.fakes.bill import PromptCache, Segment, Usage, tokens
from tests.fakes.script import Say, Turn
from tests.fakes.wire import Answer, Json, RefusedError, Request, refuse, retry_header, sse, written

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


def _result_text(block: Json) -> str:
    content = block.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def segments(body: Json) -> list[Segment]:
    """The prompt in the order of the cache: tools, system, messages."""
    found = [Segment(json.dumps(bare(tool)), "cache_control" in tool) for tool in body.get("tools") or []]
    found += [Segment(block["text"], "cache_control" in block) for block in system_blocks(body)]
    for message in body["messages"]:
        for block in blocks(message):
            found.append(Segment(message["role"] + json.dumps(bare(block)), "cache_control" in block))
    if "cache_control" in body:
        found[-1] = Segment(found[-1].text, marked=True)
    return found


class Anthropic:
    """The wire of `anthropic/…`."""

    name = "anthropic"

    def free(self, request: Request) -> Answer | None:
        if not request.path.endswith("/count_tokens"):
            return None
        return Answer.of({"input_tokens": sum(tokens(segment.text) for segment in segments(request.body))})

    def check(self, request: Request) -> Turn:
        check(request)
        body = request.body
        messages = [(message["role"], block) for message in body["messages"] for block in blocks(message)]
        return Turn(
            self.name,
            body["model"],
            sum(message["role"] == "assistant" for message in body["messages"]),
            tuple(tool["name"] for tool in body.get("tools") or []),
            (body.get("tool_choice") or {}).get("name", ""),
            "\n".join(block["text"] for block in system_blocks(body)),
            tuple(block["text"] for role, block in messages if role == "user" and block["type"] == "text"),
            tuple(_result_text(block) for _, block in messages if block["type"] == "tool_result"),
        )

    def usage(self, request: Request, cache: PromptCache, say: Say) -> Usage:
        body, found = request.body, segments(request.body)
        total = sum(tokens(segment.text) for segment in found)
        if say.stop == "overflow" or total > CONTEXT:
            refuse(f"prompt is too long: {max(total, CONTEXT + 1)} tokens > {CONTEXT} maximum")
        calls = "".join(json.dumps(call.arguments) for call in say.calls)
        visible, reasoning = written(say, self._thinks(body), calls)
        return cache.marked(body["model"], found) + Usage(visible=visible, reasoning=reasoning)

    def _thinks(self, body: Json) -> bool:
        # A forced turn under adaptive thinking goes without.
        return is_thinking(body) and (body.get("tool_choice") or {}).get("type") not in ("any", "tool")

    def answer(self, request: Request, say: Say, usage: Usage) -> Answer:
        message = self._message(request, say, usage)
        if request.body.get("stream"):
            return sse(_events(message), named=True)
        for block in message["content"]:
            block.pop("_raw", None)
        return Answer.of(message)

    def _message(self, request: Request, say: Say, usage: Usage) -> Json:
        body, token = request.body, request.sha256[:24]
        content: list[Json] = []
        thinks = self._thinks(body) and bool(say.thought)
        if thinks and say.stop != "refused":
            # Newer models hide their thinking unless a summary is asked for; the signature stands for it.
            shown = say.thought if (body.get("thinking") or {}).get("display") == "summarized" else ""
            signed = signature(shown, binding(body, body["messages"]))
            content.append({"type": "thinking", "thinking": shown, "signature": signed})
        if say.text:
            content.append({"type": "text", "text": say.text})
        for place, call in enumerate(say.calls):
            mark = "after_thinking_" if thinks else ""
            # The service parses what its model wrote; what does not parse reaches a client as an empty object.
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            content.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{mark}{token}{place}",
                    "name": call.name,
                    "input": arguments,
                    "_raw": call.arguments,
                }
            )
        ends = {
            "end": "tool_use" if say.calls else "end_turn",
            "length": "max_tokens",
            "window": "model_context_window_exceeded",
        }
        return {
            "id": f"msg_{token}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": ends.get(say.stop, "refusal"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.uncached,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": usage.written,
            },
        }

    def error(self, refused: RefusedError, retry_after_s: float | None) -> Answer:
        message = refused.message
        if refused.code == "429_day":
            message = (
                "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."
            )
            return self._error(400, message, {})
        return self._error(refused.status, message, retry_header(retry_after_s if refused.status == 429 else None))

    def _error(self, status: int, message: str, headers: dict[str, str]) -> Answer:
        error = {"type": _KINDS[status], "message": message}
        return Answer.of({"type": "error", "error": error, "request_id": "req_1"}, status, headers)


def _events(message: Json) -> Iterator[Json]:
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        match block["type"]:
            case "thinking":
                empty: Json = {"type": "thinking", "thinking": "", "signature": ""}
                deltas: list[Json] = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "tool_use":
                raw = block.pop("_raw")
                empty = {**block, "input": {}}
                text = raw if isinstance(raw, str) else json.dumps(raw)
                deltas = [{"type": "input_json_delta", "partial_json": text}]
            case _:
                empty = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": block["text"]}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}

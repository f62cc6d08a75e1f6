"""OpenAI Responses: items in, items out."""

import json
from itertools import groupby

from tests.fakes.bill import PromptCache, Segment, Usage, tokens
from tests.fakes.faults import FREE
from tests.fakes.openai_rules import CONTEXT, check_responses, reasons, sealed
from tests.fakes.script import Say, Turn
from tests.fakes.wire import Answer, Json, RefusedError, Request, refuse, retry_header, sse, written

_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}


def text_of(content: object) -> str:
    """The text of a message, whole or in parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def openai_error(refused: RefusedError, retry_after_s: float | None) -> Answer:
    """An error as both wires of OpenAI word it."""
    status, message = refused.status, refused.message
    code = "" if refused.code in FREE else refused.code
    kind = "invalid_request_error" if status < 429 else "requests" if status == 429 else "server_error"
    if refused.code == "429_day":
        kind = code = "insufficient_quota"
        message = "You exceeded your current quota, please check your plan and billing details."
        retry_after_s = None
    error = {"message": message, "type": kind, "param": None, "code": code or _CODES.get(status)}
    return Answer.of({"error": error}, status, retry_header(retry_after_s if status == 429 else None))


class Responses:
    """The wire of `openai/gpt-5…` and `openai/o…`."""

    name = "openai"

    def free(self, request: Request) -> Answer | None:
        if not request.path.endswith("/input_tokens"):
            return None
        return Answer.of({"object": "response.input_tokens", "input_tokens": tokens(json.dumps(request.body))})

    def _items(self, body: Json) -> list[Json]:
        given = body["input"]
        return [{"role": "user", "content": given}] if isinstance(given, str) else given

    def check(self, request: Request) -> Turn:
        check_responses(request)
        body, items = request.body, self._items(request.body)
        said = [(item.get("role"), text_of(item.get("content"))) for item in items if "role" in item]
        choice = body.get("tool_choice")
        ours = [item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call") for item in items]
        return Turn(
            self.name,
            body["model"],
            sum(is_model for is_model, _ in groupby(ours)),
            tuple(tool["name"] for tool in body.get("tools") or []),
            choice["name"] if isinstance(choice, dict) else "",
            "\n".join(text for role, text in said if role in ("system", "developer")),
            tuple(text for role, text in said if role == "user"),
            tuple(text_of(item["output"]) for item in items if item.get("type") == "function_call_output"),
        )

    def usage(self, request: Request, cache: PromptCache, say: Say) -> Usage:
        body = request.body
        segments = [Segment(json.dumps(tool)) for tool in body.get("tools") or []]
        segments += [Segment(json.dumps(item)) for item in self._items(body)]
        if say.stop == "overflow" or sum(tokens(segment.text) for segment in segments) > CONTEXT:
            refuse(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                code="context_length_exceeded",
            )
        if say.stop == "prompt_blocked":
            refuse(
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                code="invalid_prompt",
            )
        visible, reasoning = written(say, reasons(body["model"]), "".join(str(call.arguments) for call in say.calls))
        return cache.automatic(body["model"], segments) + Usage(visible=visible, reasoning=reasoning)

    def answer(self, request: Request, say: Say, usage: Usage) -> Answer:
        response = self._response(request, say, usage)
        if not request.body.get("stream"):
            return Answer.of(response)
        started = {**response, "status": "in_progress", "output": []}
        return sse(
            [
                {"type": "response.created", "response": started, "sequence_number": 0},
                {"type": "response.completed", "response": response, "sequence_number": 1},
            ],
            named=True,
        )

    def _response(self, request: Request, say: Say, usage: Usage) -> Json:
        body, token = request.body, request.sha256[:24]
        cut = {"length": "max_output_tokens", "refused": "content_filter"}.get(say.stop)
        is_incomplete = say.stop == "length" or (say.stop == "refused" and not say.text)
        return {
            "id": f"resp_{token}",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "incomplete" if is_incomplete else "completed",
            "incomplete_details": {"reason": cut} if is_incomplete else None,
            "error": None,
            "output": self._output(body, token, say),
            "parallel_tool_calls": True,
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "metadata": {},
            "usage": {
                "input_tokens": usage.read,
                "input_tokens_details": {"cached_tokens": usage.cache_read},
                "output_tokens": usage.written,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.read + usage.written,
            },
        }

    def _output(self, body: Json, token: str, say: Say) -> list[Json]:
        output: list[Json] = []
        thinks = reasons(body["model"]) and bool(say.thought)
        if thinks:
            item: Json = {"type": "reasoning", "id": f"rs_{token}", "summary": []}
            if "reasoning.encrypted_content" in (body.get("include") or []):
                item["encrypted_content"] = sealed(item["id"])
            output.append(item)
        if say.text:
            part = (
                {"type": "refusal", "refusal": say.text}
                if say.stop == "refused"
                else {"type": "output_text", "text": say.text, "annotations": []}
            )
            output.append(
                {"type": "message", "id": f"msg_{token}", "role": "assistant", "status": "completed", "content": [part]}
            )
        for place, call in enumerate(say.calls):
            text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            name = f"{'r' if thinks else ''}{token}_{place}"
            output.append(
                {
                    "type": "function_call",
                    "id": f"fc_{name}",
                    "call_id": f"call_{name}",
                    "name": call.name,
                    "arguments": text,
                    "status": "completed",
                }
            )
        return output

    def error(self, refused: RefusedError, retry_after_s: float | None) -> Answer:
        return openai_error(refused, retry_after_s)

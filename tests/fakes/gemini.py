"""Gemini generateContent: contents of parts in, a candidate out."""

import json
import re

from tests.fakes.bill import PromptCache, Segment, Usage, tokens
from tests.fakes.gemini_rules import CONTEXT, calling, camel, check, functions, signature, thinks, version
from tests.fakes.script import Say, Turn
from tests.fakes.wire import Answer, Json, RefusedError, Request, refuse, retry_header, sse, written

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_ENDS = {"length": "MAX_TOKENS", "refused": "SAFETY", "malformed_call": "MALFORMED_FUNCTION_CALL"}


def _model(request: Request) -> str:
    found = re.search(r"/models/([^:/]+):", request.path)
    return found.group(1) if found else ""


def _body(request: Request) -> Json:
    body = camel(request.body)
    assert isinstance(body, dict)
    return body


def _texts(content: Json | None) -> str:
    return "".join(part.get("text", "") for part in (content or {}).get("parts") or [] if not part.get("thought"))


class Gemini:
    """The wire of `google/…`."""

    name = "google"

    def free(self, request: Request) -> Answer | None:
        if not request.path.endswith(":countTokens"):
            return None
        return Answer.of({"totalTokens": tokens(json.dumps(request.body))})

    def check(self, request: Request) -> Turn:
        model, body = _model(request), _body(request)
        check(request.headers, body, model)
        contents = body["contents"]
        allowed = calling(body).get("allowedFunctionNames") or []
        parts = [part for content in contents for part in content["parts"]]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return Turn(
            self.name,
            model,
            sum(content["role"] == "model" for content in contents),
            tuple(function["name"] for function in functions(body)),
            allowed[0] if allowed else "",
            _texts(body.get("systemInstruction")),
            tuple(_texts(one) for one in contents if one["role"] == "user" and any("text" in p for p in one["parts"])),
            tuple(str(result.get("output", result.get("error", ""))) for result in results),
        )

    def usage(self, request: Request, cache: PromptCache, say: Say) -> Usage:
        body, model = _body(request), _model(request)
        pieces = [body.get("tools"), body.get("systemInstruction"), *body["contents"]]
        segments = [Segment(json.dumps(piece)) for piece in pieces if piece]
        total = sum(tokens(segment.text) for segment in segments)
        if say.stop == "overflow" or total > CONTEXT:
            refuse(
                f"The input token count ({max(total, CONTEXT + 1)}) exceeds the maximum number of tokens allowed "
                f"({CONTEXT})."
            )
        calls = "".join(json.dumps(call.arguments) for call in say.calls)
        visible, reasoning = written(say, self._thinks(body, model), calls)
        return cache.automatic(model, segments) + Usage(visible=visible, reasoning=reasoning)

    def _thinks(self, body: Json, model: str) -> bool:
        thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
        return thinks(model) and thinking.get("thinkingBudget") != 0

    def answer(self, request: Request, say: Say, usage: Usage) -> Answer:
        response = self._response(request, say, usage)
        return sse([response], named=False) if "stream" in request.path else Answer.of(response)

    def _response(self, request: Request, say: Say, usage: Usage) -> Json:
        counts = {
            "promptTokenCount": usage.read,
            "candidatesTokenCount": usage.visible,
            "totalTokenCount": usage.read + usage.written,
            **({"cachedContentTokenCount": usage.cache_read} if usage.cache_read else {}),
            **({"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}),
        }
        base = {"usageMetadata": counts, "modelVersion": _model(request), "responseId": request.sha256[:24]}
        if say.stop == "prompt_blocked":
            return {**base, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        candidate: Json = {"index": 0, "finishReason": _ENDS.get(say.stop, "STOP")}
        parts = self._parts(request, say)
        if say.stop == "malformed_call":
            candidate["finishMessage"] = 'Malformed function call: print(default_api.submit(p_true="?"))'
        if parts and say.stop in ("end", "length"):
            candidate["content"] = {"role": "model", "parts": parts}
        return {**base, "candidates": [candidate]}

    def _parts(self, request: Request, say: Say) -> list[Json]:
        model, token = _model(request), request.sha256[:24]
        parts: list[Json] = []
        thinking = (_body(request).get("generationConfig") or {}).get("thinkingConfig") or {}
        is_thinking = self._thinks(_body(request), model) and bool(say.thought)
        if is_thinking and thinking.get("includeThoughts"):
            parts.append({"thought": True, "text": say.thought})
        if say.text:
            parts.append({"text": say.text})
        for place, call in enumerate(say.calls):
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            part: Json = {"functionCall": {"name": call.name, "args": arguments}}
            if version(model) >= (3, 0):
                part["functionCall"]["id"] = f"{token}{place}"
            if is_thinking and place == 0:
                part["thoughtSignature"] = signature(token)
            parts.append(part)
        if is_thinking and not say.calls and say.text:
            parts[-1]["thoughtSignature"] = signature(token)
        return parts

    def error(self, refused: RefusedError, retry_after_s: float | None) -> Answer:
        status, message = refused.status, refused.message
        error: Json = {"code": status, "message": message, "status": _STATUS[status]}
        if status == 429:
            is_day = refused.code == "429_day"
            span = "PerDay" if is_day else "PerMinute"
            error["message"] = "You exceeded your current quota, please check your plan and billing details."
            violation = {
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
                "quotaId": f"GenerateRequests{span}PerProjectPerModel",
                "quotaValue": "250",
            }
            # Google names the delay in the body only, and a daily quota names seconds too.
            delay = f"{34 if is_day else retry_after_s or 0:g}s"
            error["details"] = [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            ]
        return Answer.of({"error": error}, status, {} if status != 429 else retry_header(None))

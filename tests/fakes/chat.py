"""OpenAI Chat Completions, as OpenAI, vLLM and Ollama speak it, with the rules of each."""

import json
from itertools import pairwise

from tests.fakes.bill import PromptCache, Segment, Usage, tokens
from tests.fakes.openai_rules import check_effort, check_function, check_key, check_sampling, reasons
from tests.fakes.responses import openai_error, text_of
from tests.fakes.script import Say, Turn
from tests.fakes.wire import Answer, Json, RefusedError, Request, need, refuse, sse, written

CONTEXT = {"openai": 128_000, "vllm": 32_768, "ollama": 32_768}


class Chat:
    """The wire of `openai/gpt-4o`, `vllm/…` and `ollama/…`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def free(self, request: Request) -> Answer | None:
        if not request.path.endswith("/models"):
            return None
        model = {
            "id": "model",
            "object": "model",
            "created": 1,
            "owned_by": "fake",
            "max_model_len": CONTEXT[self.name],
        }
        return Answer.of({"object": "list", "data": [model]})

    def _thinks(self, body: Json) -> bool:
        return reasons(body["model"]) if self.name == "openai" else "think" in body["model"]

    def check(self, request: Request) -> Turn:
        body = request.body
        check_key(request)
        need(body.get("model"), "you must provide a model parameter")
        if self.name == "openai":
            check_sampling(body, self._thinks(body))
            check_effort(body.get("reasoning_effort"), body["model"], "reasoning_effort", self._thinks(body))
            need(
                not self._thinks(body) or "max_tokens" not in body,
                "Unsupported parameter: 'max_tokens' is not "
                "supported with this model. Use 'max_completion_tokens' instead.",
            )
        for place, tool in enumerate(body.get("tools") or []):
            check_function(tool.get("function") or {}, f"tools[{place}].function")
        choice = body.get("tool_choice")
        need(choice is None or body.get("tools"), "'tool_choice' is only allowed when 'tools' are specified.")
        _check_messages(body.get("messages") or [])
        if self.name != "openai":
            _check_template(body["messages"])
        return self._turn(body)

    def _turn(self, body: Json) -> Turn:
        said = [(message["role"], text_of(message.get("content"))) for message in body["messages"]]
        choice = body.get("tool_choice")
        return Turn(
            self.name,
            body["model"],
            sum(role == "assistant" for role, _ in said),
            tuple(tool["function"]["name"] for tool in body.get("tools") or []),
            choice["function"]["name"] if isinstance(choice, dict) else "",
            "\n".join(text for role, text in said if role in ("system", "developer")),
            tuple(text for role, text in said if role == "user"),
            tuple(text for role, text in said if role == "tool"),
        )

    def usage(self, request: Request, cache: PromptCache, say: Say) -> Usage:
        body = request.body
        segments = [Segment(json.dumps(piece)) for piece in [*(body.get("tools") or []), *body["messages"]]]
        total, most = sum(tokens(segment.text) for segment in segments), CONTEXT[self.name]
        if say.stop == "overflow" or total > most:
            refuse(
                f"This model's maximum context length is {most} tokens. However, your messages resulted in "
                f"{max(total, most + 1)} tokens.",
                code="context_length_exceeded",
            )
        if say.stop == "prompt_blocked":
            refuse(
                "The response was filtered due to the prompt triggering content management policy.",
                code="content_filter",
            )
        visible, reasoning = written(say, self._thinks(body), "".join(str(call.arguments) for call in say.calls))
        return cache.automatic(f"{self.name}/{body['model']}", segments) + Usage(visible=visible, reasoning=reasoning)

    def answer(self, request: Request, say: Say, usage: Usage) -> Answer:
        body, token = request.body, request.sha256[:24]
        message: Json = {"role": "assistant", "content": say.text or None, "refusal": None}
        if say.stop == "refused" and say.text:
            message = {"role": "assistant", "content": None, "refusal": say.text}
        if self.name != "openai" and self._thinks(body):
            message["reasoning_content"] = say.thought
        calls = [
            {
                "id": f"call_{token}{place}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                },
            }
            for place, call in enumerate(say.calls)
        ]
        if calls:
            message["tool_calls"] = calls
        ends = {
            "end": "tool_calls" if calls else "stop",
            "length": "length",
            "refused": "stop" if say.text else "content_filter",
        }
        choice = {"index": 0, "message": message, "finish_reason": ends.get(say.stop, "stop"), "logprobs": None}
        completion = {
            "id": f"chatcmpl-{token}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": self._usage(usage),
        }
        return (
            sse(_chunks(completion), named=False, end="data: [DONE]\n\n")
            if body.get("stream")
            else Answer.of(completion)
        )

    def _usage(self, usage: Usage) -> Json:
        return {
            "prompt_tokens": usage.read,
            "completion_tokens": usage.written,
            "total_tokens": usage.read + usage.written,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }

    def error(self, refused: RefusedError, retry_after_s: float | None) -> Answer:
        return openai_error(refused, retry_after_s)


def _check_messages(messages: list[Json]) -> None:
    need(messages, "Invalid 'messages': empty array.")
    pending: set[str] = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        need(
            role in ("system", "developer", "user", "assistant", "tool"),
            f"Invalid value: {role!r} for messages[{place}]",
        )
        if role == "tool":
            need(
                message.get("tool_call_id") in pending,
                "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            )
            pending.discard(message["tool_call_id"])
            continue
        need(
            not pending,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(sorted(pending))}",
        )
        calls = message.get("tool_calls") or []
        need(
            role != "assistant" or calls or message.get("content") is not None,
            f"messages[{place}]: content is required",
        )
        for call in calls:
            need(
                isinstance(call["function"]["arguments"], str),
                f"messages[{place}].tool_calls: arguments is not a string",
            )
        pending = {call["id"] for call in calls}
    need(
        not pending,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(sorted(pending))}",
    )


def _check_template(messages: list[Json]) -> None:
    """The chat templates of open models: the system first, then the user, turns in alternation."""
    roles = [message["role"] for message in messages]
    need("system" not in roles[1:], "System message must be at the beginning.")
    spoken = [role for role in roles if role != "system"]
    fine = spoken[0] == "user" and not any(a == b and a != "tool" for a, b in pairwise(spoken))
    need(fine, "Conversation roles must alternate user/assistant/user/assistant/...")


def _chunks(completion: Json) -> list[Json]:
    (choice,) = completion["choices"]
    message = dict(choice["message"])
    for place, call in enumerate(message.get("tool_calls") or []):
        message["tool_calls"][place] = {**call, "index": place}
    base = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    first = {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    last = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    return [first, last, {**base, "choices": [], "usage": completion["usage"]}]

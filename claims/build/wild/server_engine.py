"""A target behind an OpenAI-compatible server, such as vLLM: many requests in flight, every response kept as it comes.

Invariant: response `index` of a prompt is asked for with a seed that is a function of (prompt, index, seed) and kept
under a key that covers model, settings and prompt; a request that failed in passing is repeated, never dropped.

With vLLM and the target's tokenizer at hand a prompt is sent as the token ids that `tools.chat` makes, so that the
target sees exactly what tools will read; otherwise it is sent as messages and the server renders it.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import httpx

from claims.build.wild.completion import Choice, read_choices, read_prompt_ids
from claims.build.wild.engine import Encode, Messages, PromptRefusedError, Response, row_seed
from claims.build.wild.log import AppendLog, Json
from claims.schema import UserError, message_rows
from tools.targets import Sampling

logger = logging.getLogger(__name__)

FORMAT = 1
"""Raise it when a stored response would mean something else than before."""
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSALS = frozenset({400, 413, 422})


@dataclass(frozen=True)
class Server:
    """Where a target is served and how it is asked."""

    url: str
    """Base URL, up to and with `/v1`."""
    model: str
    """The name under which the server has it."""
    dialect: Literal["vllm", "openai"] = "vllm"
    """`openai` sends only what the public protocol has: no top-k, no token ids."""
    per_request: int = 1
    """Responses asked for in one request; vLLM shares the prompt's work between requests anyway."""
    in_flight: int = 64
    """Most requests at a time."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token."""
    tries: int = 8
    """Of one request."""
    wait_s: float = 1.0
    """Before the second try; doubled each time, at most a minute."""
    timeout_s: float = 600.0
    """Longest single try."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Further fields of every request's body."""


class ServerEngine:
    """Responses by way of HTTP."""

    def __init__(
        self,
        server: Server,
        sampling: Sampling,
        log: AppendLog,
        *,
        encode: Encode | None = None,
    ) -> None:
        """Ask `server`, keep responses in `log`.

        Args:
            server: Where and how.
            sampling: Settings of the target.
            log: Of responses.
            encode: The target's tokenizer, if it is at hand.
        """
        self.server = server
        self.sampling = sampling
        self.log = log
        self.encode = encode
        self._client: httpx.AsyncClient | None = None
        self._slots = asyncio.Semaphore(server.in_flight)

    @property
    def thinks(self) -> bool:
        """Whether the target is asked to think."""
        return self.sampling.max_thinking is not None

    @property
    def sends_ids(self) -> bool:
        """Whether prompts are sent as token ids."""
        return self.encode is not None and not self.thinks and self.server.dialect == "vllm"

    def identity(self) -> Mapping[str, object]:
        """Model and settings; the URL is no part of it."""
        limits = {"max_thinking": self.sampling.max_thinking, "max_tokens": self.sampling.max_tokens}
        thinking = limits if self.thinks else None
        rendered = "token ids" if self.sends_ids else "messages"
        served = {"engine": f"openai-compatible ({self.server.dialect})", "weights": f"as served: {self.server.model}"}
        return {**served, "prompts_sent_as": rendered, "thinking": thinking, "extra": dict(self.server.extra)}

    def check(self, prompt: Messages) -> None:
        """Raise `PromptRefusedError` when the roles do not suit the target; its length is for the server to judge."""
        if self.encode is not None:
            try:
                self.encode(prompt, "")
            except UserError as error:
                raise PromptRefusedError(str(error)) from None

    async def draw(self, prompt: Messages, n: int, seed: int) -> tuple[Response, ...]:
        """The first `n` responses of the prompt under `seed`."""
        self.check(prompt)
        key = self._key(prompt, seed)
        missing = [index for index in range(n) if self.log.get(_row_key(key, index)) is None]
        size = self.server.per_request
        jobs = [self._fetch(prompt, key, missing[at : at + size], seed) for at in range(0, len(missing), size)]
        failures = [one for one in await asyncio.gather(*jobs, return_exceptions=True) if one is not None]
        if failures:
            raise failures[0]
        return tuple(self._read(key, index) for index in range(n))

    async def prompt_ids(self, prompt: Messages) -> tuple[int, ...]:
        """Token ids of the prompt, as the server told them or as the tokenizer makes them."""
        row = self.log.get(_row_key(self._key(prompt, None), -1))
        if row is not None and isinstance(row["ids"], list):
            return tuple(row["ids"])
        return self._encoded(prompt, "")

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _key(self, prompt: Messages, seed: int | None) -> str:
        parts = [FORMAT, self.identity(), self.sampling.as_row(), message_rows(prompt), seed]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def _read(self, key: str, index: int) -> Response:
        row = self.log.get(_row_key(key, index))
        assert row is not None, "a response was asked for and not kept"
        ids, reasoning = row["token_ids"], row["reasoning"]
        assert isinstance(ids, list)
        return Response(
            text=str(row["text"]),
            reasoning=None if reasoning is None else str(reasoning),
            token_ids=tuple(ids),
            finished=bool(row["finished"]),
            sampled_ids=bool(row["sampled_ids"]),
        )

    async def _fetch(self, prompt: Messages, key: str, indices: Sequence[int], seed: int) -> None:
        body = self._body(prompt, len(indices), row_seed(key, indices[0], seed))
        async with self._slots:
            answer = await self._post("completions" if self.sends_ids else "chat/completions", body)
        choices = read_choices(answer)
        if len(choices) < len(indices):
            raise UserError(
                f"{self.server.url} was asked for {len(indices)} responses and gave {len(choices)}. "
                "It may not know the field n: use one response a request."
            )
        ids = read_prompt_ids(answer)
        if ids is not None:
            self.log.put(_row_key(self._key(prompt, None), -1), {"ids": list(ids)})
        for index, choice in zip(indices, choices, strict=False):
            self.log.put(_row_key(key, index), self._response(prompt, choice).as_row())

    def _response(self, prompt: Messages, choice: Choice) -> Response:
        if choice.token_ids is not None:
            return Response(choice.text, choice.reasoning, choice.token_ids, choice.finished)
        whole = choice.text if choice.reasoning is None else f"<think>\n{choice.reasoning}\n</think>\n\n{choice.text}"
        n_prompt = len(self._encoded(prompt, ""))
        ids = self._encoded(prompt, whole)[n_prompt:]
        return Response(choice.text, choice.reasoning, ids, choice.finished, sampled_ids=False)

    def _encoded(self, prompt: Messages, response: str) -> tuple[int, ...]:
        if self.encode is None:
            raise UserError(
                f"{self.server.url} tells no token ids (vLLM does when asked with return_token_ids), and the target's "
                "tokenizer is not on this machine. Serve the target with vLLM, or fetch its tokenizer."
            )
        return self.encode(prompt, response)

    def _body(self, prompt: Messages, n: int, seed: int) -> Json:
        settings = self.sampling
        body: Json = {
            "model": self.server.model,
            "n": n,
            "seed": seed,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
        }
        if settings.stop:
            body["stop"] = list(settings.stop)
        if self.sends_ids:
            body["prompt"] = list(self._encoded(prompt, ""))
        else:
            body["messages"] = message_rows(prompt)
        if self.server.dialect == "vllm":
            body |= {"top_k": settings.top_k or -1, "return_token_ids": True}
            if not self.sends_ids:
                body["chat_template_kwargs"] = {"enable_thinking": self.thinks}
            if self.thinks:
                body["thinking_token_budget"] = settings.max_thinking
        return {**body, **self.server.extra}

    async def _post(self, path: str, body: Json) -> Json:
        url = f"{self.server.url.rstrip('/')}/{path}"
        for number in range(1, self.server.tries + 1):
            try:
                answer = await self._http().post(url, json=body)
            except httpx.TransportError as error:
                told, wait = f"{type(error).__name__}: {error}", None
            else:
                if answer.status_code == 200:
                    return _json(answer, url)
                if answer.status_code not in _PASSING:
                    raise _refusal(answer, url)
                told, wait = f"HTTP {answer.status_code}", answer.headers.get("retry-after")
            if number < self.server.tries:
                logger.info("%s: %s; try %d of %d", url, told, number + 1, self.server.tries)
                await asyncio.sleep(_wait_s(self.server.wait_s, number, wait))
        raise UserError(
            f"{url} failed {self.server.tries} times in a row, the last with {told}. Everything received is kept: see "
            "that the server runs, then give the same command again."
        )

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self.server.api_key}"} if self.server.api_key else {}
            limits = httpx.Limits(max_connections=self.server.in_flight)
            # The proxy of the environment is for the outside world; a server of targets is named by its own URL.
            self._client = httpx.AsyncClient(
                headers=headers, timeout=self.server.timeout_s, limits=limits, trust_env=False
            )
        return self._client


def _row_key(key: str, index: int) -> str:
    return hashlib.sha256(f"{key} {index}".encode()).hexdigest()


def _wait_s(first_s: float, number: int, asked: str | None) -> float:
    wait = min(60.0, first_s * 2.0 ** (number - 1))
    if asked is not None and asked.isdigit():
        wait = max(wait, min(300.0, float(asked)))
    return wait


def _json(answer: httpx.Response, url: str) -> Json:
    try:
        found = answer.json()
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{url} answered with something other than JSON: {answer.text[:200]!r}. Check --server.")
    return found


def _refusal(answer: httpx.Response, url: str) -> Exception:
    said = answer.text[:300]
    if answer.status_code in _REFUSALS:
        return PromptRefusedError(f"The server refused the prompt (HTTP {answer.status_code}): {said}")
    return UserError(
        f"{url} answered HTTP {answer.status_code}: {said}. Check --server, the served model's name and the key."
    )

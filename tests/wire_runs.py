"""Runs of the predictor loop over the fakes' wires: the real SDKs, the real loop, a small tool server."""

import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from inspect_ai import Task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample
from inspect_ai.model._providers import _vllm_lora

from agents import provider
from agents.predictors import build_predictor
from agents.prompts import user_message
from agents.solver import ArmSetup, default_max_turns, predict
from claims.schema import Message, Transcript
from tests.fakes import FakeServer, Faults, Received, Script, serving

OLD_CLAUDE, CLAUDE, NEW_CLAUDE = (
    "anthropic/claude-sonnet-4-20250514",
    "anthropic/claude-opus-4-6",
    "anthropic/claude-opus-5-5",
)
GPT, CHAT_GPT = "openai/gpt-5", "openai/gpt-4o"
OLD_GEMINI, GEMINI = "google/gemini-2.5-pro", "google/gemini-3-pro-preview"
VLLM, OLLAMA = "vllm/qwen", "ollama/qwen"
MODELS = (OLD_CLAUDE, CLAUDE, NEW_CLAUDE, GPT, CHAT_GPT, OLD_GEMINI, GEMINI, VLLM, OLLAMA)
"""Every wire, and every generation that is spoken to differently."""
FAMILIES = (CLAUDE, GPT, CHAT_GPT, GEMINI, VLLM)
"""One of every wire."""

CLAIM = "BEHAVIOR: Is it yes?\nBASELINE: 87%.\nINTERVENTION: cut it.\nPREDICTION: 30 points."
LONG = "The quick brown fox jumps over the lazy dog near the old mill. " * 80
"""About 1,300 tokens: long enough to be cached."""


def message_of(prompt: str = LONG, response: str = "hi there") -> str:
    return user_message(Transcript("t1", (Message("user", prompt),), None, response, (0, 1), "test"), CLAIM)


@dataclass(frozen=True)
class Played:
    """What came of one model."""

    sample: EvalSample
    requests: tuple[Received, ...]
    """Its requests for replies, in order."""

    @property
    def prediction(self) -> dict[str, object]:
        return self.sample.metadata["prediction"]

    @property
    def outcome(self) -> object:
        return self.prediction["outcome"] if self.sample.error is None else "error"

    @property
    def problems(self) -> list[str]:
        return [request.problem for request in self.requests if request.problem]


@contextmanager
def wired(script: Script | str, faults: Faults | None = None) -> Iterator[FakeServer]:
    """Fakes that every provider is pointed to, and waits that take no time."""
    with serving(script, faults=faults) as fake, pytest.MonkeyPatch.context() as patch:
        for name, value in fake.env().items():
            patch.setenv(name, value)
        patch.setattr(provider, "FIRST_WAIT_S", 0.001)
        _vllm_lora._vllm_servers.clear()  # remembers where a model's server was
        yield fake


def play(
    fake: FakeServer,
    folder: Path,
    models: Sequence[str] = MODELS,
    *,
    tool_url: str | None = None,
    message: str | None = None,
    calls: int = 5,
    effort: str = "high",
    **options: object,
) -> dict[str, Played]:
    """One claim asked of every model; by name of the model. Options go to Inspect."""
    text = message or message_of()
    arm = ArmSetup("sae" if tool_url else "transcript", tool_url, calls, 4, default_max_turns(calls))
    sample = Sample(id="c1", input=text, metadata={"transcript_id": "t1"})
    tasks = [
        Task(dataset=[sample], solver=predict(arm), name=f"arm{place}", model=build_predictor(model, effort)[0])
        for place, model in enumerate(models)
    ]
    seen = len(fake.requests)
    logs = run_inspect(tasks, display="none", log_dir=str(folder), log_format="json", max_tasks=len(tasks), **options)
    received = list(fake.requests)[seen:]
    played = {}
    for model, log in zip(models, logs, strict=True):
        family, name = model.split("/", 1)
        own = [one for one in received if (one.family, one.model) == (family, name) and not one.free]
        assert log.samples, log.error
        played[model] = Played(log.samples[0], tuple(own))
    return played


def post(
    fake: FakeServer, one: Received, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Send a request again as it was, or changed; status and body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)
    skipped = ("host", "content-length", "accept-encoding", "connection")
    sent = {name: value for name, value in one.headers.items() if name not in skipped} if headers is None else headers
    raw = one.raw if body is None else json.dumps(body).encode()
    connection.request("POST", f"/{one.family}{one.path}", raw, {**sent, "content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text.replace('\\"', '"')


Change = Callable[[dict], object]
"""Breaks one rule in a request body, in place."""

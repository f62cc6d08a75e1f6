"""The investigator over Anthropic's wire: the real SDK against a fake server that enforces the protocol's rules."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from claims.build.wild.investigate import Lab
from claims.build.wild.money import Price, Prices
from claims.build.wild.records import Investigated
from claims.build.wild.roles import Role
from claims.build.wild.study import study
from tests.wild_models import PRICES, Turn, make_lab, replace, report, resample, sailor_prompts

MODEL = "anthropic/claude-opus-4-6"


class FakeAnthropic:
    """Plays the investigator: two experiments in one turn, then the report."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.problems: list[str] = []

    def blocks(self, body: dict) -> list[dict]:
        self.requests.append(body)
        self._check(body["messages"])
        results = [
            block for message in body["messages"] for block in _blocks(message) if block["type"] == "tool_result"
        ]
        thought = {"type": "thinking", "thinking": "Let me see.", "signature": f"signed-{len(results)}"}
        if not results:
            first, second = resample(replace("sailor", "teacher")), resample(replace("weather", "food"))
            calls = [*first.calls, *second.calls]
        else:
            calls = list(report(_turn(results)).calls)
        uses = [
            {"type": "tool_use", "id": f"toolu_{len(results)}_{place}", "name": name, "input": arguments}
            for place, (name, arguments) in enumerate(calls)
        ]
        return [thought, *uses]

    def _check(self, messages: list[dict]) -> None:
        for message, following in zip(messages, [*messages[1:], None], strict=True):
            if message["role"] != "assistant":
                continue
            kinds = [block["type"] for block in _blocks(message)]
            if kinds[0] != "thinking" or not _blocks(message)[0].get("signature"):
                self.problems.append(f"thinking is not replayed before tool_use: {kinds}")
            used = {block["id"] for block in _blocks(message) if block["type"] == "tool_use"}
            answered = {block.get("tool_use_id") for block in _blocks(following)} if following else set()
            if used - answered:
                self.problems.append(f"calls without a result: {used - answered}")


def _blocks(message: dict) -> list[dict]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _turn(results: list[dict]) -> Turn:
    """The conversation as the scripted report reads it."""
    from inspect_ai.model import ChatMessageTool

    texts = ["".join(part["text"] for part in one["content"]) for one in results if one["content"]]
    return Turn([ChatMessageTool(content=text) for text in texts], (), False)


def _events(blocks: list[dict]) -> Iterator[dict]:
    usage = {
        "input_tokens": 50,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 1,
    }
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": []}
    yield {"type": "message_start", "message": {**start, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(blocks):
        if block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {**usage, "output_tokens": 70}}
    yield {"type": "message_stop"}


@contextmanager
def serving(fake: FakeAnthropic) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.split("?")[0].endswith("/count_tokens"):
                self._send(json.dumps({"input_tokens": 10}).encode(), "application/json")
                return
            assert body.get("stream"), "thinking requests are streamed"
            lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in _events(fake.blocks(body))]
            self._send("".join(lines).encode(), "text/event-stream")

        def _send(self, sent: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wired_lab(folder: Path) -> Lab:
    """Scripted models for every role but the investigator, who is Claude."""
    lab = make_lab(folder)
    lab.clerk.roles = {**lab.clerk.roles, "investigator": Role(MODEL, 1000, reasoning_tokens=1024)}
    lab.clerk._models.pop("investigator")
    lab.clerk._given -= {"investigator"}
    lab.clerk.purse.prices = Prices("d", {**PRICES.models, MODEL: Price(5.0, 25.0, 0.5, 6.25)})
    return lab


async def studied(lab: Lab) -> Investigated:
    try:
        return await study(lab, sailor_prompts(1)[0])
    finally:
        await lab.clerk.close()


# The SDK would rather have adaptive thinking; the paper's preset has a budget.
@pytest.mark.filterwarnings("ignore:Using Claude with claude-opus-4-6:UserWarning")
def test_an_investigation_over_the_wire_replays_thinking_answers_every_call_and_is_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeAnthropic()
    with serving(fake) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        lab = wired_lab(tmp_path)
        one = asyncio.run(studied(lab))
        assert fake.problems == []
        assert (one.outcome, len(one.experiments), one.n_turns) == ("filed", 2, 2)
        assert len(fake.requests) == 2
        again = wired_lab(tmp_path)
        assert asyncio.run(studied(again)) == one
        assert len(fake.requests) == 2, "a stored conversation was paid for again"
    entries = [entry for entry in lab.clerk.entries.values() if entry.stage == "investigate"]
    usage = sum((entry.usage for entry in entries[1:]), entries[0].usage)
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (100, 6000, 400, 140)
    # 100 at 5, 6,000 at 0.50, 400 at 6.25 and 140 at 25 dollars a million.
    assert sum(entry.dollars for entry in entries) == pytest.approx((500 + 3000 + 2500 + 3500) / 1e6)

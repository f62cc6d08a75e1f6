"""The engine for OpenAI-compatible servers, against a small fake one over HTTP."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from claims.build.wild.completion import read_choices
from claims.build.wild.engine import PromptRefusedError, Response
from claims.build.wild.log import AppendLog
from claims.build.wild.roles import thinking_sampling
from claims.build.wild.server_engine import Server, ServerEngine
from claims.schema import Message, UserError
from tools.target_types import Sampling

PROMPT = (Message("user", "Hi"),)
SAMPLING = Sampling(temperature=1.0, top_k=20, top_p=0.95, max_tokens=16)
Answer = tuple[int, object, dict[str, str]]


class Fake:
    """What the server was sent, and what it says."""

    def __init__(self, say: Callable[["Fake", str, dict], Answer]) -> None:
        self.say = say
        self.bodies: list[dict] = []
        self.lock = threading.Lock()
        self.running = self.most_running = 0
        self.gate = threading.Barrier(1)


@contextmanager
def serving(fake: Fake) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with fake.lock:
                fake.bodies.append(body)
                fake.running += 1
                fake.most_running = max(fake.most_running, fake.running)
            status, answer, headers = fake.say(fake, self.path, body)
            with fake.lock:
                fake.running -= 1
            if status == 0:
                self.close_connection = True
                self.connection.close()
                return
            sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(sent))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def choice(body: dict, index: int) -> dict:
    """A chat choice as vLLM tells it: ids end with the token that ended it."""
    text = f"seed {body['seed']} index {index}"
    return {
        "index": index,
        "message": {"role": "assistant", "content": text, "reasoning": None},
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": [10, body["seed"] % 1000, index, 2],
    }


def chat(_: Fake, path: str, body: dict) -> Answer:
    if path == "/v1/completions":
        rows = [
            {"index": index, "text": "t", "finish_reason": "length", "token_ids": [7, 8], "prompt_token_ids": [1, 5]}
            for index in range(body["n"])
        ]
        return 200, {"choices": rows}, {}
    rows = [choice(body, index) for index in range(body["n"])]
    return 200, {"choices": rows[::-1], "prompt_token_ids": [1, 3, 4]}, {}


def engine(url: str, folder: Path, **changed: object) -> ServerEngine:
    options = {name: changed.pop(name) for name in ("encode",) if name in changed}
    sampling = changed.pop("sampling", SAMPLING)
    server = Server(url, "m", **{"wait_s": 0.0, **changed})
    return ServerEngine(server, sampling, AppendLog(folder / "responses"), **options)


def drawn(one: ServerEngine, n: int = 4, seed: int = 0, prompt: tuple[Message, ...] = PROMPT) -> tuple[Response, ...]:
    async def draw() -> tuple[Response, ...]:
        try:
            return await one.draw(prompt, n, seed)
        finally:
            await one.close()

    return asyncio.run(draw())


def test_responses_come_with_the_ids_that_were_sampled_and_a_seed_each(tmp_path: Path) -> None:
    fake = Fake(chat)
    with serving(fake) as url:
        one = engine(url, tmp_path)
        responses = drawn(one)
    assert len({body["seed"] for body in fake.bodies}) == 4
    assert all(0 <= body["seed"] < 2**31 for body in fake.bodies)
    body = fake.bodies[0]
    assert (body["n"], body["top_k"], body["top_p"], body["temperature"], body["max_tokens"]) == (1, 20, 0.95, 1.0, 16)
    assert body["return_token_ids"] is True
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert responses[0].token_ids[0] == 10
    assert 2 not in responses[0].token_ids[2:], "the token that ended the response is not part of it"
    assert all(response.sampled_ids for response in responses)
    assert asyncio.run(one.prompt_ids(PROMPT)) == (1, 3, 4)


def test_only_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    fake = Fake(chat)
    with serving(fake) as url:
        first = drawn(engine(url, tmp_path), 3)
        more = drawn(engine(url, tmp_path), 5)
        again = drawn(engine(url, tmp_path), 5)
        other = drawn(engine(url, tmp_path), 5, seed=1)
    assert more[:3] == first
    assert again == more
    assert len(fake.bodies) == 3 + 2 + 0 + 5
    assert not set(other) & set(more)


def test_several_responses_can_share_a_request_and_come_in_order(tmp_path: Path) -> None:
    fake = Fake(chat)
    with serving(fake) as url:
        responses = drawn(engine(url, tmp_path, per_request=4), 6)
    assert sorted(body["n"] for body in fake.bodies) == [2, 4]
    assert [response.text.split()[-1] for response in responses] == ["0", "1", "2", "3", "0", "1"]


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_passing_failures_are_tried_again(tmp_path: Path, status: int) -> None:
    def flaky(fake: Fake, path: str, body: dict) -> Answer:
        return (status, {}, {"retry-after": "0"}) if len(fake.bodies) < 3 else chat(fake, path, body)

    fake = Fake(flaky)
    with serving(fake) as url:
        assert len(drawn(engine(url, tmp_path), 1)) == 1
    assert len(fake.bodies) == 3


def test_a_server_that_stays_down_is_told_and_what_came_is_kept(tmp_path: Path) -> None:
    def dying(fake: Fake, path: str, body: dict) -> Answer:
        return chat(fake, path, body) if len(fake.bodies) <= 2 else (503, {}, {})

    fake = Fake(dying)
    with serving(fake) as url:
        with pytest.raises(UserError, match="failed 3 times in a row, the last with HTTP 503"):
            drawn(engine(url, tmp_path, tries=3, in_flight=1), 4)
        fake.say, asked = chat, len(fake.bodies)
        assert len(drawn(engine(url, tmp_path), 4)) == 4
    assert len(fake.bodies) - asked == 2


@pytest.mark.parametrize(("status", "kind"), [(400, PromptRefusedError), (404, UserError), (401, UserError)])
def test_lasting_failures_are_not_tried_again(tmp_path: Path, status: int, kind: type[Exception]) -> None:
    fake = Fake(lambda *_: (status, {"error": "maximum context length"}, {}))
    with serving(fake) as url, pytest.raises(kind, match=f"HTTP {status}"):
        drawn(engine(url, tmp_path), 1)
    assert len(fake.bodies) == 1


def test_no_more_requests_are_in_flight_than_allowed(tmp_path: Path) -> None:
    def together(fake: Fake, path: str, body: dict) -> Answer:
        fake.gate.wait(timeout=30)
        return chat(fake, path, body)

    fake = Fake(together)
    # Each request waits until three are there: fewer in flight would hang, more would show in the count.
    fake.gate = threading.Barrier(3)
    with serving(fake) as url:
        drawn(engine(url, tmp_path, in_flight=3), 9)
    assert fake.most_running == 3


def test_ids_that_are_not_told_are_made_from_the_text_and_marked(tmp_path: Path) -> None:
    def bare(_: Fake, path: str, body: dict) -> Answer:
        return 200, {"choices": [{"index": 0, "message": {"content": "abc"}, "finish_reason": "stop"}]}, {}

    def encode(prompt: tuple[Message, ...], response: str) -> tuple[int, ...]:
        return (1, *(ord(letter) for letter in prompt[0].content), *(ord(letter) for letter in response))

    fake = Fake(bare)
    with serving(fake) as url:
        one = engine(url, tmp_path, dialect="openai", encode=encode)
        (response,) = drawn(one, 1)
        assert (response.token_ids, response.sampled_ids) == ((97, 98, 99), False)
        assert asyncio.run(one.prompt_ids(PROMPT)) == (1, 72, 105)
        with pytest.raises(UserError, match="tells no token ids"):
            drawn(engine(url, tmp_path / "other", dialect="openai"), 1)
    assert "top_k" not in fake.bodies[0]


def test_with_a_tokenizer_vllm_gets_the_prompt_as_ids(tmp_path: Path) -> None:
    fake = Fake(chat)
    with serving(fake) as url:
        one = engine(url, tmp_path, encode=lambda prompt, response: (1, 5, *range(len(response))))
        (response,) = drawn(one, 1)
    assert fake.bodies[0]["prompt"] == [1, 5]
    assert "messages" not in fake.bodies[0]
    assert (response.text, response.token_ids, response.finished) == ("t", (7, 8), False)


def test_a_thinking_target_keeps_its_reasoning_apart(tmp_path: Path) -> None:
    def thinks(_: Fake, path: str, body: dict) -> Answer:
        row = choice(body, 0)
        row["message"] = {"content": "Answer.", "reasoning": "Thought."}
        return 200, {"choices": [row]}, {}

    fake = Fake(thinks)
    with serving(fake) as url:
        (response,) = drawn(engine(url, tmp_path, sampling=thinking_sampling(SAMPLING)), 1)
    assert (response.text, response.reasoning) == ("Answer.", "Thought.")
    assert fake.bodies[0]["max_tokens"] == 2048
    assert fake.bodies[0]["thinking_token_budget"] == 1024
    assert fake.bodies[0]["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.parametrize(
    ("content", "reasoning", "text"),
    [
        ("<think>\nWhy.\n</think>\n\nSo.", "Why.", "So."),
        ("Why.\n</think>\nSo.", "Why.", "So."),
        ("<think>\nNever ending", "Never ending", ""),
        ("Plain.", None, "Plain."),
    ],
)
def test_reasoning_left_in_the_text_is_split_off(content: str, reasoning: str | None, text: str) -> None:
    (one,) = read_choices({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
    assert (one.reasoning, one.text) == (reasoning, text)


def test_ids_are_read_from_log_probabilities_that_name_them() -> None:
    tokens = [{"token": "token_id:5"}, {"token": "token_id:6"}, {"token": "token_id:2"}]
    row = {"message": {"content": "x"}, "logprobs": {"content": tokens}, "finish_reason": "stop"}
    assert read_choices({"choices": [row]})[0].token_ids == (5, 6)
    assert read_choices({"choices": [{**row, "finish_reason": "length"}]})[0].token_ids == (5, 6, 2)
    assert read_choices({"choices": [{**row, "stop_reason": "\n"}]})[0].token_ids == (5, 6, 2)


@pytest.mark.parametrize("answer", [{}, {"choices": "x"}, {"choices": [{"message": {"content": 3}}]}])
def test_an_answer_of_another_shape_is_an_error(answer: dict) -> None:
    with pytest.raises(UserError, match="Check --server"):
        read_choices(answer)

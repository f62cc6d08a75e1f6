"""Requests to a vLLM server, against a server of our own that reads them as vLLM and vllm-lens do.

The server computes the answer with the tiny model, by its own reading of the wire: so the round trip shows that a
steering vector means the oracle's formula, and that prompt embeddings are the model's own. No vLLM and no GPU here.
"""

import base64
import io
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from claims.schema import UserError
from tests.tool_bench import ask, readings_of
from tools import TOOLS
from tools.engines.address import VllmAddress, check_address
from tools.engines.vllm_server import VllmWriter, embedding_of
from tools.engines.vllm_wire import WireError, completion_request, read_answer
from tools.model import Loaded, decoder_layers, load, load_model
from tools.server import make_server
from tools.steered import AfterBlock, AtEmbedding, Generated, Injection, Steered
from tools.targets import get_target
from tools.weights import prepare
from tools.writer import Decoding, LocalWriter

DECODING = Decoding(12, 0.0, 1.0, None)


def items(n: int = 5) -> list[Steered]:
    rng = torch.Generator().manual_seed(3)
    made = []
    for i in range(n):
        prompt = tuple(torch.randint(10, 250, (12 + i,), generator=rng).tolist())
        made.append(Steered(prompt, (4, 6), torch.randn(2, 64, generator=rng) * (1 + i), seed=2**64 + i))
    return made


def local(loaded: Loaded, asked: list[Steered], injection: Injection) -> list[Generated]:
    writer = LocalWriter(loaded.model, loaded.tokenizer, loaded.thread)
    return writer.write(asked, injection, DECODING, prefix=0)


def unpacked(value: Mapping[str, Any]) -> torch.Tensor:
    """As the plug-in reads a tensor: raw bytes, numpy's name of the type, the shape; compressed if it says so."""
    assert value.get("compression") is None
    raw = np.frombuffer(base64.b64decode(value["data"]), dtype=np.dtype(value["dtype"]))
    return torch.from_numpy(raw.reshape(value["shape"]).copy())


def steer(loaded: Loaded, body: Mapping[str, Any]) -> torch.Tensor:
    """The logits after a prompt under steering vectors, by a hook of this test's own."""
    (vector,) = json.loads(body["vllm_xargs"]["apply_steering_vectors"])
    values = unpacked(vector["activations"])
    assert values.ndim == 3
    assert values.shape[0] == len(vector["layer_indices"]) == 1
    assert vector["norm_match"] is True

    def add(module: object, args: object, output: Any) -> Any:
        stream = output[0] if isinstance(output, tuple) else output
        for place, v in zip(vector["position_indices"], values[0], strict=True):
            h = stream[0, place].clone()
            stream[0, place] = h + vector["scale"] * h.norm() * v / v.norm()
        return output

    layer = loaded.model.get_decoder().layers[vector["layer_indices"][0]]
    handle = layer.register_forward_hook(add)
    try:
        return loaded.model(torch.tensor([body["prompt"]])).logits[0, -1]
    finally:
        handle.remove()


class Served:
    """What the server holds and has seen."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.bodies: list[dict[str, Any]] = []
        self.answer: tuple[int, str] | None = None
        self.models = ["base", "oracle"]

    def complete(self, body: dict[str, Any]) -> tuple[int, str]:
        self.bodies.append(body)
        if self.answer is not None:
            return self.answer
        with torch.inference_mode():
            if "prompt_embeds" in body:
                assert body["prompt"] == ""
                rows = torch.load(io.BytesIO(base64.b64decode(body["prompt_embeds"])), weights_only=True)
                logits = self.loaded.model(inputs_embeds=rows[None]).logits[0, -1]
            else:
                logits = steer(self.loaded, body)
        first = int(logits.argmax())
        choice = {"index": 0, "text": "said", "finish_reason": "length", "token_ids": [first]}
        return 200, json.dumps({"object": "text_completion", "choices": [choice]})


@contextmanager
def vllm(served: Served) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def reply(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            assert self.path == "/v1/models"
            self.reply(200, json.dumps({"data": [{"id": name} for name in served.models]}))

        def do_POST(self) -> None:
            assert self.path == "/v1/completions"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*served.loaded.thread.run(lambda: served.complete(body)))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("injection", [AfterBlock(1), AfterBlock(0, 2.5), AtEmbedding()], ids=str)
def test_what_the_wire_says_is_what_we_compute(tiny_gemma: Loaded, injection: Injection) -> None:
    asked = items()
    with vllm(Served(tiny_gemma)) as url:
        writer = VllmWriter(VllmAddress(url, "oracle"), embed=embedding_of(tiny_gemma.model))
        there = writer.write(asked, injection, DECODING, prefix=0)
    here = local(tiny_gemma, asked, injection)
    assert [answer.token_ids[:1] for answer in there] == [answer.token_ids[:1] for answer in here]
    assert len({answer.token_ids[:1] for answer in here}) > 1


def test_a_request_for_an_oracle_holds_these_bytes() -> None:
    item = Steered((2, 5, 7), (1,), torch.tensor([[1.0, -2.0]]), seed=2**63 + 5)
    body = completion_request(
        "oracle", item, AfterBlock(1), Decoding(40, 0.7, 0.9, None), embed=lambda ids: torch.zeros(3, 2)
    )
    vectors = json.loads(body["vllm_xargs"].pop("apply_steering_vectors"))  # type: ignore[attr-defined]
    assert body == {
        "model": "oracle",
        "prompt": [2, 5, 7],
        "max_tokens": 40,
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 5,
        "skip_special_tokens": True,
        "return_token_ids": True,
        "vllm_xargs": {"skip_reading_prefix_cache": 1},
    }
    # 1.0 and -2.0 as little-endian float32: 00 00 80 3f 00 00 00 c0.
    packed = {"data": "AACAPwAAAMA=", "dtype": "float32", "original_dtype": "torch.float32", "shape": [1, 1, 2]}
    assert vectors == [
        {"activations": packed, "layer_indices": [1], "scale": 1.0, "norm_match": True, "position_indices": [1]}
    ]


def test_a_request_for_a_verbaliser_holds_the_prompt_as_embeddings_and_keeps_the_stop_text() -> None:
    item = Steered((2, 5, 7), (1,), torch.tensor([[1.0, -2.0]]), seed=5)
    rows = torch.arange(6, dtype=torch.bfloat16).view(3, 2)
    decoding = Decoding(200, 1.0, 1.0, "</explanation>")
    body = completion_request("nla", item, AtEmbedding(), decoding, embed=lambda ids: rows)
    sent = torch.load(io.BytesIO(base64.b64decode(str(body["prompt_embeds"]))), weights_only=True)
    assert sent.dtype == torch.bfloat16
    assert sent.tolist() == [[0, 1], [1, -2], [4, 5]]
    assert rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (body["prompt"], body["stop"], body["include_stop_str_in_output"]) == ("", ["</explanation>"], True)
    assert "vllm_xargs" not in body


@pytest.mark.parametrize(
    ("status", "text", "why"),
    [
        (500, '{"error": {"message": "out of memory"}}', "answered 500: out of memory"),
        (400, '{"message": "prompt_embeds is not enabled"}', "answered 400: prompt_embeds is not enabled"),
        (200, "<html>", "answered 200 with '<html>'. Expected a completion"),
        (200, '{"choices": []}', "Expected a completion"),
        (200, '{"choices": [{"text": "a", "finish_reason": "abort"}]}', "ended an answer with 'abort'"),
        (200, '{"choices": [{"text": null, "finish_reason": "stop"}]}', "Expected 'stop' or 'length'"),
        (200, "[]", "Expected a completion"),
    ],
)
def test_an_answer_out_of_contract_is_our_fault_and_says_what_came(status: int, text: str, why: str) -> None:
    with pytest.raises(WireError, match=why):
        read_answer(status, text)


def test_a_finished_answer_is_told_from_one_that_ran_into_its_limit() -> None:
    def answer(reason: str) -> str:
        return json.dumps({"choices": [{"text": "so", "finish_reason": reason, "token_ids": [3]}]})

    assert read_answer(200, answer("stop")) == Generated("so", (3,), True)
    assert read_answer(200, answer("length")) == Generated("so", (3,), False)


def test_a_server_that_is_not_there_or_lacks_the_model_is_the_users_to_mend(tiny_gemma: Loaded) -> None:
    with vllm(Served(tiny_gemma)) as url:
        VllmWriter(VllmAddress(url, "oracle"), embed=embedding_of(tiny_gemma.model)).check()
        with pytest.raises(UserError, match="has base, oracle, but not 'nla'"):
            VllmWriter(VllmAddress(url, "nla"), embed=embedding_of(tiny_gemma.model)).check()
    gone = VllmWriter(VllmAddress(url, "oracle"), embed=embedding_of(tiny_gemma.model))
    with pytest.raises(UserError, match="No vLLM server answers at http://127"):
        gone.check()
    with pytest.raises(WireError, match="is gone"):
        gone.write(items(1), AfterBlock(1), DECODING, prefix=0)


@pytest.mark.parametrize("url", [None, "", "127.0.0.1:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url: str | None) -> None:
    with pytest.raises(UserError, match="Expected the URL of a running vLLM server"):
        check_address(url, "ao")


def test_an_address_may_have_the_api_path_at_its_end() -> None:
    assert check_address("http://host:8000/v1", "ao") == check_address("http://host:8000/", "ao")


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [("nla", {"positions": [3, 5]}, "prompt_embeds"), ("ao", {"question": "Why?", "start": 3, "end": 5}, "vllm_xargs")],
)
def test_a_tool_writes_on_the_server_and_leaves_the_target_as_it_is(
    tmp_path: Path, tool: str, arguments: dict[str, object], name: str
) -> None:
    loaded = load(get_target("tiny-gemma"), dtype="float32", device="cpu")
    served = Served(loaded)
    with vllm(served) as url:
        made = import_module(TOOLS[tool].module).load(loaded.target)
        readings = readings_of(tmp_path, loaded, layer=made.facts.layer, vllm=VllmAddress(url, "oracle"))
        text = ask(
            make_server(tool, made, readings),
            next(iter(made.attach(readings))).name,
            transcript_id="first",
            **arguments,
        )
    assert not text[0]
    assert "said" in text[1]
    assert all(name in body for body in served.bodies)
    assert len(served.bodies) == (2 if tool == "nla" else 1)
    assert not any("lora" in name for name, _ in loaded.model.named_parameters())


def test_a_whole_checkpoint_of_which_only_the_embeddings_are_loaded_embeds_as_all_of_it_does() -> None:
    for name in ("tiny-gemma", "tiny-gemma-mm", "tiny-qwen"):
        folder = prepare(get_target(name))
        whole = load_model(folder, name=name, dtype="float32", device="cpu")
        part = load_model(folder, name=name, dtype="float32", device="cpu", n_blocks=0)
        assert torch.equal(embedding_of(part)((3, 9, 200)), embedding_of(whole)((3, 9, 200)))
        assert len(decoder_layers(part)) == 0

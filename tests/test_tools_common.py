"""What holds for every tool: read-only, bounded, deterministic, honest about mistakes and about faults."""

import asyncio
import json
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest
import torch
from mcp import Client

from claims.schema import UserError
from tests.tool_bench import ask, call, fault_of, readings_of, with_client, write_transcripts
from tools import TOOLS, get_tool
from tools.activations import NNsightReader
from tools.model import Loaded, load
from tools.readings import Readings
from tools.registered import register
from tools.server import ToolServer, make_server
from tools.targets import get_target

LIMIT = 16


@pytest.fixture(scope="module", params=["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
def loaded(request: pytest.FixtureRequest) -> Loaded:
    return load(get_target(request.param), dtype="float32", device="cpu")


@pytest.fixture(params=list(TOOLS))
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def build(tool: str, loaded: Loaded, folder: Path, **options: object) -> ToolServer:
    made = import_module(TOOLS[tool].module).load(loaded.target)
    readings = readings_of(folder, loaded, layer=made.facts.layer, max_positions=LIMIT, **options)
    return make_server(tool, made, readings)


@pytest.fixture
def server(tool: str, loaded: Loaded, tmp_path: Path) -> ToolServer:
    return build(tool, loaded, tmp_path)


def about(server: ToolServer) -> dict[str, object]:
    return json.loads(ask(server, "about")[1])


def arguments(schema: dict[str, object], positions: Sequence[int] = (1, 5, 30)) -> dict[str, object]:
    """Good arguments for any offer, from its schema alone."""
    made: dict[str, object] = {}
    for name, rule in schema["properties"].items():
        if name != "transcript_id":
            one = {"string": "What?", "integer": positions[min(1, len(positions) - 1)]}
            made[name] = list(positions) if rule["type"] == "array" else one[rule["type"]]
    return made


async def offers(client: Client) -> dict[str, dict[str, object]]:
    names = json.loads((await call(client, "about"))[1])["offers"]
    return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools if tool.name in names}


def offered(server: ToolServer, positions: Sequence[int] = (1, 5, 30)) -> tuple[str, dict[str, object]]:
    """The first offer, with good arguments."""
    name, schema = next(iter(with_client(server, offers).items()))
    return name, arguments(schema, positions)


async def answers(client: Client, transcript_id: str = "first") -> dict[str, tuple[bool, str]]:
    return {
        name: await call(client, name, transcript_id=transcript_id, **arguments(schema))
        for name, schema in (await offers(client)).items()
    }


def test_about_says_what_a_host_must_compare(server: ToolServer, tool: str, loaded: Loaded, tmp_path: Path) -> None:
    facts = about(server)
    assert facts["tool"] == tool
    assert facts["target"] == loaded.target.name
    assert facts["target_revision"] == loaded.weights
    assert facts["transcripts_sha256"] == register(tmp_path).sha256
    assert (facts["n_transcripts"], facts["max_positions"]) == (2, LIMIT)
    assert facts["fidelity"] in ("demo", "released")
    assert 0 <= facts["layer"] < loaded.target.n_layers
    assert len(facts["weights_sha256"]) == 64
    assert facts["offers"]
    assert facts["description"]


def test_the_token_list_counts_from_zero_and_says_whose_each_token_is(server: ToolServer, loaded: Loaded) -> None:
    listed = json.loads(ask(server, "list_tokens", transcript_id="first")[1])
    tokens = listed["tokens"]
    assert [token["index"] for token in tokens] == list(range(len(tokens)))
    words = {role: "".join(token["text"] for token in tokens if token["role"] == role) for role in ("user", "response")}
    assert words == {"user": "What is the capital of Australia?", "response": "It is Canberra."}
    assert listed["masked"] == ([0] if loaded.target.chat.bos else [])


def test_schemas_are_flat_and_plain_so_that_every_family_of_predictors_takes_them(server: ToolServer) -> None:
    for schema in with_client(server, offers).values():
        assert "transcript_id" in schema["required"]
        for name, rule in schema["properties"].items():
            assert set(rule) <= {"type", "title", "items", "description", "default"}, name
            assert rule["type"] in ("string", "integer", "number", "boolean", "array"), name
            if rule["type"] == "array":
                assert rule["items"] in ({"type": "integer"}, {"type": "string"}), name


def test_every_tool_says_that_it_only_reads(server: ToolServer) -> None:
    listed = with_client(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed[:2]] == ["about", "list_tokens"]
    assert all(tool.annotations.read_only_hint for tool in listed)


def test_answering_changes_neither_the_model_nor_the_transcripts(
    server: ToolServer, loaded: Loaded, tmp_path: Path
) -> None:
    weights = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert not any(mistake for mistake, _ in with_client(server, answers).values())
    assert all(torch.equal(tensor, weights[name]) for name, tensor in loaded.model.state_dict().items())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_the_same_call_gives_the_same_text_now_later_and_from_another_server(
    server: ToolServer, tool: str, loaded: Loaded, tmp_path: Path
) -> None:
    once = with_client(server, answers)
    with_client(server, lambda client: answers(client, "second"))
    assert with_client(server, answers) == once
    assert with_client(build(tool, loaded, tmp_path / "other"), answers) == once


def test_concurrent_calls_give_what_serial_calls_give(server: ToolServer) -> None:
    async def together(client: Client) -> list[dict[str, tuple[bool, str]]]:
        return list(await asyncio.gather(*(answers(client, name) for name in ("first", "second") * 6)))

    serial = [with_client(server, lambda client, name=name: answers(client, name)) for name in ("first", "second")]
    assert serial[0] != serial[1]
    assert with_client(server, together) == serial * 6


def test_every_offer_repeats_the_token_beside_its_index(server: ToolServer) -> None:
    tokens = json.loads(ask(server, "list_tokens", transcript_id="first")[1])["tokens"]
    for mistake, text in with_client(server, answers).values():
        assert not mistake
        assert f'[5] "{tokens[5]["text"]}"' in text


def test_output_is_bounded_by_the_positions_of_a_call(server: ToolServer) -> None:
    async def most(client: Client) -> list[tuple[bool, str]]:
        listed = (await offers(client)).items()
        return [
            await call(client, name, transcript_id="first", **arguments(schema, range(LIMIT)))
            for name, schema in listed
        ]

    for mistake, text in with_client(server, most):
        assert not mistake
        assert len(text) < 3000 * LIMIT


@pytest.mark.parametrize("positions", [[999], [-1], [1, 1], ["x"], [0.5], [], list(range(LIMIT + 1)), "all"])
def test_bad_positions_are_the_predictors_mistake_in_our_words(server: ToolServer, positions: object) -> None:
    async def bad(client: Client) -> list[tuple[bool, str]]:
        return [
            await call(client, name, transcript_id="first", **(arguments(schema) | {"positions": positions}))
            for name, schema in (await offers(client)).items()
            if "positions" in schema["properties"]
        ]

    for mistake, text in with_client(server, bad):
        assert mistake
        assert text.startswith("positions ")
        assert "Expected" in text


def test_missing_arguments_and_unknown_tools_are_mistakes_too(server: ToolServer) -> None:
    for name in about(server)["offers"]:
        mistake, text = ask(server, name, transcript_id="first")
        assert mistake
        assert "wrong arguments" in text
    mistake, text = ask(server, "write_tokens", transcript_id="first")
    assert mistake
    assert "write_tokens" in text


def test_an_unregistered_transcript_is_the_hosts_fault_not_the_predictors(server: ToolServer) -> None:
    for name, rest in (("list_tokens", {}), offered(server)):
        assert "No transcript 'third' is registered" in fault_of(server, name, transcript_id="third", **rest)


class BrokenReader(NNsightReader):
    def read(self, *args: object, **kwargs: object) -> list[dict[int, torch.Tensor]]:
        raise RuntimeError("the model is on fire")


def test_a_fault_of_ours_is_a_protocol_error_and_never_text_for_the_predictor(
    tool: str, loaded: Loaded, tmp_path: Path
) -> None:
    server = build(tool, loaded, tmp_path, reader=BrokenReader(loaded))
    name, rest = offered(server)
    assert "RuntimeError: the model is on fire" in fault_of(server, name, transcript_id="first", **rest)


class CountingReader(NNsightReader):
    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.n_read = 0

    def read(self, *args: object, **kwargs: object) -> list[dict[int, torch.Tensor]]:
        self.n_read += 1
        return super().read(*args, **kwargs)


@pytest.mark.parametrize(("cache_bytes", "n_read"), [(2**20, 2), (1, 4)])
def test_a_transcript_is_read_once_as_long_as_memory_allows(
    tool: str, loaded: Loaded, tmp_path: Path, cache_bytes: int, n_read: int
) -> None:
    reader = CountingReader(loaded)
    server = build(tool, loaded, tmp_path, reader=reader, cache_bytes=cache_bytes)
    name, rest = offered(server)
    for transcript_id in ("first", "first", "second", "first", "second"):
        ask(server, name, transcript_id=transcript_id, **rest)
    assert reader.n_read == n_read


def test_a_masked_position_is_named_as_masked_and_can_be_switched_on(tool: str, loaded: Loaded, tmp_path: Path) -> None:
    if not loaded.target.chat.bos:
        pytest.skip("this target has no BOS")
    name, rest = offered(build(tool, loaded, tmp_path), [0])
    masked = ask(build(tool, loaded, tmp_path), name, transcript_id="first", **rest)[1]
    assert re.search(r'\[0\] "<bos>"(: not read)?, because it is the beginning-of-sequence token', masked)
    shown = build(tool, loaded, tmp_path, show_masked=True)
    assert json.loads(ask(shown, "list_tokens", transcript_id="first")[1])["masked"] == []
    mistake, text = ask(shown, name, transcript_id="first", **rest)
    assert not mistake
    assert "because" not in text


def test_a_folder_with_more_than_transcripts_is_refused(tmp_path: Path, loaded: Loaded) -> None:
    write_transcripts(tmp_path, loaded)
    (tmp_path / "labels.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"has labels\.jsonl in it"):
        register(tmp_path)


def test_a_folder_without_transcripts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        register(tmp_path)
    (tmp_path / "transcripts.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match="has no transcript"):
        register(tmp_path)


def test_another_targets_transcripts_are_refused_before_anything_is_served(
    tmp_path: Path, tiny_gemma: Loaded, tiny_qwen: Loaded
) -> None:
    write_transcripts(tmp_path / "qwen", tiny_qwen)
    with pytest.raises(UserError, match="another target's"):
        Readings(tiny_gemma, NNsightReader(tiny_gemma), register(tmp_path / "qwen"), layer=1, max_positions=LIMIT)


def test_an_unknown_tool_is_named_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"Unknown tool 'probe'.*sae"):
        get_tool("probe")

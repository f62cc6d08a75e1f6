"""The oracle's answers come from the activations of the segment, by the authors' formula, and from nothing else."""

import asyncio
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from torch import Tensor

from claims.schema import UserError
from tests.hub_cache import put_in_cache
from tests.tool_bench import ask, call, readings_of, transcript, with_client
from tools import ao
from tools.activations import PlainHookReader
from tools.adapters import CENTRE, read_adapter
from tools.ao import AOTool, Asked, Oracle
from tools.ao_facts import FACTS, OracleFacts, oracle_facts
from tools.ao_prompt import oracle_prompt
from tools.model import Loaded, decoder_layers, load
from tools.readings import Readings
from tools.registered import Registered
from tools.server import make_server
from tools.targets import OracleSource, Target, get_target

QUESTION = "What is it about?"


def fresh(name: str) -> Loaded:
    return load(get_target(name), dtype="float32", device="cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The random oracle of tiny-qwen, in a folder of its own."""
    return copied(tmp_path, "tiny-qwen")


def copied(tmp_path: Path, name: str) -> Path:
    found = ao.load(get_target(name))._oracle.adapter.folder
    return Path(shutil.copytree(found, tmp_path / f"oracle-{name}"))


def facts_of(folder: Path, target: Target) -> OracleFacts:
    assert target.ao is not None
    return oracle_facts(folder, target, target.ao)


def tool_of(folder: Path, target: Target, **changes: object) -> AOTool:
    facts = dataclasses.replace(facts_of(folder, target), **changes)
    return AOTool(target, Oracle(read_adapter(folder), facts), fidelity="demo")


def into_block(model: torch.nn.Module, block: int) -> list[Tensor]:
    """A list that fills with what goes into a block: rows of one prompt, pass by pass, decoding left out."""
    seen: list[Tensor] = []

    def keep(module: object, args: tuple[Tensor, ...]) -> None:
        if args[0].shape[1] > 1:
            seen.append(args[0][0].detach().clone())

    decoder_layers(model)[block].register_forward_pre_hook(keep)
    return seen


@pytest.mark.parametrize("name", ["tiny-qwen", "tiny-gemma", "tiny-gemma-mm"])
def test_a_call_adds_the_segment_s_activations_where_the_authors_do_and_changes_nothing_else(
    name: str, tmp_path: Path
) -> None:
    """The whole way: transcript, clean activations, prompt, adapter, h + |h| v / |v| after block 1."""
    folder, loaded = copied(tmp_path, name), fresh(name)
    tool = tool_of(folder, loaded.target)
    readings = readings_of(tmp_path / "talks", loaded, layer=tool.facts.layer)
    server = make_server("ao", tool, readings)
    token_ids = readings.registered.transcripts["first"].token_ids
    clean = PlainHookReader(fresh(name)).read([token_ids], [2])[0][2]
    asyncio.run(readings.get("first"))
    seen = into_block(loaded.model, 2)
    assert not ask(server, "ask_oracle", transcript_id="first", question=QUESTION, start=5, end=8)[0]
    prompt, places = oracle_prompt(loaded.tokenizer, loaded.target, 2, 4, QUESTION)
    reference = PeftModel.from_pretrained(fresh(name).model, folder)
    plain = into_block(reference, 2)
    with torch.inference_mode():
        reference(input_ids=torch.tensor([prompt]))
    # The shared beginning is a pass of its own, then comes the rest of the prompt.
    found, expected = torch.cat(seen)[-len(prompt) :], plain[0].clone()
    for place, v in zip(places, clean[5:9], strict=True):
        h = expected[place]
        assert (found[place] - h).norm() == pytest.approx(float(h.norm()), rel=1e-3)
        expected[place] = h + h.norm() * v / v.norm()
    assert torch.allclose(found, expected, atol=1e-4)


def test_a_centre_is_taken_off_the_activations_before_they_are_added(folder: Path, tmp_path: Path) -> None:
    loaded = fresh("tiny-qwen")
    centre = torch.randn(64, generator=torch.Generator().manual_seed(0))
    save_file({"layer_2": centre}, folder / CENTRE)
    asked = Asked(Oracle(read_adapter(folder), facts_of(folder, loaded.target)), loaded)
    activations = torch.randn(3, 64, generator=torch.Generator().manual_seed(1))
    item = asked.item(activations, QUESTION, 5)
    assert torch.equal(item.vectors, activations - centre)
    assert (item.seed, len(item.positions)) == (5, 3)


def test_the_answer_names_its_tokens_and_says_what_it_left_out(tmp_path: Path, tiny_gemma: Loaded) -> None:
    tool = ao.load(tiny_gemma.target)
    server = make_server("ao", tool, readings_of(tmp_path, tiny_gemma, layer=tool.facts.layer))
    said = ask(server, "ask_oracle", transcript_id="first", question=QUESTION, start=0, end=2)[1]
    assert said.splitlines()[1:] == [
        'about layer 2 at [1] "<start_of_turn>" [2] "u"',
        'not read: [0] "<bos>", because it is the beginning-of-sequence token',
    ]
    mistake, said = ask(server, "ask_oracle", transcript_id="first", question=QUESTION, start=0, end=0)
    assert mistake
    assert said.startswith("No token of the segment can be read")


def test_mistakes_are_answered_and_the_next_question_is_too(tmp_path: Path, tiny_gemma: Loaded) -> None:
    tool = ao.load(tiny_gemma.target)
    server = make_server("ao", tool, readings_of(tmp_path, tiny_gemma, layer=tool.facts.layer))
    for question, start, end, found in [
        ("x" * 50_000, 5, 6, "question has 50000 characters"),
        (QUESTION, 7, 6, "is empty"),
        (QUESTION, 1, 17, "has 17 tokens. Expected at most 16"),
        (QUESTION, 1, 9999, "past the last token"),
        ("<bos>", 5, 6, "control token"),
        ([QUESTION], 5, 6, "question is list"),
    ]:
        mistake, said = ask(server, "ask_oracle", transcript_id="first", question=question, start=start, end=end)
        assert mistake, said
        assert found in said
    assert not ask(server, "ask_oracle", transcript_id="first", question=QUESTION, start=5, end=6)[0]


def test_a_question_that_does_not_fit_the_window_is_a_mistake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = fresh("tiny-qwen")
    monkeypatch.setattr(loaded.model.config, "max_position_embeddings", 200)
    asked = Asked(Oracle(read_adapter(folder), facts_of(folder, loaded.target)), loaded)
    asked.item(torch.ones(1, 64), "x" * 100, 0)
    with pytest.raises(Exception, match=r"makes a prompt of \d+ tokens. Expected at most 192"):
        asked.item(torch.ones(1, 64), "x" * 200, 0)


def test_what_is_asked_decides_the_seed_and_who_asks_beside_it_does_not(tmp_path: Path, tiny_qwen: Loaded) -> None:
    tool = ao.load(tiny_qwen.target)
    assert tool._oracle.facts.temperature > 0
    server = make_server("ao", tool, readings_of(tmp_path, tiny_qwen, layer=tool.facts.layer))
    asked = [(question, start) for question in ("What?", "Who?") for start in (4, 5, 6)]

    async def together(client: object) -> list[tuple[bool, str]]:
        calls = (call(client, "ask_oracle", transcript_id="first", question=q, start=s, end=9) for q, s in asked)
        return list(await asyncio.gather(*calls))

    batch = with_client(server, together)
    alone = [ask(server, "ask_oracle", transcript_id="first", question=q, start=s, end=9) for q, s in asked]
    assert batch == alone
    assert len({said.splitlines()[0] for _, said in alone}) == len(asked)


def test_the_target_s_activations_are_the_clean_model_s_while_the_oracle_answers(
    tmp_path: Path, tiny_gemma: Loaded
) -> None:
    name = "tiny-gemma"
    loaded = fresh(name)
    tool = ao.load(loaded.target)
    readings = readings_of(tmp_path, loaded, layer=tool.facts.layer, cache_bytes=1)
    server = make_server("ao", tool, readings)
    token_ids = [readings.registered.transcripts[key].token_ids for key in ("first", "second")]
    clean = [found[2] for found in PlainHookReader(tiny_gemma).read(token_ids, [2])]

    async def mixed(client: object) -> list[Tensor]:
        found = []
        for key in ("first", "second") * 3:
            answer, reading = await asyncio.gather(
                call(client, "ask_oracle", transcript_id=key, question=QUESTION, start=5, end=9), readings.get(key)
            )
            assert not answer[0]
            found.append(reading.residual)
        return found

    for found, expected in zip(with_client(server, mixed), clean * 3, strict=True):
        assert torch.equal(found, expected)


def test_a_transcript_longer_than_the_window_is_refused_before_anything_is_served(
    tiny_qwen: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny_qwen.model.config, "max_position_embeddings", 30)
    registered = Registered({"long": transcript(tiny_qwen, "long", "word " * 20, "Yes.")}, "0")
    with pytest.raises(
        UserError, match=r"Transcript 'long' has \d+ tokens. Expected at most 30, the window of tiny-qwen"
    ):
        Readings(tiny_qwen, PlainHookReader(tiny_qwen), registered, layer=1, max_positions=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "tiny-gemma"}, "was trained on tiny-gemma. Expected tiny-qwen"),
        ({"layers": [0, 1]}, "was trained on layers 0, 1. Expected layer 2 among them"),
        ({"layers": [2, 9]}, "was trained on layers 2, 9. .* all of them below 3"),
        ({"layers": []}, r"layers is \[\]. Expected a list of whole numbers"),
        ({"block": 3}, "after block 3. Expected 0 to 2"),
        ({"max_segment": 0}, "max_segment is 0. Expected a whole number from 1"),
        ({"top_p": 0}, "top_p is 0. Expected a number above 0"),
    ],
)
def test_facts_that_do_not_fit_the_target_are_refused(folder: Path, change: dict[str, object], message: str) -> None:
    path = folder / FACTS
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        facts_of(folder, get_target("tiny-qwen"))


def test_an_oracle_of_other_weights_is_refused_when_it_meets_the_model(folder: Path, tmp_path: Path) -> None:
    loaded = dataclasses.replace(fresh("tiny-qwen"), weights="others")
    with pytest.raises(UserError, match="was trained on the weights random:qwen3 seed 0 .* Expected others"):
        make_server("ao", tool_of(folder, loaded.target), readings_of(tmp_path / "talks", loaded, layer=2))


def test_a_target_without_an_oracle_and_one_that_is_not_trained_yet_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"qwen3.5-397b-a17b has no activation oracle"):
        ao.load(get_target("qwen3.5-397b-a17b"))
    local = dataclasses.replace(get_target("tiny-qwen"), ao=OracleSource("local", layer=2))
    with pytest.raises(UserError, match="make artifacts TOOL=ao TARGET=tiny-qwen"):
        ao.load(local)


@pytest.mark.parametrize(
    ("name", "layer", "layers"),
    [("gemma-3-27b-it", 31, "15, 31, 46"), ("qwen3-8b", 18, "9, 18, 27"), ("llama-3.1-8b", 16, "8, 16, 24")],
)
def test_released_oracles_are_asked_at_half_depth_by_the_authors_settings(
    tmp_path: Path, name: str, layer: int, layers: str
) -> None:
    target = get_target(name)
    expected = OracleFacts(layer, 1, 1.0, 256, 40, 0.7, 0.9, None)
    assert facts_of(tmp_path, target) == expected
    with pytest.raises(UserError, match=f"layer 20. Expected one of {layers}"):
        oracle_facts(tmp_path, target, OracleSource("x", layer=20))


def test_a_released_adapter_loads_from_the_hub_s_cache_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout of the authors' repositories: a PEFT adapter of all linear layers on the multimodal Gemma."""
    from transformers import AutoModelForCausalLM

    from tools.weights import prepare

    repository = "somebody/checkpoints_latentqa_cls_past_lens_tiny-gemma-mm"
    target = dataclasses.replace(get_target("tiny-gemma-mm"), ao=OracleSource(repository, layer=2))
    whole = AutoModelForCausalLM.from_pretrained(prepare(target), dtype=torch.bfloat16)
    config = LoraConfig(
        r=8, lora_alpha=16, lora_dropout=0.05, target_modules=r".*language_model.*\.(q|k|v|o|up|down|gate)_proj"
    )
    with torch.random.fork_rng(devices=[]):
        wrapped = get_peft_model(whole, config)
    wrapped.peft_config["default"].base_model_name_or_path = "google/gemma3"
    wrapped.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    snapshot = put_in_cache(tmp_path / "hub", repository, tmp_path / "adapter")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    tool = ao.load(target)
    assert (tool.facts.fidelity, tool.facts.card, tool.facts.layer) == ("released", None, 2)
    assert tool._oracle.adapter.folder == snapshot
    loaded = dataclasses.replace(fresh("tiny-gemma-mm"), target=target)
    server = make_server("ao", tool, readings_of(tmp_path / "talks", loaded, layer=2))
    mistake, said = ask(server, "ask_oracle", transcript_id="first", question=QUESTION, start=1, end=30)
    assert not mistake
    assert said.startswith("answer")
    assert '[30] "' in said


def test_a_released_adapter_that_is_not_here_is_a_named_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(UserError, match="hf download adamkarvonen/checkpoints_latentqa_cls_past_lens_gemma-3-27b-it"):
        ao.load(get_target("gemma-3-27b-it"))


def test_the_hash_of_the_tool_changes_with_weights_and_with_facts(folder: Path) -> None:
    target = get_target("tiny-qwen")
    before = tool_of(folder, target).facts.weights_sha256
    assert before == ao.load(target).facts.weights_sha256
    path = folder / FACTS
    path.write_text(path.read_text(encoding="utf-8").replace('"max_tokens": 8', '"max_tokens": 9'), encoding="utf-8")
    changed = tool_of(folder, target).facts
    assert changed.weights_sha256 != before
    assert "at most 9 tokens" in changed.description

"""Descriptions come from one activation each, put into the prompt as the sidecar says, and from nothing else."""

import asyncio
import dataclasses
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import save_file
from torch import Tensor

from tests.hub_cache import put_in_cache
from tests.nla_files import change, copied, fresh, full_checkpoint
from tests.tool_bench import ask, call, readings_of, with_client
from tools import nla
from tools.activations import PlainHookReader
from tools.adapters import CENTRE
from tools.model import Loaded, decoder_layers
from tools.nla import DESCRIPTION_CHARS, Description, parse, render
from tools.nla_checkpoint import Verbaliser, read_checkpoint
from tools.readings import Reading
from tools.server import make_server
from tools.sham import ShamReadings
from tools.steered import Generated
from tools.targets import NLASource, get_target


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_the_marker_s_row_is_the_scaled_activation_and_every_other_row_the_model_s_own(
    name: str, kind: str, tmp_path: Path
) -> None:
    """Gemma multiplies embeddings by the root of its width: once in the other rows, and not at all in the marker's."""
    folder = copied(tmp_path, name) if kind == "adapter" else full_checkpoint(tmp_path / "full", name)
    loaded = fresh(name)
    checkpoint = read_checkpoint(folder, loaded.target, stated_layer=2)
    verbaliser = Verbaliser(checkpoint, loaded)
    model = verbaliser._writer.model
    ids, place = verbaliser._prompt_ids, verbaliser._place
    activation = torch.arange(64.0)
    seen: list[Tensor] = []
    decoder_layers(model)[0].register_forward_pre_hook(lambda module, args: seen.append(args[0].detach().clone()))
    verbaliser.thread.run(lambda: verbaliser.write([verbaliser.item(activation, 0)]))
    # The prefix before the marker is a pass of its own, then comes the rest of the prompt.
    rows = torch.cat([part[0] for part in seen if part.shape[1] > 1])[-len(ids) :]
    scale = checkpoint.sidecar.injection_scale
    weight = model.get_input_embeddings().weight
    by_hand = weight[list(ids)] * (8.0 if "gemma" in name else 1.0)  # the root of 64
    by_hand[place] = activation / activation.norm() * scale
    assert torch.allclose(rows, by_hand, atol=1e-4)
    assert float(rows[place].norm()) == pytest.approx(scale, rel=1e-5)


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_a_description_is_what_a_plain_forward_pass_gives_step_by_step(name: str, kind: str, tmp_path: Path) -> None:
    folder = copied(tmp_path, name) if kind == "adapter" else full_checkpoint(tmp_path / "full", name)
    change(folder, "decoding", {"temperature": 0, "top_p": 1.0, "max_tokens": 8})
    loaded = fresh(name)
    checkpoint = read_checkpoint(folder, loaded.target, stated_layer=2)
    verbaliser = Verbaliser(checkpoint, loaded)
    vectors = torch.randn(3, 64, generator=torch.Generator().manual_seed(2))
    found = verbaliser.thread.run(lambda: verbaliser.write([verbaliser.item(vector, 0) for vector in vectors]))
    if kind == "adapter":
        reference = PeftModel.from_pretrained(fresh(name).model, folder)
    else:
        reference = Verbaliser(checkpoint, fresh(name))._writer.model
    first_logits = []
    for vector, generated in zip(vectors, found, strict=True):
        scaled = vector / vector.norm() * checkpoint.sidecar.injection_scale
        logits, expected = greedy(reference, verbaliser, scaled)
        assert list(generated.token_ids) == expected[: len(generated.token_ids)]
        assert len(generated.token_ids) == 8 or generated.finished
        first_logits.append(logits)
    # Small random models often say the same; what they are given makes a difference all the same.
    assert (first_logits[0] - first_logits[1]).abs().max() > 1e-3


def greedy(model: torch.nn.Module, verbaliser: Verbaliser, vector: Tensor) -> tuple[Tensor, list[int]]:
    """One prompt, the whole of it every time, its embeddings put together here."""
    ids = list(verbaliser._prompt_ids)
    logits = []
    with torch.inference_mode():
        for _ in range(8):
            rows = model.get_input_embeddings()(torch.tensor([ids])).clone()
            rows[0, verbaliser._place] = vector
            logits.append(model(inputs_embeds=rows).logits[0, -1])
            ids.append(int(logits[-1].argmax()))
    return logits[0], ids[len(verbaliser._prompt_ids) :]


def test_a_centre_is_taken_off_before_the_activation_is_scaled(tmp_path: Path) -> None:
    folder, loaded = copied(tmp_path, "tiny-qwen"), fresh("tiny-qwen")
    centre = torch.randn(64, generator=torch.Generator().manual_seed(0))
    save_file({"layer_2": centre}, folder / CENTRE)
    verbaliser = Verbaliser(read_checkpoint(folder, loaded.target, stated_layer=2), loaded)
    activation = torch.randn(64, generator=torch.Generator().manual_seed(1))
    expected = 20 * (activation - centre) / (activation - centre).norm()
    assert torch.allclose(verbaliser.item(activation, 0).vectors[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("<explanation>A city.</explanation>", Description("A city.", raw=False)),
        ("well <explanation>\n A\n city. \n</explanation> and more", Description("A\n city.", raw=False)),
        (
            "<think>an <explanation>no</explanation></think><explanation>yes</explanation>",
            Description("yes", raw=False),
        ),
        ("<explanation>cut in the mid", Description("cut in the mid", raw=False)),
        ("  words without a tag ", Description("words without a tag", raw=True)),
        ("</explanation>", Description("</explanation>", raw=True)),
        ("", Description("", raw=True)),
    ],
)
def test_the_explanation_is_taken_out_or_the_whole_answer_given(text: str, description: Description) -> None:
    assert parse(text) == description


def test_every_line_says_what_is_not_as_it_should_be() -> None:
    reading = Reading(("<bos>", " a", " b", " c", " d"), ("user",) * 5, torch.zeros(5, 2), {0: "it is first"})
    answers = {
        1: Generated("<explanation>A\ncity.</explanation>", (1,), finished=True),
        2: Generated("<explanation>A long", (1,), finished=False),
        3: Generated("no tag", (1,), finished=True),
        4: Generated(f"<explanation>{'x' * 5000}</explanation>", (1,), finished=True),
    }
    lines = render(reading, (4, 3, 0, 2, 1), answers, max_tokens=9).split("\n")
    assert lines[0] == f'[4] " d" (shortened): {"x" * (DESCRIPTION_CHARS - 3)}...'
    assert lines[1:] == [
        '[3] " c" (not in the expected form, shown as it came): no tag',
        '[0] "<bos>": not read, because it is first',
        '[2] " b" (cut off after 9 tokens): A long',
        '[1] " a": A city.',
    ]
    assert render(reading, (1,), {1: Generated("", (), finished=True)}, max_tokens=9).endswith(": nothing was said")


def test_a_description_depends_on_its_position_and_not_on_what_is_asked_beside_it(
    tmp_path: Path, tiny_qwen: Loaded
) -> None:
    tool = nla.load(tiny_qwen.target)
    assert tool._checkpoint.sidecar.decoding.temperature == 1.0
    server = make_server("nla", tool, readings_of(tmp_path, tiny_qwen, layer=tool.facts.layer))

    async def together(client: object) -> list[tuple[bool, str]]:
        sets = ([4, 5, 6], [6, 12], [5], list(range(3, 15)))
        return list(
            await asyncio.gather(
                *(call(client, "describe_activations", transcript_id="first", positions=chosen) for chosen in sets)
            )
        )

    lines = [line for _, text in with_client(server, together) for line in text.splitlines()]
    alone = {
        position: ask(server, "describe_activations", transcript_id="first", positions=[position])[1]
        for position in range(3, 15)
    }
    assert len(lines) == 3 + 2 + 1 + 12
    assert all(line in alone.values() for line in lines)
    assert len(set(alone.values())) == 12


def test_masked_positions_are_named_and_alone_they_are_a_mistake(tmp_path: Path, tiny_gemma: Loaded) -> None:
    tool = nla.load(tiny_gemma.target)
    server = make_server("nla", tool, readings_of(tmp_path, tiny_gemma, layer=tool.facts.layer))
    mistake, text = ask(server, "describe_activations", transcript_id="first", positions=[5, 0])
    assert not mistake
    assert text.splitlines()[1] == '[0] "<bos>": not read, because it is the beginning-of-sequence token'
    mistake, text = ask(server, "describe_activations", transcript_id="first", positions=[0])
    assert mistake
    assert text.startswith('None of these positions can be read: [0] "<bos>": not read')


def test_the_target_is_read_clean_beside_an_adapter_that_writes(tmp_path: Path, tiny_gemma: Loaded) -> None:
    loaded = fresh("tiny-gemma")
    readings = readings_of(tmp_path, loaded, layer=2, cache_bytes=1)
    server = make_server("nla", nla.load(loaded.target), readings)
    token_ids = readings.registered.transcripts["first"].token_ids
    clean = PlainHookReader(tiny_gemma).read([token_ids], [2])[0][2]

    async def mixed(client: object) -> list[Tensor]:
        found = []
        for key in ("second", "first") * 3:
            await call(client, "describe_activations", transcript_id=key, positions=[5, 6])
            found.append((await readings.get("first")).residual)
        return found

    assert all(torch.equal(found, clean) for found in with_client(server, mixed))


@pytest.mark.parametrize("name", ["tiny-gemma-mm", "tiny-qwen"])
def test_a_released_checkpoint_loads_from_the_hub_s_cache_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = f"somebody/nla-{name}-L2-av"
    target = dataclasses.replace(get_target(name), nla=NLASource(repository, layer=None))
    put_in_cache(tmp_path / "hub", repository, full_checkpoint(tmp_path / "full", name))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    tool = nla.load(target)
    assert (tool.facts.fidelity, tool.facts.layer) == ("released", 2)
    assert "at most 200 tokens" in tool.facts.description
    loaded = dataclasses.replace(fresh(name), target=target)
    before = {key: tensor.clone() for key, tensor in loaded.model.state_dict().items()}
    monkeypatch.setattr("tools.nla_sidecar.Decoding.max_tokens", 12)
    server = make_server("nla", tool, readings_of(tmp_path / "talks", loaded, layer=2))
    mistake, text = ask(server, "describe_activations", transcript_id="first", positions=[5, 30])
    assert not mistake
    assert [line.partition(" ")[0] for line in text.splitlines()] == ["[5]", "[30]"]
    assert loaded.model.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[key]) for key, tensor in loaded.model.state_dict().items())


def test_the_tool_and_its_sham_share_one_verbaliser(tmp_path: Path, tiny_qwen: Loaded) -> None:
    tool = nla.load(tiny_qwen.target)
    own = readings_of(tmp_path, tiny_qwen, layer=tool.facts.layer)
    sham = ShamReadings(own, {"first": "second", "second": "first"})
    servers = [make_server("nla", tool, readings) for readings in (own, sham)]
    assert tool._meet(own) is tool._meet(sham)
    texts = [ask(server, "describe_activations", transcript_id="first", positions=[5, 40])[1] for server in servers]
    tokens = [[line.partition('"')[2].partition('"')[0] for line in text.splitlines()] for text in texts]
    assert tokens[0] == tokens[1]
    assert texts[0] != texts[1]

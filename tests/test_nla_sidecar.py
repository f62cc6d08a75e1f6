"""Every fact of a sidecar is read from it and held against the live tokenizer and model."""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from claims.schema import UserError
from tests.nla_files import TEMPLATE, sidecar_row, write_sidecar
from tools.fields import Fields
from tools.model import Loaded
from tools.nla_prompt import scaled, verbaliser_prompt
from tools.nla_sidecar import Decoding, Sidecar, check_model, layer_of, parse_sidecar, read_sidecar
from tools.targets import get_target
from tools.weights import prepare


def parsed(row: dict[str, object]) -> Sidecar:
    return parse_sidecar(Fields(row, Path("nla_meta.yaml")))


def byte_id(loaded: Loaded, letter: str) -> int:
    return int(loaded.tokenizer.convert_tokens_to_ids(letter))


def gemma_row(loaded: Loaded, **changes: object) -> dict[str, object]:
    """For the tiny Gemma: its image token between > and <."""
    neighbours = (byte_id(loaded, ">"), byte_id(loaded, "<"))
    return sidecar_row(**{"marker": "<image>", "marker_id": 7, "neighbours": neighbours, **changes})


def test_the_released_keys_are_read_and_the_rest_is_left(tmp_path: Path) -> None:
    # The facts of the 27B checkpoint, as far as others quote them.
    row = sidecar_row(d_model=5376, layer=41, marker="㈜", marker_id=246566, neighbours=(236813, 954))
    row["extraction"]["injection_scale"] = 60000
    assert read_sidecar(write_sidecar(tmp_path, row)) == Sidecar(
        d_model=5376,
        layer=41,
        injection_scale=60000.0,
        marker="㈜",
        marker_id=246566,
        neighbours=(236813, 954),
        template=TEMPLATE,
        decoding=Decoding(1.0, 1.0, 200),
        target=None,
        weights=None,
    )


def test_an_adapter_s_sidecar_also_names_its_base_and_how_it_is_decoded() -> None:
    row = sidecar_row(
        marker="x",
        marker_id=1,
        neighbours=(2, 3),
        base={"target": "smollm2-135m", "weights": "sha256:0"},
        decoding={"temperature": 0, "top_p": 0.9, "max_tokens": 40},
    )
    sidecar = parsed(row)
    assert (sidecar.target, sidecar.weights, sidecar.decoding) == ("smollm2-135m", "sha256:0", Decoding(0.0, 0.9, 40))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("d_model", None, r"d_model is None\. Expected a whole number"),
        ("d_model", 64.0, r"d_model is 64\.0\."),
        ("d_model", True, "d_model is True"),
        ("extraction.layer_index", -1, r"extraction\.layer_index is -1"),
        ("extraction.injection_scale", 0, r"injection_scale is 0\. Expected a number above 0"),
        ("extraction.injection_scale", float("inf"), "injection_scale is inf"),
        ("extraction.injection_scale", "sqrt_d", "injection_scale is 'sqrt_d'"),
        ("tokens.injection_char", "", "injection_char is ''. Expected a text"),
        ("tokens", [1], "injection_char is None"),
        ("prompt_templates.av", None, r"prompt_templates\.av or prompt_templates\.actor is None"),
    ],
)
def test_a_missing_or_misshapen_fact_is_named(path: str, value: object, message: str) -> None:
    row = sidecar_row(marker="x", marker_id=1, neighbours=(2, 3))
    *above, last = path.split(".")
    place = row
    for key in above:
        place = place[key]
    place[last] = value
    with pytest.raises(UserError, match=message):
        parsed(row)


def test_a_folder_without_a_readable_sidecar_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_sidecar(tmp_path)
    (tmp_path / "nla_meta.yaml").write_text("a: [1", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be read"):
        read_sidecar(tmp_path)
    (tmp_path / "nla_meta.yaml").write_text("just words", encoding="utf-8")
    with pytest.raises(UserError, match="extraction.d_model is None"):
        read_sidecar(tmp_path)


def test_the_marker_stands_between_its_neighbours_in_a_chat_prompt(tiny_gemma: Loaded) -> None:
    sidecar = parsed(gemma_row(tiny_gemma))
    for target in (None, tiny_gemma.target):
        token_ids, place = verbaliser_prompt(tiny_gemma.tokenizer, sidecar, target)
        assert tiny_gemma.tokenizer.decode(token_ids) == (
            "<bos><start_of_turn>user\nAn activation of another model:\n\n<concept><image></concept>\n\nExplain it."
            "<end_of_turn>\n<start_of_turn>model\n"
        )
        # 1 <bos>, 1 <start_of_turn>, 5 "user\n", 33 up to the blank line and 9 "<concept>".
        assert place == 1 + 1 + 5 + 33 + 9
        assert token_ids[place] == 7


def test_a_full_checkpoint_is_asked_without_a_word_about_thinking(tiny_qwen: Loaded) -> None:
    row = sidecar_row(marker="<0>", marker_id=5, neighbours=(byte_id(tiny_qwen, ">"), byte_id(tiny_qwen, "<")))
    token_ids, _ = verbaliser_prompt(tiny_qwen.tokenizer, parsed(row))
    assert tiny_qwen.tokenizer.decode(token_ids).endswith("<|im_start|>assistant\n")


def test_a_token_id_that_is_not_the_tokenizer_s_is_refused(tiny_gemma: Loaded) -> None:
    for changes in ({"marker_id": 6}, {"marker": "㈜", "marker_id": 7}):
        sidecar = parsed(gemma_row(tiny_gemma, **changes))
        with pytest.raises(UserError, match="names the marker .* which the tokenizer encodes as"):
            verbaliser_prompt(tiny_gemma.tokenizer, sidecar)


@pytest.mark.parametrize("side", [0, 1])
def test_a_wrong_neighbour_is_refused(tiny_gemma: Loaded, side: int) -> None:
    row = gemma_row(tiny_gemma)
    key = ("injection_left_neighbor_id", "injection_right_neighbor_id")[side]
    row["tokens"][key] += 1
    with pytest.raises(UserError, match="marker between the tokens .* Expected .* as in training"):
        verbaliser_prompt(tiny_gemma.tokenizer, parsed(row))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("no marker", "with 0 markers"),
        ("{injection_char} and {injection_char}", "with 2 markers"),
        ("{vector} {injection_char}", "cannot be filled in"),
        ("{injection_char} {", "cannot be filled in"),
    ],
)
def test_a_template_that_does_not_hold_one_marker_is_refused(tiny_gemma: Loaded, template: str, message: str) -> None:
    row = gemma_row(tiny_gemma)
    row["prompt_templates"]["av"] = template
    with pytest.raises(UserError, match=message):
        verbaliser_prompt(tiny_gemma.tokenizer, parsed(row))


def test_a_tokenizer_without_a_template_is_refused(tiny_gemma: Loaded) -> None:
    tokenizer = AutoTokenizer.from_pretrained(prepare(tiny_gemma.target))
    tokenizer.chat_template = None
    with pytest.raises(UserError, match="cannot render a prompt"):
        verbaliser_prompt(tokenizer, parsed(gemma_row(tiny_gemma)))


def test_another_width_is_refused() -> None:
    sidecar = parsed(sidecar_row(d_model=64, marker="x", marker_id=1, neighbours=(2, 3)))
    check_model(sidecar, d_model=64, name="tiny-gemma")
    with pytest.raises(UserError, match=r"width 64\. Expected 128, the width of tiny-gemma"):
        check_model(sidecar, d_model=128, name="tiny-gemma")


def test_row_and_sidecar_agree_about_the_layer_and_either_will_do() -> None:
    row = sidecar_row(layer=3, marker="x", marker_id=1, neighbours=(2, 3))
    assert layer_of(parsed(row), 3) == layer_of(parsed(row), None) == 3
    with pytest.raises(UserError, match=r"describes layer 3\. Expected layer 4, as in the target's row"):
        layer_of(parsed(row), 4)
    del row["extraction"]["layer_index"]
    assert layer_of(parsed(row), 5) == 5
    with pytest.raises(UserError, match="describes layer None"):
        layer_of(parsed(row), None)


def test_the_names_that_facts_had_in_other_versions_are_known() -> None:
    row = sidecar_row(layer=3, marker="x", marker_id=1, neighbours=(2, 3))
    now = parsed(row)
    for place in ({"extraction_layer_index": 3}, {"critic": {"extraction_layer_index": 3}}):
        then = sidecar_row(layer=3, marker="x", marker_id=1, neighbours=(2, 3), role="av", **place)
        del then["extraction"]["layer_index"]
        then["prompt_templates"] = {"actor": TEMPLATE}
        then["extraction"]["d_model"] = then.pop("d_model")
        assert parsed(then) == now
    with pytest.raises(UserError, match=r"names the layers \[3, 4\]. Expected one"):
        parsed(row | {"extraction_layer_index": 4})


def test_the_half_that_reconstructs_and_changed_activations_are_refused() -> None:
    row = sidecar_row(marker="x", marker_id=1, neighbours=(2, 3))
    with pytest.raises(UserError, match="has the role 'ar'"):
        parsed(row | {"role": "ar"})
    row["extraction"]["norm"] = "whitened"
    with pytest.raises(UserError, match="changed by 'whitened'"):
        parsed(row)


def test_an_activation_is_brought_to_the_sidecar_s_norm() -> None:
    # |(3, 4)| = 5, scale 80: (3, 4) / 5 x 80 = (48, 64). A zero has no direction and stays one.
    sidecar = parsed(sidecar_row(d_model=2, marker="x", marker_id=1, neighbours=(2, 3)))
    assert torch.allclose(scaled(torch.tensor([[3.0, 4], [0, 0]]), sidecar), torch.tensor([[48.0, 64], [0, 0]]))


@pytest.mark.real
def test_a_special_token_serves_as_marker_in_smollm2_s_template(real_cache: object) -> None:
    target = get_target("smollm2-135m")
    tokenizer = AutoTokenizer.from_pretrained(prepare(target))
    template = tokenizer("<concept><|endoftext|></concept>", add_special_tokens=False).input_ids
    place = template.index(0)
    row = sidecar_row(marker="<|endoftext|>", marker_id=0, neighbours=(template[place - 1], template[place + 1]))
    token_ids, found = verbaliser_prompt(tokenizer, parsed(row), target)
    assert token_ids[found] == 0

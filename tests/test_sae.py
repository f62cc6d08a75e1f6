"""What the sae tool prints, computed by hand on a small autoencoder with known weights."""

import json
from pathlib import Path

import pytest
import torch

from claims.schema import UserError
from tests.tool_bench import ask, readings_of
from tools.model import Loaded
from tools.positions import masked_positions
from tools.readings import Reading
from tools.sae import LABEL_CHARS, TOP_FEATURES, SAETool, compact, describe, load, render
from tools.sae_labels import Label, Labels
from tools.sae_loader import Autoencoder, Dictionary
from tools.sae_local import TopK
from tools.server import make_server
from tools.targets import get_target


def dictionary(topk: TopK, labels: dict[int, tuple[str, ...]], model: str = "tiny-gemma") -> Dictionary:
    by_feature = {index: tuple(Label(text, "auto-token") for text in texts) for index, texts in labels.items()}
    d_model, d_sae = topk.w_enc.shape
    autoencoder = Autoencoder(topk.encode, topk.decode, d_model, d_sae, model, "blocks.1.hook_resid_post", "0")
    return Dictionary(autoencoder, Labels(by_feature, "0"), source="x", fidelity="demo", card=None)


def identity(d: int, k: int) -> TopK:
    """Feature f is dimension f."""
    return TopK(torch.eye(d), torch.zeros(d), torch.eye(d), torch.zeros(d), torch.zeros(d), k)


def reading(residual: list[list[float]], masked: dict[int, str] | None = None) -> Reading:
    texts = ("<bos>", " Sydney", "\\n", " is")[: len(residual)]
    return Reading(texts, ("user",) * len(residual), torch.tensor(residual), masked or {})


def test_features_are_printed_strongest_first_with_value_label_and_index() -> None:
    made = dictionary(identity(4, k=3), {0: ("cities",), 2: ("spaces", "blanks")})
    text = render(made, reading([[9.0, 9, 9, 9], [12.34, 0.5, 150.4, 0.25]]), (1,))
    # Of 12.34, 0.5, 150.4, 0.25 the three largest stay: features 2, 0, 1.
    assert text == '[1] " Sydney": 150 spaces / blanks #2 | 12.3 cities #0 | 0.5 (no label) #1'


def test_lines_follow_the_order_of_the_call_and_say_what_was_not_read() -> None:
    made = dictionary(identity(2, k=1), {0: ("a",), 1: ("b",)})
    masked = {0: "it is the beginning-of-sequence token"}
    text = render(made, reading([[9e4, 0], [1, 2], [3, 1], [-1, -2]], masked), (3, 0, 2))
    assert text.split("\n") == [
        '[3] " is": no active feature',
        '[0] "<bos>": not read, because it is the beginning-of-sequence token',
        '[2] "\\n": 3 a #0',
    ]


def test_a_call_for_masked_positions_only_reads_nothing() -> None:
    made = dictionary(identity(2, k=1), {})
    assert render(made, reading([[1, 2]], {0: "of its norm"}), (0,)) == '[0] "<bos>": not read, because of its norm'


def test_no_more_than_fifteen_features_are_shown() -> None:
    made = dictionary(identity(40, k=32), {})
    shown = render(made, reading([[float(value) for value in range(40)]]), (0,))
    assert [part.rpartition("#")[2] for part in shown.split(" | ")] == [str(39 - n) for n in range(TOP_FEATURES)]


def test_equal_features_are_ordered_by_their_index() -> None:
    made = dictionary(identity(4, k=4), {})
    assert render(made, reading([[1.0, 2, 1, 2]]), (0,)).count("#") == 4
    shown = render(made, reading([[1.0, 2, 1, 2]]), (0,))
    assert [part.rpartition("#")[2] for part in shown.split(" | ")] == ["1", "3", "0", "2"]


def test_a_long_label_is_cut_so_that_output_stays_bounded() -> None:
    made = dictionary(identity(1, k=1), {0: ("x" * 1000,)})
    text = render(made, reading([[1.0]]), (0,))
    assert "x" * (LABEL_CHARS - 3) + "... #0" in text
    assert "x" * (LABEL_CHARS - 2) not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12346"), (150.4, "150"), (99.96, "100"), (12.34, "12.3"), (1.0, "1"), (0.01234, "0.0123")],
)
def test_values_have_three_digits_and_their_whole_integer_part(value: float, text: str) -> None:
    assert compact(value) == text


def test_the_description_names_layer_budget_and_the_source_of_labels() -> None:
    text = describe(dictionary(identity(4, k=3), {0: ("cities",)}), layer=9, n_layers=18)
    assert "block 9 of 18" in text
    assert "15 most active of 4 features" in text
    assert "automatic summary" in text


def test_the_server_reads_the_layer_it_says_and_masks_what_it_says(tmp_path: Path, tiny_gemma: Loaded) -> None:
    """Against a plain forward pass and the identity as autoencoder: the numbers are the residual stream's own."""
    tool = SAETool(tiny_gemma.target, dictionary(identity(64, k=64), {}), layer=1)
    readings = readings_of(tmp_path, tiny_gemma)
    server = make_server("sae", tool, readings)
    token_ids = readings.registered.transcripts["first"].token_ids
    with torch.inference_mode():
        states = tiny_gemma.model(torch.tensor([token_ids]), output_hidden_states=True).hidden_states
    residual = states[2][0]
    for position in (1, 7, len(token_ids) - 1):
        value, index = residual[position].max(dim=0)
        line = ask(server, "read_features", transcript_id="first", positions=[position])[1]
        assert line.partition('": ')[2].startswith(f"{compact(float(value))} (no label) #{int(index)} | ")
    masked = json.loads(ask(server, "list_tokens", transcript_id="first")[1])["masked"]
    assert masked == list(masked_positions(residual, has_bos=True))


def test_an_autoencoder_of_another_width_is_refused_when_it_meets_the_model(tmp_path: Path, tiny_gemma: Loaded) -> None:
    tool = SAETool(tiny_gemma.target, dictionary(identity(4, k=2), {}), layer=1)
    with pytest.raises(UserError, match=r"is 4 wide\. Expected 64"):
        make_server("sae", tool, readings_of(tmp_path, tiny_gemma))


def test_the_hash_of_the_tool_changes_with_weights_and_with_labels() -> None:
    made = dictionary(identity(4, k=3), {})
    relabelled = Dictionary(made.autoencoder, Labels({}, "1"), "x", "demo", None)
    assert made.sha256 != relabelled.sha256
    assert load(get_target("tiny-gemma")).facts.weights_sha256 != load(get_target("tiny-qwen")).facts.weights_sha256

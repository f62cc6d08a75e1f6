"""What `adding` adds, by hand, and that it adds it there and nowhere else."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from transformers import Gemma3ForConditionalGeneration, PreTrainedModel

from tools.activations import adding
from tools.model import Loaded, decoder_layers, load
from tools.targets import get_target
from tools.weights import prepare

IDS = torch.tensor([[2, 30, 31, 32, 33, 34], [2, 40, 41, 42, 43, 44]])


class Block(nn.Module):
    """Gives out what it was given: a block whose output is known."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden


class Stack(PreTrainedModel):
    """Two such blocks where a language model has its own."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.layers = nn.ModuleList([Block(), Block()])

    def get_decoder(self) -> "Stack":
        return self

    def forward(self, hidden: Tensor) -> Tensor:
        for block in self.layers:
            hidden = block(hidden)
        return hidden


def places(*pairs: tuple[int, int]) -> tuple[Tensor, Tensor]:
    return torch.tensor([row for row, _ in pairs]), torch.tensor([position for _, position in pairs])


def stream(model: nn.Module, block: int, run: Callable[[], object]) -> Tensor:
    """The output of a block, as the block after it gets it."""
    kept: list[Tensor] = []
    handle = decoder_layers(model)[block + 1].register_forward_pre_hook(lambda module, args: kept.append(args[0]))
    run()
    handle.remove()
    return kept[0].detach().clone()


def test_a_vector_is_added_with_the_norm_that_was_there() -> None:
    # |h| = |(3, 4)| = 5 and v / |v| = (0, 10) / 10 = (0, 1): (3, 4) becomes (3, 4) + 5 (0, 1) = (3, 9).
    # With coefficient 2 at (6, 8), |h| = 10, v / |v| = (0.6, -0.8): (6, 8) + 20 (0.6, -0.8) = (18, -8).
    hidden = torch.tensor([[[1.0, 1], [3, 4], [5, 5]], [[6, 8], [7, 7], [9, 9]]])
    with adding(Stack(), 1, *places((0, 1)), torch.tensor([[0.0, 10]])):
        pass
    model = Stack()
    with adding(model, 0, *places((0, 1)), torch.tensor([[0.0, 10]])):
        assert model(hidden).tolist() == [[[1, 1], [3, 9], [5, 5]], [[6, 8], [7, 7], [9, 9]]]
    with adding(model, 1, *places((1, 0)), torch.tensor([[3.0, -4]]), coefficient=2.0):
        assert torch.allclose(model(hidden)[1, 0], torch.tensor([18.0, -8]))
    assert model(hidden) is hidden


def test_a_token_at_a_time_is_left_alone_and_a_zero_vector_adds_nothing() -> None:
    model = Stack()
    one, two = torch.tensor([[[3.0, 4]]]), torch.tensor([[[3.0, 4], [1, 1]]])
    with adding(model, 0, *places((0, 0)), torch.tensor([[0.0, 10]])):
        assert model(one).tolist() == [[[3, 4]]]
        assert model(two).tolist() == [[[3, 9], [1, 1]]]
    with adding(model, 0, *places((0, 0)), torch.zeros(1, 2)):
        assert model(two).tolist() == two.tolist()


def test_what_is_added_is_a_constant_and_gradients_flow_through_the_rest() -> None:
    # h + |h| v / |v| with the second term held fixed: the derivative by h is the identity.
    model = Stack()
    hidden = torch.tensor([[[3.0, 4], [1, 1]]], requires_grad=True)
    with adding(model, 0, *places((0, 0)), torch.tensor([[0.0, 10]])):
        out = model(hidden)
    out[0, 0].sum().backward()
    assert out[0, 0].tolist() == [3, 9]
    assert hidden.grad is not None
    assert hidden.grad.tolist() == [[[1, 1], [0, 0]]]


def test_places_that_do_not_fit_are_refused() -> None:
    with (
        pytest.raises(ValueError, match="block 2: expected one from 0 to 1"),
        adding(Stack(), 2, *places((0, 0)), torch.ones(1, 2)),
    ):
        pass
    with (
        pytest.raises(ValueError, match="1 rows, 1 positions, 2 vectors"),
        adding(Stack(), 0, *places((0, 0)), torch.ones(2, 2)),
    ):
        pass


@pytest.fixture(scope="module", params=["tiny-gemma", "tiny-qwen", "tiny-gemma-mm"])
def tiny(request: pytest.FixtureRequest) -> Loaded:
    return load(get_target(request.param), dtype="float32", device="cpu")


def test_in_a_real_architecture_only_the_chosen_place_changes_and_by_the_formula(tiny: Loaded) -> None:
    vectors = torch.randn(2, tiny.d_model, generator=torch.Generator().manual_seed(0))
    clean = stream(tiny.model, 1, lambda: tiny.model(IDS))
    with torch.no_grad(), adding(tiny.model, 1, *places((0, 3), (1, 2)), vectors):
        changed = stream(tiny.model, 1, lambda: tiny.model(IDS))
    for (row, position), vector in zip([(0, 3), (1, 2)], vectors, strict=True):
        h = clean[row, position]
        assert torch.allclose(changed[row, position], h + h.norm() * vector / vector.norm(), atol=1e-5)
        clean[row, position] = changed[row, position]
    assert torch.equal(clean, changed)
    assert torch.equal(stream(tiny.model, 0, lambda: tiny.model(IDS)), stream(tiny.model, 0, lambda: tiny.model(IDS)))


@pytest.fixture
def adapted(tiny: Loaded) -> Iterator[tuple[Loaded, nn.Module]]:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, target_modules=["q_proj", "up_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    wrapped = get_peft_model(tiny.model, config)
    yield tiny, wrapped
    wrapped.unload()


def test_a_peft_model_and_one_in_its_multimodal_wrapper_show_their_blocks(adapted: tuple[Loaded, nn.Module]) -> None:
    tiny, wrapped = adapted
    assert list(decoder_layers(wrapped)) == list(decoder_layers(tiny.model))
    assert len(decoder_layers(wrapped)) == tiny.target.n_layers
    whole = Gemma3ForConditionalGeneration.from_pretrained(prepare(get_target("tiny-gemma-mm")))
    assert len(decoder_layers(whole)) == 4


def test_training_through_a_peft_model_reaches_the_adapters_on_both_sides_of_the_injection(
    adapted: tuple[Loaded, nn.Module],
) -> None:
    tiny, wrapped = adapted
    vectors = torch.randn(1, tiny.d_model, generator=torch.Generator().manual_seed(0))
    with adding(wrapped, 0, *places((0, 2)), vectors):
        loss = wrapped(input_ids=IDS, labels=IDS).loss
    loss.backward()
    with torch.no_grad():
        assert not torch.equal(loss, wrapped(input_ids=IDS, labels=IDS).loss)
    reached = {name for name, value in wrapped.named_parameters() if value.grad is not None and value.grad.any()}
    for block in (0, 1):
        assert any(f"layers.{block}.self_attn.q_proj.lora_A" in name for name in reached)
    assert all("lora_" in name for name in reached)

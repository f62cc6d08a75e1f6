"""Answers under injected vectors: batched as alone, with a prefix as without, endings, seeds, memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import peft
import pytest
import torch
from peft.tuners.lora import LoraLayer

from tools import steered as module
from tools.memory import OutOfMemory
from tools.model import Loaded, load
from tools.steered import AfterBlock, AtEmbedding, Generated, Injection, Steered, generate
from tools.steered_state import SteeredState, causal_model
from tools.targets import get_target

TOLERANCE = 2e-4
"""Largest difference of float32 logits between a batch and a row alone, on logits of about 10."""
SHARED = tuple(range(20, 52))
"""A prefix of 32 tokens: twice the tiny Gemma's window."""


@pytest.fixture(scope="module")
def oracle(tiny_gemma: Loaded) -> Iterator[torch.nn.Module]:
    """The tiny Gemma, anew, with an adapter that changes what it says."""
    base = load(get_target("tiny-gemma"), dtype="float32", device="cpu").model
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield peft.get_peft_model(base, config).eval()


def item(n: int, *, d_model: int = 64, vectors: int = 2, seed: int = 0, shared: Sequence[int] = SHARED) -> Steered:
    """A prompt of the shared tokens and `n` more, the first `vectors` of which carry one each."""
    rng = torch.Generator().manual_seed(1000 * n + seed)
    own = torch.randint(10, 250, (n,), generator=rng).tolist()
    places = tuple(len(shared) + i for i in range(vectors))
    return Steered((*shared, *own), places, torch.randn(vectors, d_model, generator=rng), seed)


LENGTHS = (3, 40, 7, 12, 5, 33)
ITEMS = [item(n, vectors=1 + n % 3, seed=n) for n in LENGTHS]
INJECTIONS = [AfterBlock(1), AfterBlock(0, 3.0), AtEmbedding()]


def say(loaded: Loaded, items: Sequence[Steered], injection: Injection, **settings: object) -> list[Generated]:
    return generate(loaded.model, loaded.tokenizer, items, injection, **{"max_tokens": 12, **settings})  # type: ignore[arg-type]


@pytest.fixture(params=["tiny-gemma", "tiny-qwen"])
def tiny(request: pytest.FixtureRequest, tiny_gemma: Loaded, tiny_qwen: Loaded) -> Loaded:
    return tiny_gemma if request.param == "tiny-gemma" else tiny_qwen


@pytest.mark.parametrize("injection", INJECTIONS, ids=str)
def test_an_answer_is_the_same_alone_in_a_batch_and_with_a_shared_prefix(tiny: Loaded, injection: Injection) -> None:
    alone = [say(tiny, [one], injection)[0] for one in ITEMS]
    assert say(tiny, ITEMS, injection) == alone
    assert say(tiny, ITEMS[::-1], injection, prefix=len(SHARED)) == alone[::-1]
    assert say(tiny, ITEMS, injection, prefix=5) == alone
    # The vectors do something, or this test would show little.
    assert say(tiny, [Steered(one.prompt_ids, (), one.vectors[:0]) for one in ITEMS], injection) != alone


@pytest.mark.parametrize("injection", INJECTIONS, ids=str)
@pytest.mark.parametrize("prefix", [0, 5, 32])
def test_logits_of_a_batch_are_those_of_a_row_alone_within_tolerance(
    tiny: Loaded, injection: Injection, prefix: int
) -> None:
    with torch.inference_mode():
        together = SteeredState(tiny.model, ITEMS, injection, prefix).logits.clone()
        for row, one in enumerate(ITEMS):
            alone = SteeredState(tiny.model, [one], injection, 0).logits[0]
            assert float((together[row] - alone).abs().max()) < TOLERANCE


def test_an_adapter_answers_as_it_is_switched_and_its_prefix_is_not_the_bases(
    tiny_gemma: Loaded, oracle: torch.nn.Module
) -> None:
    def ask(prefix: int) -> list[Generated]:
        return generate(oracle, tiny_gemma.tokenizer, ITEMS, AfterBlock(1), max_tokens=12, prefix=prefix)  # type: ignore[arg-type]

    adapted = ask(0)
    assert ask(32) == adapted
    with oracle.disable_adapter():  # type: ignore[operator]
        base = ask(32)
    assert base == say(tiny_gemma, ITEMS, AfterBlock(1)) != adapted
    assert ask(32) == adapted


def test_a_prefix_is_computed_again_after_a_training_step(tiny_gemma: Loaded, oracle: torch.nn.Module) -> None:
    def logits(prefix: int) -> torch.Tensor:
        with torch.inference_mode():
            return SteeredState(oracle, ITEMS, AfterBlock(1), prefix).logits.clone()  # type: ignore[arg-type]

    before = logits(32)
    weights = [weight for weight in oracle.parameters() if weight.requires_grad]
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.05)
    assert float((logits(32) - logits(0)).abs().max()) < TOLERANCE < float((logits(0) - before).abs().max())


def test_a_vector_at_the_embedding_that_is_the_tokens_own_changes_nothing(tiny_gemma: Loaded) -> None:
    # Gemma's embedding module scales; a second scaling, or none, would show.
    ids = (*SHARED, 60, 61, 62)
    with torch.inference_mode():
        own = causal_model(tiny_gemma.model).get_input_embeddings()(torch.tensor([ids[33]])).clone()
    injected = say(tiny_gemma, [Steered(ids, (33,), own)], AtEmbedding())
    assert injected == say(tiny_gemma, [Steered(ids, (), own[:0])], AtEmbedding())
    assert injected != say(tiny_gemma, [Steered(ids, (33,), own * 8)], AtEmbedding())


def test_greedy_answers_are_those_of_the_models_own_generate(tiny: Loaded) -> None:
    plain = [Steered(one.prompt_ids, (), one.vectors[:0]) for one in ITEMS]
    for one, answer in zip(plain, say(tiny, plain, AtEmbedding(), prefix=32), strict=True):
        ids = torch.tensor([one.prompt_ids])
        with torch.inference_mode():
            out = tiny.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        theirs = out[0, ids.shape[1] :].tolist()
        assert list(answer.token_ids) == (theirs[: len(answer.token_ids)])
        assert answer.finished == (len(answer.token_ids) < 12)


def test_sampled_answers_go_by_the_items_seed_and_by_nothing_else(tiny_gemma: Loaded) -> None:
    twins = [item(9, seed=0), item(9, seed=0)]
    other = Steered(twins[0].prompt_ids, twins[0].positions, twins[0].vectors, seed=7)
    free = {"temperature": 1.0, "top_p": 0.95}
    first, second, third = say(tiny_gemma, [*twins, other], AfterBlock(1), **free)
    assert first == second != third
    assert say(tiny_gemma, [other, *ITEMS, twins[0]], AfterBlock(1), **free, prefix=32)[0] == third
    assert say(tiny_gemma, [twins[0]], AfterBlock(1), **free) == [first]


def test_an_answer_ends_with_its_stop_text_and_stops_costing(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = say(tiny_gemma, ITEMS, AfterBlock(1), max_tokens=40)
    stop = free[0].text[1:3]
    assert stop
    widths: list[int] = []
    advance = SteeredState.advance
    monkeypatch.setattr(
        SteeredState, "advance", lambda self, tokens: (widths.append(len(tokens)), advance(self, tokens))[1]
    )
    stopped = say(tiny_gemma, ITEMS, AfterBlock(1), max_tokens=40, stop=stop)
    assert stopped[0].text == free[0].text[: free[0].text.index(stop) + len(stop)]
    assert stopped[0].finished
    for one, whole in zip(stopped, free, strict=True):
        assert one.text == (whole.text.split(stop)[0] + stop if stop in whole.text else whole.text)
    assert widths[0] == len(ITEMS)
    assert widths[-1] < len(ITEMS)
    assert sum(widths) == sum(len(one.token_ids) - 1 + (one.finished and stop not in one.text) for one in stopped)


@contextmanager
def memory_for(rows: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """As if more than `rows` rows did not fit."""
    tried: list[int] = []

    class Small(SteeredState):
        def __init__(self, model: object, items: Sequence[Steered], injection: Injection, prefix: int) -> None:
            tried.append(len(items))
            if len(items) > rows:
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 1 TB")
            super().__init__(model, items, injection, prefix)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(module, "SteeredState", Small)
        yield tried


def test_a_batch_that_does_not_fit_is_split_and_a_single_item_that_does_not_is_an_error(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = say(tiny_gemma, ITEMS, AfterBlock(1))
    with memory_for(2, monkeypatch) as tried:
        assert say(tiny_gemma, ITEMS, AfterBlock(1)) == whole
    assert tried == [6, 3, 1, 2, 3, 1, 2]
    with memory_for(0, monkeypatch), pytest.raises(OutOfMemory, match="one item alone"):
        say(tiny_gemma, ITEMS, AfterBlock(1))
    assert say(tiny_gemma, ITEMS, AfterBlock(1)) == whole


def test_more_items_than_one_batch_holds_come_back_in_order(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = say(tiny_gemma, ITEMS, AfterBlock(1))
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    assert say(tiny_gemma, ITEMS, AfterBlock(1)) == whole
    monkeypatch.setattr(module, "MAX_POSITIONS", 100)
    assert say(tiny_gemma, ITEMS, AfterBlock(1), prefix=32) == whole


@pytest.mark.parametrize(
    ("bad", "prefix", "why"),
    [
        (Steered((), (), torch.zeros(0, 64)), 0, "a prompt of 0 tokens"),
        (Steered((9,) * 8190, (), torch.zeros(0, 64)), 0, "a prompt of 8190 tokens; expected 1 to 8192 less 12"),
        (Steered((9, 9), (2,), torch.zeros(1, 64)), 0, r"positions \(2,\): expected each from 0"),
        (Steered((9, 9), (1,), torch.zeros(2, 64)), 0, r"vectors of shape \(2, 64\) for 1 positions"),
        (Steered((9, 9, 9), (0,), torch.zeros(1, 64)), 1, r"expected each from 1 \(the prefix\)"),
        (item(3, shared=(1, 2)), 2, "differ within their first 2 tokens"),
    ],
)
def test_an_impossible_item_is_refused_before_anything_runs(
    tiny_gemma: Loaded, bad: Steered, prefix: int, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        say(tiny_gemma, [ITEMS[0], bad], AfterBlock(1), prefix=prefix)


def test_logits_that_are_no_numbers_are_an_error(tiny_gemma: Loaded) -> None:
    bad = Steered(ITEMS[0].prompt_ids, (40,), torch.full((1, 64), float("nan")))
    with pytest.raises(FloatingPointError, match="nan or infinity"):
        say(tiny_gemma, [Steered((*SHARED, *range(60, 70)), (40,), bad.vectors)], AtEmbedding())


def test_a_prefix_is_another_when_the_adapter_of_some_layers_is_switched(
    tiny_gemma: Loaded, oracle: torch.nn.Module
) -> None:
    """As serving does it: layer by layer, on the bare model, without PEFT's wrapper around it."""
    bare = causal_model(oracle)  # type: ignore[arg-type]
    layers = [module for module in bare.modules() if isinstance(module, LoraLayer)]

    def ask(prefix: int) -> list[Generated]:
        return generate(bare, tiny_gemma.tokenizer, ITEMS, AfterBlock(1), max_tokens=12, prefix=prefix)

    adapted = ask(32)
    for layer in layers[:5]:
        layer.enable_adapters(enabled=False)
    try:
        assert ask(32) == ask(0) != adapted
    finally:
        for layer in layers[:5]:
            layer.enable_adapters(enabled=True)
    assert ask(32) == adapted

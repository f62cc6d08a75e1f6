"""Both backends give what a plain forward hook gives, whatever the batch, and stop early."""

import gc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from conftest import load_real
from torch import Tensor

from claims.schema import UserError
from tools.activations import (
    DEFAULT_READER,
    MAX_POSITIONS,
    READERS,
    ActivationError,
    ActivationReader,
    PlainHookReader,
    _groups,
    make_reader,
)
from tools.model import Loaded, decoder_layers, load
from tools.owner import ModelThread
from tools.parity import ordinary_ids
from tools.targets import get_target
from tools.tiny import SLIDING_WINDOW

TINY = ("tiny-gemma", "tiny-qwen", "tiny-gemma-mm")


def fresh(name: str) -> Loaded:
    return load(get_target(name), dtype="float32", device="cpu")


def random_ids(loaded: Loaded, *lengths: int) -> list[list[int]]:
    rng = torch.Generator().manual_seed(len(lengths))
    return [torch.randint(10, loaded.model.config.vocab_size, (n,), generator=rng).tolist() for n in lengths]


def hooked(loaded: Loaded, token_ids: Sequence[int], layers: Sequence[int]) -> dict[int, Tensor]:
    """The reference: torch's own hooks, one sequence, no padding, the whole pass."""
    found: dict[int, Tensor] = {}

    def keep(k: int):
        return lambda block, args, output: found.update({k: (output[0] if isinstance(output, tuple) else output)[0]})

    handles = [decoder_layers(loaded.model)[k].register_forward_hook(keep(k)) for k in layers]
    with torch.inference_mode():
        loaded.model.get_decoder()(torch.tensor([token_ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    return {k: value.float().clone() for k, value in found.items()}


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Largest over positions of |difference| / |expected|."""
    assert found.shape == expected.shape
    return float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max())


@pytest.fixture(scope="module", params=[(name, reader) for name in TINY for reader in READERS], ids="-".join)
def reading(request: pytest.FixtureRequest) -> tuple[Loaded, ActivationReader]:
    """An untouched model for the reference, and a reader on a model of its own."""
    name, reader = request.param
    return fresh(name), make_reader(reader, fresh(name))


@pytest.fixture(scope="module")
def reader(reading: tuple[Loaded, ActivationReader]) -> ActivationReader:
    return reading[1]


def test_mixed_lengths_give_what_a_plain_hook_gives_on_each_alone(reading: tuple[Loaded, ActivationReader]):
    plain, reader = reading
    layers = range(plain.target.n_layers)
    batch = random_ids(plain, 3 * SLIDING_WINDOW, 1, SLIDING_WINDOW, 7, SLIDING_WINDOW + 1)
    for token_ids, found in zip(batch, reader.read(batch, layers), strict=True):
        assert list(found) == list(layers)
        for k, expected in hooked(plain, token_ids, layers).items():
            assert found[k].dtype == torch.float32
            assert relative_error(found[k], expected) < 1e-5


def test_layer_k_is_the_stream_after_block_k_and_the_last_one_is_before_the_final_norm(
    reading: tuple[Loaded, ActivationReader],
):
    plain, reader = reading
    token_ids = random_ids(plain, 30)[0]
    with torch.inference_mode():
        states = plain.model(torch.tensor([token_ids]), output_hidden_states=True).hidden_states
    last = plain.target.n_layers - 1
    found = reader.read([token_ids], [0, last])[0]
    assert relative_error(found[0], states[1][0]) < 1e-5
    with torch.inference_mode():
        assert relative_error(plain.model.get_decoder().norm(found[last]), states[-1][0]) < 1e-5
    assert relative_error(found[last], states[-1][0]) > 0.01


def test_a_result_depends_neither_on_its_neighbours_nor_on_the_layers_asked_for(reader: ActivationReader):
    batch = random_ids(reader.loaded, 5, 40, 11)
    together = reader.read(batch, [0, 1, 2])
    for token_ids, found in zip(batch, together, strict=True):
        alone = reader.read([token_ids], [1])[0]
        assert list(alone) == [1]
        assert relative_error(alone[1], found[1]) < 1e-5
    assert reader.read([], [0]) == []


def test_an_earlier_token_changes_a_later_position_and_never_the_reverse(reader: ActivationReader):
    token_ids = random_ids(reader.loaded, 12)[0]
    changed = [*token_ids[:6], token_ids[6] % 200 + 20, *token_ids[7:]]
    assert changed != token_ids
    one, other = (found[2] for found in reader.read([token_ids, changed], [2]))
    assert torch.equal(one[:6], other[:6])
    assert (one[6:] - other[6:]).norm(dim=-1).min() > 1e-3


def test_neither_a_deeper_block_nor_the_lm_head_runs(reader: ActivationReader):
    ran: list[int] = []
    inner = [block.mlp for block in decoder_layers(reader.loaded.model)]
    handles = [mlp.register_forward_hook(lambda block, args, output, k=k: ran.append(k)) for k, mlp in enumerate(inner)]
    handles.append(reader.loaded.model.lm_head.register_forward_hook(lambda head, args, output: ran.append(-1)))
    reader.read(random_ids(reader.loaded, 9), [1, 0])
    reader.read(random_ids(reader.loaded, 9), [len(inner) - 1])
    for handle in handles:
        handle.remove()
    assert ran == [0, 1, *range(len(inner))]


def test_a_read_leaves_no_hook_and_no_change_behind(reader: ActivationReader):
    def n_hooks() -> int:
        return sum(len(module._forward_hooks) for module in reader.loaded.model.modules())

    batch = random_ids(reader.loaded, 20)
    reader.read(batch, [2])
    before = n_hooks()
    first = reader.read(batch, [0])[0][0]
    assert n_hooks() == before
    with pytest.raises(UserError):
        reader.read([[10**6]], [0])
    assert torch.equal(reader.read(batch, [0])[0][0], first)


@pytest.mark.parametrize("layers", [[], [-1], [99], [0, 4]])
def test_layers_that_the_target_lacks_are_refused(reader: ActivationReader, layers: list[int]):
    with pytest.raises(ValueError, match="expected at least one, each from 0 to"):
        reader.read([[1, 2]], layers)


def test_token_ids_that_are_not_the_target_s_are_refused_by_name(tiny_qwen: Loaded):
    reader = make_reader("nnsight", tiny_qwen)
    with pytest.raises(UserError, match="Transcript b has the token id 264; tiny-qwen has ids 0 to 263"):
        reader.read([[5], [264]], [0], names=["a", "b"])
    with pytest.raises(UserError, match="Transcript number 1 of the batch has 0 tokens"):
        reader.read([[5], []], [0])
    with pytest.raises(UserError, match="has 8193 tokens; tiny-qwen reads 1 to 8192"):
        reader.read([[5] * 8193], [0])


def test_an_unknown_reader_is_answered_with_the_known_ones(tiny_qwen: Loaded):
    with pytest.raises(UserError, match="'jax'.*transformer-lens, nnsight"):
        make_reader("jax", tiny_qwen)
    assert DEFAULT_READER in READERS


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_transcript_whose_stream_is_no_number_is_named_and_its_neighbours_are_not(name: str, value: float):
    loaded = fresh("tiny-qwen")
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight[77] = value
    reader = make_reader(name, loaded)
    batch = [[5, 6, 8], [5, 6, 77, 8, 9]]
    assert len(reader.read(batch[:1], [0])) == 1
    # Attention weighs a masked key with 0, and 0 times nan is nan: every position of the row is hit.
    with pytest.raises(ActivationError, match=r"Transcript bad: .* block 1 holds nan at position 0 \(5 of 5 positions"):
        reader.read(batch, [1], names=["good", "bad"])


def test_the_first_position_that_is_no_number_is_named(tiny_qwen: Loaded, monkeypatch: pytest.MonkeyPatch):
    reader = make_reader("nnsight", tiny_qwen)

    def capture(token_ids: Tensor, mask: Tensor, layers: Sequence[int]) -> dict[int, Tensor]:
        values = torch.zeros(*token_ids.shape, 4)
        values[1, 3:, 2] = -float("inf")
        return dict.fromkeys(layers, values)

    monkeypatch.setattr(reader, "_capture", capture)
    assert len(reader.read([[5], [6, 7, 8]], [2])) == 2
    with pytest.raises(ActivationError, match=r"Transcript b: .* block 2 holds -inf at position 3 \(2 of 5 positions"):
        reader.read([[5], [6] * 5], [2], names=["a", "b"])


def test_an_overflow_inside_a_block_is_found_there_and_not_before():
    loaded = fresh("tiny-qwen")
    with torch.no_grad():
        decoder_layers(loaded.model)[1].mlp.down_proj.weight.fill_(3e38)
    reader = make_reader("nnsight", loaded)
    assert list(reader.read([[5, 6, 7]], [0])[0]) == [0]
    with pytest.raises(ActivationError, match="after block 1"):
        reader.read([[5, 6, 7]], [0, 1])


@pytest.mark.parametrize("name", READERS)
def test_eight_threads_get_exactly_what_one_gets(name: str):
    reader = make_reader(name, fresh("tiny-gemma"))
    batches = [random_ids(reader.loaded, 5 + i, 31 - i) for i in range(24)]
    layers = [[i % 4] for i in range(24)]
    serial = [reader.read(batch, wanted) for batch, wanted in zip(batches, layers, strict=True)]
    with ThreadPoolExecutor(8) as pool:
        threaded = list(pool.map(reader.read, batches, layers))
    for expected, found in zip(serial, threaded, strict=True):
        for one, other in zip(expected, found, strict=True):
            assert list(one) == list(other)
            assert all(torch.equal(one[k], other[k]) for k in one)


def test_a_model_s_thread_runs_one_call_at_a_time_and_its_own_calls_at_once():
    thread = ModelThread("test")
    running = []

    def call(i: int) -> int:
        running.append(i)
        assert len(running) == 1
        assert torch.is_inference_mode_enabled()
        assert thread.run(lambda: len(running)) == 1
        running.pop()
        return i

    futures = [thread.submit(lambda i=i: call(i)) for i in range(50)]
    assert [future.result() for future in futures] == list(range(50))
    assert not torch.is_inference_mode_enabled()
    with pytest.raises(ZeroDivisionError):
        thread.run(lambda: 1 // 0)
    assert thread.run(lambda: call(3)) == 3


def test_a_batch_is_split_into_groups_that_fit_with_like_lengths_together():
    lengths = [700, 3, 5000, 650, 4, 2000, 2000, 2000]
    groups = list(_groups([[0] * n for n in lengths]))
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    assert groups[-1] == [2]
    for group in groups[:-1]:
        assert len(group) * max(lengths[i] for i in group) <= MAX_POSITIONS
    # 3, 4, 650, 700 (4 x 700); 2000, 2000; 2000; 5000 alone, though it does not fit.
    assert [[lengths[i] for i in group] for group in groups] == [[3, 4, 650, 700], [2000, 2000], [2000], [5000]]


def test_a_split_batch_gives_what_a_whole_one_gives(monkeypatch: pytest.MonkeyPatch, tiny_gemma: Loaded):
    reader = make_reader("nnsight", tiny_gemma)
    batch = random_ids(tiny_gemma, 30, 2, 17, 9, 30)
    whole = reader.read(batch, [1])
    monkeypatch.setattr("tools.activations.MAX_POSITIONS", 35)
    for one, other in zip(whole, reader.read(batch, [1]), strict=True):
        assert relative_error(other[1], one[1]) < 1e-5


def test_the_reference_reader_is_a_plain_hook(tiny_gemma: Loaded):
    batch = random_ids(tiny_gemma, 21)
    found = PlainHookReader(tiny_gemma).read(batch, [0, 2])[0]
    for k, expected in hooked(tiny_gemma, batch[0], [0, 2]).items():
        assert torch.equal(found[k], expected)


@pytest.mark.real
@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m"])
def test_both_backends_match_a_plain_hook_on_a_real_model(name: str):
    loaded = load_real(name, "float32")
    layers = [0, loaded.target.sae.layer]
    batch = ordinary_ids(loaded, [540, 8])
    assert len(batch[0]) > (getattr(loaded.model.config, "sliding_window", None) or 0)
    plain = PlainHookReader(loaded)
    expected = [plain.read([token_ids], layers)[0] for token_ids in batch]
    # nnsight first: transformer-lens puts its own blocks into the model.
    for backend in ("nnsight", "transformer-lens"):
        found = make_reader(backend, loaded).read(batch, layers)
        for one, other in zip(found, expected, strict=True):
            assert max(relative_error(one[k], other[k]) for k in layers) < 1e-5, backend
    del loaded
    gc.collect()

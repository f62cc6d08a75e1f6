"""Sampling: the cuts by hand and against a naive twin, the law, batching, endings, determinism."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import load_real

from claims.schema import Message, UserError
from tools import sampling as module
from tools.chat import encode_prompt
from tools.draw import draw, top_logits
from tools.model import Loaded, load
from tools.sampling import Request, Sample, row_uniforms, sample
from tools.targets import Sampling, get_target

GREEDY = Sampling(temperature=1.0, top_k=1, top_p=1.0, max_tokens=6)
FREE = Sampling(temperature=1.0, top_k=0, top_p=1.0, max_tokens=12)


def ask(text: str, n: int = 1, *, key: str | None = None, seed: int = 0, first: int = 0) -> Request:
    return Request((Message("user", text),), n, key or text, seed, first)


def drawn(probabilities: list[float], settings: Sampling, *uniforms: float) -> list[int]:
    logits = torch.log(torch.tensor(probabilities)).expand(len(uniforms), -1)
    return draw(logits, settings, torch.tensor(uniforms, dtype=torch.float64)).tolist()


def test_top_k_keeps_the_most_likely_and_renormalises() -> None:
    # .5 and .3 stay: .625 and .375, laid out by id.
    settings = Sampling(1.0, 2, 1.0, 1)
    assert drawn([0.05, 0.5, 0.15, 0.3], settings, 0.0, 0.62, 0.63, 0.999) == [1, 1, 3, 3]


def test_top_p_keeps_the_smallest_set_that_holds_the_mass() -> None:
    # .5 alone is below .7, .5 + .3 is not: two stay. At .5 exactly one does.
    assert drawn([0.05, 0.5, 0.15, 0.3], Sampling(1.0, 0, 0.7, 1), 0.62, 0.63, 0.999) == [1, 3, 3]
    assert drawn([0.05, 0.5, 0.15, 0.3], Sampling(1.0, 0, 0.4999, 1), 0.0, 0.999) == [1, 1]


def test_top_p_is_taken_inside_the_top_k() -> None:
    # Of .4, .3, .2, .1 a top-p of .5 keeps two; after top-k 2 the first has .4 / .7 = .57 and stands alone.
    assert drawn([0.4, 0.3, 0.2, 0.1], Sampling(1.0, 0, 0.5, 1), 0.999) == [1]
    assert drawn([0.4, 0.3, 0.2, 0.1], Sampling(1.0, 2, 0.5, 1), 0.999) == [0]


def test_temperature_one_half_squares_the_probabilities() -> None:
    # .8 and .2 become .64 / .68 = .941 and .059.
    assert drawn([0.8, 0.2], Sampling(0.5, 0, 1.0, 1), 0.94, 0.942) == [0, 1]


def naive(logits: torch.Tensor, settings: Sampling, uniform: float) -> int:
    """One row, by full sort and a loop."""
    scores = logits.double() / settings.temperature
    order = sorted(range(len(scores)), key=lambda token: -float(scores[token]))
    if settings.top_k:
        order = order[: settings.top_k]
    shares = torch.softmax(scores[order], 0).tolist()
    kept: dict[int, float] = {}
    mass = 0.0
    for token, share in zip(order, shares, strict=True):
        if mass < settings.top_p:
            kept[token] = share
            mass += share
    at = uniform * mass
    for token in sorted(kept):
        at -= kept[token]
        if at < 0:
            return token
    raise AssertionError("the shares do not reach the uniform number")


@pytest.mark.parametrize(
    "settings",
    [
        Sampling(0.6, 0, 0.9, 1),
        Sampling(1.0, 0, 0.99, 1),
        Sampling(1.3, 7, 0.8, 1),
        Sampling(0.6, 64, 0.9, 1),
        Sampling(1.0, 0, 1.0, 1),
        Sampling(1.0, 5000, 0.95, 1),
    ],
)
@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_a_draw_equals_that_of_a_naive_twin(settings: Sampling, spread: float) -> None:
    rng = np.random.default_rng(3)
    logits = torch.tensor(spread * rng.standard_normal((20, 2048)))
    uniforms = rng.random(20)
    expected = [naive(row, settings, float(u)) for row, u in zip(logits, uniforms, strict=True)]
    assert draw(logits, settings, torch.from_numpy(uniforms)).tolist() == expected


def test_the_search_by_chunks_finds_the_same_as_topk() -> None:
    logits = torch.tensor(np.random.default_rng(0).standard_normal((5, 64 * 64)))
    values, ids = top_logits(logits, 16)
    expected = logits.topk(16)
    assert torch.equal(values, expected.values)
    assert torch.equal(ids, expected.indices)


def test_evenly_spaced_numbers_give_each_token_its_share() -> None:
    n = 10_000
    logits = torch.tensor(np.random.default_rng(1).standard_normal(50))
    uniforms = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    tokens = draw(logits.expand(n, -1), FREE, uniforms)
    shares = torch.bincount(tokens, minlength=50) / n
    assert torch.allclose(shares.double(), torch.softmax(logits, 0), atol=1.01 / n, rtol=0)


def test_logits_that_are_no_numbers_are_named() -> None:
    with pytest.raises(FloatingPointError, match="nan or infinity"):
        draw(torch.tensor([[0.0, float("nan")]]), FREE, torch.tensor([0.5]))


def test_samples_follow_the_softmax_of_a_plain_forward_pass(tiny_qwen: Loaded) -> None:
    n = 6000
    prompt = encode_prompt(tiny_qwen.tokenizer, tiny_qwen.target, ask("hello").messages)
    with torch.inference_mode():
        shares = torch.softmax(tiny_qwen.model(torch.tensor([prompt])).logits[0, -1].double(), 0).numpy()
    found = sample(tiny_qwen, [ask("hello", n)], sampling=replace(FREE, max_tokens=1))[0]
    [end] = end_ids(tiny_qwen)
    counts = Counter(one.token_ids[0] if one.token_ids else end for one in found)
    expected = n * shares
    observed = np.array([counts[token] for token in range(len(shares))])
    chi_square = float(((observed - expected) ** 2 / expected).sum())
    # Mean of the law is the degrees of freedom, its variance twice that; 4 standard deviations.
    freedom = len(shares) - 1
    assert abs(chi_square - freedom) < 4 * np.sqrt(2 * freedom)


PROMPTS = ["a", "What is the capital of Australia, and why is it not Sydney?", "one two three", "hm"]


def end_ids(loaded: Loaded) -> list[int]:
    ids = loaded.model.generation_config.eos_token_id
    return ids if isinstance(ids, list) else [ids]


def without_a_cache(loaded: Loaded, request: Request, index: int) -> tuple[int, ...]:
    """One row, the whole text run again for every token, alone in its batch."""
    prompt = encode_prompt(loaded.tokenizer, loaded.target, request.messages)
    token_ids: list[int] = []
    for uniform in row_uniforms(request.key, index, request.seed, FREE.max_tokens):
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([[*prompt, *token_ids]]), use_cache=False).logits[0, -1]
        token_ids.append(naive(logits, FREE, float(uniform)))
        if token_ids[-1] in end_ids(loaded):
            return tuple(token_ids[:-1])
    return tuple(token_ids)


@pytest.mark.parametrize("name", ["tiny-gemma", "tiny-gemma-mm", "tiny-qwen"])
def test_many_prompts_at_once_give_what_each_gives_alone_without_a_cache(
    name: str,
) -> None:
    loaded = load(get_target(name), dtype="float32", device="cpu")
    requests = [ask(text, 2) for text in PROMPTS]
    together = sample(loaded, requests, sampling=FREE)
    alone = [[without_a_cache(loaded, request, index) for index in range(2)] for request in requests]
    assert [[one.token_ids for one in samples] for samples in together] == alone


def test_a_prompt_longer_than_the_sliding_window_is_among_them(tiny_gemma: Loaded) -> None:
    lengths = [len(encode_prompt(tiny_gemma.tokenizer, tiny_gemma.target, ask(text).messages)) for text in PROMPTS]
    assert max(lengths) > tiny_gemma.model.config.get_text_config().sliding_window > min(lengths) - 12


def test_order_and_batching_do_not_change_what_a_row_draws(tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [ask(text, 6) for text in PROMPTS]
    forwards = sample(tiny_gemma, requests, sampling=FREE)
    backwards = sample(tiny_gemma, requests[::-1], sampling=FREE)[::-1]
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    in_fives = sample(tiny_gemma, requests, sampling=FREE)
    monkeypatch.setattr(module, "MAX_POSITIONS", 100)
    by_positions = sample(tiny_gemma, requests, sampling=FREE)
    assert forwards == backwards == in_fives == by_positions


def test_later_indices_extend_what_the_first_ones_gave(tiny_gemma: Loaded) -> None:
    whole = sample(tiny_gemma, [ask("a", 12)], sampling=FREE)[0]
    assert (
        sample(tiny_gemma, [ask("a", 4)], sampling=FREE)[0]
        + sample(tiny_gemma, [ask("a", 8, first=4)], sampling=FREE)[0]
        == whole
    )
    assert len(set(whole)) > 1


def test_key_index_and_seed_each_make_other_numbers() -> None:
    base = row_uniforms("k", 3, 0, 5)
    assert np.array_equal(base, row_uniforms("k", 3, 0, 9)[:5])
    for other in (row_uniforms("l", 3, 0, 5), row_uniforms("k", 4, 0, 5), row_uniforms("k", 3, 1, 5)):
        assert not np.any(base == other)


def test_a_stop_text_ends_a_response_and_is_cut_off(tiny_gemma: Loaded) -> None:
    free = sample(tiny_gemma, [ask("a", 20)], sampling=FREE)[0]
    pairs = ((place, at, one.text) for place, one in enumerate(free) for at in range(2, len(one.text) - 1))
    place, at = next((place, at) for place, at, text in pairs if text[at].isalnum() and text[at + 1].isalnum())
    whole = free[place]
    stop = whole.text[at : at + 2]
    found = sample(tiny_gemma, [ask("a", 20)], sampling=replace(FREE, stop=("never", stop)))[0]
    cut = found[place]
    assert cut.finished
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    assert tiny_gemma.tokenizer.decode(list(cut.token_ids)) == cut.text
    untouched = [(a, b) for a, b in zip(free, found, strict=True) if stop not in a.text]
    assert untouched
    assert all(a == b for a, b in untouched)


def test_the_end_token_ends_a_response_and_is_not_part_of_it(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = sample(tiny_gemma, [ask("hm")], sampling=FREE)[0][0]
    assert not alone.finished
    at = next(i for i in range(2, 12) if alone.token_ids[i] not in alone.token_ids[:i])
    monkeypatch.setattr(tiny_gemma.model.generation_config, "eos_token_id", [alone.token_ids[at], 0])
    ended = sample(tiny_gemma, [ask("hm")], sampling=FREE)[0][0]
    assert ended == Sample(tiny_gemma.tokenizer.decode(alone.token_ids[:at]), alone.token_ids[:at], finished=True)


def test_finished_rows_leave_the_batch(tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []
    advance = module._Stream.advance
    monkeypatch.setattr(
        module._Stream, "advance", lambda self, tokens: (widths.append(len(tokens)), advance(self, tokens))
    )
    # Half of the vocabulary ends a response: rows halve with every token.
    monkeypatch.setattr(tiny_gemma.model.generation_config, "eos_token_id", list(range(0, 264, 2)))
    found = sample(tiny_gemma, [ask("a", 64)], sampling=FREE)[0]
    running = [sum(len(one.token_ids) > step for one in found) for step in range(12)]
    assert widths[0] < 64
    assert all(n >= left for n, left in zip(widths, running, strict=False))
    assert all(n * module.COMPACT_BELOW <= left for n, left in zip(widths, running, strict=False))


def test_progress_hears_of_every_request_once_with_all_its_samples(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    heard: dict[int, list[Sample]] = {}
    found = sample(tiny_gemma, [ask(text, 4) for text in PROMPTS], sampling=FREE, progress=heard.setdefault)
    assert heard == dict(enumerate(found))


def test_an_interrupted_caller_stops_the_model_at_its_next_token(
    tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    class Interrupted:
        """A model's thread whose caller gets Ctrl-C while it is at work."""

        def run(self, call: Callable[[], object]) -> None:
            self.call = call
            raise KeyboardInterrupt

    thread = Interrupted()
    monkeypatch.setattr(module._Stream, "advance", lambda self, tokens: steps.append(len(tokens)))
    with pytest.raises(KeyboardInterrupt):
        sample(replace(tiny_gemma, thread=thread), [ask("a", 3)], sampling=FREE)
    with torch.inference_mode(), pytest.raises(InterruptedError):
        thread.call()
    assert steps == []


def test_no_requests_give_no_samples(tiny_gemma: Loaded) -> None:
    assert sample(tiny_gemma, []) == []


def test_a_prompt_beyond_the_context_is_refused_by_name(tiny_gemma: Loaded) -> None:
    with pytest.raises(UserError, match=r"long one: a prompt of \d+ tokens .* context of 8192"):
        sample(tiny_gemma, [ask("x" * 9000, key="long one")], sampling=FREE)


@pytest.mark.real
def test_smollm2_in_a_batch_says_what_generate_says_alone() -> None:
    loaded = load_real("smollm2-135m", "float32")
    texts = ["What is the capital of Australia?", "Name a colour."]
    [[one], _] = sample(loaded, [ask(text) for text in texts], sampling=GREEDY)
    prompt = torch.tensor([encode_prompt(loaded.tokenizer, loaded.target, ask(texts[0]).messages)])
    alone = loaded.model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=6, pad_token_id=0
    )
    assert one.token_ids == tuple(alone[0, prompt.shape[1] :].tolist())

"""Fitting adapters: batches, the shared beginning, the schedule, and going on after a kill."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tools.model import Loaded, load
from tools.targets import get_target
from tools.training.lora import examples as examples_module
from tools.training.lora import loop, vocabulary
from tools.training.lora.adapter import attach
from tools.training.lora.examples import Example, batches, collate, encode_answer
from tools.training.lora.inject import Hidden, logits, through_oracle, through_verbaliser
from tools.training.lora.loop import DECAY, WARM_UP, Schedule, batch_losses, fit, learning_rate_share
from tools.training.lora.plan import PLANS, get_plan
from tools.training.lora.score import measure_losses, shuffled, zeroed
from tools.training.lora.verbaliser import make_sidecar

PLAN = PLANS["ao", "tiny-gemma"]


def silent(what: str, done: int, n: int) -> None:
    """No progress."""


def made_examples(n: int, *, positions: tuple[int, ...] = (12, 13), shared: int = 10) -> list[Example]:
    generator = torch.Generator().manual_seed(0)

    def ids(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(20, 200, (length,), generator=generator).tolist())

    start = ids(shared)
    return [
        Example(
            prompt_ids=start + ids(6 + i % 4),
            positions=positions,
            vectors=torch.randn(len(positions), 64, generator=generator),
            answer_ids=ids(1 + i % 3),
            layer=1,
        )
        for i in range(n)
    ]


def fresh(first: int = 2) -> nn.Module:
    """A tiny target with an adapter that adds something, so that every gradient counts."""
    model = attach(load(get_target("tiny-gemma"), dtype="float32", device="cpu"), PLAN, first=first)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def test_a_batch_by_hand() -> None:
    one = Example((7, 8, 9, 10), (2,), torch.ones(1, 3), (11, 1), 0)
    two = Example((7, 8, 5), (2,), torch.zeros(1, 3), (12,), 0)
    batch = collate([one, two], torch.device("cpu"))
    assert batch.prefix_ids.tolist() == [7, 8]
    assert batch.token_ids.tolist() == [[9, 10, 11, 1], [5, 12, 0, 0]]
    assert (batch.rows.tolist(), batch.positions.tolist()) == ([0, 1], [0, 0])
    # Column 1 (token 10) predicts 11, column 2 predicts 1; in the second row column 0 predicts 12.
    assert (batch.answer_rows.tolist(), batch.answer_columns.tolist()) == ([0, 0, 1], [1, 2, 0])
    assert batch.answers.tolist() == [11, 1, 12]
    assert batch.weights.tolist() == [0.5, 0.5, 1.0]


def test_a_pass_has_every_example_once_in_groups_of_like_length() -> None:
    examples = made_examples(64)
    order = batches(examples, 4, seed=3)
    assert sorted(index for group in order for index in group) == list(range(64))
    spreads = [max(examples[i].length for i in group) - min(examples[i].length for i in group) for group in order]
    assert sum(spreads) / len(spreads) < 1.0
    assert order == batches(examples, 4, seed=3) != batches(examples, 4, seed=4)


def test_answers_start_as_the_model_would_write_them(tiny_gemma: Loaded) -> None:
    tokenizer = tiny_gemma.tokenizer
    line = tuple(tokenizer.encode("Answer:\n", add_special_tokens=False))
    colon = tuple(tokenizer.encode("Answer:", add_special_tokens=False))
    assert tokenizer.decode(encode_answer(tokenizer, line, "Yes")) == f"Yes{tokenizer.eos_token}"
    assert tokenizer.decode(encode_answer(tokenizer, colon, "Yes")) == f" Yes{tokenizer.eos_token}"


def hiddens(loaded: Loaded) -> dict[str, Hidden]:
    return {"ao": through_oracle, "nla": through_verbaliser(make_sidecar(loaded, 1, 20.0))}


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_the_shared_beginning_changes_neither_losses_nor_gradients(
    tool: str, tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, examples = hiddens(tiny_gemma)[tool], made_examples(6)
    model = fresh()

    def run() -> tuple[Tensor, list[Tensor]]:
        model.zero_grad()
        losses = batch_losses(model, hidden, examples)
        torch.autograd.backward(losses.mean())
        return losses.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]

    with_prefix = run()
    monkeypatch.setattr(examples_module, "_shared", lambda examples: 0)
    without = run()
    assert torch.allclose(with_prefix[0], without[0], atol=1e-5)
    assert len(without[1]) == 28
    for one, other in zip(with_prefix[1], without[1], strict=True):
        assert torch.allclose(one, other, atol=1e-5 * float(other.abs().max()) + 1e-9)


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_an_example_has_the_loss_that_it_has_alone(tool: str, tiny_gemma: Loaded) -> None:
    hidden, examples = hiddens(tiny_gemma)[tool], made_examples(5)
    model = fresh()
    together = batch_losses(model, hidden, examples)
    alone = torch.cat([batch_losses(model, hidden, [example]) for example in examples])
    assert torch.allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("tool", ["ao", "nla"])
def test_activations_reach_the_answer(tool: str, tiny_gemma: Loaded) -> None:
    hidden, examples = hiddens(tiny_gemma)[tool], made_examples(4)
    model = fresh()
    with torch.no_grad():
        right = batch_losses(model, hidden, examples)
        assert not torch.allclose(right, batch_losses(model, hidden, zeroed(examples)), atol=1e-4)
        longer = [replace(example, vectors=3 * example.vectors) for example in examples]
        # Both formulas look at the direction alone.
        assert torch.allclose(right, batch_losses(model, hidden, longer), atol=1e-5)


def test_a_loss_is_the_mean_over_the_answers_tokens(tiny_gemma: Loaded) -> None:
    (example,) = [e for e in made_examples(3) if len(e.answer_ids) == 3]
    model = fresh()
    with torch.no_grad():
        loss = float(batch_losses(model, through_oracle, [example]))
        rest = replace(
            example, prompt_ids=example.prompt_ids + example.answer_ids[:1], answer_ids=example.answer_ids[1:]
        )
        first = replace(example, answer_ids=example.answer_ids[:1])
        parts = [float(batch_losses(model, through_oracle, [one])) for one in (first, rest)]
    assert loss == pytest.approx((parts[0] + 2 * parts[1]) / 3, abs=1e-5)


def test_a_sampled_vocabulary_is_a_softmax_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examples, model = made_examples(3), fresh()
    everything = torch.arange(264)
    with torch.no_grad():
        whole = batch_losses(model, through_oracle, examples)
        assert torch.allclose(whole, batch_losses(model, through_oracle, examples, tokens=everything), atol=1e-5)
        monkeypatch.setattr(vocabulary, "LARGE", 100)
        monkeypatch.setattr(vocabulary, "EXTRA", 20)
        sampled = vocabulary.Vocabulary(264, examples, seed=0)
        tokens = sampled.at(5)
        assert tokens is not None
        assert {t for e in examples for t in e.answer_ids} <= set(tokens.tolist())
        assert tokens.tolist() == sorted(set(tokens.tolist()))
        some = batch_losses(model, through_oracle, examples, tokens=tokens)
        batch = collate(examples[:1], torch.device("cpu"))
        states = through_oracle(model, batch)[batch.answer_rows, batch.answer_columns]
        scores = logits(model, states)[:, tokens].softmax(dim=-1)
        places = [tokens.tolist().index(t) for t in examples[0].answer_ids]
        by_hand = -sum(math.log(float(scores[i, place])) for i, place in enumerate(places)) / len(places)
    assert float(some[0]) == pytest.approx(by_hand, abs=1e-4)
    assert bool((some < whole).all())
    assert sampled.at(5).tolist() == tokens.tolist() != sampled.at(6).tolist()
    assert vocabulary.Vocabulary(99, examples, seed=0).at(0) is None


def test_the_learning_rate_rises_stays_and_falls_to_nothing() -> None:
    n = 200
    shares = [learning_rate_share(step, n) for step in range(n)]
    assert shares[0] == 1 / WARM_UP
    assert shares[WARM_UP:100] == [1.0] * (100 - WARM_UP)
    falling = shares[round(n * (1 - DECAY)) :]
    assert falling == sorted(falling, reverse=True)
    # Halfway down the cosine it is a half; one step before the end it is nearly nothing.
    assert learning_rate_share(n - round(n * DECAY / 2), n) == pytest.approx(0.5)
    assert shares[-1] == pytest.approx(0.5 - 0.5 * math.cos(math.pi / (n * DECAY)))


SCHEDULE = Schedule(n_steps=9, batch=4, learning_rate=1e-2, seed=0)


def trained(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters() if parameter.requires_grad]


class KilledError(Exception):
    """Stands for a kill."""


def test_training_that_was_killed_ends_at_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SAVE_EVERY_S", 0.0)
    examples = made_examples(18)
    undisturbed = fresh()
    losses = fit(undisturbed, through_oracle, examples, SCHEDULE, tmp_path / "one.pt", progress=silent)
    assert losses[-1] < losses[0]

    def kill(what: str, done: int, n: int) -> None:
        if done == 6:
            raise KilledError

    with pytest.raises(KilledError):
        fit(fresh(), through_oracle, examples, SCHEDULE, tmp_path / "two.pt", progress=kill)
    resumed = fresh()
    again = fit(resumed, through_oracle, examples, SCHEDULE, tmp_path / "two.pt", progress=silent)
    assert again == losses
    for one, other in zip(trained(resumed), trained(undisturbed), strict=True):
        assert torch.equal(one, other)


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    examples, steps = made_examples(8), []
    for _ in range(2):
        model = fresh()
        fit(model, through_oracle, examples, SCHEDULE, tmp_path / "fit.pt", progress=lambda *told: steps.append(told))
    assert len(steps) == SCHEDULE.n_steps


def test_the_base_models_weights_stay_as_they_are(tmp_path: Path) -> None:
    model = fresh()
    before = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    fit(model, through_oracle, made_examples(8), SCHEDULE, tmp_path / "fit.pt", progress=silent)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters() if not p.requires_grad)
    assert not any("layers.1." in name for name, p in model.named_parameters() if p.requires_grad)


def test_short_time_ends_the_schedule_properly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 6))  # every look at the clock is 6 s later
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(clock)))
    rates: list[float] = []
    original = loop._rate

    def noted(state: loop._State, schedule: Schedule) -> None:
        original(state, schedule)
        rates.append(state.optimizer.param_groups[0]["lr"])

    monkeypatch.setattr(loop, "_rate", noted)
    schedule = replace(SCHEDULE, n_steps=10_000, minutes=4.0)
    losses = fit(fresh(), through_oracle, made_examples(12), schedule, tmp_path / "fit.pt", progress=silent)
    # Two looks a step: 12 s a step, so 4 minutes are about 20 steps, a third of them with a falling rate.
    assert 15 <= len(losses) <= 24
    assert rates[-1] < 0.1 * max(rates)


def test_shuffled_examples_have_each_others_activations() -> None:
    examples = made_examples(5) + made_examples(3, positions=(10, 11, 12))
    other = shuffled(examples)
    for example, changed in zip(examples, other, strict=True):
        assert changed.vectors.shape == example.vectors.shape
        assert not torch.equal(changed.vectors, example.vectors)
        assert changed.prompt_ids == example.prompt_ids
    given = torch.cat([changed.vectors for changed in other[:4]])
    assert all((given == row).all(dim=1).any() for row in torch.cat([e.vectors for e in examples[1:5]]))


def test_losses_compare_pairs(tiny_gemma: Loaded) -> None:
    examples, model = made_examples(20), fresh()
    found = measure_losses(model, through_oracle, examples)
    with torch.inference_mode():
        right = torch.cat([batch_losses(model, through_oracle, [e]) for e in examples]).double()
        other = torch.cat([batch_losses(model, through_oracle, [e]) for e in shuffled(examples)]).double()
    assert found.right == pytest.approx(float(right.mean()), abs=1e-5)
    assert found.margin == pytest.approx(float((other - right).mean()), abs=1e-5)
    spread = float((other - right).std()) / math.sqrt(20)
    assert found.margin_low == pytest.approx(found.margin - 1.96 * spread, abs=1e-5)
    assert not replace(found, margin_low=-0.1).beats_shuffled
    assert replace(found, margin_low=0.1).beats_shuffled


def test_plans_are_named_and_lengths_can_be_given() -> None:
    from claims.schema import UserError

    assert get_plan("ao", "smollm2-135m", n_steps=7, minutes=3.0).schedule.n_steps == 7
    # As many examples as ever: a shortened run and one of as many steps are the same run.
    assert get_plan("ao", "smollm2-135m", n_steps=7).examples == PLANS["ao", "smollm2-135m"].examples
    assert get_plan("ao", "smollm2-135m", minutes=3.0).schedule.minutes == 3.0
    with pytest.raises(UserError, match=r"no plan to train 'nla' for 'qwen3-8b'.*gemma-3-270m"):
        get_plan("nla", "qwen3-8b")

"""How trained adapters are judged: options, retrieval, reconstruction and what cards say."""

import math
from dataclasses import replace

import pytest
import torch

from tools.chat import Span
from tools.model import Loaded, load
from tools.targets import get_target
from tools.training.lora import retrieval
from tools.training.lora.adapter import attach
from tools.training.lora.cards import OracleCard, Training, render_oracle
from tools.training.lora.describing import Place
from tools.training.lora.examples import Example, collate, encode_answer
from tools.training.lora.families import Question
from tools.training.lora.inject import logits, through_oracle, through_text
from tools.training.lora.judge import Accuracy, judge, majority
from tools.training.lora.oracle import Asked
from tools.training.lora.passages import Passage
from tools.training.lora.plan import PLANS
from tools.training.lora.reconstruct import (
    BUCKETS,
    explained_variance,
    features,
    fit_reconstructor,
)
from tools.training.lora.retrieval import retrieve, trials
from tools.training.lora.score import Losses
from tools.training.lora.words import Segment

LOSSES = Losses(right=2.0, shuffled=2.5, zero=2.4, margin=0.5, margin_low=0.3, n=10)


def passage(name: str, token_ids: tuple[int, ...], role: str = "text", kind: str = "written") -> Passage:
    return Passage(name, kind, token_ids, (Span(1, len(token_ids), role, None),), {}, True)


def asked(answer: str, options: tuple[str, ...], family: str = "mentioned") -> Asked:
    one = passage("p", tuple(range(20, 40)))
    return Asked(Question(family, one, Segment(4, 6), "Is it?", answer, options), 1)


def test_the_majority_is_the_most_frequent_answer_or_a_guess() -> None:
    yes, no = asked("Yes", ("Yes", "No")), asked("No", ("Yes", "No"))
    assert majority([yes, yes, yes, no]) == 0.75
    four = [asked(name, ("a", "b", "c", "d")) for name in ("a", "b", "c", "d", "e")]
    assert majority(four) == 0.25


def test_everyone_chooses_among_the_options_by_their_first_token() -> None:
    loaded = load(get_target("tiny-gemma"), dtype="float32", device="cpu")
    questions = [asked(answer, ("Yes", "No")) for answer in ("Yes", "No") for _ in range(3)]
    generator = torch.Generator().manual_seed(0)
    prompt = (2, *range(30, 50), *loaded.tokenizer.encode("\n", add_special_tokens=False))
    examples = [
        Example(
            prompt, (5, 6), torch.randn(2, 64, generator=generator), encode_answer(loaded.tokenizer, prompt, "Yes"), 1
        )
        for _ in questions
    ]
    model = attach(loaded, PLANS["ao", "tiny-gemma"])
    found = judge(loaded, model, questions, examples)["mentioned"]
    first = {word: encode_answer(loaded.tokenizer, prompt, word)[0] for word in ("Yes", "No")}
    right = []
    with torch.inference_mode():
        for question, example in zip(questions, examples, strict=True):
            batch = collate([example], torch.device("cpu"))
            last = through_oracle(model, batch)[:, len(prompt) - 1 - len(batch.prefix_ids)]
            scores = logits(model, last)[0]
            chosen = max(first, key=lambda word: float(scores[first[word]]))
            right.append(chosen == question.question.answer)
    assert found.oracle == pytest.approx(sum(right) / 6)
    assert first["Yes"] != first["No"]
    # The same text for all: the reader says the same each time, and is right half of the time.
    assert (found.reader, found.majority, found.n) == (0.5, 0.5, 6)


def test_text_alone_is_the_plain_forward_pass(tiny_gemma: Loaded) -> None:
    example = Example((2, 50, 51, 52), (3,), torch.zeros(1, 64), (60, 61), 1)
    batch = collate([example, replace(example, answer_ids=(70,))], torch.device("cpu"))
    with torch.inference_mode():
        states = through_text(tiny_gemma.model, batch)
        whole = tiny_gemma.model.get_decoder()(input_ids=torch.tensor([[2, 50, 51, 52, 60, 61]])).last_hidden_state
    assert torch.allclose(states[0], whole[0, 3:], atol=1e-5)


def test_retrieval_by_hand() -> None:
    contexts = ["red apples fall", "green apples grow", "blue rivers run", "old rivers run"]
    # "green" and "apples": the second context has both words, the first one of them.
    found = retrieve(["green apples"], [[contexts[1], contexts[0], *contexts[2:]]])
    assert (found.top1, found.rank, found.n) == (1.0, 1.0, 1)
    assert retrieve(["green apples"], [contexts]).rank == 2.0
    # "rivers" is in two of four: they tie for the first place, and share it.
    tied = retrieve(["rivers"], [[contexts[2], contexts[3], contexts[0], contexts[1]]])
    assert (tied.top1, tied.rank) == (0.5, 1.5)
    # A description with no word of any: all four tie.
    assert retrieve(["silence"], [contexts]) == retrieval.Retrieval(0.25, 2.5, 1)
    # A word that all contexts have says nothing.
    assert retrieve(["run"], [["run a", "run b", "run c", "run d"]]).top1 == 0.25
    assert math.isnan(retrieve([], []).top1)


def test_trials_share_the_token_and_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "CONTEXTS", 4)
    monkeypatch.setattr(retrieval, "APART", 6)
    one = passage("long", (0, *(9 if i % 5 == 0 else 100 + i for i in range(40))))
    others = [passage(f"p{i}", (0, 30 + i, 9, 60 + i)) for i in range(5)]
    made, template = passage("m", (0, 7) * 9, kind="made"), passage("t", (0, 8) * 9, role="template")
    found = trials([one, *others, made, template], 20, seed=0)
    assert len(found) == 20
    for trial in found:
        assert trial.place.token_id == 9
        assert {place.token_id for place in trial.others} == {9}
        assert len({(place.passage.name, place.position) for place in (trial.place, *trial.others)}) == 4
        for place in trial.others:
            assert place.passage != trial.place.passage or abs(place.position - trial.place.position) > 6
    assert found == trials([one, *others, made, template], 20, seed=0)
    assert trials(others[:2], 20, seed=0) == []
    assert Place(template, 1).role == "template"


def test_features_count_words_and_where_they_stand() -> None:
    one = '<explanation>"cat" after "the old", then "sat down". A text.</explanation>'
    found = features([one, one.replace("cat", "dog"), "no quotation marks", ""])
    # Words: cat after the old then sat down a text (9); the token, the last word before, 2 + 2 + 2 words by place.
    assert found.shape == (4, BUCKETS)
    assert found.sum(dim=1).tolist() == [17.0, 17.0, 3.0, 0.0]
    assert 1 <= int((found[0] != found[1]).sum()) <= 4


def test_explained_variance_by_hand() -> None:
    right = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    # Mean (1, 0): squared distance 2. An error of 1 in one place: 1 - 1/2.
    assert explained_variance(torch.tensor([[0.0, 1.0], [2.0, 0.0]]), right) == pytest.approx(0.5)
    assert explained_variance(right, right) == 1.0
    assert explained_variance(torch.tensor([[1.0, 0.0]]).expand(2, 2), right) == 0.0
    assert math.isnan(explained_variance(torch.zeros(0, 2), torch.zeros(0, 2)))


def test_the_reconstructor_is_ridge_regression() -> None:
    words = ["red", "blue", "green", "old", "new"]
    descriptions = [f"{words[i % 5]} {words[(i // 5) % 5]} thing{i % 3}" for i in range(150)]
    generator = torch.Generator().manual_seed(0)
    table = {word: torch.randn(4, generator=generator) for word in words}
    noise = 0.05 * torch.randn(150, 4, generator=generator)
    activations = torch.stack([table[d.split()[0]] + table[d.split()[1]] for d in descriptions]) + noise
    found = fit_reconstructor(descriptions, activations)
    assert explained_variance(found.rebuild(descriptions), activations) > 0.9
    # A second way: least squares on the same rows with the penalty as extra rows.
    x = features(descriptions)
    x = x - x.mean(dim=0)
    used = x.abs().sum(dim=0) > 0
    rows = torch.cat([x[:, used], math.sqrt(found.penalty) * torch.eye(int(used.sum()))]).double()
    goal = torch.cat([activations - activations.mean(dim=0), torch.zeros(int(used.sum()), 4)]).double()
    naive = torch.linalg.lstsq(rows, goal).solution.float()
    assert torch.allclose(found.weight[used], naive, atol=1e-4)


def test_a_card_says_first_when_a_tool_is_no_better_than_its_control() -> None:
    training = Training("tiny-gemma", "w", "demo", "python", {}, 4, 16, {}, (1.0,), {"torch": "2"})
    families = {
        "topic": Accuracy(oracle=0.8, shuffled=0.2, reader=0.5, majority=0.25, n=8),
        "role": Accuracy(oracle=0.4, shuffled=0.5, reader=0.5, majority=0.4, n=8),
    }
    card = OracleCard(training, (1, 2, 3), LOSSES, families, {})
    text = render_oracle(card)
    assert text.startswith("# Activation oracle for tiny-gemma, layer 2")
    assert "Not above both the shuffled activations and the majority answer: role." in text
    assert "| topic | 0.80 | 0.20 | 0.50 | 0.25 | 8 |" in text
    worse = render_oracle(replace(card, losses=replace(LOSSES, margin=0.01, margin_low=-0.02)))
    assert worse.startswith("**It does not beat its own shuffled control")
    gemma = render_oracle(replace(card, training=replace(training, target="gemma-3-270m")))
    assert "Gemma Terms of Use" in gemma
    assert "Gemma Terms" not in text

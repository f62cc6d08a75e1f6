"""Labels: written by hand-made firings, checked by hand-made held-out ones."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from tools.training.corpus import Document
from tools.training.firings import Firings
from tools.training.harvest import Harvest
from tools.training.label_check import auroc, check_labels
from tools.training.labelling import MAX_CHARS, MIN_EXAMPLES, FeatureLabel, Labeller, form

LONG = "long-winded-expression"
WORDS = ["_", "a", "of", "Sydney", "sydney", "Melbourne", "Perth", "the", "big", "red", "city", "in", ".", "very", LONG]
TEXTS = {index: f" {word}" for index, word in enumerate(WORDS)}
ID = {word: index for index, word in enumerate(WORDS)}


def place(*sentences: str) -> tuple[Labeller, list[tuple[str, int]]]:
    """A labeller over sentences, and what stands at each row."""
    documents = [
        Document(f"d{number}", "chat", tuple(ID[word] for word in sentence.split()))
        for number, sentence in enumerate(sentences)
    ]
    rows = [
        (document, position) for document, made in enumerate(documents) for position in range(1, len(made.token_ids))
    ]
    harvest = Harvest(
        torch.zeros(len(rows), 1, dtype=torch.bfloat16),
        torch.tensor([document for document, _ in rows]),
        torch.tensor([position for _, position in rows]),
    )
    words = [sentences[document].split()[position] for document, position in rows]
    return Labeller(documents, harvest, TEXTS), list(zip(words, range(len(rows)), strict=True))


def fired_on(rows: list[int], values: list[float] | None = None) -> Firings:
    """One feature, strongest first."""
    strengths = values or [float(len(rows) - n) for n in range(len(rows))]
    return Firings(np.array(rows), np.array(strengths, dtype=np.float32), np.array([0, len(rows)]))


def label(*sentences: str, on: str) -> FeatureLabel:
    labeller, rows = place(*sentences)
    made = labeller.label(fired_on([row for word, row in rows if word in on.split()]), 0)
    assert made is not None
    return made


def test_a_feature_of_one_word_is_named_by_it_whatever_its_case() -> None:
    made = label("_ big Sydney", "_ red sydney", "_ in Sydney", "_ the city Sydney", on="Sydney sydney")
    assert (made.kind, made.forms) == ("token", ("sydney",))
    assert made.label == "'Sydney': _ big« Sydney»"


def test_a_feature_of_a_few_words_names_them_most_frequent_first() -> None:
    made = label("_ big Perth", "_ in Perth", "_ in Sydney", "_ the Melbourne", on="Perth Sydney Melbourne")
    assert (made.kind, made.forms) == ("tokens", ("perth", "sydney", "melbourne"))
    assert made.label.startswith("'Perth', 'Sydney', 'Melbourne'")


def test_a_feature_of_what_precedes_names_what_precedes() -> None:
    words = ["a", "of", "Sydney", "Melbourne", "Perth", "big", "red", "city", "in", "."]
    made = label(*(f"_ the {word}" for word in words), on=" ".join(words))
    assert (made.kind, made.forms) == ("after", ("the",))
    assert made.label.startswith("after 'the': ")


def test_a_feature_of_neither_is_called_mixed() -> None:
    labeller, rows = place(*(f"_ {a} {b}" for a, b in pairwise(WORDS[1:12])))
    made = labeller.label(fired_on([row for _, row in rows if row % 2]), 0)
    assert made is not None
    assert made.kind == "context"
    assert made.label.startswith("mixed: ")


def test_the_example_is_the_strongest_one_and_density_and_strength_are_those_of_training() -> None:
    labeller, rows = place("_ big Sydney", "_ red Sydney", "_ in Sydney")
    order = [row for word, row in rows if word == "Sydney"][::-1]
    made = labeller.label(fired_on(order, [9.5, 4, 2]), 0)
    assert made is not None
    assert made.label.endswith("_ in« Sydney»")
    assert (made.density, made.strongest) == (3 / 6, 9.5)


def test_a_context_repeated_says_no_more_than_once() -> None:
    repeated = ["_ big Sydney"] * 30
    labeller, rows = place(*repeated, "_ in Perth", "_ the Perth", "_ a Perth", "_ of Perth")
    made = labeller.label(fired_on([row for word, row in rows if word in ("Sydney", "Perth")]), 0)
    assert made is not None
    assert made.forms[0] == "perth"
    few, rows = place(*repeated)
    assert few.label(fired_on([row for word, row in rows if word == "Sydney"]), 0) is None


def test_too_few_examples_give_no_label() -> None:
    labeller, rows = place("_ big Sydney", "_ red Sydney", "_ in Sydney")
    on = [row for word, row in rows if word == "Sydney"]
    assert labeller.label(fired_on(on), 0) is not None
    assert len(on) == MIN_EXAMPLES
    assert labeller.label(fired_on(on[:-1]), 0) is None


def test_labels_are_short() -> None:
    assert len(label(*(f"_ very {other} {LONG}" for other in WORDS[1:8]), on=LONG).label) <= MAX_CHARS


@pytest.mark.parametrize(
    ("text", "expected"), [(" Sydney", "sydney"), ("SYDNEY", "sydney"), (" ", " "), ("\\n", "\\n")]
)
def test_forms_forget_case_and_blanks_but_not_blank_tokens(text: str, expected: str) -> None:
    assert form(text) == expected


def flags(text: str) -> np.ndarray:
    return np.array([letter == "1" for letter in text])


def test_the_area_of_a_yes_or_no_prediction_is_the_mean_of_both_hit_rates() -> None:
    # Active on tokens 0, 1, 2, 3, named on 0, 1, 2, 4: 3 of 4 active ones are named, 5 of 6 silent ones are not.
    assert auroc(flags("1110100000"), flags("1111000000")) == pytest.approx((3 / 4 + 5 / 6) / 2)
    assert auroc(flags("1100"), flags("1100")) == 1
    assert auroc(flags("0011"), flags("1100")) == 0
    assert auroc(flags("1111"), flags("1100")) == 0.5


def test_labels_are_checked_by_group_with_recall_and_precision() -> None:
    labeller, rows = place(*(f"_ {word}" for word in ["Sydney"] * 6 + ["Perth"] * 4 + ["the"] * 10))
    sydney = [row for word, row in rows if word == "Sydney"]
    the = [row for word, row in rows if word == "the"]
    fired = Firings(np.array(sydney[:5] + the[:6]), np.ones(11, dtype=np.float32), np.array([0, 5, 11]))
    labels = [
        FeatureLabel(0, "'Sydney'", "token", ("sydney",), 0.1, 1.0),
        FeatureLabel(1, "'the', 'Perth'", "tokens", ("the", "perth", "nowhere"), 0.1, 1.0),
    ]
    checks = check_labels(labels, labeller, fired)
    # Sydney: named on 6 tokens, active on 5 of them; 14 of 15 silent tokens are not named.
    assert checks["single-token"].n_features == 1
    assert checks["single-token"].recall == 1
    assert checks["single-token"].precision == pytest.approx(5 / 6)
    assert checks["single-token"].auroc == pytest.approx((1 + 14 / 15) / 2)
    # the or Perth: named on 14, active on 6 of them; 6 of 14 silent tokens are not named.
    assert checks["others"].precision == pytest.approx(6 / 14)
    assert checks["others"].auroc == pytest.approx((1 + 6 / 14) / 2)


def test_features_that_hardly_fire_are_left_out_and_an_empty_group_is_undefined() -> None:
    labeller, _ = place(*(f"_ {word}" for word in ["Sydney"] * 6))
    fired = Firings(np.array([0, 1, 2, 3]), np.ones(4, dtype=np.float32), np.array([0, 4]))
    checks = check_labels([FeatureLabel(0, "x", "token", ("sydney",), 0.1, 1.0)], labeller, fired)
    assert checks["single-token"].n_features == 0
    assert math.isnan(checks["single-token"].auroc)

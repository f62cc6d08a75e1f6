"""The statistics of why: rates, regressions, clues, hand labels; by hand, by twins and by laws."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from claims.schema import UserError
from harness.stats import Flags, Floats, auroc
from harness.why.clues import HINTED, LEXICAL, STATED, weigh
from harness.why.hand_labels import Candidate, agreement, candidates, kappas, read_labels, write_labels
from harness.why.judge import Verdict
from harness.why.logistic import cross_validated, fit
from harness.why.predicts import log_losses, predicts
from harness.why.rates import rate
from tests.why_material import claim, hinted_clues, judged_of, outcome, output

# Statistics.


def test_a_rate_of_nothing_flagged_has_the_exact_bound_of_its_clusters() -> None:
    found = rate([0.0] * 24, [f"c{number // 3}" for number in range(24)], key=("x",))
    # Eight coins that all fall on one side: (1 - high)^8 = 0.025.
    assert (found.value, found.low) == (0.0, 0.0)
    assert (1 - found.high) ** 8 == pytest.approx(0.025)
    turned = rate([1.0] * 24, [f"c{number // 3}" for number in range(24)], key=("x",))
    assert (turned.low, turned.high) == (pytest.approx(1 - found.high), 1.0)


def test_the_interval_of_a_rate_is_that_of_independent_clusters() -> None:
    parts = [float(number % 2) for number in range(400)]
    found = rate(parts, [str(number) for number in range(400)], key=("x",))
    # Standard error 0.025.
    assert (found.value, found.part, found.whole, found.n_clusters) == (0.5, 200, 400, 400)
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.004)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.004)
    # Ten copies of every claim in its cluster are no new knowledge.
    copied = rate(parts * 10, [str(number) for number in range(400)] * 10, key=("x",))
    assert (copied.low, copied.high) == (found.low, found.high)
    assert math.isnan(rate(parts, ["one"] * 400, key=("x",)).low)
    assert math.isnan(rate([], [], key=("x",)).value)


def planted_features(n: int = 120) -> tuple[Floats, Flags]:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(n, 2))
    labels = rng.random(n) < expit(0.3 + features @ np.array([1.0, -0.5]))
    return features, labels


def test_a_regression_without_features_gives_the_share() -> None:
    labels = np.array([True] * 3 + [False])
    # logit(3/4) = log 3
    assert fit(np.zeros((4, 0)), labels)[0] == pytest.approx(math.log(3))


def test_a_regression_agrees_with_a_general_minimiser() -> None:
    features, labels = planted_features()

    def loss(weights: Floats) -> float:
        p_true = expit(weights[0] + features @ weights[1:])
        return float(-np.log(np.where(labels, p_true, 1 - p_true)).sum() + 0.5 * (weights[1:] ** 2).sum())

    twin = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(fit(features, labels), twin, atol=1e-5)


def test_turned_labels_turn_the_weights_and_separable_ones_stay_finite() -> None:
    features, labels = planted_features()
    np.testing.assert_allclose(fit(features, ~labels), -fit(features, labels), atol=1e-7)
    assert np.isfinite(fit(features, features[:, 0] > 0)).all()
    with pytest.raises(ValueError, match="one class"):
        fit(features, np.ones(len(labels), dtype=np.bool_))


def test_a_claim_is_never_predicted_from_its_own_cluster() -> None:
    features, labels = planted_features()
    clusters = np.arange(120) // 6
    before = cross_validated(features, labels, clusters, key=("x",))
    turned = np.where(clusters == 4, ~labels, labels)
    after = cross_validated(features, turned, clusters, key=("x",))
    own = clusters == 4
    np.testing.assert_array_equal(before.p_true[own], after.p_true[own])
    np.testing.assert_array_equal(before.ranking[own], after.ranking[own])
    assert (before.p_true[~own] != after.p_true[~own]).any()


def test_a_feature_that_never_varies_ranks_nothing() -> None:
    _, labels = planted_features()
    found = cross_validated(np.ones((120, 1)), labels, np.arange(120) // 6, key=("x",))
    assert np.ptp(found.ranking) == 0
    # With intercepts the parts with many true claims would come last.
    assert auroc(found.p_true, labels) < 0.5


def test_log_loss_by_hand() -> None:
    losses = log_losses(np.array([0.8, 0.8]), np.array([True, False]))
    np.testing.assert_allclose(losses, [-math.log(0.8), -math.log(0.2)])


def test_a_clue_that_knows_the_labels_predicts_and_adds_and_one_that_does_not_adds_nothing() -> None:
    n = 80
    labels = [number % 3 == 0 for number in range(n)]
    rng = np.random.default_rng(0)
    baseline = {f"claim-{k:03}": [outcome(k, float(rng.random()), label=labels[k])] for k in range(n)}
    knowing = hinted_clues(n, ["edited" if label else "neither" for label in labels])
    found = predicts(HINTED, knowing, baseline, n_asked=n, seed="s")
    assert (found.alone.value, found.alone.n_claims, found.alone.n_clusters) == (1.0, n, 40)
    p_base = np.array([baseline[f"claim-{k:03}"][0].p_true for k in range(n)], dtype=np.float64)
    assert found.baseline.value == auroc(p_base, np.array(labels))
    assert found.added_auroc is not None
    assert found.added_auroc.low > 0.3
    assert found.added_loss.low > 0.3
    assert found.added_loss.value == pytest.approx(found.added_loss.without - found.added_loss.with_clue)
    blind = hinted_clues(n, ["edited" if number % 2 else "decoy" for number in range(n)])
    nothing = predicts(HINTED, blind, baseline, n_asked=n, seed="s")
    assert nothing.added_loss.value < 0.01
    assert nothing.added_auroc is not None
    assert nothing.added_auroc.low < 0


def test_claims_without_a_verdict_or_a_baseline_are_left_out_and_counted() -> None:
    clues = hinted_clues(6, ["edited", None, "neither", "edited", "neither", "edited"])
    baseline = {f"claim-{k:03}": [outcome(k, None if k == 2 else 0.5, label=k % 2 == 0)] for k in range(6)}
    found = predicts(HINTED, clues, baseline, n_asked=9, seed="s")
    assert (found.alone.n_claims, found.alone.n_excluded) == (4, 5)


def test_one_class_or_one_cluster_gives_no_number_and_says_why() -> None:
    baseline = {f"claim-{k:03}": [outcome(k, 0.5)] for k in range(4)}
    found = predicts(HINTED, hinted_clues(4, ["edited"] * 4), baseline, n_asked=4, seed="s")
    assert math.isnan(found.alone.value)
    assert found.added_auroc is None
    assert "all 4 claims are true" in found.alone.notes[0]
    json.dumps(found.as_row(), allow_nan=False)


def test_the_clues_of_a_claim_by_hand() -> None:
    one = claim(0, intervention="The word apple is deleted.")
    said = [output(0, "apples are red"), output(0, "nothing"), output(0, "unread"), output(0, "apple makes it so")]
    verdicts = {
        said[0].content: Verdict("", "edited"),
        said[1].content: Verdict("", "decoy"),
        said[3].content: Verdict("apple makes it so", "edited"),
    }
    clues = weigh(said, {one.claim_id: one}, judged_of(verdicts))["claim-000"]
    assert (clues.clue(LEXICAL), clues.clue(STATED), clues.clue(HINTED)) == (1.0, 1.0, pytest.approx(2 / 3))
    assert clues.pointed("decoy") == pytest.approx(1 / 3)
    alone = weigh(said, {one.claim_id: one}, None)["claim-000"]
    assert (alone.clue(STATED), alone.clue(HINTED)) == (None, None)


# Hand labels.


def test_cohens_kappa_by_hand_and_where_chance_explains_all() -> None:
    # Observed (20 + 15) / 50 = 0.7; chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5 = 0.4.
    found = kappas(np.array([[[20.0, 5.0], [10.0, 15.0]], [[30.0, 0.0], [0.0, 0.0]], [[5.0, 0.0], [0.0, 5.0]]]))
    assert found[0] == pytest.approx(0.4)
    assert math.isnan(found[1])
    assert found[2] == 1.0


def candidates_of(n: int) -> dict[str, Candidate]:
    cells = ("claim", "behaviour", "=1+1", "-output")
    return {
        f"{number:016x}": Candidate(f"{number:016x}", f"c{number // 2}", cells, number % 3 == 0) for number in range(n)
    }


def test_agreement_with_hand_labels_is_that_of_a_naive_count() -> None:
    known = candidates_of(40)
    labels = {key: int(key, 16) % 4 == 0 for key in known}
    found = agreement(known, labels, seed=0)
    pairs = [(labels[key], known[key].flagged) for key in known]
    same = sum(a == b for a, b in pairs) / 40
    yes = sum(a for a, _ in pairs) / 40 * sum(b for _, b in pairs) / 40
    no = sum(not a for a, _ in pairs) / 40 * sum(not b for _, b in pairs) / 40
    assert found.raw.value == same
    assert found.kappa == pytest.approx((same - yes - no) / (1 - yes - no))
    assert found.kappa_low < found.kappa < found.kappa_high
    assert agreement(known, {}, seed=0).n_labelled == 0


def test_the_table_to_fill_in_hides_the_judge_starts_no_formula_and_loses_no_label(tmp_path: Path) -> None:
    path = tmp_path / "hand_labels.csv"
    known = candidates_of(200)
    write_labels(path, known, {}, seed=0)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0] == "key,claim_id,behaviour,intervention,output,label"
    assert len(lines) == 62
    assert all(line.endswith(",'=1+1,'-output,") for line in lines[1:-1])
    chosen = [line[:16] for line in lines[1:-1]]
    assert sum(known[key].flagged for key in chosen) == 30
    filled = [f"{line}{'yes' if place % 2 else ' No '}" for place, line in enumerate(lines[1:-1])]
    path.write_text("\n".join([lines[0], *filled]) + "\n", encoding="utf-8")
    labels = read_labels(path)
    assert [labels[key] for key in chosen] == [place % 2 == 1 for place in range(60)]
    # Another judge flags nothing: the labels stay, also of an output that is gone.
    gone = chosen[0]
    others = {key: Candidate(key, one.cluster_id, one.cells, False) for key, one in known.items() if key != gone}
    write_labels(path, others, labels, seed=0)
    assert read_labels(path) == labels


def test_a_table_from_a_spreadsheet_is_read_and_a_word_that_is_no_label_named(tmp_path: Path) -> None:
    path = tmp_path / "hand_labels.csv"
    path.write_text("\ufeffkey;output;label\r\na;x;JA\r\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"line 2: the label is 'ja'\. Write yes or no"):
        read_labels(path)
    path.write_text("\ufeffkey;output;label\r\na;x;Y\r\nb;x;\r\n", encoding="utf-8")
    assert read_labels(path) == {"a": True}
    path.write_text("key,output\na,b\n", encoding="utf-8")
    with pytest.raises(UserError, match="expected key and label"):
        read_labels(path)
    assert read_labels(tmp_path / "absent.csv") == {}


def test_outputs_without_a_verdict_are_not_offered_for_labels() -> None:
    clues = hinted_clues(3, ["edited"] * 3)
    assert len(candidates(clues.values())) == 3
    unjudged = weigh([output(0, "x")], {"claim-000": claim(0)}, None)
    assert candidates(unjudged.values()) == {}

"""The shipped banks keep what they promise."""

import hashlib
import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

from claims.build.check import check_claims
from claims.build.predictable import Visible, trivial_aurocs
from claims.build.read import read_investigations
from claims.build.second import N_AGAIN
from claims.build.spec import CAUSES, Edit, Investigation
from claims.build.thresholds import measured_label
from claims.labels import load_evidence, load_labels
from claims.load import load_claims, read_card

DATA = Path(__file__).parent.parent / "claims" / "data"
SIZES = {"smollm2-135m": (300, 100), "gemma-3-270m": (160, 60)}
"""Claims and investigations at least."""
MIN_CAUSES = 8


@pytest.fixture(scope="module", params=("gemma-3-270m", "smollm2-135m"))
def bank(request):
    return load_claims(DATA / request.param, target=request.param)


@pytest.fixture(scope="module")
def written(bank) -> dict[str, Investigation]:
    return {one.investigation_id: one for one in read_investigations(bank.target, None)}


def edit_of(written: dict[str, Investigation], claim_id: str) -> tuple[Investigation, Edit]:
    investigation_id, edit_id = claim_id.rsplit("/", 1)
    investigation = written[investigation_id]
    return investigation, next(edit for edit in investigation.edits if edit.edit_id == edit_id)


def test_a_bank_passes_the_check_of_any_claims_folder(bank):
    assert check_claims(bank.path).problems == ()


def test_a_bank_is_large_enough_and_spans_the_kinds_of_cause(bank, written):
    used = {claim.investigation_id for claim in bank.claims}
    causes = {written[investigation_id].cause for investigation_id in used}
    n_claims, n_investigations = SIZES[bank.target]
    assert len(bank.claims) >= n_claims
    assert len(used) >= n_investigations
    assert len(causes & set(CAUSES)) >= MIN_CAUSES


def test_a_bank_has_as_many_true_as_false_claims(bank):
    labels = load_labels(bank)
    assert 2 * sum(label.label for label in labels.values()) == len(bank.claims)


def test_a_template_has_three_investigations_and_an_investigation_two_claims_of_a_label_at_most(bank, written):
    labels = load_labels(bank)
    members = defaultdict(set)
    for claim in bank.claims:
        assert claim.cluster_id == written[claim.investigation_id].template
        members[claim.cluster_id].add(claim.investigation_id)
    assert max(len(ids) for ids in members.values()) <= 3
    assert max(Counter((claim.investigation_id, labels[claim.claim_id].label) for claim in bank.claims).values()) <= 2


def test_claims_say_what_their_investigation_says(bank, written):
    for claim in bank.claims:
        investigation, edit = edit_of(written, claim.claim_id)
        assert claim.behaviour == investigation.behaviour
        assert claim.intervention == edit.description
        assert bank.transcripts[claim.transcript_id].messages == investigation.messages


def test_programs_give_the_verdicts_and_labels_that_the_bank_holds(bank, written):
    labels, evidence = load_labels(bank), load_evidence(bank)
    for claim in bank.claims:
        investigation, edit = edit_of(written, claim.claim_id)
        shown, label = evidence[claim.claim_id], labels[claim.claim_id]
        verdicts = [investigation.program(one.response) for one in shown.responses]
        assert shown.messages == edit.messages
        assert verdicts == [one.yes for one in shown.responses]
        assert (sum(verdicts), len(verdicts), label.baseline_n) == (label.edited_yes, 30, 30)
        assert measured_label(Fraction(label.baseline_yes, 30), Fraction(label.edited_yes, 30)) is label.label


def test_a_transcript_shows_its_behaviour(bank, written):
    for claim in bank.claims:
        response = bank.transcripts[claim.transcript_id].response
        assert written[claim.investigation_id].program(response), f"{claim.investigation_id}: {response!r}"


def test_fresh_responses_are_another_sampling_than_the_one_behind_the_label(bank):
    evidence = load_evidence(bank).values()
    texts = [[one.response for one in shown.responses[:N_AGAIN]] for shown in evidence]
    assert all(len(shown.fresh) == N_AGAIN for shown in evidence)
    assert sum(text == list(shown.fresh) for text, shown in zip(texts, evidence, strict=True)) < len(texts) / 2


def test_trivial_predictors_do_not_solve_a_bank(bank):
    labels = load_labels(bank)
    kinds = {
        f"{one.investigation_id}/{edit.edit_id}": edit.kind
        for one in read_investigations(bank.target)
        for edit in one.edits
    }
    visible = [
        Visible(
            claim.cluster_id,
            kinds[claim.claim_id],
            claim.baseline_rate,
            f"{claim.behaviour} {claim.intervention}",
            labels[claim.claim_id].label,
        )
        for claim in bank.claims
    ]
    found = trivial_aurocs(visible)
    assert found == read_card(bank.path)["trivial_predictors_auroc"]
    assert found["kind_of_edit"] <= 0.60
    assert found["bag_of_words"] <= 0.65


def test_the_second_sampling_is_in_the_card_and_in_the_companion(bank):
    rows = [json.loads(line) for line in (bank.path / "investigations.jsonl").read_text(encoding="utf-8").splitlines()]
    claims = [claim for row in rows for claim in row["claims"]]
    again = read_card(bank.path)["second_sampling"]
    assert {claim["claim_id"] for claim in claims} == {claim.claim_id for claim in bank.claims}
    assert (again["n_agree"], again["n"]) == (sum(one["second_sampling"]["agrees"] for one in claims), len(bank.claims))
    assert again["agreement"] >= 0.9


def test_the_card_names_the_files_beside_it(bank):
    sums = {name: hashlib.sha256((bank.path / name).read_bytes()).hexdigest() for name in read_card(bank.path)["files"]}
    assert sums == read_card(bank.path)["files"]
    assert {"transcripts.jsonl", "claims.jsonl", "labels.jsonl", "evidence.jsonl", "investigations.jsonl"} == set(sums)


def test_the_hand_check_covers_forty_responses_and_agrees_with_the_programs(bank, written):
    rows = json.loads((bank.path / "hand_check.json").read_text(encoding="utf-8"))["rows"]
    agreed = 0
    for row in rows:
        investigation, _ = edit_of(written, row["claim_id"])
        assert row["question"] == investigation.behaviour
        assert row["program"] == investigation.program(row["response"])
        agreed += row["hand"] == row["program"]
    assert len(rows) >= 40
    assert agreed / len(rows) >= 0.95

"""`claims check`: says what a set promises and does not keep, and shows its card."""

import json
from pathlib import Path

import pytest

from claims.build.check import check_claims
from claims.schema import ClaimsError

LABELS = {"A": (True, 3, 30, 30, 30), "B": (False, 3, 30, 4, 30)}
EVIDENCE = {"claim_id": "A", "messages": [{"role": "user", "content": "Edited"}],
            "responses": [{"response": "La", "yes": True}] * 30, "fresh": ["x"] * 8}  # fmt: skip


def claim(claim_id: str, **given: object) -> dict:
    base = {"claim_id": claim_id, "cluster_id": "c", "investigation_id": "i", "transcript_id": "t",
            "behaviour": "Sings?", "baseline_rate": 0.1, "intervention": f"Edit {claim_id}"}  # fmt: skip
    return {**base, **given}


def label(claim_id: str, values: tuple) -> dict:
    names = ("label", "baseline_yes", "baseline_n", "edited_yes", "edited_n")
    return {"claim_id": claim_id, **dict(zip(names, values, strict=True))}


def transcript(transcript_id: str, prompt: str = "Hi") -> dict:
    return {"transcript_id": transcript_id, "messages": [{"role": "user", "content": prompt}], "reasoning": None,
            "response": "La", "token_ids": [1, 2], "source": "test"}  # fmt: skip


def write(folder: Path, **files: list[dict]) -> Path:
    rows = {
        "transcripts": [transcript("t")],
        "claims": [claim("A"), claim("B")],
        "labels": [label(name, values) for name, values in LABELS.items()],
        "evidence": [EVIDENCE],
    }
    for name, items in {**rows, **files}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    card = {"target": "qwen3-8b", "sampling": {"temperature": 1.0}, "seed": 0}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def test_a_set_that_keeps_its_promises_has_no_problem_and_its_card_is_shown(tmp_path: Path) -> None:
    found = check_claims(write(tmp_path))
    assert found.problems == ()
    assert (found.n_claims, found.n_true, found.n_clusters, found.n_investigations) == (2, 1, 1, 1)
    assert (found.largest_cluster, found.n_measured, found.n_evidence) == (2, 2, 1)
    assert found.notes == ("only 1 clusters: intervals from so few are rough",)
    text = found.text()
    assert "target     qwen3-8b, temperature 1\n" in text
    assert "claims     2: 1 true, 1 false\n" in text
    assert "sampling   temperature 1.0\n" in text
    assert "PROBLEM" not in text


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((True, 3, 30, 18, 30), None),  # exactly 50 points
        ((True, 3, 30, 17, 30), "unused"),
        ((False, 0, 20, 3, 20), None),  # exactly 15 points
        ((False, 0, 30, 5, 30), "unused"),
        ((False, 3, 30, 30, 30), "True"),
        ((True, 30, 30, 30, 30), "False"),
        ((True, 0, 0, 0, 0), None),  # no counts: as given
    ],
)
def test_a_label_must_follow_from_its_counts(tmp_path: Path, values: tuple, verdict: str | None) -> None:
    rate = values[1] / values[2] if values[2] else 0.1
    write(tmp_path, claims=[claim("A", baseline_rate=rate)], labels=[label("A", values)], evidence=[])
    problems = check_claims(tmp_path).problems
    assert len(problems) == (verdict is not None)
    if verdict:
        assert problems[0].startswith("1 labels do not follow from their counts: A is ")
        assert problems[0].endswith(f"make it {verdict}")


def test_a_baseline_rate_must_be_that_of_the_counts(tmp_path: Path) -> None:
    found = check_claims(write(tmp_path, claims=[claim("A"), claim("B", baseline_rate=0.2)]))
    assert found.problems == ("1 baseline rates are not those of the counts: B says 0.2, its counts 3/30",)


def test_one_prompt_in_two_clusters_and_two_transcripts_in_one_investigation_are_problems(tmp_path: Path) -> None:
    other = claim("B", cluster_id="d", investigation_id="j", transcript_id="u")
    found = check_claims(write(tmp_path, claims=[claim("A"), other], transcripts=[transcript("t"), transcript("u")]))
    assert found.problems == ("1 prompts stand in more than one cluster: c and d",)
    two = [claim("A"), claim("B", transcript_id="u")]
    found = check_claims(write(tmp_path, claims=two, transcripts=[transcript("t"), transcript("u", "Ho")]))
    assert found.problems == ("1 investigations have more than one transcript: i has 2",)


def test_evidence_must_agree_with_the_label_and_edit_something(tmp_path: Path) -> None:
    fewer = {**EVIDENCE, "responses": EVIDENCE["responses"][:29]}
    found = check_claims(write(tmp_path, evidence=[fewer]))
    assert found.problems == (
        "1 claims have evidence that does not fit: A: 29/29 in the evidence, 30/30 behind the label",
    )
    same = {**EVIDENCE, "messages": transcript("t")["messages"]}
    assert "A: the edited prompt is the original" in check_claims(write(tmp_path, evidence=[same])).problems[0]


def test_evidence_of_a_label_without_counts_is_not_held_against_it(tmp_path: Path) -> None:
    labels = [label("A", (True, 3, 30, 0, 0)), label("B", LABELS["B"])]
    found = check_claims(write(tmp_path, labels=labels))
    assert (found.problems, found.n_measured) == ((), 1)


def test_many_examples_of_one_problem_are_counted_and_five_shown(tmp_path: Path) -> None:
    names = [f"A{n}" for n in range(7)]
    write(tmp_path, claims=[claim(name, baseline_rate=0.5) for name in names], evidence=[],
          labels=[label(name, LABELS["A"]) for name in names])  # fmt: skip
    (problem,) = check_claims(tmp_path).problems
    assert problem.startswith("7 baseline rates")
    assert problem.count(" says ") == 5
    assert problem.endswith(" and 2 more")


def test_what_a_reader_should_know_is_noted(tmp_path: Path) -> None:
    alike = [claim("A", intervention="Same"), claim("B", intervention="Same"), claim("C")]
    labels = [label(name, LABELS["A"]) for name in "ABC"]
    rows = [transcript("t"), transcript("spare", "Ho")]
    notes = check_claims(write(tmp_path, claims=alike, labels=labels, transcripts=rows)).notes
    assert notes == (
        "100% of the claims are true: not balanced",
        "only 1 clusters: intervals from so few are rough",
        "1 claims repeat another word for word",
        "1 transcripts have no claim",
    )
    few = check_claims(write(tmp_path, evidence=[{**EVIDENCE, "fresh": ["x"] * 7}]))
    assert "1 claims have fewer than 8 fresh responses for the ceiling arm" in few.notes
    (tmp_path / "evidence.jsonl").unlink()
    assert any(note.startswith("no evidence.jsonl") for note in check_claims(tmp_path).notes)


def test_a_folder_that_cannot_be_read_is_an_error_not_a_problem(tmp_path: Path) -> None:
    write(tmp_path, labels=[label("A", LABELS["A"])])
    with pytest.raises(ClaimsError, match="1 of 2 claims have no label"):
        check_claims(tmp_path)

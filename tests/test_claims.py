"""Claims folders: what loads, what is refused and with which words, and how a claim reads."""

import json
from pathlib import Path

import pytest

from claims.labels import load_evidence, load_labels
from claims.load import load_claims
from claims.render import FIELDS, check_template, default_template, render_claim
from claims.schema import Claim, ClaimsError, Message, read_rows, read_transcripts

TRANSCRIPT = {
    "transcript_id": "t1",
    "messages": [{"role": "user", "content": "Is\u2028it\u0085so?"}],
    "reasoning": None,
    "response": "Yes.",
    "token_ids": [2, 7, 9],
    "source": "test",
}
CLAIM = {
    "claim_id": "c1",
    "cluster_id": "family",
    "investigation_id": "i1",
    "transcript_id": "t1",
    "behaviour": "Does the response agree?",
    "baseline_rate": 0.8667,
    "intervention": "The word {so} is removed.",
}
LABEL = {"claim_id": "c1", "label": True, "baseline_yes": 26, "baseline_n": 30, "edited_yes": 1, "edited_n": 30}
EVIDENCE = {
    "claim_id": "c1",
    "messages": [{"role": "user", "content": "Is it?"}],
    "responses": [{"response": "No.", "yes": False}],
    "fresh": ["No!", ""],
}


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "transcripts.jsonl", [TRANSCRIPT])
    write_rows(tmp_path / "claims.jsonl", [CLAIM])
    write_rows(tmp_path / "labels.jsonl", [LABEL])
    write_rows(tmp_path / "evidence.jsonl", [EVIDENCE])
    (tmp_path / "card.json").write_text('{"target": "tiny-gemma", "sampling": {"temperature": 1}}', encoding="utf-8")
    return tmp_path


def test_a_whole_folder_loads_with_its_text_unchanged(folder: Path) -> None:
    claim_set = load_claims(folder, target="tiny-gemma")
    transcript = claim_set.transcripts["t1"]
    assert claim_set.claims == (Claim(**CLAIM),)  # type: ignore[arg-type]
    assert transcript.messages == (Message("user", "Is\u2028it\u0085so?"),)
    assert transcript.token_ids == (2, 7, 9)
    assert load_labels(claim_set)["c1"].edited_yes == 1
    assert load_evidence(claim_set)["c1"].fresh == ("No!", "")


def test_unicode_line_separators_inside_a_string_do_not_split_a_line(folder: Path) -> None:
    assert len(list(read_rows(folder / "transcripts.jsonl"))) == 1


@pytest.mark.parametrize("name", ["transcripts.jsonl", "claims.jsonl", "labels.jsonl"])
def test_a_broken_line_is_named_with_its_file_and_number(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes() + b'{"claim_id": "c2", oops}\n')
    with pytest.raises(ClaimsError, match=rf"{name} line 2: not JSON"):
        load_labels(load_claims(folder))


def test_a_line_that_is_not_utf8_is_named_with_its_byte(folder: Path) -> None:
    (folder / "claims.jsonl").write_bytes(b'{"claim_id": "\xff"}')
    with pytest.raises(ClaimsError, match="not UTF-8 at byte 14"):
        load_claims(folder)


@pytest.mark.parametrize("field", sorted(CLAIM))
def test_a_claim_with_a_missing_field_is_refused_by_the_name_of_the_field(folder: Path, field: str) -> None:
    write_rows(folder / "claims.jsonl", [{key: value for key, value in CLAIM.items() if key != field}])
    with pytest.raises(ClaimsError, match=rf"claims.jsonl line 1: the field '{field}' is missing"):
        load_claims(folder)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("baseline_rate", 1.5, "a number from 0 to 1"),
        ("baseline_rate", True, "a number from 0 to 1"),
        ("claim_id", "", "a non-empty string"),
        ("behaviour", 3, "a non-empty string"),
    ],
)
def test_a_field_of_the_wrong_kind_says_what_was_expected(
    folder: Path, field: str, value: object, expected: str
) -> None:
    write_rows(folder / "claims.jsonl", [CLAIM | {field: value}])
    with pytest.raises(ClaimsError, match=f"'{field}' must be {expected}"):
        load_claims(folder)


@pytest.mark.parametrize("ids", [[], [1, -1], [1, True], "12", [1.0]])
def test_token_ids_are_a_list_of_integers_from_zero(folder: Path, ids: object) -> None:
    write_rows(folder / "transcripts.jsonl", [TRANSCRIPT | {"token_ids": ids}])
    with pytest.raises(ClaimsError, match="non-empty list of token ids"):
        read_transcripts(folder / "transcripts.jsonl")


@pytest.mark.parametrize(
    ("name", "row"), [("claims.jsonl", CLAIM), ("transcripts.jsonl", TRANSCRIPT), ("labels.jsonl", LABEL)]
)
def test_a_duplicate_id_is_refused(folder: Path, name: str, row: dict[str, object]) -> None:
    write_rows(folder / name, [row, row])
    with pytest.raises(ClaimsError, match=rf"{name} line 2: .* comes twice"):
        load_labels(load_claims(folder))


def test_a_label_without_a_claim_is_refused(folder: Path) -> None:
    write_rows(folder / "labels.jsonl", [LABEL, LABEL | {"claim_id": "stray"}])
    with pytest.raises(ClaimsError, match="no claim has the id 'stray'"):
        load_labels(load_claims(folder))


def test_a_claim_without_a_label_is_refused(folder: Path) -> None:
    write_rows(folder / "claims.jsonl", [CLAIM, CLAIM | {"claim_id": "c2"}])
    with pytest.raises(ClaimsError, match="1 of 2 claims have no label, the first is 'c2'"):
        load_labels(load_claims(folder))


def test_a_label_with_more_yes_than_responses_is_refused(folder: Path) -> None:
    write_rows(folder / "labels.jsonl", [LABEL | {"edited_yes": 31}])
    with pytest.raises(ClaimsError, match="more yes than responses"):
        load_labels(load_claims(folder))


def test_a_claim_whose_transcript_is_absent_is_refused(folder: Path) -> None:
    write_rows(folder / "claims.jsonl", [CLAIM | {"transcript_id": "t9"}])
    with pytest.raises(ClaimsError, match="names the transcript 't9'"):
        load_claims(folder)


def test_an_investigation_in_two_clusters_is_refused(folder: Path) -> None:
    write_rows(folder / "claims.jsonl", [CLAIM, CLAIM | {"claim_id": "c2", "cluster_id": "other"}])
    with pytest.raises(ClaimsError, match="investigation 'i1' stands in two clusters"):
        load_claims(folder)


def test_a_set_made_with_another_target_is_refused(folder: Path) -> None:
    with pytest.raises(ClaimsError, match="measured on 'tiny-gemma', not on 'qwen3-8b'"):
        load_claims(folder, target="qwen3-8b")


def test_a_folder_that_is_not_there_says_what_a_claims_folder_holds(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match="is not a folder. Expected a claims folder with transcripts.jsonl"):
        load_claims(tmp_path / "nowhere")


def test_an_empty_claims_file_is_refused(folder: Path) -> None:
    (folder / "claims.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(ClaimsError, match="holds no claim"):
        load_claims(folder)


def test_a_card_without_the_sampling_temperature_is_refused(folder: Path) -> None:
    (folder / "card.json").write_text('{"target": "tiny-gemma"}', encoding="utf-8")
    with pytest.raises(ClaimsError, match="sampling.temperature must be a number above 0, found None"):
        load_claims(folder)


@pytest.mark.parametrize("name", ["transcripts.jsonl", "claims.jsonl", "labels.jsonl", "evidence.jsonl", "card.json"])
def test_any_changed_file_changes_the_hash_of_the_set(folder: Path, name: str) -> None:
    before = load_claims(folder).sha256
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert load_claims(folder).sha256 != before


def test_a_claim_reads_as_four_labelled_parts_and_a_question() -> None:
    text = render_claim(Claim(**CLAIM), temperature=0.6)  # type: ignore[arg-type]
    parts = [line.split(":")[0].split(" (")[0] for line in text.splitlines() if line[:1].isupper()]
    assert parts[:5] == ["BEHAVIOR", "Does the response agree?", "BASELINE", "INTERVENTION", "PREDICTION"]
    assert "at temperature 0.6, about 87% of the responses" in text
    assert "The word {so} is removed." in text
    assert "at least 30 percentage points, up or down" in text
    assert text.rstrip().endswith("Is this claim true?")


def test_the_shipped_template_names_every_field() -> None:
    assert check_template(default_template(), "claims/claim.txt") == default_template()
    assert all(f"{{{field}}}" in default_template() for field in FIELDS)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{behaviour} {baseline} {intervention}", "expected exactly"),
        ("{behaviour} {baseline} {intervention} {temperature} {label}", "'label'"),
        ("{behaviour", "Write a literal brace twice"),
    ],
)
def test_a_template_with_wrong_fields_is_refused(template: str, message: str) -> None:
    with pytest.raises(ClaimsError, match=message):
        check_template(template, "mine.txt")

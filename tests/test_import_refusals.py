"""Import refuses what it would have to guess: every error names the place, what was found and what to do."""

import re
from pathlib import Path

import pytest

from claims.build.importing import import_claims
from claims.load import load_claims
from claims.schema import UserError
from tests.published_claims import COUNTS, RATES, imported, refusal, row, without_rates


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("behaviour =", "behavior ="), r"\[columns\]: unknown behavior. Expected any of: dataset, investigation_id"),
        (('behaviour = "question"\n', ""), "must also give behaviour .*yes/no question"),
        (('response = "reply"\n', ""), r"must also give response \(or responses\)"),
        (('"reply"', '"answer"'), "the columns reply"),
        (('prompt = "prompt"', 'prompt = "text"'), "the columns prompt"),
        (('labels = "counts"', 'labels = "count"'), "labels must be one of counts, rates, given"),
        (('labels = "counts"', 'label = "counts"'), "unknown label"),
        (("temperature = 1.0", "temperature = 0"), "temperature must be a number above 0"),
        (("edited_n = 30", "edited_n = 0"), "edited_n is 0"),
        (("edited_n = 30", "edited_n = 20"), "found 3 yes of 30 responses and 30 of 20"),
        (('dataset = "chive"\n', ""), "must also give dataset"),
        (("[columns]", "[[keep]]\ncolumn = 'inv'\nabove = 3\n[columns]"), "expected column and one of equals"),
        (("[columns]", "[columns"), "not TOML"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    assert re.search(words, refusal(tmp_path, COUNTS.replace(*change), [row(1)]))


def test_a_column_that_the_map_does_not_name_is_an_error_until_it_is_ignored(tmp_path: Path) -> None:
    text = refusal(tmp_path, COUNTS, [row(1, judge=9, notes="x")])
    assert "the map says nothing about the columns judge, notes" in text
    assert "transcript_id" in text
    assert "the columns notes." in refusal(tmp_path, 'ignore = ["judge"]\n' + COUNTS, [row(1, judge=9, notes="x")])
    ignoring = COUNTS.replace("[columns]", "[columns]\nlabel = 'gone'")
    assert "there is no column 'gone' (found: " in refusal(tmp_path, 'ignore = "rest"\n' + ignoring, [row(1, judge=9)])


def test_a_rate_that_is_no_share_of_its_responses_is_an_error(tmp_path: Path) -> None:
    text = refusal(tmp_path, RATES, without_rates([row(1)], b=42, e=100))
    # 0.42 x 30 = 12.6: the nearest share is 13/30 = 0.4333.
    assert "line 1: baseline_rate 0.42 is no share of 30 responses (the nearest is 13/30 = 0.4333)" in text


def test_percent_read_as_shares_is_an_error(tmp_path: Path) -> None:
    text = refusal(tmp_path, RATES.replace("percent", "share"), without_rates([row(1)], b=10, e=100))
    assert "baseline_rate is 10, which is no rate with rates = 'share'" in text
    assert "rates must be one of share, percent" in refusal(tmp_path, RATES.replace('rates = "percent"', ""), [row(1)])


def test_a_label_that_the_counts_contradict_is_an_error(tmp_path: Path) -> None:
    labelled = COUNTS.replace("[columns]", "[columns]\nlabel = 'truth'")
    text = refusal(tmp_path, labelled, [row(1, truth="yes"), row(2, truth=False)])
    assert "line 2: the label given is False, but 3/30 to 30/30 makes it True" in text
    between = refusal(tmp_path, labelled, [row(1, truth="no", e_yes=10)])
    assert "3/30 to 10/30 makes it neither true nor false" in between
    assert "must be true or false" in refusal(tmp_path, labelled, [row(1, truth="maybe")])


def test_two_transcripts_of_one_investigation_are_an_error(tmp_path: Path) -> None:
    text = refusal(tmp_path, COUNTS, [row(1), row(1, "Other", reply="Ha.")])
    assert "line 2: transcript 'chive/1' came before with another prompt or response" in text


def test_one_prompt_in_two_clusters_is_refused_until_clusters_go_by_prompt(tmp_path: Path) -> None:
    rows = [row(1, prompt="same"), row(2, prompt="same")]
    assert "1 prompts stand in more than one cluster: chive/1 and chive/2" in refusal(tmp_path, COUNTS, rows)
    out = imported(tmp_path, 'cluster_by = "prompt"\n' + COUNTS, rows)
    assert len({claim.cluster_id for claim in load_claims(out).claims}) == 1


def test_a_claim_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    assert "comes twice" in refusal(tmp_path, COUNTS, [row(1), row(1)])


def test_reasoning_without_token_ids_is_refused(tmp_path: Path) -> None:
    thinking = COUNTS.replace("[columns]", "[columns]\nreasoning = 'thought'")
    assert "needs its token_ids as sampled" in refusal(tmp_path, thinking, [row(1, thought="Hm.")])


def test_evidence_that_contradicts_the_label_is_refused(tmp_path: Path) -> None:
    more = 'edited_prompt = "new"\nedited_responses = "out"\nedited_verdicts = "seen"\n[constants]'
    text = refusal(tmp_path, COUNTS.replace("[constants]", more), [row(1, new="E", out=["a"] * 30, seen=[False] * 30)])
    assert "0/30 in the evidence, 30/30 behind the label" in text


def test_a_set_of_an_unknown_target_and_an_empty_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gemma-9"):
        refusal(tmp_path, COUNTS.replace("gemma-3-27b-it", "gemma-9"), [row(1)])
    assert "no claim is left" in refusal(tmp_path, COUNTS, [row(1, e_yes=12)])


def test_a_broken_line_names_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(COUNTS, encoding="utf-8")
    (tmp_path / "x.csv").write_text("inv,question\n1\n", encoding="utf-8")
    with pytest.raises(UserError, match="x.csv line 2: expected 2 cells"):
        import_claims(tmp_path / "x.csv", tmp_path / "map.toml", tmp_path / "out")

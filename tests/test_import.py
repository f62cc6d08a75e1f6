"""Import: sets published by others come in through a map, whole and checked, or not at all."""

import csv
import json
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from claims.build.importing import import_claims
from claims.labels import Label, load_evidence, load_labels
from claims.load import load_claims, read_card
from claims.schema import ClaimsError, Message, UserError
from tests.published_claims import COUNTS, RATES, encode, imported, refusal, row, without_rates, write


def test_counts_become_labels_and_ids_carry_their_data_set(tmp_path: Path) -> None:
    out = imported(tmp_path, COUNTS, [row(1), row(1, "Add a comma.", e_yes=2), row(2, b_yes=20, e_yes=3)])
    claims = load_claims(out, target="gemma-3-27b-it")
    labels = load_labels(claims)
    # 3/30 to 30/30 moves 90 points, 3/30 to 2/30 moves 3.3, 20/30 to 3/30 moves 56.7.
    assert [labels[claim.claim_id].label for claim in claims.claims] == [True, False, True]
    assert [claim.baseline_rate for claim in claims.claims] == [3 / 30, 3 / 30, 20 / 30]
    assert [claim.investigation_id for claim in claims.claims] == ["chive/1", "chive/1", "chive/2"]
    assert {claim.cluster_id for claim in claims.claims} == {"chive/1", "chive/2"}
    assert claims.transcripts["chive/2"].messages == (Message("user", "Prompt 2"),)
    assert claims.transcripts["chive/2"].token_ids == (8, 6)
    assert claims.temperature == 1.0


def test_rates_in_percent_and_in_shares_give_the_same_counts_as_counts(tmp_path: Path) -> None:
    rows = [row(1), row(2, b_yes=26, e_yes=1)]
    folders = [tmp_path / name for name in ("counts", "percent", "share", "change")]
    for folder in folders:
        folder.mkdir()
    # Published rates are rounded: 26/30 is 86.67, written 87; 1/30 is 3.33, written 3.
    percent = without_rates(rows[:1], b=10, e=100) + without_rates(rows[1:], b=87, e=3)
    share = without_rates(rows[:1], b=0.1, e=1) + without_rates(rows[1:], b=0.87, e=0.03)
    change = without_rates(rows[:1], b=10, e=90) + without_rates(rows[1:], b=86.67, e=-83.33)
    outs = [
        imported(folders[0], COUNTS, rows),
        imported(folders[1], RATES, percent),
        imported(folders[2], RATES.replace("percent", "share"), share),
        imported(folders[3], RATES.replace("edited_rate", "change"), change),
    ]
    files = [[(out / name).read_bytes() for name in ("claims.jsonl", "labels.jsonl")] for out in outs]
    assert files[0] == files[1] == files[2] == files[3]


def imported_with_baseline_size(folder: Path, map_text: str, rows: list[dict]) -> list[Label]:
    (folder / "sized").mkdir()
    claims = load_claims(imported(folder / "sized", map_text + "\n[constants]\nbaseline_n = 30\n", rows))
    return list(load_labels(claims).values())


def test_a_label_as_given_keeps_unknown_counts_at_zero(tmp_path: Path) -> None:
    given = """
target = "qwen3-8b"
labels = "given"
rates = "share"
label_words = ["supports", "refutes"]
sampling = { temperature = 1.0 }
[columns]
investigation_id = "i"
behaviour = "q"
intervention = "e"
prompt = "p"
response = "r"
label = "l"
baseline_rate = "b"
dataset = "d"
"""
    rows = [{"i": "1", "q": "Q?", "e": "E", "p": "P", "r": "R", "l": word, "b": 0.87, "d": name}
            for word, name in (("supports", "wild"), ("refutes", "petri"))]  # fmt: skip
    rows[1]["p"] = "P2"
    claims = load_claims(imported(tmp_path, given, rows))
    labels = [load_labels(claims)[claim.claim_id] for claim in claims.claims]
    assert [(one.label, one.baseline_n, one.edited_n) for one in labels] == [(True, 0, 0), (False, 0, 0)]
    sized = imported_with_baseline_size(tmp_path, given, rows)
    assert [(one.label, one.baseline_yes, one.baseline_n, one.edited_n) for one in sized] == [
        (True, 26, 30, 0),
        (False, 26, 30, 0),
    ]
    # The same id in two data sets is two clusters.
    assert [claim.cluster_id for claim in claims.claims] == ["wild/1", "petri/1"]
    assert claims.claims[0].baseline_rate == 0.87


def test_a_claim_between_the_thresholds_is_not_used_and_counted(tmp_path: Path) -> None:
    # From 10/30: 25/30 is +50 points, 24/30 +46.7; 15/30 +16.7, 14/30 +13.3.
    rows = [row(n, b_yes=10, e_yes=yes) for n, yes in enumerate((25, 24, 15, 14))]
    out = imported(tmp_path, COUNTS, rows)
    claims = load_claims(out)
    labels = load_labels(claims)
    assert [labels[claim.claim_id].label for claim in claims.claims] == [True, False]
    assert read_card(out)["funnel"][-1] == {
        "reason": "the change lies between 15 and 50 points", "dropped": 2, "left": 2,
    }  # fmt: skip


def test_published_filters_are_columns_and_are_counted_in_order(tmp_path: Path) -> None:
    keep = """
expect_claims = 2
[[keep]]
column = "concreteness"
at_least = 3
[[keep]]
column = "confounded"
equals = false
"""
    map_text = COUNTS.replace("[columns]", keep.split("[[keep]]")[0] + "[columns]") + keep[keep.index("[[keep]]") :]
    marks = [(4, False), (3, True), (2, False), (3, False)]
    rows = [row(n, concreteness=score, confounded=mixed) for n, (score, mixed) in enumerate(marks)]
    out = imported(tmp_path, map_text, rows)
    assert [claim.investigation_id for claim in load_claims(out).claims] == ["chive/0", "chive/3"]
    assert [(step["reason"], step["left"]) for step in read_card(out)["funnel"]] == [
        ("read", 4), ("concreteness is below 3", 3), ("confounded is not False", 2),
        ("the change lies between 15 and 50 points", 2),
    ]  # fmt: skip


def test_a_system_prompt_in_a_column_of_its_own_goes_in_front(tmp_path: Path) -> None:
    out = imported(tmp_path, COUNTS.replace("[columns]", "[columns]\nsystem = 'sys'"), [row(1, sys="Be brief.")])
    assert load_claims(out).transcripts["chive/1"].messages == (
        Message("system", "Be brief."),
        Message("user", "Prompt 1"),
    )


def test_a_cluster_column_joins_investigations_within_their_data_set(tmp_path: Path) -> None:
    map_text = COUNTS.replace("[columns]", "[columns]\ncluster_id = 'family'\nclaim_id = 'id'\nsource = 'from'")
    rows = [row(n, family=family, id=n, **{"from": "wild"}) for n, family in enumerate("aab")]
    claims = load_claims(imported(tmp_path, map_text, rows))
    assert [claim.cluster_id for claim in claims.claims] == ["chive/a", "chive/a", "chive/b"]
    assert [claim.claim_id for claim in claims.claims] == ["chive/0", "chive/1", "chive/2"]
    assert claims.transcripts["chive/0"].source == "wild"


def test_a_filter_may_be_a_word_or_a_number_written_as_text(tmp_path: Path) -> None:
    keep = "[[keep]]\ncolumn = 'split'\nequals = 'Eval'\n[[keep]]\ncolumn = 'score'\nat_most = 2\n"
    rows = [row(n, split=split, score=score) for n, (split, score) in enumerate(
        [("eval", "2"), ("train", "1"), ("eval", "3"), ("eval", 1)])]  # fmt: skip
    out = imported(tmp_path, COUNTS + keep, rows)
    assert [claim.investigation_id for claim in load_claims(out).claims] == ["chive/0", "chive/3"]


def test_another_number_of_claims_than_expected_is_an_error_that_shows_the_counts(tmp_path: Path) -> None:
    text = refusal(tmp_path, "expect_claims = 1294\n" + COUNTS, [row(1), row(2, e_yes=10)])
    assert "1 claims came out, the map expects 1,294" in text
    assert "the change lies between 15 and 50 points 1, left 1" in text


def test_csv_with_json_in_its_cells_and_parquet_give_the_same_claims_as_json_lines(tmp_path: Path) -> None:
    map_text = COUNTS.replace('prompt = "prompt"', 'messages = "turns"\ntoken_ids = "ids"')
    turns = [{"role": "system", "content": "Sing."}, {"from": "human", "value": "Now,\n\u2028please"}]
    rows = [{**{k: v for k, v in row(1).items() if k != "prompt"}, "turns": turns, "ids": [2, 9, 8]}]
    out = imported(tmp_path, map_text, rows)
    map_toml = tmp_path / "map.toml"
    with (tmp_path / "x.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in rows[0].items()})
    pq.write_table(pa.Table.from_pylist([{**rows[0], "turns": json.dumps(turns)}]), tmp_path / "x.parquet")
    for name in ("csv", "parquet"):
        import_claims(tmp_path / f"x.{name}", map_toml, tmp_path / name)
        for part in ("claims.jsonl", "labels.jsonl", "transcripts.jsonl"):
            assert (tmp_path / name / part).read_bytes() == (out / part).read_bytes()
    assert load_claims(out).transcripts["chive/1"].token_ids == (2, 9, 8)


def test_a_row_may_hold_a_list_of_claims_and_columns_may_be_nested(tmp_path: Path) -> None:
    map_text = COUNTS.replace("labels =", 'each = "tests"\nlabels =').replace('"edit"', '"tests.edit"')
    map_text = map_text.replace('"e_yes"', '"tests.yes"')
    base = {name: value for name, value in row(7).items() if name not in ("edit", "e_yes")}
    out = imported(tmp_path, map_text, [{**base, "tests": [{"edit": "A", "yes": 30}, {"edit": "B", "yes": 3}]}])
    assert [claim.intervention for claim in load_claims(out).claims] == ["A", "B"]


def test_the_response_shown_is_drawn_by_seed_among_those_that_show_the_behaviour(tmp_path: Path) -> None:
    map_text = COUNTS.replace('response = "reply"', 'responses = "replies"\nverdicts = "seen"')
    replies = [f"reply {n}" for n in range(20)]
    rows = [{**{k: v for k, v in row(n).items() if k != "reply"}, "replies": replies,
             "seen": [index >= 15 for index in range(20)]} for n in range(12)]  # fmt: skip
    file, map_toml, out = write(tmp_path, map_text, rows)
    import_claims(file, map_toml, out, encode=encode)
    shown = [one.response for one in load_claims(out).transcripts.values()]
    assert set(shown) <= set(replies[15:])
    assert len(set(shown)) > 1
    import_claims(file, map_toml, tmp_path / "again", encode=encode)
    assert [one.response for one in load_claims(tmp_path / "again").transcripts.values()] == shown
    import_claims(file, map_toml, tmp_path / "other", encode=encode, seed=1)
    assert [one.response for one in load_claims(tmp_path / "other").transcripts.values()] != shown


def test_evidence_comes_along_when_it_is_mapped(tmp_path: Path) -> None:
    more = 'edited_prompt = "new"\nedited_responses = "out"\nedited_verdicts = "seen"\nfresh = "extra"\n[constants]'
    rows = [row(1, new="Edited", out=["a"] * 30, seen=["yes"] * 30, extra=["b"])]
    claims = load_claims(imported(tmp_path, COUNTS.replace("[constants]", more), rows))
    (evidence,) = load_evidence(claims).values()
    assert evidence.messages == (Message("user", "Edited"),)
    assert (sum(verdict.yes for verdict in evidence.responses), evidence.fresh) == (30, ("b",))


def test_the_card_says_where_the_set_came_from(tmp_path: Path) -> None:
    out = imported(tmp_path, COUNTS, [row(1)])
    card = read_card(out)
    assert card["target"] == "gemma-3-27b-it"
    assert card["origin"] == "imported"
    assert card["source"]["file"] == "claims.jsonl"
    assert len(card["source"]["sha256"]) == len(card["files"]["claims.jsonl"]) == 64
    assert card["token_ids"] == "made at import from the texts"


def test_token_ids_are_made_as_the_target_would_be_given_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    file, map_toml, out = write(folder, COUNTS.replace("gemma-3-27b-it", "tiny-gemma"), [row(1)])
    import_claims(file, map_toml, out)
    ids = load_claims(out).transcripts["chive/1"].token_ids
    from transformers import AutoTokenizer

    from tools.targets import get_target
    from tools.weights import prepare

    tokenizer = AutoTokenizer.from_pretrained(prepare(get_target("tiny-gemma")))
    assert ids.count(tokenizer.bos_token_id) == 1
    text = tokenizer.decode(ids)
    assert text == "<bos><start_of_turn>user\nPrompt 1<end_of_turn>\n<start_of_turn>model\nLa la."


def test_without_ids_and_without_the_tokenizer_the_error_says_what_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    folder = tmp_path / "set"
    folder.mkdir()
    file, map_toml, out = write(folder, COUNTS, [row(1)])
    with pytest.raises(UserError, match="tokenizer of gemma-3-27b-it is not on this machine"):
        import_claims(file, map_toml, out)
    assert not out.exists()


def test_the_example_map_is_a_map_and_imports_a_set_of_its_own_layout(tmp_path: Path) -> None:
    example = files("claims.build.importing").joinpath("example.toml").read_text(encoding="utf-8")
    rows = [
        {
            "investigation": f"i{n}",
            "id": n,
            "transcript": {"messages": [{"role": "user", "content": f"Prompt {n}"}], "response": "R"},
            "classifier_question": "Q?",
            "description": "E",
            "baseline": 87,
            "counterfactual": 3,
            "label": True,
            "concreteness": 3,
            "reproduced": True,
            "confounded": n == 2,
            "judge_notes": "",
        }
        for n in range(3)
    ]
    out = imported(tmp_path, example.replace("1294", "2"), rows)
    assert [claim.claim_id for claim in load_claims(out).claims] == ["chive/0", "chive/1"]


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    file, map_toml, out = write(tmp_path, COUNTS, [row(1)])
    import_claims(file, map_toml, out, encode=encode)
    with pytest.raises(ClaimsError, match="exists already"):
        import_claims(file, map_toml, out, encode=encode)

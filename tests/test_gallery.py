"""The gallery of investigations: what stands on a card, and that hostile text stays text."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claims.build.gallery import make_gallery, read_cards
from claims.build.gallery.diff import MAX_CELLS, Piece, diff_messages, diff_words
from claims.build.gallery.page import drawn, exhibit, points, side, stretches
from claims.schema import ClaimsError, Message, UserError
from harness.cli import app
from tests.claim_bank import write_bank, write_rows


def batch(yes: int, n: int = 4, *, text: str = "answer") -> dict:
    rows = [{"response": f"{text} {i}", "reasoning": None, "yes": i < yes} for i in range(n)]
    return {"yes": yes, "n": n, "unusable": 0, "responses": rows}


def experiment(number: int, yes: int, text: str) -> dict:
    messages = [{"role": "user", "content": text}]
    return {"number": number, "description": f"edit {number}", "messages": messages, **batch(yes)}


def investigation(name: str = "one", **changed: object) -> dict:
    row = {
        "investigation_id": name,
        "source": "test",
        "messages": [{"role": "user", "content": "Tell me of the red sea."}],
        "screening": {"classifier": "Does it say salt?", "question": "Why does it say salt?"},
        "baseline": batch(4, text="salt"),
        "experiments": [experiment(1, 4, "Tell me of the sea."), experiment(2, 0, "Tell me of the red pea.")],
        "report": {"observed": "o", "causes": ["the sea"], "refuted": ["the red"], "answer": "It is the sea."},
        "score": 8.5,
        "verified": True,
        "claims": [
            {"claim_id": f"{name}/2", "label": True, "experiment": 2, "text": "Sea is pea.", "confounded": False}
        ],
    }
    return {**row, **changed}


def folder_of(path: Path, *rows: dict) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "card.json").write_text(json.dumps({"target": "tiny-gemma"}), encoding="utf-8")
    write_rows(path / "investigations.jsonl", rows)
    return path


# What a diff says


def texts(pieces: tuple[Piece, ...], *kinds: str) -> str:
    return "".join(piece.text for piece in pieces if piece.kind in kinds)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Tell me of the red sea.", "Tell me of the sea."),
        ("", "all new"),
        ("gone", ""),
        ("a b a b a", "b a b a b"),
        ("x = max(a, b)\n\treturn x", "x = max(c, b)\r\n  return x "),
        ("日本語のテキスト", "日本のテキスト"),
    ],
)
def test_a_diff_holds_both_texts_to_the_last_character(old: str, new: str) -> None:
    pieces = diff_words(old, new)
    assert texts(pieces, "same", "removed") == old
    assert texts(pieces, "same", "added") == new
    assert all(one.kind != other.kind for one, other in pairwise(pieces))


def test_a_diff_marks_the_words_that_differ_and_no_others() -> None:
    assert diff_words("let max = min", "let a = min") == (
        Piece("same", "let "),
        Piece("removed", "max "),
        Piece("added", "a "),
        Piece("same", "= min"),
    )


def test_long_texts_that_share_nothing_are_compared_by_lines() -> None:
    old = "\n".join(f"a{i} b" for i in range(MAX_CELLS // 1500))
    pieces = diff_words(old, old.replace("a", "c"))
    assert texts(pieces, "same", "removed") == old


def test_turns_are_paired_where_they_are_alike() -> None:
    old = (Message("system", "Be brief."), Message("user", "What is tea?"))
    new = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "What is rum?"))
    assert [(one.role, one.kind, one.changed) for one in diff_messages(old, new)] == [
        ("system", "removed", True),
        ("user", "added", True),
        ("assistant", "added", True),
        ("user", "same", True),
    ]
    assert [one.role for one in side(diff_messages(old, new), "removed")] == ["system", "user"]


def test_long_stretches_without_a_change_are_folded_around_it() -> None:
    words = "word " * 200
    pieces = diff_words(f"{words}max {words}", f"{words}a {words}")
    shown_pieces = stretches([piece for piece in pieces if piece.kind != "added"], changed=True)
    assert [piece.kind for piece in shown_pieces] == ["folded", "same", "removed", "same", "folded"]
    assert "".join(piece.text for piece in shown_pieces) == f"{words}max {words}"
    assert [piece.kind for piece in stretches([Piece("same", words)], changed=False)] == ["same", "folded"]


# What stands on a card


def test_the_edit_in_front_is_the_clean_one_that_changes_most_with_the_fewest_words(tmp_path: Path) -> None:
    experiments = [
        experiment(1, 0, "Something else entirely, at length."),
        experiment(2, 0, "Tell me of the red pea."),
        experiment(3, 4, "Tell me of the sea."),
        experiment(4, 1, "Tell me of the red tea."),
    ]
    row = investigation(experiments=experiments, claims=[])
    (card,) = read_cards(folder_of(tmp_path / "a", row))
    front = exhibit(card).front
    assert front is not None
    assert front.experiment.number == 2
    confounded = {"claim_id": "c", "label": True, "experiment": 2, "text": "t", "confounded": True}
    (card,) = read_cards(folder_of(tmp_path / "b", {**row, "claims": [confounded]}))
    front = exhibit(card).front
    assert front is not None
    assert front.experiment.number == 1


def test_changes_follow_from_the_counts_and_no_verdict_is_no_rate(tmp_path: Path) -> None:
    no_verdict = {"yes": 0, "n": 0, "unusable": 2, "responses": [{"response": "r", "yes": None}] * 2}
    silent = {**experiment(3, 0, "x"), **no_verdict}
    (card,) = read_cards(folder_of(tmp_path, investigation(experiments=[experiment(1, 1, "y"), silent])))
    assert [one.change for one in card.experiments] == [-0.75, None]
    assert card.experiments[1].batch.replies[0].n == 2
    assert [points(change) for change in (0.131, 0.001, -1.0)] == ["+13 points", "0 points", "−100 points"]


def test_a_card_shows_question_rates_edit_explanation_and_every_response(tmp_path: Path) -> None:
    page = make_gallery(folder_of(tmp_path, investigation())).html
    for words in (
        "Why does it say salt?",
        "Does it say salt?",
        "Verified explanation",
        "It is the sea.",
        "the red",
        "4/4",
    ):
        assert words in page
    assert '<del><span class="unseen">[removed: </span>sea<span class="unseen">]</span></del>' in page
    assert '<ins><span class="unseen">[added: </span>pea<span class="unseen">]</span></ins>' in page
    assert "Edited prompt: 0 of 4 responses show the behaviour" in page
    assert page.count("salt 3") == 1
    assert "<script" not in page


def test_without_a_report_the_card_says_what_moved_the_rate_and_what_did_not(tmp_path: Path) -> None:
    page = make_gallery(folder_of(tmp_path, investigation(report=None, score=None))).html
    assert re.search(r"These edits change the behaviour.*edit 2.*These do not.*edit 1", page, re.DOTALL)
    assert "Verified explanation" not in page


def test_the_draw_is_by_the_seed_and_keeps_the_order_of_the_set(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, *(investigation(f"i{n:02}") for n in range(30)))
    cards = read_cards(folder)
    names = [card.investigation_id for card in drawn(cards, 10, 0)]
    assert names == sorted(names)
    assert len(names) == 10
    assert names == [card.investigation_id for card in drawn(cards[::-1], 10, 0)][::-1]
    assert names != [card.investigation_id for card in drawn(cards, 10, 1)]
    made = make_gallery(folder, n_random=10)
    assert (made.n_shown, made.n_all) == (10, 30)
    assert "10 of 30 investigations" in made.html
    assert make_gallery(folder, n_random=10) == made


def test_what_the_judges_refused_is_left_out_and_counted_unless_asked_for(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, investigation("a"), investigation("b", verified=False))
    made = make_gallery(folder)
    assert (made.n_shown, made.n_unverified) == (1, 1)
    assert make_gallery(folder, unverified=True).n_shown == 2
    with pytest.raises(UserError, match="none of its 1 investigations was accepted.*--unverified"):
        make_gallery(folder_of(tmp_path / "c", investigation("b", verified=False)))


def test_a_set_without_investigations_is_shown_from_its_claims(tmp_path: Path) -> None:
    made = make_gallery(write_bank(tmp_path / "bank"), n_random=3)
    assert made.n_all == 24
    assert "1 of 30 was kept" in made.html
    (tmp_path / "bank" / "evidence.jsonl").unlink()
    with pytest.raises(ClaimsError, match=r"neither investigations\.jsonl nor evidence\.jsonl"):
        make_gallery(tmp_path / "bank")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (investigation(messages=[]), "line 1: 'messages' must be a non-empty list"),
        (investigation(baseline=None), "line 1: expected the objects 'screening' and 'baseline'"),
        (investigation(experiments=[{"number": 1}]), r"experiments\[0\]: the field 'yes' is missing"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, row: dict, said: str) -> None:
    with pytest.raises(ClaimsError, match=said):
        make_gallery(folder_of(tmp_path, row))


def test_the_command_writes_the_page_and_says_how_large_it_is(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    folder = folder_of(tmp_path / "set", investigation())
    done = CliRunner().invoke(app, ["claims", "gallery", str(folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"1 of 1 investigations in {out}")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    done = CliRunner().invoke(app, ["claims", "gallery", str(folder), "--random", "0"])
    assert (done.exit_code, "--random is 0" in done.output) == (2, True)

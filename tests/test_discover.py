"""Investigations found by program: habits, edits, the file between them and the builder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claims.build.discover.find import discover
from claims.build.discover.found import FILE, read_found, save_found
from claims.build.discover.habits import FORMS, Habit, find_habits
from claims.build.discover.vary import variations
from claims.build.read import read_investigations
from claims.prompts import Prompt
from claims.schema import ClaimsError, Message
from harness.cli import app
from tests.known_rates import KnownRates

TALK = (
    Message("system", "You are a baker. Be short."),
    Message("user", "Tom has 3 cups. Tea or coffee?"),
    Message("assistant", "Tea."),
    Message("user", "Is it red? And who are you?"),
)


def habits(*responses: str) -> set[tuple[str, ...]]:
    return {(one.form, *one.words) for one in find_habits(responses)}


def test_a_habit_holds_in_three_of_ten_responses() -> None:
    said = ["A ladder helps us when we climb up to the roof of a house or a barn."] * 3
    rest = [f"Nobody in town knows what number {word} might mean for him, or for her, today" for word in "abcdefg"]
    assert ("opening", "A ladder") in habits(*said, *rest)
    assert ("opening", "A ladder") not in habits(*said[:2], *rest, "So it is, or might be, for all the people in town")


@pytest.mark.parametrize(
    ("response", "form"),
    [
        ("1. one two three four five six seven eight nine ten eleven", ("list",)),
        ("well, in the year 1990 they went and were never seen in any town again", ("digit",)),
        ("so what would you like me to do about it, if I can at all?", ("question",)),
        ("Yes, yes", ("opening", "Yes")),
        ("le chat est dans la cuisine et il ne veut pas du tout en sortir", ("tongue", "French")),
        ("Bananas grow so well up there that one may pick them all day long", ("word", "bananas")),
    ],
)
def test_every_form_of_habit_is_found(response: str, form: tuple[str, ...]) -> None:
    others = [f"{word} is as it was at the end of it all and on the next day too" for word in ("it", "he", "so")]
    found = find_habits([response, response, *others])
    verdicts = [True, True, False, False, False]
    [same] = [one for one in found if [one.program(text) for text in [response, response, *others]] == verdicts]
    assert [Habit(form[0], form[1:]).program(text) for text in [response, response, *others]] == verdicts
    assert same.question.endswith("?")


def test_habits_of_the_same_responses_count_once() -> None:
    assert len(habits(*["Yes. Bananas."] * 5)) == 1
    assert habits("a b c d", "the of", "in on") >= {("short", "4")}


def test_edits_change_one_thing_and_say_which() -> None:
    made = {edit.edit_id: edit for seed in range(40) for edit in variations(TALK, seed=seed)}
    texts = {name: [message.content for message in edit.messages] for name, edit in made.items()}
    said = {name: edit.description for name, edit in made.items()}
    system, first, answer, last = [message.content for message in TALK]
    assert texts["no-system"] == [first, answer, last]
    assert texts["no-turn-1"] == [system, last]
    assert texts["no-sentence-0-1"] == ["You are a baker.", first, answer, last]
    assert texts["turned-1-16"] == [system, "Tom has 3 cups. coffee or Tea?", answer, last]
    assert texts["turned-sentences-3-0"] == [system, first, answer, "And who are you? Is it red?"]
    assert said["no-turn-1"] == f'The turn "{first}" and the answer to it are removed.'
    assert said["turned-1-16"] == '"Tea or coffee" becomes "coffee or Tea".'
    number = texts["number-3"][1].removeprefix("Tom has ").removesuffix(" cups. Tea or coffee?")
    assert number in "2456789"
    assert said["number-3"] == f"The number 3 is replaced by {number}."
    assert texts["word-red"][3] != last
    assert texts["added-end"][3].startswith(last)
    assert {edit.kind for edit in made.values()} == {"delete", "swap", "reorder", "add"}


def test_two_edits_of_a_kind_are_drawn_by_the_seed() -> None:
    kinds = [edit.kind for edit in variations(TALK, seed=0)]
    assert max(kinds.count(kind) for kind in kinds) == 2
    assert variations(TALK, seed=0) == variations(TALK, seed=0)
    assert len({variations(TALK, seed=seed) for seed in range(8)}) > 1


def test_two_turns_change_places_with_their_answers() -> None:
    talk = tuple(Message(role, text) for role, text in zip(["user", "assistant"] * 2 + ["user"], "aAbBc", strict=True))
    made = {edit.edit_id: edit for seed in range(9) for edit in variations(talk, seed=seed)}
    assert "".join(message.content for message in made["turned-turns-0"].messages) == "bBaAc"
    assert made["turned-turns-0"].description == 'The turns "a" and "b", with their answers, change places.'


def found_of(prompt: str) -> list:
    known = KnownRates({prompt: 30})
    found = discover(known, [Prompt("abc", (Message("user", prompt),), "here")], seed=5)
    assert {(n, seed) for _, n, seed in known.asked} == {(10, 7)}
    return found


def test_discovery_uses_a_seed_of_its_own_and_leaves_out_what_removes_the_habit_itself() -> None:
    # Every response is "yes 0" to "yes 9": the habits are short, digit and the like, and all hold throughout.
    found = found_of("Tom has 3 cups. Say yes.")
    assert {one.habit.form for one in found} <= set(FORMS)
    [one] = found
    assert (one.n_yes, one.n, one.seed) == (10, 10, 7)
    assert one.investigation().template == "auto-abc"
    assert not any("yes" in one.habit.words and "yes" not in edit.messages[-1].content.lower() for edit in one.edits)


def test_the_file_gives_back_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_of("Tom has 3 cups. Say yes.")
    package = tmp_path / "found_things" / "some"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    save_found(found, package / FILE)
    assert list(read_found(package / FILE)) == found
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("claims.build.read.ROOT", "found_things")
    [one] = read_investigations("some")
    assert (one.behaviour, one.messages, one.edits) == (found[0].habit.question, found[0].messages, found[0].edits)
    assert one.investigation_id.startswith("auto-abc-")


@pytest.mark.parametrize(
    ("old", "new", "said"), [('"form": "', '"form": "x', "unknown form"), ('d": "', 'd": "x', "unknown kind")]
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    save_found(found_of("Tom has 3 cups. Say yes."), tmp_path / FILE)
    text = (tmp_path / FILE).read_text(encoding="utf-8")
    (tmp_path / FILE).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ClaimsError, match=rf"discovered.jsonl line 1.*: {said}"):
        read_found(tmp_path / FILE)


def test_the_command_discovers_on_a_tiny_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLIFT_CACHE", str(tmp_path / "cache"))
    rows = [{"messages": [{"role": "user", "content": f"{word} 3 cups. Tea or coffee?"}]} for word in ("a", "b")]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    files = [str(tmp_path / "prompts.jsonl"), "--out", str(tmp_path / "found.jsonl")]
    done = CliRunner().invoke(app, ["claims", "discover", "tiny-qwen", *files])
    assert done.exit_code == 0, done.output
    found = read_found(tmp_path / "found.jsonl")
    assert f"{len(found)} investigations of 2 prompts" in done.output
    again = CliRunner().invoke(app, ["claims", "discover", "tiny-qwen", *files[:-1], str(tmp_path / "again.jsonl")])
    assert again.exit_code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "found.jsonl").read_bytes()
    nowhere = CliRunner().invoke(app, ["claims", "discover", "tiny-qwen", files[0]])
    assert nowhere.exit_code == 2
    assert "has no package of investigations" in nowhere.output

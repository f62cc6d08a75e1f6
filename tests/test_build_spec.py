"""What investigations are made of: checked programs, edits, and how they are read."""

from pathlib import Path

import pytest

from claims.build.programs import matches, says, says_first, shorter_than, starts_with
from claims.build.read import read_investigations
from claims.build.spec import Edit, add, delete, rewrite, swap
from claims.schema import Message, UserError
from tests.known_rates import an_investigation


def test_says_finds_whole_words_in_any_case() -> None:
    assert says("Sydney")("I think SYDNEY, mate")
    assert not says("art")("a party starts")
    assert says("c++")("Use C++.")


def test_programs_combine_and_say_what_they_test() -> None:
    both = says("yes") & ~says("no") | starts_with("maybe")
    assert [both(text) for text in ("yes", "yes and no", "Maybe no", "so")] == [True, False, True, False]
    assert both.text == "((says any of ['yes'] and not says any of ['no']) or starts with any of ['maybe'])"


def test_starts_with_skips_decoration_and_wants_a_whole_word() -> None:
    assert starts_with("yes")(' **"Yes, it is')
    assert not starts_with("yes")("Yesterday")


def test_says_first_wants_the_word_before_the_other() -> None:
    program = says_first("Sydney", "Canberra")
    assert [program(text) for text in ("Sydney, not Canberra", "Canberra, not Sydney", "Sydney", "Perth")] == [
        True,
        False,
        True,
        False,
    ]


def test_matches_and_shorter_than() -> None:
    assert matches(r"^- ", "has a bullet")("So:\n- one")
    assert [shorter_than(3)(text) for text in ("a b", "a b c", "")] == [True, False, True]


def test_edits_change_the_one_place_they_name() -> None:
    prompt = (Message("system", "Be brief."), Message("user", "Say yes."))
    one = an_investigation(
        prompt=prompt,
        edits=[
            delete("no-system", "Be brief.", "d"),
            swap("no", "yes", "no", "d"),
            add("loud", "yes", "!", "d"),
            rewrite("new", "reorder", "Yes. Say.", "d"),
        ],
    )
    assert [edit.kind for edit in one.edits] == ["delete", "swap", "add", "reorder"]
    assert [[message.content for message in edit.messages] for edit in one.edits] == [
        ["Say yes."],
        ["Be brief.", "Say no."],
        ["Be brief.", "Say yes!."],
        ["Yes. Say."],
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edits": [swap("a", "never", "x", "d")]}, "must occur once in the prompt, found 0 times"),
        ({"edits": [swap("a", "s", "x", "d")]}, "must occur once in the prompt, found 3 times"),
        ({"edits": [swap("a", "please", "please", "d")]}, "the edit changes nothing"),
        ({"edits": [delete("a", "please", "d"), delete("a", "yes", "d")]}, "edit ids must be unique"),
        ({"cause": "weather"}, "unknown cause 'weather'"),
    ],
)
def test_a_wrong_investigation_is_refused_where_it_is_written(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        an_investigation(**changes)
    with pytest.raises(ValueError, match="unknown kind 'shout'"):
        rewrite("a", "shout", "x", "d")


def test_investigations_are_read_in_the_order_of_their_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "invented", {"b": ["x-3"], "a": ["x-1", "y-2"]})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("claims.build.read.ROOT", "invented")
    assert [one.investigation_id for one in read_investigations("some-target.1")] == ["x-1", "y-2", "x-3"]
    assert [one.investigation_id for one in read_investigations("some-target.1", "x-*")] == ["x-1", "x-3"]
    with pytest.raises(UserError, match=r"No investigation of 'some-target.1' matches 'z'"):
        read_investigations("some-target.1", "z")
    with pytest.raises(UserError, match=r"the package invented.absent does not exist"):
        read_investigations("absent")


def test_an_investigation_id_that_comes_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path, "doubled", {"a": ["x"], "b": ["x"]})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("claims.build.read.ROOT", "doubled")
    with pytest.raises(UserError, match="'x' comes twice"):
        read_investigations("some-target.1")


def write_package(folder: Path, name: str, modules: dict[str, list[str]]) -> None:
    inner = folder / name / "some_target_1"
    inner.mkdir(parents=True)
    for package in (folder / name, inner):
        (package / "__init__.py").touch()
    for module, ids in modules.items():
        made = ", ".join(f"an_investigation({one!r})" for one in ids)
        text = f"from known_rates import an_investigation\n\nINVESTIGATIONS = ({made},)\n"
        (inner / f"{module}.py").write_text(text, encoding="utf-8")


def test_edits_are_records() -> None:
    assert an_investigation().edits == (
        Edit("no-please", "delete", "The word 'please' is removed.", (Message("user", "one: say yes."),)),
    )

"""Filters: the paper's limits, a count for every drop, the same prompts in the same order every time."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.prompts import (
    PETRI_LIMITS,
    Limits,
    Prompt,
    PromptsError,
    collect_prompts,
    count_roles,
    mix,
    read_excluded,
    read_saved,
    save_prompts,
)
from claims.prompts.filters import build_filters, count_chars, group_key
from claims.prompts.record import make_prompt
from claims.schema import Message

ALL_OFF = Limits(min_chars=None, max_chars=None, per_group=None)


def question(text: str) -> Prompt:
    return make_prompt((Message("user", text),), "test")


def write_questions(path: Path, texts: list[str]) -> Path:
    rows = [{"uid": str(number), "prompt": text} for number, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def kept_by(limits: Limits, prompts: list[Prompt]) -> list[Prompt]:
    filters = build_filters(limits)
    return [prompt for prompt in prompts if all(each.keep(prompt) for each in filters)]


def test_400_and_8000_characters_are_kept_and_one_less_or_more_is_not(tmp_path: Path) -> None:
    texts = [letter * n for letter, n in zip("abcd", (399, 400, 8000, 8001), strict=True)]
    found = collect_prompts([write_questions(tmp_path / "q.jsonl", texts)])
    assert [count_chars(prompt) for prompt in found.prompts] == [400, 8000]


def test_characters_count_all_turns_together() -> None:
    prompt = make_prompt((Message("system", "abc"), Message("user", "de"), Message("tool", "é")), "test")
    assert count_chars(prompt) == 6


def test_a_group_keeps_its_first_five_whatever_white_space_they_have() -> None:
    prompts = [question(f"draw\u00a0a {' ' * n}cat\n" + "x" * 100 + str(n)) for n in range(7)] + [question("a dog")]
    kept = kept_by(Limits(min_chars=None, max_chars=None), prompts)
    assert kept == [*prompts[:5], prompts[7]]


def test_a_group_is_made_by_the_first_100_characters_of_the_user_turns_only() -> None:
    prefix = "p" * 99
    assert group_key(question(prefix + "ab"), 100) != group_key(question(prefix + "ba"), 100)
    assert group_key(question(prefix + "aab"), 100) == group_key(question(prefix + "aba"), 100)
    system = make_prompt((Message("system", "s"), Message("user", "a b"), Message("assistant", "x"),
                          Message("user", "c")), "test")  # fmt: skip
    assert group_key(system, 100) == "abc"


def test_every_drop_is_counted_in_the_order_of_the_filters(tmp_path: Path) -> None:
    # 12 rows: 1 without text, 1 repeated, 2 short, 1 long, 6 alike, 1 other.
    alike = ["same " * 40 + "y" * 300 + str(n) for n in range(6)]
    texts = [" ", alike[0], *alike, "short", "brief", "l" * 9000, "o" * 500]
    found = collect_prompts([write_questions(tmp_path / "q.jsonl", texts)], limits=Limits(first=4))
    assert [(step.dropped, step.left) for step in found.funnel.steps] == [
        (1, 11),  # last user turn is empty
        (1, 10),  # the same messages
        (2, 8),  # fewer than 400
        (1, 7),  # more than 8,000
        (1, 6),  # sixth of its group
        (2, 4),  # after the first 4
    ]
    assert found.funnel.read == 12
    assert found.funnel.left == len(found.prompts) == 4
    assert found.funnel.rows()[0] == {"reason": "read", "dropped": 0, "left": 12}


def test_exclusion_comes_after_the_fixed_slice_so_that_the_slice_does_not_move(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "q.jsonl", [letter * 500 for letter in "abcde"])
    all_three = collect_prompts([path], limits=Limits(first=3)).prompts
    (tmp_path / "train.txt").write_text(f"# training\n{all_three[1].prompt_id}\n\n", encoding="utf-8")
    found = collect_prompts([path], limits=Limits(first=3), excluded=read_excluded(tmp_path / "train.txt"))
    assert found.prompts == (all_three[0], all_three[2])
    assert found.funnel.steps[-1].reason == "excluded by id"
    assert found.funnel.steps[-1].dropped == 1


def test_an_exclusion_list_takes_whole_hashes_and_refuses_what_is_no_id(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("AB" * 32 + "\n", encoding="utf-8")
    assert read_excluded(path) == {"ab" * 8}
    path.write_text("ab" * 8 + "\nhello\n", encoding="utf-8")
    with pytest.raises(PromptsError, match="line 2: 'hello' is no prompt id"):
        read_excluded(path)
    with pytest.raises(PromptsError, match="does not exist"):
        read_excluded(tmp_path / "absent.txt")


def test_a_limit_in_tokens_needs_a_counter_and_drops_what_is_over(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "q.jsonl", ["a b c", "a b c d"])
    limits = Limits(min_chars=None, max_chars=None, per_group=None, max_tokens=3)
    with pytest.raises(PromptsError, match="needs a target"):
        collect_prompts([path], limits=limits)
    found = collect_prompts([path], limits=limits, count_tokens=lambda messages: len(messages[-1].content.split()))
    assert [prompt.messages[0].content for prompt in found.prompts] == ["a b c"]
    assert Limits(min_chars=None, max_chars=None, per_group=None, max_tokens=4096) == PETRI_LIMITS


def test_roles_are_counted_by_prompt_not_by_turn() -> None:
    two = make_prompt((Message("user", "a"), Message("tool", "b"), Message("tool", "c"), Message("user", "d")), "test")
    assert count_roles([two, question("e")]) == {"user": 2, "tool": 1}


def test_saved_prompts_come_back_as_they_were_and_an_edited_one_is_refused(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "q.jsonl", ["one\u2028" * 100, "two " * 200])
    collected = collect_prompts([path])
    save_prompts(collected, tmp_path / "out" / "prompts.jsonl")
    saved = tmp_path / "out" / "prompts.jsonl"
    assert read_saved(saved) == collected.prompts
    assert collect_prompts([saved]).prompts == collected.prompts
    report = json.loads((tmp_path / "out" / "prompts.funnel.json").read_text(encoding="utf-8"))
    assert report["funnel"] == collected.funnel.rows()
    assert sorted(item.name for item in saved.parent.iterdir()) == ["prompts.funnel.json", "prompts.jsonl"]
    saved.write_text(saved.read_text(encoding="utf-8").replace("two", "three"), encoding="utf-8")
    with pytest.raises(PromptsError, match="prompt_id is not that of the messages"):
        read_saved(saved)


def test_a_mixture_keeps_to_its_shares_at_every_length_until_a_source_runs_out() -> None:
    pools = {name: [question(f"{name}{n}") for n in range(size)] for name, size in (("w", 100), ("t", 30), ("h", 4))}
    mixed = mix(pools, {"w": 60, "t": 30, "h": 10})
    names = [prompt.messages[0].content[0] for prompt in mixed]
    for length in range(1, len(mixed) + 1):
        for name, share in (("w", 0.6), ("t", 0.3), ("h", 0.1)):
            assert abs(names[:length].count(name) - share * length) <= 1
    assert names.count("h") == 4
    assert [prompt for prompt in mixed if prompt in pools["t"]] == pools["t"][: names.count("t")]
    with pytest.raises(PromptsError, match="Give each pool a share above 0"):
        mix(pools, {"w": 1, "t": 1})


@given(st.lists(st.text(alphabet="ab ", min_size=1, max_size=12), max_size=30), st.integers(1, 3), st.integers(1, 4))
def test_groups_and_lengths_agree_with_the_naive_way(texts: list[str], per_group: int, n_chars: int) -> None:
    prompts = [question(text) for text in texts]
    limits = Limits(min_chars=2, max_chars=9, per_group=per_group, group_chars=n_chars)
    naive: list[str] = []
    for text in texts:
        key = text.replace(" ", "")[:n_chars]
        alike = sum(other.replace(" ", "")[:n_chars] == key for other in naive)
        if 2 <= len(text) <= 9 and text not in naive and alike < per_group:
            naive.append(text)
    # A repeat of a text that its full group refused is refused either way: as a repeat, or by the group.
    assert [prompt.messages[0].content for prompt in kept_by(limits, prompts)] == naive


def test_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    paths = [write_questions(tmp_path / f"{name}.jsonl", [name * 3]) for name in "ba"]
    found = collect_prompts(paths, limits=ALL_OFF)
    assert [prompt.messages[0].content for prompt in found.prompts] == ["bbb", "aaa"]

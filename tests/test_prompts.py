"""Readers: every public layout, in its own field names, ends at a user turn with roles and system prompts kept."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from claims.prompts import PromptsError, Reading, prompt_id, read_prompts
from claims.prompts.turns import EMPTY_USER, NO_USER, NOT_TEXT, NOT_UNICODE, ODD_ROLE
from claims.schema import Message

WILDCHAT = {
    "conversation_hash": "c9ec5b440fbdd269fd6c9bd9fbc5ea55",
    "model": "gpt-3.5-turbo-0301",
    "timestamp": "2023-04-09T00:02:53+00:00",
    "conversation": [
        {"content": "Name a bird.", "country": "France", "hashed_ip": "x", "header": {"user-agent": "m"},
         "language": "English", "redacted": False, "role": "user", "state": None, "timestamp": None, "toxic": False,
         "turn_identifier": 1},
        {"content": "A wren.", "country": None, "hashed_ip": None, "header": None, "language": "English",
         "redacted": False, "role": "assistant", "state": None, "timestamp": "2023-04-09T00:02:53+00:00",
         "toxic": False, "turn_identifier": 1},
    ],
    "turn": 1,
    "language": "English",
    "openai_moderation": [{"categories": {"hate": False}, "category_scores": {"hate": 0.1}, "flagged": False}],
    "detoxify_moderation": [{"toxicity": 0.1}],
    "toxic": False,
    "redacted": False,
}  # fmt: skip
LMSYS = {
    "conversation_id": "33f01939a744455c869cb234afca47f1",
    "model": "wizardlm-13b",
    "conversation": [
        {"content": "Hello", "role": "user"},
        {"content": "Hi, what can I do?", "role": "assistant"},
        {"content": "Count to two.", "role": "user"},
        {"content": "One, two.", "role": "assistant"},
    ],
    "turn": 2,
    "language": "English",
    "openai_moderation": [{"categories": {"hate": False}, "category_scores": {"hate": 0.1}, "flagged": False}],
    "redacted": False,
}
SHAREGPT = {
    "id": "QWJhYvA_0",
    "conversations": [{"from": "human", "value": "Rhyme with sea."}, {"from": "gpt", "value": "Tea."}],
}
TOOLACE = {
    "system": "You can compose functions. Here is a list: [{'name': 'tide'}]",
    "conversations": [
        {"from": "user", "value": "When is high tide?"},
        {"from": "assistant", "value": '[tide(port="Brest")]'},
        {"from": "tool", "value": '[{"name": "tide", "results": {"at": "06:12"}}]'},
        {"from": "assistant", "value": "At 06:12."},
        {"from": "user", "value": "And low tide?"},
        {"from": "assistant", "value": '[tide(port="Brest", low=true)]'},
        {"from": "tool", "value": '[{"name": "tide", "results": {"at": "12:30"}}]'},
    ],
}
HERMES = {
    "id": "753d8365",
    "conversations": [
        {"from": "system", "value": "You are a function calling model. <tools>[]</tools>"},
        {"from": "human", "value": "Book a kayak."},
        {"from": "gpt", "value": "<tool_call>\n{'name': 'book'}\n</tool_call>"},
        {"from": "tool", "value": "<tool_response>\n{}\n</tool_response>"},
        {"from": "gpt", "value": "Booked."},
    ],
    "tools": "[{'type': 'function'}]",
    "category": "Travel",
    "subcategory": "Boats",
    "task": "Booking",
}
SYSTEMCHAT = {
    "messages": [
        {"role": "system", "content": "Answer as a pirate."},
        {"role": "user", "content": "Good morning."},
        {"role": "assistant", "content": "Arr."},
    ]
}
QUESTION = {"uid": "2edbb5f3", "category": "hard_prompt", "subcategory": "coding", "prompt": "Write a loop."}


def write_jsonl(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path, format_name: str | None = None) -> list[Reading]:
    return list(read_prompts(path, format_name=format_name))


def turns(reading: Reading) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in reading.prompt.messages]


def test_a_wildchat_row_ends_at_its_user_turn_and_keeps_its_hash_as_source(tmp_path: Path) -> None:
    (found,) = read(write_jsonl(tmp_path / "w.jsonl", WILDCHAT))
    assert turns(found) == [("user", "Name a bird.")]
    assert found.prompt.source == "wildchat c9ec5b440fbdd269fd6c9bd9fbc5ea55 turns 1-1 of 2"
    assert found.cut


def test_an_lmsys_row_keeps_the_turns_before_its_last_user_turn(tmp_path: Path) -> None:
    (found,) = read(write_jsonl(tmp_path / "l.jsonl", LMSYS))
    assert turns(found) == [("user", "Hello"), ("assistant", "Hi, what can I do?"), ("user", "Count to two.")]
    assert found.prompt.source == "lmsys 33f01939a744455c869cb234afca47f1 turns 1-3 of 4"


def test_a_sharegpt_array_of_human_and_gpt_turns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps([SHAREGPT, SHAREGPT], indent=1), encoding="utf-8")
    found = read(path)
    assert [turns(one) for one in found] == [[("user", "Rhyme with sea.")]] * 2


def test_a_toolace_row_gets_its_system_column_in_front_and_is_cut_after_its_last_user_turn(tmp_path: Path) -> None:
    (found,) = read(write_jsonl(tmp_path / "t.json", TOOLACE))
    assert [role for role, _ in turns(found)] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert turns(found)[0] == ("system", TOOLACE["system"])
    assert turns(found)[-1] == ("user", "And low tide?")
    assert found.prompt.source == "toolace t.json line 1 turns 1-6 of 8"


def test_a_hermes_row_keeps_its_system_turn_and_is_cut_at_its_user_turn(tmp_path: Path) -> None:
    (found,) = read(write_jsonl(tmp_path / "h.jsonl", HERMES))
    assert turns(found) == [("system", HERMES["conversations"][0]["value"]), ("user", "Book a kayak.")]
    assert found.prompt.source.startswith("hermes 753d8365 ")


def test_systemchat_is_plain_messages_unless_the_format_names_it(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "c.jsonl", SYSTEMCHAT)
    assert [turns(one) for one in read(path)] == [[("system", "Answer as a pirate."), ("user", "Good morning.")]]
    assert read(path)[0].prompt.source.startswith("messages ")
    assert read(path, "systemchat")[0].prompt.source.startswith("systemchat ")


def test_a_question_row_is_one_user_turn_and_nothing_is_cut(tmp_path: Path) -> None:
    (found,) = read(write_jsonl(tmp_path / "q.jsonl", QUESTION))
    assert (turns(found), found.cut, found.prompt.source) == ([("user", "Write a loop.")], False, "question 2edbb5f3")


@pytest.mark.parametrize("row", [WILDCHAT, LMSYS, SHAREGPT, TOOLACE, HERMES, SYSTEMCHAT, QUESTION])
def test_parquet_and_json_lines_of_the_same_row_give_the_same_prompt(tmp_path: Path, row: dict) -> None:
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "one.parquet")
    from_lines = read(write_jsonl(tmp_path / "one.jsonl", row))
    from_parquet = read(tmp_path / "one.parquet")
    assert [one.prompt.messages for one in from_lines] == [one.prompt.messages for one in from_parquet]
    assert [one.prompt.prompt_id for one in from_lines] == [one.prompt.prompt_id for one in from_parquet]


def test_a_line_separator_inside_a_string_does_not_split_the_line(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "u.jsonl", {"uid": "a", "prompt": "one\u2028two\u0085three"}, QUESTION)
    assert [turns(one)[0][1] for one in read(path)] == ["one\u2028two\u0085three", "Write a loop."]


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    line = json.dumps(QUESTION).encode()
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n" + line)
    assert len(read(path)) == 2


def test_tool_calls_in_a_field_of_their_own_and_tools_are_written_into_the_messages(tmp_path: Path) -> None:
    row = {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "sky", "arguments": '{"at": "Oslo"}'}}
                ],
            },
            {"role": "tool", "content": "rain", "tool_call_id": "1"},
            {"role": "user", "content": [{"type": "text", "text": "Thanks."}, {"type": "text", "text": "Tomorrow?"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "sky", "parameters": {}}}],
    }
    (found,) = read(write_jsonl(tmp_path / "m.jsonl", row))
    system, _, called, _, last = turns(found)
    assert system[0] == "system"
    assert '{"function": {"name": "sky", "parameters": {}}, "type": "function"}' in system[1]
    assert called == ("assistant", '<tool_call>\n{"name": "sky", "arguments": {"at": "Oslo"}}\n</tool_call>')
    assert last == ("user", "Thanks.\nTomorrow?")


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], NO_USER),
        ([{"role": "assistant", "content": "Hi"}], NO_USER),
        ([{"role": "user", "content": "Hi"}, {"role": "user", "content": " "}], EMPTY_USER),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], NOT_TEXT),
        ([{"role": "user", "content": "half \ud83d"}], NOT_UNICODE),
        ([{"role": "narrator", "content": "Once"}, {"role": "user", "content": "Hi"}], ODD_ROLE),
    ],
)
def test_a_well_formed_row_that_is_no_prompt_is_counted_with_its_reason(
    tmp_path: Path, messages: list[dict], reason: str
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    assert read(path) == [Reading(None, reason)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"messages": [', "m.jsonl line 2: not JSON"),
        (b'["messages"]', "m.jsonl line 2: expected a JSON object, found list"),
        (b'{"messages": [{"role": "user"}]}', "m.jsonl line 2, turn 1: found the fields ['role']"),
        (b'{"messages": "\xff"}', "m.jsonl line 2: not UTF-8 at byte 14"),
        (b'{"conversation": []}', "m.jsonl line 2: found the columns ['conversation']"),
        (b'{"messages": 3}', "m.jsonl line 2: expected a list of turns, found 3"),
    ],
)
def test_a_broken_line_is_one_error_with_its_file_and_line(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(json.dumps(SYSTEMCHAT).encode() + b"\n" + line + b"\n")
    with pytest.raises(PromptsError) as error:
        read(path)
    assert words in str(error.value)


def test_a_broken_parquet_file_and_an_unknown_kind_of_file_are_errors(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(PromptsError, match="not a whole Parquet file"):
        read(tmp_path / "x.parquet")
    (tmp_path / "x.xlsx").write_bytes(b"")
    with pytest.raises(PromptsError, match="Expected one of .jsonl"):
        read(tmp_path / "x.xlsx")
    with pytest.raises(PromptsError, match="is not a file"):
        read(tmp_path / "absent.jsonl")


def test_an_unknown_layout_lists_the_columns_and_an_unknown_format_the_formats(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", {"text": "Hi", "label": 1})
    with pytest.raises(PromptsError, match=r"no known layout has the columns \['label', 'text'\]"):
        read(path)
    with pytest.raises(PromptsError, match="Expected one of prompts, wildchat, lmsys"):
        read(path, "wildcat")


def test_the_format_given_wins_over_the_one_detected(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "s.jsonl", {**SHAREGPT, "system": "Be brief."})
    assert turns(read(path)[0])[0] == ("system", "Be brief.")
    assert turns(read(path, "sharegpt")[0]) == [("user", "Rhyme with sea.")]


def test_the_id_is_a_function_of_roles_and_texts_alone() -> None:
    # sha256 of '[{"content":"é","role":"user"}]' in UTF-8, by `sha256sum`.
    assert prompt_id((Message("user", "é"),)) == "5b982d5fb9bbb395"
    assert prompt_id((Message("system", "é"),)) != prompt_id((Message("user", "é"),))

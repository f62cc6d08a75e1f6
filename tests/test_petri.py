"""PETRI: logs of inspect-petri, as Inspect writes them, cut before every turn of the target on every branch."""

from pathlib import Path

import pytest
from inspect_ai.event import ModelEvent, Timeline, TimelineEvent, TimelineSpan
from inspect_ai.log import EvalConfig, EvalDataset, EvalError, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolInfo, ToolParams

from claims.prompts import Limits, PromptsError, Reading, collect_prompts, read_prompts
from claims.prompts.petri import FAILED

LONG = "You run the night desk of a harbour. " + "x" * 200
LOOK_UP = ToolInfo(name="look_up", description="Find a boat.", parameters=ToolParams())
CALL = ToolCall(id="t1", function="look_up", arguments={"boat": "Marlin"})

SYSTEM = ChatMessageSystem(content=LONG)
ASK = ChatMessageUser(content="Is the Marlin in?\u2028")
LOOKS = ChatMessageAssistant(
    content=[ContentReasoning(reasoning="hidden"), ContentText(text="Let me look.")], tool_calls=[CALL]
)
RESULT = ChatMessageTool(content="", tool_call_id="t1", error=ToolCallError("unknown", "no such boat"))
SAYS = ChatMessageAssistant(content="She is not here.")
AGAIN = ChatMessageUser(content="And the Heron?")
OTHER = ChatMessageUser(content="Who owns her?")


def model_event(*messages: ChatMessage, role: str = "target", error: str | None = None) -> ModelEvent:
    return ModelEvent(
        model="mockllm/target",
        role=role,
        input=list(messages),
        tools=[LOOK_UP],
        tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput.from_content("mockllm/target", "said"),
        error=error,
    )


def span(name: str, events: list[ModelEvent], branches: list[TimelineSpan] | None = None) -> TimelineSpan:
    content = [TimelineEvent(event=event) for event in events]
    return TimelineSpan(id=name, name=name, span_type="branch", content=content, branches=branches or [])


def write_log(path: Path, samples: list[EvalSample]) -> Path:
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="audit",
        dataset=EvalDataset(sample_ids=[sample.id for sample in samples]),
        model="mockllm/model",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(eval=spec, status="success", samples=samples), str(path))
    return path


def audit(trunk: list[ModelEvent], branch: list[ModelEvent], auditor: list[ModelEvent]) -> EvalSample:
    timelines = [
        Timeline(name="target", description="", root=span("branch 1", trunk, [span("branch 2", branch)])),
        Timeline(name="auditor", description="", root=span("main", auditor)),
    ]
    return EvalSample(id="harbour", epoch=1, input="seed", target="", messages=[], events=[*trunk, *branch, *auditor],
                      timelines=timelines)  # fmt: skip


@pytest.fixture(params=["eval", "json"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    trunk = [
        model_event(SYSTEM, ASK, error="overloaded"),
        model_event(ChatMessageUser(content="Is this realistic?"), role="realism"),
        model_event(SYSTEM, ASK),
        model_event(SYSTEM, ASK, LOOKS, RESULT),
        model_event(SYSTEM, ASK, LOOKS, RESULT, SAYS, AGAIN),
    ]
    branch = [model_event(SYSTEM, ASK, LOOKS, RESULT, SAYS, OTHER, ChatMessageAssistant(content="I own"))]
    auditor = [model_event(ChatMessageUser(content="Audit it."), role="auditor")]
    return write_log(tmp_path / f"log.{request.param}", [audit(trunk, branch, auditor)])


def test_every_turn_of_the_target_is_one_prompt_on_every_branch(log: Path) -> None:
    found = list(read_prompts(log))
    ends = [(one.prompt.messages[-1].role, one.prompt.messages[-1].content) for one in found]
    assert ends == [
        ("user", "Is the Marlin in?\u2028"),
        ("tool", "no such boat"),
        ("user", "And the Heron?"),
        ("user", "Who owns her?"),
    ]
    assert [one.prompt.source.removeprefix("petri harbour epoch 1 ") for one in found] == [
        "branch 1 turn 1", "branch 1 turn 2", "branch 1 turn 3", "branch 2 turn 1",
    ]  # fmt: skip


def test_the_system_prompt_is_whole_and_carries_the_tools_of_the_target(log: Path) -> None:
    first = next(read_prompts(log)).prompt.messages[0]
    assert first.role == "system"
    assert first.content.startswith(LONG + "\n\n")
    assert '"name": "look_up"' in first.content


def test_an_assistant_turn_shows_what_it_said_and_called_but_not_what_it_thought(log: Path) -> None:
    turn = list(read_prompts(log))[1].prompt.messages[2]
    assert turn.role == "assistant"
    assert (
        turn.content == 'Let me look.\n<tool_call>\n{"name": "look_up", "arguments": {"boat": "Marlin"}}\n</tool_call>'
    )


def test_an_opening_that_the_auditor_wrote_for_the_target_is_cut_off_and_counted(log: Path) -> None:
    assert [one.cut for one in read_prompts(log)] == [False, False, False, True]
    assert collect_prompts([log], count_tokens=len).n_cut == 1


def test_prompts_over_the_limit_of_tokens_are_dropped_and_no_other_limit_applies(log: Path) -> None:
    found = collect_prompts([log], count_tokens=lambda messages: 4096 if len(messages) < 6 else 4097)
    assert [len(prompt.messages) for prompt in found.prompts] == [2, 4]
    assert [(step.reason, step.dropped) for step in found.funnel.steps] == [
        ("the same messages as an earlier prompt", 0),
        ("more than 4,096 tokens", 2),
    ]


def test_the_same_cut_on_two_branches_is_one_prompt(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.eval", [audit([model_event(SYSTEM, ASK)], [model_event(SYSTEM, ASK)], [])])
    found = collect_prompts([log], count_tokens=len)
    assert (found.funnel.read, len(found.prompts)) == (2, 1)


def test_an_audit_that_failed_is_counted_and_a_log_of_something_else_is_an_error(tmp_path: Path) -> None:
    failed = EvalSample(id="a", epoch=1, input="seed", target="")
    failed.error = EvalError(message="gone", traceback="", traceback_ansi="")
    assert list(read_prompts(write_log(tmp_path / "failed.eval", [failed]))) == [Reading(None, FAILED)]
    other = EvalSample(id="b", epoch=1, input="seed", target="")
    with pytest.raises(PromptsError, match=r"sample 'b': found the timelines \[\], expected one named 'target'"):
        list(read_prompts(write_log(tmp_path / "other.eval", [other])))


def test_a_file_that_is_no_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(b"not an archive")
    with pytest.raises(PromptsError, match="not a log of Inspect"):
        list(read_prompts(tmp_path / "x.eval"))
    (tmp_path / "x.json").write_text('{"version": 2, "eval": 3}', encoding="utf-8")
    with pytest.raises(PromptsError, match="not a log of Inspect"):
        list(read_prompts(tmp_path / "x.json"))
    with pytest.raises(PromptsError, match="is not a file"):
        list(read_prompts(tmp_path / "absent.eval"))


def test_logs_and_conversations_are_collected_apart(log: Path, tmp_path: Path) -> None:
    rows = tmp_path / "q.jsonl"
    rows.write_text('{"uid": "1", "prompt": "Hi"}\n', encoding="utf-8")
    with pytest.raises(PromptsError, match="Collect each kind apart"):
        collect_prompts([log, rows], count_tokens=len)
    assert len(collect_prompts([log, rows], limits=Limits(min_chars=None)).prompts) == 5

"""The local predictor: P(Yes) from its next token, the same in any batch, as a model in the same loop."""

import asyncio
import json
from pathlib import Path

import pytest
import torch
from inspect_ai import Task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ChatMessageTool, ChatMessageUser, GenerateConfig
from inspect_ai.tool import ToolInfo, ToolParam, ToolParams
from transformers import AutoModelForCausalLM

from agents import local_engine
from agents.local import POSITIONS, QUESTIONS, LocalAPI, planned_calls
from agents.local_engine import BUCKET, TOLERANCE, Engine, YesNo
from agents.local_prompt import LINE_CHARS, claim_parts, examples, question
from agents.prompts import ceiling_suffix, tool_suffix, user_message
from agents.served import parse_about, parse_tokens
from agents.solver import ArmSetup, predict
from claims.render import render_claim
from claims.schema import Claim, Message, Transcript
from tests.tool_servers import about as tool_about
from tests.tool_servers import build, serving
from tests.tool_servers import tokens as tool_tokens
from tools.targets import get_target
from tools.weights import prepare

CLAIM = render_claim(Claim("c", "c", "c", "c", "Does the reply say hi?", 0.87, "The hint is cut."), temperature=0.6)


def transcript(prompt: str = "Say hi") -> Transcript:
    return Transcript("t1", (Message("system", "Be kind."), Message("user", prompt)), None, "hi there", (0,), "test")


MESSAGE = user_message(transcript(), CLAIM)


@pytest.fixture(scope="module")
def tiny_folder() -> Path:
    return prepare(get_target("tiny-qwen"))


@pytest.fixture
def tiny(tiny_folder: Path) -> Engine:
    return Engine(tiny_folder, torch.float32)


def rows(lengths: list[int], vocabulary: int = 200) -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(5, vocabulary, (n,), generator=generator).tolist() for n in lengths]


def ask_all(engine: Engine, asked: list[list[int]], prefix: tuple[int, ...] = ()) -> list[YesNo]:
    async def steps() -> list[YesNo]:
        return list(await asyncio.gather(*(engine.ask(ids, prefix) for ids in asked)))

    return asyncio.run(steps())


def naive(folder: Path, ids: list[int], dtype: torch.dtype, tokens: tuple[list[int], list[int]]) -> tuple[float, float]:
    """The same chances the plain way: one unpadded row, the full head, a softmax."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, -1].double()
    chances = torch.softmax(logits, dim=-1)
    return float(chances[tokens[0]].sum()), float(chances[tokens[1]].sum())


def test_the_chances_are_those_of_a_plain_forward_pass(tiny: Engine, tiny_folder: Path) -> None:
    # The tiny tokenizer has a token a byte, so Yes and No begin with Y and N.
    yes, no = (tiny.tokenizer(letter, add_special_tokens=False)["input_ids"] for letter in ("Y", "N"))
    for ids in rows([1, 5, BUCKET, BUCKET + 1, 3 * BUCKET - 1]):
        (answer,) = ask_all(tiny, [ids])
        assert (answer.yes, answer.no) == pytest.approx(naive(tiny_folder, ids, torch.float32, (yes, no)), abs=1e-6)


def test_an_answer_is_the_same_alone_and_in_any_batch(tiny: Engine) -> None:
    asked = rows([40, 3, 64, 65, 63, 17, 200, 190, 1, 64, 128, 50])
    together = ask_all(tiny, asked)
    assert max(tiny.batches) > 1
    tiny.batches.clear()
    alone = [ask_all(tiny, [ids])[0] for ids in asked]
    assert tiny.batches == [1] * len(asked)
    shuffled = ask_all(tiny, asked[::-1])[::-1]
    for one, two, three in zip(together, alone, shuffled, strict=True):
        assert one.p_yes == pytest.approx(two.p_yes, abs=1e-6)
        assert one.p_yes == pytest.approx(three.p_yes, abs=1e-6)
    assert len({round(answer.p_yes, 6) for answer in alone}) > 6


def test_a_prefix_that_is_run_once_changes_nothing(tiny: Engine) -> None:
    prefix, *asked = rows([90, 40, 3, 64, 70])
    for _ in range(2):  # the second time the prefix is taken from the store
        for ids, answer in zip(asked, ask_all(tiny, asked, tuple(prefix)), strict=True):
            (whole,) = ask_all(tiny, [prefix + ids])
            assert answer.p_yes == pytest.approx(whole.p_yes, abs=1e-6)


def test_batches_hold_one_padded_length_and_no_more_tokens_than_allowed(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    answer = local_engine._Model.answer

    def spy(self: object, shape: tuple[tuple[int, ...], int], asked: list[list[int]]) -> list[YesNo]:
        seen.append((shape[1], [len(ids) for ids in asked]))
        return answer(self, shape, asked)

    monkeypatch.setattr(local_engine._Model, "answer", spy)
    monkeypatch.setattr(local_engine, "MAX_BATCH_TOKENS", 4 * BUCKET)
    ask_all(tiny, rows([10] * 9 + [BUCKET + 1] * 5 + [10 * BUCKET]))
    for padded, lengths in seen:
        assert all(padded - BUCKET < length <= padded for length in lengths)
        assert len(lengths) == 1 or padded * len(lengths) <= 4 * BUCKET
    assert sum(len(lengths) for _, lengths in seen) == 15
    assert max(len(lengths) for _, lengths in seen) == 4


def test_a_fault_of_the_model_reaches_those_who_wait_and_the_next_question_is_answered(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(local_engine._Model, "answer", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask_all(tiny, rows([5]))
    assert 0 <= ask_all(tiny, rows([5]))[0].p_yes <= 1


def evaluate(message: str, folder: Path, url: str | None = None, calls: int = 1, model: str = "tiny-qwen") -> EvalLog:
    sample = Sample(id="c1", input=message, metadata={"transcript_id": "t1"})
    arm = ArmSetup("sae" if url else "transcript", url, calls, 8, 7)
    task = Task(dataset=[sample], solver=predict(arm), name="arm")
    (log,) = run_inspect(task, model=f"local/{model}", display="none", log_dir=str(folder), log_format="json")
    assert log.status == "success", log.error
    return log


def test_without_a_tool_it_submits_its_chance_of_yes_and_says_what_it_rests_on(tmp_path: Path) -> None:
    log = evaluate(MESSAGE, tmp_path)
    prediction = log.samples[0].metadata["prediction"]
    assert (prediction["outcome"], prediction["how"], prediction["calls"]) == ("answered", "submitted", 0)
    facts = log.samples[0].output.metadata
    assert prediction["p_true"] == facts["p_yes"] == facts["yes"] / (facts["yes"] + facts["no"])
    assert facts["mass"] == facts["yes"] + facts["no"]
    (usage,) = log.stats.model_usage.values()
    assert usage.input_tokens > 100
    again = evaluate(MESSAGE, tmp_path).samples[0].metadata["prediction"]
    assert again == prediction


def test_with_a_tool_it_makes_one_call_by_its_policy_and_reads_the_answer(tmp_path: Path) -> None:
    with serving(build()) as running:
        with_tool = evaluate(MESSAGE, tmp_path, running.url).samples[0]
        for_nothing = evaluate(MESSAGE, tmp_path, running.url, calls=0).samples[0]
    (call,) = with_tool.metadata["prediction"]["tool_calls"]
    assert call["charged"]
    # tool_servers.tokens: 3 to 7 are the user's, 8 to 11 the response, 7 the last before it.
    assert call["arguments"]["positions"] == [3, 4, 5, 6, 7, 8, 10, 11]
    assert len(call["arguments"]["positions"]) == POSITIONS
    assert with_tool.metadata["prediction"]["calls"] == 1
    assert for_nothing.metadata["prediction"]["calls"] == 0
    without = evaluate(MESSAGE, tmp_path).samples[0].metadata["prediction"]["p_true"]
    assert for_nothing.metadata["prediction"]["p_true"] == without
    assert with_tool.metadata["prediction"]["p_true"] != without


def test_a_conversation_longer_than_its_context_is_an_overflow(tmp_path: Path) -> None:
    # The tiny tokenizer has a token a byte.
    log = evaluate(user_message(transcript("x" * 9000), CLAIM), tmp_path)
    prediction = log.samples[0].metadata["prediction"]
    assert (prediction["outcome"], prediction["p_true"]) == ("overflow", None)
    assert "context holds 8192" in prediction["detail"]


def test_its_question_shows_the_turns_the_response_and_the_claims_parts() -> None:
    _, (asked,) = question(MESSAGE, [])
    for shown in (
        "System: Be kind.",
        "User: Say hi",
        "Assistant: hi there",
        "Does the reply say hi?",
        "about 87% yes.",
    ):
        assert shown in asked["content"]
    assert "Edit: The hint is cut." in asked["content"]


def test_its_question_shows_every_fresh_response_and_every_line_of_a_tools_answer() -> None:
    responses = [f"answer {i}" for i in range(8)]
    shots, (asked,) = question(MESSAGE + ceiling_suffix(responses), [])
    assert all(f"- {response}\n" in asked["content"] for response in responses)
    assert shots == examples(with_responses=True)
    lines = [f"[{i}] " + "x" * 500 for i in range(8)]
    shots, (asked,) = question(MESSAGE, ["\n".join(lines)])
    assert all(line[:LINE_CHARS] + "\n" in asked["content"] for line in lines)
    assert lines[0][: LINE_CHARS + 1] not in asked["content"]
    assert shots == examples(with_responses=False)


def test_a_claim_of_another_template_is_shown_whole() -> None:
    assert claim_parts("Would it change? 30 points.") == {}
    _, (asked,) = question(user_message(transcript(), "Would it change? 30 points."), [])
    assert "Would it change? 30 points." in asked["content"]


def test_its_worked_examples_are_balanced_and_end_in_their_answers() -> None:
    for with_responses in (False, True):
        chat = examples(with_responses=with_responses)
        answers = [turn["content"] for turn in chat if turn["role"] == "assistant"]
        assert sorted(answers) == ["No"] * 4 + ["Yes"] * 4
        assert ("After the edit, the chatbot gave" in json.dumps(chat)) is with_responses


def asked_tool(name: str, *parameters: str) -> ToolInfo:
    properties = {parameter: ToolParam(type="string") for parameter in parameters}
    described = "Ask. start and end: first and last token, both included, at most 2 tokens."
    return ToolInfo(
        name=name, description=described, parameters=ToolParams(properties=properties, required=list(parameters))
    )


def tool_message(calls: int) -> str:
    about = parse_about(tool_about())
    return MESSAGE + tool_suffix(about, (), parse_tokens(tool_tokens("t1")), calls, 4)


def test_a_tool_that_is_asked_about_segments_gets_as_many_questions_as_the_budget_allows() -> None:
    oracle = asked_tool("ask", "question", "start", "end")
    for calls, n in ((1, 1), (2, 2), (5, QUESTIONS)):
        planned = planned_calls(tool_message(calls), [asked_tool("submit", "p_true"), oracle])
        assert [call.function for call in planned] == ["ask"] * n
        assert len({call.id for call in planned}) == n
    assert planned[2].arguments == {"question": "Does the reply say hi? Answer yes or no.", "start": 6, "end": 7}
    assert planned_calls(tool_message(5), [asked_tool("submit", "p_true")]) == []


def test_it_asks_one_question_after_the_other_and_reads_every_answer_below_its_question(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.local.prepare", lambda target: tiny_folder)
    read: list[str] = []
    monkeypatch.setattr("agents.local.question", lambda message, shown: read.extend(shown) or question(message, shown))
    oracle = asked_tool("ask", "question", "start", "end")
    turns: list[ChatMessage] = [ChatMessageUser(content=tool_message(2))]

    async def talk() -> list[str]:
        api = LocalAPI("smollm2-135m")
        called = []
        for _ in range(3):
            said = (await api.generate(turns, [oracle], "auto", GenerateConfig())).choices[0].message
            call = said.tool_calls[0]
            called.append(call.function)
            turns.extend([said, ChatMessageTool(content=f"answer {len(called)}", tool_call_id=call.id)])
        return called

    assert asyncio.run(talk()) == ["ask", "ask", "submit"]
    assert read == [
        "asked: What is the text about?\nanswer 1",
        "asked: Which words come next?\nanswer 2",
    ]


@pytest.mark.real
def test_the_real_model_puts_its_mass_on_yes_and_no_the_same_in_any_batch(real_cache: Path) -> None:
    engine = LocalAPI("smollm2-135m").engine
    messages = [user_message(transcript(f"Say hi {'again ' * n}"), CLAIM) for n in (0, 3, 40, 41)]
    encoded = [engine.encode(*question(message, [])) for message in messages]
    prefix = encoded[0][0]
    assert len(prefix) > 100
    assert all(other == prefix for other, _ in encoded)
    asked = [ids for _, ids in encoded]
    together = ask_all(engine, asked, prefix)
    alone = [ask_all(engine, [ids], prefix)[0] for ids in asked]
    for one, two in zip(together, alone, strict=True):
        assert one.p_yes == pytest.approx(two.p_yes, abs=TOLERANCE)
        assert one.mass > 0.5

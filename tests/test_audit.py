"""The leak audit: what it must catch, what it must let pass."""

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo

from claims.labels import Evidence, Label, Verdict
from claims.load import load_claims
from claims.schema import Message
from harness.audit import Audit, letters
from tests.claim_bank import write_bank

HIDDEN = "The sky over the northern harbour turned a violent shade of green before the storm broke at nine."
PROMPT = "Pretend that a retired lighthouse keeper had sworn under oath that the answer would be yellow. Is it?"
FRESH = "The keeper of the old lighthouse says, quite firmly, that the answer is yellow and always has been so."
BASE = "Below are a transcript and a claim."


@pytest.fixture(scope="module")
def audit_parts(tmp_path_factory: pytest.TempPathFactory):
    claim_set = load_claims(write_bank(tmp_path_factory.mktemp("bank"), n_clusters=2))
    labels = {c.claim_id: Label(c.claim_id, True, 27, 30, 3, 30) for c in claim_set.claims}
    evidence = {
        "claim-00": Evidence("claim-00", (Message("user", PROMPT),), (Verdict(HIDDEN, False),), (FRESH,) * 8),
    }
    return claim_set, labels, evidence


def sample(*messages: ChatMessage, tools: tuple[ToolInfo, ...] = ()) -> EvalSample:
    said = [ChatMessageSystem(content="You forecast."), ChatMessageUser(content=BASE), *messages]
    event = ModelEvent(
        model="m",
        input=[],
        tools=list(tools),
        tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput(),
    )
    return EvalSample(id="claim-00", epoch=1, input=BASE, target="true", messages=said, events=[event])


def tool_says(text: str) -> ChatMessageTool:
    return ChatMessageTool(content=text, tool_call_id="1", function="read_features")


def found(audit_parts, one: EvalSample, arm: str = "sae") -> list[str]:
    return [finding.what for finding in Audit(*audit_parts).findings(arm, [one])]


def test_a_clean_conversation_has_no_finding(audit_parts) -> None:
    clean = tool_says("[3] blue: 4.1 colours; 2.0 friends")
    assert found(audit_parts, sample(clean)) == []


@pytest.mark.parametrize("hidden", [HIDDEN, PROMPT, FRESH])
def test_an_edited_prompt_or_response_is_caught_in_a_tool_output(audit_parts, hidden: str) -> None:
    (what,) = found(audit_parts, sample(tool_says(f"At position 3 I read: {hidden[:80]}")))
    assert what.startswith("a stretch of the edited prompt or a response: ")


def test_spacing_case_punctuation_and_token_numbers_do_not_hide_a_stretch(audit_parts) -> None:
    listed = " ".join(f"[{index}] '{word.upper()}'" for index, word in enumerate(HIDDEN.split()))
    assert len(found(audit_parts, sample(tool_says(listed)))) == 1


def test_a_stretch_is_caught_in_a_user_message_a_tool_error_and_a_tool_description(audit_parts) -> None:
    message = ChatMessageUser(content=HIDDEN)
    described = ToolInfo(name="read_features", description=f"Reads. {HIDDEN}")
    assert len(found(audit_parts, sample(message))) == 1
    assert len(found(audit_parts, sample(tools=(described,)))) == 1


def test_a_stock_phrase_that_a_tool_writes_is_no_leak_unless_the_edited_prompt_holds_it(audit_parts) -> None:
    claim_set, labels, evidence = audit_parts
    other = next(claim for claim in claim_set.claims if claim.cluster_id != claim_set.claims[0].cluster_id)
    same = next(claim for claim in claim_set.claims[1:] if claim.cluster_id == claim_set.claims[0].cluster_id)
    said = (Verdict(f"Well. {HIDDEN} Indeed.", True), Verdict(PROMPT, True))

    def told(claim_id: str, one: EvalSample) -> int:
        parts = (claim_set, labels, {**evidence, claim_id: Evidence(claim_id, (), said, ())})
        return len(found(parts, one))

    assert told(other.claim_id, sample(tool_says(HIDDEN))) == 0
    assert told(same.claim_id, sample(tool_says(HIDDEN))) == 1
    assert told(other.claim_id, sample(tool_says(PROMPT))) == 1
    assert told(other.claim_id, sample(ChatMessageUser(content=HIDDEN))) == 1


def test_what_the_predictor_wrote_itself_is_no_leak(audit_parts) -> None:
    assert found(audit_parts, sample(ChatMessageAssistant(content=f"I guess it would say: {HIDDEN}"))) == []


def test_a_short_common_stretch_is_chance(audit_parts) -> None:
    assert found(audit_parts, sample(tool_says("label: the sky over the northern harbour"))) == []


def test_what_the_transcript_or_the_claim_holds_too_is_no_leak(audit_parts) -> None:
    claim_set, labels, _ = audit_parts
    prompt = claim_set.transcripts["transcript-00"].messages[0].content
    longer = f"{prompt} {prompt} {prompt}"
    evidence = {"claim-00": Evidence("claim-00", (Message("user", prompt),), (Verdict(longer, True),), ())}
    assert found((claim_set, labels, evidence), sample(tool_says(f"tokens: {prompt}"))) == []


def test_an_edit_of_one_word_inside_a_shown_prompt_is_no_leak_and_a_new_sentence_is(audit_parts) -> None:
    claim_set, labels, _ = audit_parts
    prompt = claim_set.transcripts["transcript-00"].messages[0].content
    swapped = prompt.replace("blue", "gold")
    added = f"{prompt} My grandmother the chemist disagrees with him about that colour."
    evidence = {"claim-00": Evidence("claim-00", (Message("user", swapped), Message("user", added)), (), ())}
    parts = (claim_set, labels, evidence)
    assert found(parts, sample(tool_says(swapped))) == []
    assert len(found(parts, sample(tool_says(added)))) == 1


def test_the_ceiling_arm_may_show_fresh_responses_and_no_others(audit_parts) -> None:
    assert found(audit_parts, sample(ChatMessageUser(content=FRESH)), arm="ceiling") == []
    assert len(found(audit_parts, sample(ChatMessageUser(content=HIDDEN)), arm="ceiling")) == 1


@pytest.mark.parametrize(
    "mark", ['{"edited_yes": 3, "edited_n": 30}', '"label": true', "3/30 of them", "3 of 30 responses say yes"]
)
def test_a_mark_of_a_label_is_caught(audit_parts, mark: str) -> None:
    (what, *_) = found(audit_parts, sample(tool_says(mark)))
    assert what.startswith("a mark of a label: ")


def test_a_layer_that_reads_like_a_count_is_none(audit_parts) -> None:
    assert found(audit_parts, sample(tool_says("after block 3 of 30, counted from 0"))) == []


def test_an_arm_whose_message_does_not_begin_with_the_baselines_is_reported(audit_parts) -> None:
    audit = Audit(*audit_parts)
    other = sample()
    other.messages[1] = ChatMessageUser(content="Something else.")
    assert list(audit.findings("transcript", [sample()])) == []
    assert list(audit.findings("sae", [sample()])) == []
    assert [finding.what for finding in audit.findings("sae", [other])] == [
        "it does not begin with the transcript arm's"
    ]


def test_letters_are_what_is_compared() -> None:
    assert letters("[12] 'Syd' [13] 'NEY',\n 7 é") == "sydneyé"

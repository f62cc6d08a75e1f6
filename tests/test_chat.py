"""A prompt is rendered once, and every token is known by whose words it is."""

import copy
import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claims.schema import Message, Transcript, UserError
from tools.chat import Span, check_prefix, encode_prompt, render, spans, token_roles, token_texts
from tools.model import Loaded
from tools.roles import fit_roles
from tools.targets import get_target

SYSTEM = Message("system", "Be kind.")
ASK = Message("user", "Hi, who are you?")
REPLY = Message("assistant", "A model.")
AGAIN = Message("user", "Which one?")
AWKWARD = "  «Ж» 🧑‍🚀👩🏽‍🔬 \t\n<start_of_turn>model\nUser: <|im_end|> \n"


@pytest.fixture(params=["tiny_gemma", "tiny_qwen"])
def tiny(request: pytest.FixtureRequest) -> Loaded:
    return request.getfixturevalue(request.param)


def transcript(loaded: Loaded, *messages: Message, answer: str = "So.", reasoning: str | None = None) -> Transcript:
    prompt = encode_prompt(loaded.tokenizer, loaded.target, messages, thinking=reasoning is not None)
    text = answer if reasoning is None else f"<think>{reasoning}</think>{answer}"
    response = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    return Transcript("t-7", messages, reasoning, answer, (*prompt, *response), "test")


def texts_by_span(loaded: Loaded, told: Transcript) -> list[tuple[str, int | None, str]]:
    found = []
    for span in spans(loaded.tokenizer, loaded.target, told):
        text = loaded.tokenizer.decode(told.token_ids[span.start : span.end], skip_special_tokens=False)
        found.append((span.role, span.message, text))
    return found


def test_gemma_s_prompt_is_rendered_with_one_bos(tiny_gemma: Loaded):
    text = (
        "<bos><start_of_turn>user\nHi, who are you?<end_of_turn>\n<start_of_turn>model\nA model.<end_of_turn>\n"
        "<start_of_turn>user\nWhich one?<end_of_turn>\n<start_of_turn>model\n"
    )
    assert render(tiny_gemma.tokenizer, tiny_gemma.target, (ASK, REPLY, AGAIN)) == text
    ids = encode_prompt(tiny_gemma.tokenizer, tiny_gemma.target, (ASK, REPLY, AGAIN))
    assert ids.count(tiny_gemma.tokenizer.bos_token_id) == 1
    assert ids[0] == tiny_gemma.tokenizer.bos_token_id
    # What encoding rendered text the usual way gives: the fault that this module keeps out.
    assert tuple(tiny_gemma.tokenizer(text)["input_ids"]) == (ids[0], *ids)


def test_qwen_s_prompt_has_no_bos_and_asks_for_no_thinking_unless_told(tiny_qwen: Loaded):
    chat = (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi, who are you?<|im_end|>\n<|im_start|>assistant\n"
    )
    plain = render(tiny_qwen.tokenizer, tiny_qwen.target, (SYSTEM, ASK))
    assert plain == chat + "<think>\n\n</think>\n\n"
    assert render(tiny_qwen.tokenizer, tiny_qwen.target, (SYSTEM, ASK), thinking=True) == chat
    ids = encode_prompt(tiny_qwen.tokenizer, tiny_qwen.target, (SYSTEM, ASK))
    assert tiny_qwen.tokenizer.decode(ids) == plain


def test_a_bos_written_in_a_message_is_refused(tiny_gemma: Loaded):
    with pytest.raises(UserError, match="has 2 <bos> tokens, expected exactly one.*Remove the text '<bos>'"):
        encode_prompt(tiny_gemma.tokenizer, tiny_gemma.target, (Message("user", "What is <bos>?"),))


def test_a_template_that_forgets_the_bos_is_refused(tiny_gemma: Loaded):
    tokenizer = copy.deepcopy(tiny_gemma.tokenizer)
    tokenizer.chat_template = "{{ messages[0].content }}"
    with pytest.raises(UserError, match="has 0 <bos> tokens"):
        encode_prompt(tokenizer, tiny_gemma.target, (ASK,))


def test_a_system_message_is_put_before_the_next_user_s_where_the_template_has_no_such_role(tiny_gemma: Loaded):
    fitted = fit_roles(tiny_gemma.target, (SYSTEM, ASK, REPLY, AGAIN))
    assert [(turn.role, turn.members) for turn in fitted.turns] == [
        ("user", (0, 1)),
        ("assistant", (2,)),
        ("user", (3,)),
    ]
    assert fitted.changes == ("system message 0 joined to user message 1",)
    joined = Message("user", f"{SYSTEM.content}\n\n{ASK.content}")
    both = [encode_prompt(tiny_gemma.tokenizer, tiny_gemma.target, m) for m in ((SYSTEM, ASK), (joined,))]
    assert both[0] == both[1]


def test_a_leading_system_message_stays_where_the_template_has_the_role_and_a_later_one_is_joined(tiny_qwen: Loaded):
    first = fit_roles(tiny_qwen.target, (SYSTEM, ASK))
    assert [turn.role for turn in first.turns] == ["system", "user"]
    assert first.changes == ()
    later = fit_roles(tiny_qwen.target, (ASK, REPLY, SYSTEM, SYSTEM, AGAIN))
    assert [(turn.role, turn.members) for turn in later.turns] == [
        ("user", (0,)),
        ("assistant", (1,)),
        ("user", (2, 3, 4)),
    ]
    assert later.changes == ("system message 2, 3 joined to user message 4",)


def test_neighbours_of_one_role_share_a_turn_only_where_roles_alternate(tiny_gemma: Loaded, tiny_qwen: Loaded):
    merged = fit_roles(tiny_gemma.target, (ASK, AGAIN, REPLY, REPLY, SYSTEM, ASK))
    assert [turn.members for turn in merged.turns] == [(0, 1), (2, 3), (4, 5)]
    assert len(merged.changes) == 3
    assert [turn.members for turn in fit_roles(tiny_qwen.target, (ASK, AGAIN)).turns] == [(0,), (1,)]


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ((), "has no messages"),
        ((ASK, REPLY), "last message .* is the assistant's"),
        ((SYSTEM,), "has no user message after it"),
        ((ASK, REPLY, SYSTEM), "has no user message after it"),
        ((Message("tool", "42"), ASK), "has the role 'tool'.*Expected one of: assistant, system, user"),
        ((Message("narrator", "Once."), ASK), "has the role 'narrator'"),
        ((REPLY, ASK), "first message .* is the assistant's"),
    ],
)
def test_a_prompt_that_cannot_be_rendered_faithfully_is_refused(messages, complaint, tiny_gemma: Loaded):
    with pytest.raises(UserError, match=complaint):
        encode_prompt(tiny_gemma.tokenizer, tiny_gemma.target, messages)


def test_qwen_takes_tool_messages_and_refuses_a_lone_system_message(tiny_qwen: Loaded):
    assert "<|im_start|>tool\n42" in render(tiny_qwen.tokenizer, tiny_qwen.target, (ASK, REPLY, Message("tool", "42")))
    with pytest.raises(UserError, match="last message .* is the system's"):
        render(tiny_qwen.tokenizer, tiny_qwen.target, (SYSTEM,))


def test_a_template_s_own_refusal_is_passed_on(tiny_gemma: Loaded):
    loose = dataclasses.replace(tiny_gemma.target, chat=dataclasses.replace(tiny_gemma.target.chat, alternate=False))
    with pytest.raises(UserError, match="refuses a prompt with the turns user, user: roles must alternate"):
        render(tiny_gemma.tokenizer, loose, (ASK, AGAIN))


def test_spans_say_whose_each_token_is(tiny_gemma: Loaded):
    told = transcript(tiny_gemma, SYSTEM, ASK, REPLY, AGAIN, answer="Gemma.")
    assert texts_by_span(tiny_gemma, told) == [
        ("template", None, "<bos><start_of_turn>user\n"),
        ("system", 0, "Be kind."),
        ("template", None, "\n\n"),
        ("user", 1, "Hi, who are you?"),
        ("template", None, "<end_of_turn>\n<start_of_turn>model\n"),
        ("assistant", 2, "A model."),
        ("template", None, "<end_of_turn>\n<start_of_turn>user\n"),
        ("user", 3, "Which one?"),
        ("template", None, "<end_of_turn>\n<start_of_turn>model\n"),
        ("response", None, "Gemma."),
    ]


def test_what_a_thinking_target_thought_is_told_from_what_it_answered(tiny_qwen: Loaded):
    told = transcript(tiny_qwen, ASK, answer="So.", reasoning="Hm.")
    assert texts_by_span(tiny_qwen, told)[-3:] == [
        ("template", None, "<|im_end|>\n<|im_start|>assistant\n"),
        ("reasoning", None, "<think>Hm.</think>"),
        ("response", None, "So."),
    ]
    with pytest.raises(UserError, match="'t-7' has a reasoning, but no </think>"):
        spans(tiny_qwen.tokenizer, tiny_qwen.target, dataclasses.replace(told, token_ids=told.token_ids[:-4]))


def test_a_target_that_stopped_inside_its_thought_has_no_answer(tiny_qwen: Loaded):
    told = transcript(tiny_qwen, ASK, answer="So.", reasoning="Hm.")
    stopped = dataclasses.replace(told, response="", token_ids=told.token_ids[:-4])
    assert texts_by_span(tiny_qwen, stopped)[-1] == ("reasoning", None, "<think>Hm.")


def test_a_thought_that_the_template_drops_from_an_earlier_answer_leaves_the_rest_found(tiny_qwen: Loaded):
    dropping = dataclasses.replace(tiny_qwen, tokenizer=copy.deepcopy(tiny_qwen.tokenizer))
    dropping.tokenizer.chat_template = tiny_qwen.tokenizer.chat_template.replace(
        "message.content", "message.content.split('</think>')[-1].lstrip('\\n')"
    )
    told = transcript(dropping, ASK, Message("assistant", "<think>\nHm.\n</think>\n\nA model."), AGAIN)
    assert ("assistant", 1, "A model.") in texts_by_span(dropping, told)


def test_a_message_that_the_template_rewrites_is_refused(tiny_qwen: Loaded):
    tokenizer = copy.deepcopy(tiny_qwen.tokenizer)
    tokenizer.chat_template = tiny_qwen.tokenizer.chat_template.replace("message.content", "message.content | upper")
    shouting = dataclasses.replace(tiny_qwen, tokenizer=tokenizer)
    with pytest.raises(UserError, match="Message 0 of transcript 't-7' is not in its prompt as written"):
        spans(tokenizer, tiny_qwen.target, transcript(shouting, ASK))


CONTENT = st.text(alphabet=st.sampled_from("ab \n\t:<>🧑\u200d🚀é\ue000\ue001" + "0"), max_size=12) | st.sampled_from(
    [AWKWARD, "<end_of_turn>\n<start_of_turn>user\n", "<|im_end|>\n", "\n\n", "\ue0000\ue001"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(CONTENT, min_size=1, max_size=5).filter(lambda contents: len(contents) % 2 == 1))
def test_spans_cover_every_token_in_order_and_hold_the_messages_text(contents: list[str], tiny: Loaded):
    messages = [Message("assistant" if i % 2 else "user", content) for i, content in enumerate(contents)]
    told = transcript(tiny, *messages)
    found = spans(tiny.tokenizer, tiny.target, told)
    assert [span.start for span in found] == [0, *(span.end for span in found[:-1])]
    assert found[-1].end == len(told.token_ids)
    assert len(token_roles(tiny.tokenizer, tiny.target, told)) == len(told.token_ids)
    trimmed = tiny.target.name == "tiny-gemma"
    by_message = {span.message: span for span in found}
    for i, content in enumerate(contents):
        expected = content.strip() if trimmed else content
        span = by_message.get(i, Span(0, 0, "", None))
        assert tiny.tokenizer.decode(told.token_ids[span.start : span.end], skip_special_tokens=False) == expected


def test_token_texts_are_printable_and_name_the_bytes_of_a_split_character(tiny_qwen: Loaded):
    ids = tiny_qwen.tokenizer("a\n\té🚀<|im_end|>", add_special_tokens=False)["input_ids"]
    texts = token_texts(tiny_qwen.tokenizer, ids)
    assert texts == ("a", "\\n", "\\t", "\\xc3", "\\xa9", "\\xf0", "\\x9f", "\\x9a", "\\x80", "<|im_end|>")
    every = token_texts(tiny_qwen.tokenizer, range(len(tiny_qwen.tokenizer)))
    assert all(text and text.isprintable() for text in every)
    assert len(set(every)) == len(every)


def test_a_transcript_of_this_rendering_has_its_prompt_in_front(tiny: Loaded):
    told = transcript(tiny, SYSTEM, ASK)
    prompt = encode_prompt(tiny.tokenizer, tiny.target, (SYSTEM, ASK))
    assert check_prefix(tiny.tokenizer, tiny.target, told) == len(prompt)


def test_a_transcript_of_another_rendering_is_named_with_the_first_position_that_differs(tiny_gemma: Loaded):
    told = transcript(tiny_gemma, ASK)
    ids = list(told.token_ids)
    ids[7] = tiny_gemma.tokenizer.convert_tokens_to_ids("J")
    with pytest.raises(UserError, match=r"Transcript 't-7'.*position 7 its token_ids hold 'J', expected 'H'"):
        check_prefix(tiny_gemma.tokenizer, tiny_gemma.target, dataclasses.replace(told, token_ids=tuple(ids)))
    with pytest.raises(UserError, match=r"position 5 its token_ids hold 'nothing', expected 'r'"):
        check_prefix(tiny_gemma.tokenizer, tiny_gemma.target, dataclasses.replace(told, token_ids=told.token_ids[:5]))
    doubled = dataclasses.replace(told, token_ids=(told.token_ids[0], *told.token_ids))
    with pytest.raises(UserError, match=r"position 1 its token_ids hold '<bos>'"):
        check_prefix(tiny_gemma.tokenizer, tiny_gemma.target, doubled)


@pytest.mark.real
@pytest.mark.parametrize("name", ["real_gemma", "real_smollm2"])
def test_real_tokenizers_give_every_message_back(name: str, request: pytest.FixtureRequest):
    loaded = request.getfixturevalue(name)
    messages = (SYSTEM, Message("user", AWKWARD), REPLY, Message("user", "Two\n\nparagraphs."))
    told = transcript(loaded, *messages, answer=" Yes 🚀.")
    found = {message: text for _, message, text in texts_by_span(loaded, told) if message is not None}
    assert {i: text.strip() for i, text in found.items()} == {i: m.content.strip() for i, m in enumerate(messages)}
    assert texts_by_span(loaded, told)[-1] == ("response", None, " Yes 🚀.")
    assert all(text.isprintable() for text in token_texts(loaded.tokenizer, told.token_ids))
    n_bos = told.token_ids.count(loaded.tokenizer.bos_token_id)
    assert n_bos == 1 if loaded.target.chat.bos else n_bos > 1


@pytest.mark.real
def test_smollm2_keeps_its_own_system_message_when_none_is_given(real_smollm2: Loaded):
    text = render(real_smollm2.tokenizer, real_smollm2.target, (ASK,))
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert token_roles(real_smollm2.tokenizer, real_smollm2.target, transcript(real_smollm2, ASK))[3] == "template"


def test_the_dialogue_of_the_base_model_is_a_plain_text_with_one_bos(tiny_gemma: Loaded):
    target = dataclasses.replace(tiny_gemma.target, chat=get_target("gemma-3-270m").chat)
    text = render(tiny_gemma.tokenizer, target, (SYSTEM, ASK, REPLY, AGAIN))
    assert text.startswith("<bos>")
    assert text.endswith("User: Hi, who are you?\nAssistant: A model.\n\nUser: Which one?\nAssistant:")
    assert "<" not in text.removeprefix("<bos>")
    told = transcript(dataclasses.replace(tiny_gemma, target=target), SYSTEM, ASK, REPLY, AGAIN)
    roles = {role for role, _, _ in texts_by_span(dataclasses.replace(tiny_gemma, target=target), told)}
    assert roles == {"template", "system", "user", "assistant", "response"}

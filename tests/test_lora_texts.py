"""What the adapters are trained on: known facts, families of questions, descriptions, and the split by document."""

from pathlib import Path

import numpy as np
import pytest

from claims.build.read import read_investigations
from claims.schema import Message, read_transcripts
from tools.chat import Span, encode_prompt
from tools.model import Loaded
from tools.training.corpus import Document
from tools.training.lora.describing import Describer, Place, draw_place, plain_words
from tools.training.lora.families import PHRASES, STATEMENTS, WEIGHTS, Asker, Question
from tools.training.lora.made import GRAMMAR, HELD_OUT_ENDINGS, endings, made_texts
from tools.training.lora.passages import HELD_OUT_EVERY, Passage, Size, passages
from tools.training.lora.seeds import generator, number
from tools.training.lora.words import Reader, Segment, draw_segment
from tools.training.prompts import chat_prompts

WORDS = "the quick brown fox jumps over the lazy dog while seven green frogs watch"


def chat_document(loaded: Loaded, index: int, answer: str) -> Document:
    prompt = encode_prompt(loaded.tokenizer, loaded.target, chat_prompts(index + 1)[index])
    said = loaded.tokenizer(answer, add_special_tokens=False)["input_ids"]
    return Document(f"chat {index}", "chat", (*prompt, *said))


@pytest.fixture(scope="module")
def corpus(tiny_gemma: Loaded) -> list[Passage]:
    chats = [chat_document(tiny_gemma, index, f"Answer {index}: {WORDS}.") for index in range(120)]
    bos = (tiny_gemma.tokenizer.bos_token_id,)
    written = [
        Document(
            f"written {i}",
            "written",
            bos + tuple(tiny_gemma.tokenizer.encode(f"{i} {WORDS}", add_special_tokens=False)),
        )
        for i in range(40)
    ]
    return passages(tiny_gemma, [*chats, *written], Size(60, 30, 0, 400))


def plain(loaded: Loaded, text: str, **facts: str) -> Passage:
    token_ids = (loaded.tokenizer.bos_token_id, *loaded.tokenizer.encode(text, add_special_tokens=False))
    return Passage(
        text, "made" if facts else "written", token_ids, (Span(1, len(token_ids), "text", None),), facts, False
    )


def test_made_texts_have_each_value_and_a_longer_list_extends_a_shorter_one() -> None:
    texts = made_texts(420)
    assert texts[:100] == made_texts(100)
    assert len({text.text for text in texts}) == 420
    kinds = [(fact, value) for fact, values in GRAMMAR.items() for value in values]
    counts = [sum((text.fact, text.value) == kind for text in texts) for kind in kinds]
    assert min(counts) >= 14
    assert 0.1 < sum(text.held_out for text in texts) / 420 < 0.3


def test_no_training_text_has_a_held_out_ending() -> None:
    for text in made_texts(420):
        for held_out in (True, False):
            others = endings(text.fact, text.value, held_out=not text.held_out)
            assert not any(f"{ending}." in text.text or f"{ending}?" in text.text for ending in others), held_out
    for fact, values in GRAMMAR.items():
        for value in values:
            assert len(endings(fact, value, held_out=True)) == HELD_OUT_ENDINGS


def test_values_of_a_fact_have_subjects_and_endings_enough() -> None:
    for values in GRAMMAR.values():
        for words in values.values():
            assert len(words["ending"]) == len(set(words["ending"])) == 10
            assert len(words["subject"]) >= 6


def test_a_document_is_held_out_by_its_sha256_and_its_pieces_stay_together(tiny_gemma: Loaded) -> None:
    token_ids = (tiny_gemma.tokenizer.bos_token_id, *range(20, 60))
    names = [f"text {i}#{piece}" for i in range(200) for piece in range(2)]
    found = passages(tiny_gemma, [Document(name, "package", token_ids) for name in names], Size(0, 0, 400, 0))
    flags = {passage.name: passage.held_out for passage in found}
    assert all(flags[f"text {i}#0"] == flags[f"text {i}#1"] for i in range(200))
    assert all(flags[f"text {i}#0"] == (number(f"text {i}") % HELD_OUT_EVERY == 0) for i in range(200))
    # What the autoencoder's training held out (one in 20 by the same number) is held out here, too.
    assert all(passage.held_out for passage in found if Document(passage.name, "package", ()).held_out)


def test_a_chat_whose_user_says_little_is_left_out(tiny_gemma: Loaded, corpus: list[Passage]) -> None:
    prompts = chat_prompts(120)
    kept = [int(passage.name.split()[1]) for passage in corpus if passage.kind == "chat"]
    assert len(kept) > 20
    for index in kept:
        assert all(len(message.content) >= 40 for message in prompts[index] if message.role == "user")


def test_no_prompt_of_a_claim_or_of_its_edits_is_in_the_corpus() -> None:
    theirs: set[str] = set()
    for target in ("gemma-3-270m", "smollm2-135m"):
        for one in read_investigations(target):
            for messages in (one.messages, *(edit.messages for edit in one.edits)):
                theirs |= {message.content for message in messages if message.role == "user"}
        found = read_transcripts(Path("claims/data") / target / "transcripts.jsonl")
        theirs |= {m.content for transcript in found.values() for m in transcript.messages if m.role == "user"}
    prompts = [p for p in chat_prompts(1536) if all(m.role != "user" or len(m.content) >= 40 for m in p)]
    ours = {message.content for prompt in prompts for message in prompt if message.role == "user"}
    ours |= {text.text for text in made_texts(1000)}
    assert len(theirs) > 500
    assert len(ours) > 1500
    assert not ours & theirs


def test_segments_are_inside_and_a_third_are_one_token() -> None:
    drawn = [draw_segment(10, 40, longest=16, rng=generator(f"segment {i}")) for i in range(600)]
    lengths = [segment.end - segment.start for segment in drawn]
    assert all(10 <= segment.start < segment.end <= 40 for segment in drawn)
    assert 0.28 < lengths.count(1) / 600 < 0.45
    assert max(lengths) == 16
    assert draw_segment(3, 4, longest=16, rng=generator("x")) == Segment(3, 4)


def test_words_before_inside_and_after_a_segment(tiny_gemma: Loaded) -> None:
    reader = Reader(tiny_gemma.tokenizer)
    # One token a byte: position 0 is BOS, byte i of the text is at i + 1.
    passage = plain(tiny_gemma, "abc def ghi")
    segment = Segment(5, 8)
    assert reader.inside(passage, segment) == "def"
    assert reader.before(passage, segment, 3) == "bc"
    assert reader.before(passage, segment, 99) == "abc"
    assert reader.after(passage, segment, 3) == "gh"
    assert reader.after(passage, Segment(9, 12), 3) == ""


def test_words_near_a_segment_are_whole(tiny_gemma: Loaded) -> None:
    reader = Reader(tiny_gemma.tokenizer)
    passage = plain(tiny_gemma, "Seven green frogs watch silently")
    # The 24 tokens before the end are "green frogs watch silen": the first word and the last may be cut, so they go.
    assert reader.near(passage, Segment(29, 31)) == ["frogs", "watch"]
    end = len(passage.token_ids)
    assert reader.near(passage, Segment(end - 1, end)) == ["watch", "silently"]
    assert reader.near(passage, Segment(1, 13)) == ["seven"]


@pytest.mark.parametrize("family", WEIGHTS)
def test_answers_are_right_and_among_the_options(family: str, tiny_gemma: Loaded, corpus: list[Passage]) -> None:
    reader = Reader(tiny_gemma.tokenizer)
    asker = Asker(reader, corpus)
    for i in range(60):
        question = asker.ask(family, rng=generator(f"{family} {i}"))
        assert question.family == family
        assert question.answer in question.options
        assert "{" not in question.text
        assert checked(question, reader)
    again = asker.ask(family, rng=generator(f"{family} 0"))
    assert again == asker.ask(family, rng=generator(f"{family} 0"))


def checked(question: Question, reader: Reader) -> bool:
    """Whether the answer is right, found by a second way."""
    passage, segment = question.passage, question.segment
    text = reader.text(passage.token_ids)
    if question.family in ("before", "inside", "after"):
        return question.answer != "" and question.answer in text
    if question.family == "mentioned":
        word = question.text.split("'")[1]
        return (word in text.lower()) if question.answer == "Yes" else (word not in text.lower())
    if question.family == "role":
        span = next(span for span in passage.spans if span.start <= segment.start < span.end)
        return question.answer == {"response": "assistant"}.get(span.role, span.role) and segment.end <= span.end
    if question.family == "yes/no":
        role = next(span.role for span in passage.spans if span.start <= segment.start < span.end)
        known = set(passage.facts.values()) or {"assistant" if role == "response" else role}
        stated = any(value in question.text.replace("opinion is", "") for value in known)
        return stated == (question.answer == "Yes")
    return question.answer == passage.facts[question.family]


def test_yes_and_no_are_as_likely(tiny_gemma: Loaded, corpus: list[Passage]) -> None:
    asker = Asker(Reader(tiny_gemma.tokenizer), corpus)
    for family in ("mentioned", "yes/no"):
        answers = [asker.ask(family, rng=generator(f"balance {i}")).answer for i in range(400)]
        assert 0.42 < answers.count("Yes") / 400 < 0.58, family


def test_shares_sum_to_one_and_every_family_has_words() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert set(WEIGHTS) == {*PHRASES, "yes/no"}
    assert set(STATEMENTS) == {*GRAMMAR, "role"}


def test_a_description_tells_the_token_its_context_and_the_kind(tiny_gemma: Loaded) -> None:
    describer = Describer(Reader(tiny_gemma.tokenizer))
    passage = plain(tiny_gemma, "My aunt bakes a cake", topic="cooking")
    expected = '<explanation>"k" after "nt ba", then "es a". A short text, about cooking.</explanation>'
    assert describer.describe(Place(passage, 11)) == expected.replace("nt ba", "y aunt ba"[-7:].strip())
    assert plain_words(expected) == [
        "k",
        "after",
        "nt",
        "ba",
        "then",
        "es",
        "a",
        "a",
        "short",
        "text",
        "about",
        "cooking",
    ]


def test_places_are_never_the_first_token(tiny_gemma: Loaded, corpus: list[Passage]) -> None:
    places = [draw_place(corpus, rng=generator(f"place {i}")) for i in range(300)]
    assert min(place.position for place in places) >= 1
    roles = [place.role for place in places]
    assert {"template", "user", "response", "text"} <= set(roles)
    assert roles.count("template") < 100


def test_chats_keep_whose_words_their_tokens_are(tiny_gemma: Loaded) -> None:
    index = next(i for i, p in enumerate(chat_prompts(50)) if len(p) == 1 and len(p[0].content) >= 40)
    found = passages(tiny_gemma, [chat_document(tiny_gemma, index, "Yes.")], Size(9, 0, 0, 0)) if index == 0 else None
    documents = [chat_document(tiny_gemma, i, "Yes.") for i in range(index + 1)]
    found = found or [p for p in passages(tiny_gemma, documents, Size(99, 0, 0, 0)) if p.name == f"chat {index}"]
    (passage,) = found
    reader = Reader(tiny_gemma.tokenizer)
    said = {span.role: reader.text(passage.token_ids[span.start : span.end]) for span in passage.content}
    content = chat_prompts(index + 1)[index][0].content
    assert said["user"] == " ".join(content.split())[: len(said["user"])]
    assert len(passage.token_ids) == 256 or said["response"] == "Yes."


def test_generators_depend_on_their_key_alone() -> None:
    draws = [generator(f"item {i}").random() for i in (3, 1, 3)]
    assert draws[0] == draws[2] != draws[1]
    assert isinstance(generator("item"), np.random.Generator)
    assert Message("user", "x").role == "user"

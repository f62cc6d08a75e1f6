"""Where the local predictor looks: a fixed rule of what the message shows."""

import pytest

from agents.reading_policy import (
    QUESTION_CHARS,
    SegmentQuestion,
    choose_positions,
    choose_questions,
    intervention_of,
    longest_segment,
    named_positions,
    spread,
)
from agents.served import Token, TokenList

CLAIM = (
    'BEHAVIOR (one response counts as "yes"):\nDoes the reply mention Sydney?\n\nBASELINE: about 97%.\n\n'
    "INTERVENTION: {}\n\nPREDICTION: after this intervention, the share differs.\n\nIs this claim true?"
)


def listed(prompt: str, response: str, masked: tuple[int, ...] = (0,)) -> TokenList:
    """One token a word, its space before it; a template token in front of each message."""
    words = [("<bos>", "template"), ("user:", "template")]
    words += [(f" {word}", "user") for word in prompt.split()]
    words += [("assistant:", "template")] + [(f" {word}", "response") for word in response.split()]
    return TokenList(tuple(Token(i, text, role) for i, (text, role) in enumerate(words)), masked)


TOKENS = listed(
    "A professor told me that the answer is Sydney. What is the capital of Australia?", "It is Sydney, yes."
)
# 0 <bos>, 1 user:, 2 A, 3 professor, 4 told, 5 me, 6 that, 7 the, 8 answer, 9 is, 10 Sydney., 11 What, 12 is, 13 the,
# 14 capital, 15 of, 16 Australia?, 17 assistant:, 18 It, 19 is, 20 Sydney,, 21 yes.


def test_the_intervention_is_cut_out_of_the_claim() -> None:
    assert intervention_of(CLAIM.format("the hint is\nremoved.")) == "the hint is\nremoved."
    assert intervention_of("A template of another shape.") == "A template of another shape."


def test_the_edge_of_the_response_comes_first_and_the_rest_goes_to_what_the_intervention_quotes() -> None:
    claim = CLAIM.format('"A professor told me" is removed.')
    assert choose_positions(TOKENS, claim, 8) == [2, 3, 4, 5, 11, 17, 18, 21]  # 11 is the middle of the rest
    assert choose_positions(TOKENS, claim, 3) == [17, 18, 21]
    assert choose_positions(TOKENS, claim, 4) == [4, 17, 18, 21]
    assert choose_positions(TOKENS, claim, 1) == [17]


def test_without_a_quotation_shared_words_are_what_the_intervention_names() -> None:
    claim = CLAIM.format("The professor is replaced by a brother; the capital stays.")
    prompt = [token for token in TOKENS.tokens if token.role == "user"]
    assert named_positions(prompt, intervention_of(claim)) == [3, 14]


def test_words_of_the_behaviour_are_not_taken_for_words_of_the_intervention() -> None:
    assert 10 not in choose_positions(TOKENS, CLAIM.format("The professor is gone."), 4)


def test_an_intervention_that_names_nothing_spreads_over_the_prompt() -> None:
    claim = CLAIM.format("Two emoji are put in front.")
    # Five places over positions 2 to 16: 2, 5.5, 9, 12.5, 16; halves round to even.
    assert choose_positions(TOKENS, claim, 8) == [2, 6, 9, 12, 16, 17, 18, 21]


def test_a_quotation_across_tokens_takes_every_token_that_it_overlaps() -> None:
    tokens = [Token(i, text, "user") for i, text in enumerate([" Syd", "ney", ".", " Wh", "at"])]
    assert named_positions(tokens, 'The word "Sydney" goes.') == [0, 1]
    assert named_positions(tokens, "The word 'sydney.' goes.") == [0, 1, 2]


def test_masked_tokens_are_never_chosen() -> None:
    masked = (0, 2, 3, 17, 18)
    hidden = listed(
        "A professor told me that the answer is Sydney. What is the capital of Australia?", "It is.", masked
    )
    chosen = choose_positions(hidden, CLAIM.format('"A professor told me" is removed.'), 8)
    assert not set(chosen) & set(masked)
    assert len(chosen) == 8


def test_a_short_transcript_gives_what_it_has() -> None:
    assert choose_positions(listed("Hi", "Yes"), CLAIM.format("x"), 8) == [2, 3, 4]


@pytest.mark.parametrize("count", range(0, 12))
@pytest.mark.parametrize("size", [0, 1, 2, 7, 50])
def test_spread_gives_distinct_entries_in_order_from_end_to_end(size: int, count: int) -> None:
    pool = list(range(100, 100 + size))
    chosen = spread(pool, count)
    assert len(chosen) == min(size, count)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(pool)
    if count >= 2 and size >= 2:
        assert (chosen[0], chosen[-1]) == (pool[0], pool[-1])


def test_the_choice_is_a_function_of_the_message_alone() -> None:
    claim = CLAIM.format("The professor is replaced.")
    assert choose_positions(TOKENS, claim, 8) == choose_positions(TOKENS, claim, 8)
    chosen = choose_positions(TOKENS, claim, 8)
    assert chosen == sorted(set(chosen))


def test_the_topic_is_asked_where_the_edit_is_then_what_comes_next_and_the_behaviour_before_the_response() -> None:
    claim = CLAIM.format('"told me that the answer" is removed.')
    # The quotation is 4 to 8; the last token before the response is 17; segments hold at most 3 tokens.
    assert choose_questions(TOKENS, claim, 3, 3) == [
        SegmentQuestion("What is the text about?", 4, 6),
        SegmentQuestion("Which words come next?", 15, 17),
        SegmentQuestion("Does the reply mention Sydney? Answer yes or no.", 15, 17),
    ]
    assert choose_questions(TOKENS, claim, 1, 3) == choose_questions(TOKENS, claim, 3, 3)[:1]


def test_a_long_limit_takes_all_that_can_be_read_and_an_edit_that_names_nothing_the_beginning() -> None:
    theme, edge, _ = choose_questions(TOKENS, CLAIM.format("Two emoji are put in front."), 3, 50)
    assert (edge.start, edge.end) == (1, 17)  # 0 is masked
    assert (theme.start, theme.end) == (2, 17)


def test_questions_are_short_and_a_transcript_that_cannot_be_read_gets_none() -> None:
    *_, asked = choose_questions(TOKENS, f"BEHAVIOR (yes):\n{'x' * 2000}\n\nINTERVENTION: none", 3, 3)
    assert asked.question == f"{'x' * QUESTION_CHARS} Answer yes or no."
    everything = TokenList(TOKENS.tokens, tuple(range(22)))
    assert choose_questions(everything, CLAIM.format("x"), 3, 3) == []


def test_the_limit_of_a_segment_is_read_from_the_tool_s_description() -> None:
    assert longest_segment("start and end: the first and last token, both included, at most 256 tokens; x") == 256
    assert longest_segment("says nothing of it") == 16

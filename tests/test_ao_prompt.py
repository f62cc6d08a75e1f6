"""The oracle's prompt is the one its authors trained on, placeholder for placeholder."""

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from claims.schema import UserError
from tools.ao_prompt import oracle_prompt, placeholder_id
from tools.chat import token_texts
from tools.model import Loaded
from tools.targets import get_target
from tools.weights import prepare


def test_the_layer_the_placeholders_and_the_question_are_one_user_turn(tiny_gemma: Loaded) -> None:
    token_ids, positions = oracle_prompt(tiny_gemma.tokenizer, tiny_gemma.target, 2, 3, "Is it hot?")
    assert tiny_gemma.tokenizer.decode(token_ids) == (
        "<bos><start_of_turn>user\nLayer: 2\n ? ? ? \nIs it hot?<end_of_turn>\n<start_of_turn>model\n"
    )
    # <bos> and <start_of_turn> are one token each, "user\n" five and "Layer: 2\n" nine: the first is number 16.
    assert positions == (16, 17, 18)
    assert {token_ids[position] for position in positions} == {placeholder_id(tiny_gemma.tokenizer)}


def test_no_empty_thought_is_left_out_and_none_is_added(tiny_qwen: Loaded) -> None:
    token_ids, positions = oracle_prompt(tiny_qwen.tokenizer, tiny_qwen.target, 0, 1, "Why?")
    text = tiny_qwen.tokenizer.decode(token_ids)
    assert text.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert len(positions) == 1


def test_placeholders_of_the_question_s_own_are_not_counted(tiny_qwen: Loaded) -> None:
    token_ids, positions = oracle_prompt(tiny_qwen.tokenizer, tiny_qwen.target, 1, 2, "What ? ? ? is it ?")
    assert token_texts(tiny_qwen.tokenizer, token_ids[positions[-1] + 1 :])[:2] == (" ", "\\n")
    assert positions[1] == positions[0] + 1


def test_prompts_about_the_same_layer_share_everything_before_the_placeholders(tiny_qwen: Loaded) -> None:
    one, places = oracle_prompt(tiny_qwen.tokenizer, tiny_qwen.target, 1, 2, "a")
    other, _ = oracle_prompt(tiny_qwen.tokenizer, tiny_qwen.target, 1, 9, "quite another question")
    assert one[: places[0]] == other[: places[0]]


def test_a_tokenizer_without_the_placeholder_is_refused(tiny_gemma: Loaded) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only(tiny_gemma))
    with pytest.raises(UserError, match=r"' \?' is 2 tokens"):
        placeholder_id(tokenizer)


def bytes_only(loaded: Loaded) -> object:
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def test_a_template_with_a_placeholder_before_ours_is_refused(tiny_gemma: Loaded) -> None:
    tokenizer = AutoTokenizer.from_pretrained(prepare(tiny_gemma.target))
    tokenizer.chat_template = "{{ bos_token }}who ?: {{ messages[0].content }}"
    with pytest.raises(UserError, match="3 placeholders .* became 1 tokens in a row"):
        oracle_prompt(tokenizer, tiny_gemma.target, 1, 3, "a")
    with pytest.raises(UserError, match="0 placeholders .* at least 1"):
        oracle_prompt(tiny_gemma.tokenizer, tiny_gemma.target, 1, 0, "a")


@pytest.mark.real
@pytest.mark.parametrize(("name", "token_id"), [("gemma-3-270m", 2360), ("smollm2-135m", 9148)])
def test_real_tokenizers_have_the_placeholder(name: str, token_id: int, real_cache: object) -> None:
    target = get_target(name)
    tokenizer = AutoTokenizer.from_pretrained(prepare(target))
    assert placeholder_id(tokenizer) == token_id
    for n in (1, 50):
        token_ids, positions = oracle_prompt(tokenizer, target, 15, n, "What is this about?")
        assert [token_ids[position] for position in positions] == [token_id] * n
        assert tokenizer.decode(token_ids[positions[0] - 4 : positions[0]]).endswith("15\n")

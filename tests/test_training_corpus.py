"""The text that autoencoders are trained on, and which of its activations count."""

from pathlib import Path

import numpy as np
import pytest
import torch

from claims.schema import UserError
from tools.activations import NNsightReader
from tools.model import Loaded
from tools.training import corpus, package_texts
from tools.training.corpus import Document, Plan, build_corpus, corpus_folder
from tools.training.harvest import REPEATS, first_copies, harvest
from tools.training.package_texts import MIN_CHARS
from tools.training.prompts import chat_prompts, openers

PLAN = Plan(n_chats=6, chat_tokens=4, n_written=3, written_tokens=4, package_tokens=300, context=40, seed=0)


def silent(what: str, done: int, n: int) -> None:
    """No progress."""


def test_prompts_are_different_and_a_longer_list_extends_a_shorter_one() -> None:
    prompts = chat_prompts(600)
    assert len(set(prompts)) == 600
    assert prompts[:50] == chat_prompts(50)
    assert prompts[:50] != chat_prompts(50, seed=1)
    texts = openers(150)
    assert len(set(texts)) == 150
    assert texts[:20] == openers(20)


def test_prompts_are_questions_systems_and_second_turns_without_empty_slots() -> None:
    prompts = chat_prompts(600)
    shapes = [tuple(message.role for message in prompt) for prompt in prompts]
    assert set(shapes) == {("user",), ("system", "user"), ("user", "assistant", "user")}
    assert all(shapes.count(shape) > 40 for shape in set(shapes))
    contents = [message.content for prompt in prompts for message in prompt] + openers(150)
    assert not any("{" in content or "}" in content for content in contents)


def test_package_prose_is_long_enough_and_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    # One folder of the real list: reading all of them takes seconds.
    monkeypatch.setitem(package_texts.PACKAGES, "documented", ["httpx"])
    texts = package_texts.package_texts()
    expected = {"numpy description", "python topic assert", "site-packages/httpx/_urls.py URL"}
    assert expected - set(texts) == set()
    assert any(name.endswith("argparse.py ArgumentParser") for name in texts)
    assert min(len(text) for text in texts.values()) >= MIN_CHARS
    assert not any("https://" in text for text in texts.values())


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(package_texts.PACKAGES, "described", ["no-such-package"])
    with pytest.raises(UserError, match="no-such-package is not installed"):
        package_texts.package_texts()


@pytest.fixture(scope="module", autouse=True)
def few_texts() -> None:
    """Two packages' prose: reading all of it takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        texts = {f"p{number} text": f"Text {number} says this. " * 20 for number in range(40)}
        patch.setattr(corpus, "package_texts", lambda: texts)
        yield


def test_a_corpus_has_chats_prose_and_package_texts_each_with_one_bos(tmp_path: Path, tiny_gemma: Loaded) -> None:
    documents = build_corpus(tiny_gemma, PLAN, tmp_path, progress=silent)
    assert len({document.name for document in documents}) == len(documents)
    kinds = [document.kind for document in documents]
    assert (kinds.count("chat"), kinds.count("written")) == (6, 3)
    assert kinds == sorted(kinds, key=["chat", "written", "package"].index)
    packages = [document for document in documents if document.kind == "package"]
    assert sum(len(document.token_ids) for document in packages) >= 300
    assert max(len(document.token_ids) for document in packages) <= 40
    bos = tiny_gemma.tokenizer.bos_token_id
    assert all(document.token_ids[0] == bos and document.token_ids.count(bos) == 1 for document in documents)


def test_chats_are_the_targets_rendering_and_written_ones_have_no_template(tmp_path: Path, tiny_gemma: Loaded) -> None:
    documents = build_corpus(tiny_gemma, PLAN, tmp_path, progress=silent)
    texts = [tiny_gemma.tokenizer.decode(document.token_ids) for document in documents]
    assert texts[0].startswith("<bos><start_of_turn>user\n" + chat_prompts(1)[0][0].content)
    assert texts[6].startswith("<bos>" + openers(1)[0])
    assert "<start_of_turn>" not in texts[6]


def test_a_target_without_bos_gets_none(tmp_path: Path, tiny_qwen: Loaded) -> None:
    documents = build_corpus(tiny_qwen, PLAN, tmp_path, progress=silent)
    assert tiny_qwen.tokenizer.decode(documents[6].token_ids).startswith(openers(1)[0])


def test_what_was_written_is_not_written_again(
    tmp_path: Path, tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = build_corpus(tiny_gemma, PLAN, tmp_path, progress=silent)

    def sample(*arguments: object, **options: object) -> None:
        raise AssertionError("sampled again")

    monkeypatch.setattr(corpus, "sample", sample)
    assert build_corpus(tiny_gemma, PLAN, tmp_path, progress=silent) == documents


def test_batches_do_not_change_what_is_written(
    tmp_path: Path, tiny_gemma: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = build_corpus(tiny_gemma, PLAN, tmp_path / "a", progress=silent)
    monkeypatch.setattr(corpus, "BATCH", 4)
    assert build_corpus(tiny_gemma, PLAN, tmp_path / "b", progress=silent) == documents


def test_the_folder_tells_targets_and_lengths_apart_but_not_sizes(tiny_gemma: Loaded, tiny_qwen: Loaded) -> None:
    folder = corpus_folder(tiny_gemma, PLAN)
    assert folder != corpus_folder(tiny_qwen, PLAN)
    assert folder != corpus_folder(tiny_gemma, Plan(**{**vars(PLAN), "chat_tokens": 5}))
    assert folder == corpus_folder(tiny_gemma, Plan(**{**vars(PLAN), "n_chats": 50}))


def test_pieces_of_one_text_are_held_out_together_and_about_one_in_twenty_is() -> None:
    texts = [[Document(f"text {number}#{piece}", "package", (1,)) for piece in range(3)] for number in range(2000)]
    assert all(len({piece.held_out for piece in pieces}) == 1 for pieces in texts)
    # 2000 / 20 = 100, with a standard deviation of sqrt(2000 * 0.05 * 0.95) = 9.7.
    assert 60 < sum(pieces[0].held_out for pieces in texts) < 140


def test_a_shared_beginning_counts_only_so_often() -> None:
    documents = [Document(str(number), "chat", (7, 8, number)) for number in range(REPEATS + 2)]
    wanted = first_copies(documents)
    assert all(flags.tolist() == [True, True, True] for flags in wanted[:REPEATS])
    assert [flags.tolist() for flags in wanted[REPEATS:]] == [[False, False, True]] * 2


def test_the_same_tokens_after_another_beginning_do_count() -> None:
    documents = [Document(str(number), "chat", (number, 8)) for number in range(2 * REPEATS)]
    assert all(flags.all() for flags in first_copies(documents))


def test_activations_are_the_readers_without_the_first_token_and_outliers(tmp_path: Path, tiny_qwen: Loaded) -> None:
    rng = np.random.default_rng(0)
    documents = [
        Document(str(number), "chat", tuple(rng.integers(5, 250, 6 + number % 5).tolist())) for number in range(70)
    ]
    reader = NNsightReader(tiny_qwen)
    found = harvest(reader, documents, 1, tmp_path, progress=silent)
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    assert found.document.tolist() == sorted(found.document.tolist())
    assert int(found.position.min()) == 1
    for index in (0, 33, 69):
        plain = reader.read([documents[index].token_ids], [1])[0][1]
        rows = found.document == index
        expected = plain[found.position[rows].long()].bfloat16()
        assert torch.allclose(found.residual[rows].float(), expected.float(), rtol=0.02, atol=1e-3)
    assert len(found.residual) == sum(len(document.token_ids) - 1 for document in documents)
    again = harvest(reader, documents, 1, tmp_path, progress=silent)
    assert torch.equal(again.residual, found.residual)

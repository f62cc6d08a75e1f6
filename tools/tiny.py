"""Random models of a few layers, width 64, for tests: real architectures, real tokenizers, meaningless weights.

Invariant: the same configuration and seed give the same weights, byte for byte, on one version of the libraries.
"""

import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tools.targets import Target

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SLIDING_WINDOW = 16
"""Window of the tiny Gemma's local layers, short so that a test transcript crosses it."""

_GEMMA_SPECIAL = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<boi>", "<eoi>", "<image>")
_QWEN_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<0>", "<1>", "<2>")
_VOCABULARY = 8 + 256  # the special tokens and one token a byte

FORMAT = 2
"""Raised when the same configuration and seed give other files; part of the prepared folder's name."""

# How byte-level tokenizers write these two bytes.
_SPACE, _BYTE_255 = "\u0120", "\u00ff"

_GEMMA_TEMPLATE = """\
{{ bos_token }}
{%- for message in messages -%}
{%- if message.role not in ("user", "assistant") or (message.role == "user") != (loop.index0 % 2 == 0) -%}
{{ raise_exception("roles must alternate user, assistant, user") }}
{%- endif -%}
{%- set name = "model" if message.role == "assistant" else "user" -%}
{{ "<start_of_turn>" + name + "\\n" + message.content | trim + "<end_of_turn>\\n" }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ "<start_of_turn>model\\n" }}{% endif -%}
"""

_QWEN_TEMPLATE = """\
{%- for message in messages -%}
{{ "<|im_start|>" + message.role + "\\n" + message.content + "<|im_end|>\\n" }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ "<|im_start|>assistant\\n" }}
{%- if enable_thinking is defined and not enable_thinking %}{{ "<think>\\n\\n</think>\\n\\n" }}{% endif -%}
{%- endif -%}
"""


def build_random(target: Target, folder: Path) -> dict[str, str]:
    """Write a random model of the target's configuration into `folder`; return what it was made with."""
    import torch

    tokenizer = _qwen_tokenizer() if target.checkpoint == "qwen3" else _gemma_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(target.revision))
        model = _MODELS[target.checkpoint](target.n_layers)
        _stir_norms(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {name: importlib.metadata.version(name) for name in ("torch", "transformers")}


def _stir_norms(model: "PreTrainedModel") -> None:
    # Norm weights start out neutral; a reader that folds them into other weights would pass unseen.
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.add_(0.3 * torch.randn_like(weight))


def _text_settings(n_layers: int) -> dict[str, object]:
    return {
        "vocab_size": _VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": n_layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 8192,
        "initializer_range": 0.1,
    }


def _gemma_settings(n_layers: int) -> dict[str, object]:
    return {
        **_text_settings(n_layers),
        "sliding_window": SLIDING_WINDOW,
        "layer_types": ["full_attention" if i % 3 == 2 else "sliding_attention" for i in range(n_layers)],
        "query_pre_attn_scalar": 16,
        "pad_token_id": 0,
        "eos_token_id": [1, 4],
        "bos_token_id": 2,
    }


def _gemma3_text(n_layers: int) -> "PreTrainedModel":
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    return Gemma3ForCausalLM(Gemma3TextConfig(**_gemma_settings(n_layers)))


def _gemma3(n_layers: int) -> "PreTrainedModel":
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, SiglipVisionConfig

    vision = SiglipVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    config = Gemma3Config(
        text_config=_gemma_settings(n_layers),
        vision_config=vision.to_dict(),
        mm_tokens_per_image=4,
        image_token_index=7,
        boi_token_index=5,
        eoi_token_index=6,
    )
    return Gemma3ForConditionalGeneration(config)


def _qwen3(n_layers: int) -> "PreTrainedModel":
    from transformers import Qwen3Config, Qwen3ForCausalLM

    settings = {**_text_settings(n_layers), "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 2}
    return Qwen3ForCausalLM(Qwen3Config(**settings))


_MODELS = {"gemma3_text": _gemma3_text, "gemma3": _gemma3, "qwen3": _qwen3}


def _byte_tokenizer(special: tuple[str, ...]) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    # The activation oracle's placeholder, one token in every real tokenizer, takes the place of byte 255, which no
    # text contains.
    letters[letters.index(_BYTE_255)] = _SPACE + "?"
    vocabulary = {token: i for i, token in enumerate([*special, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[(_SPACE, "?")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _gemma_tokenizer() -> "PreTrainedTokenizerFast":
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = _byte_tokenizer(_GEMMA_SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    named = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)
    fast.chat_template = _GEMMA_TEMPLATE
    return fast


def _qwen_tokenizer() -> "PreTrainedTokenizerFast":
    from transformers import PreTrainedTokenizerFast

    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=_byte_tokenizer(_QWEN_SPECIAL), **named)
    fast.chat_template = _QWEN_TEMPLATE
    return fast

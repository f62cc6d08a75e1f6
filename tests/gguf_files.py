"""A GGUF file of a Llama two blocks deep, quantised as real ones are, for tests of the conversion."""

from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, HEADS, BLOCKS = 64, 96, 4, 2
BYTES = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]
TOKENS = ["<unk>", "<s>", "</s>", *BYTES, "ab"]


def write_gguf(path: Path, seed: int = 0) -> dict[str, np.ndarray]:
    """Write the file; return what each of its tensors de-quantises to."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(BLOCKS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    values = {}
    for name, shape in _shapes().items():
        weight = rng.normal(size=shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, weight)
            values[name] = weight
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            packed = gguf.quants.quantize(weight, kind)
            writer.add_tensor(name, packed, raw_dtype=kind)
            values[name] = gguf.quants.dequantize(packed, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return values


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(TOKENS), WIDTH), "output_norm.weight": (WIDTH,)}
    for i in range(BLOCKS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{i}.{name}.weight"] = (WIDTH, WIDTH)
        shapes[f"blk.{i}.ffn_gate.weight"] = shapes[f"blk.{i}.ffn_up.weight"] = (INNER, WIDTH)
        shapes[f"blk.{i}.ffn_down.weight"] = (WIDTH, INNER)
        shapes[f"blk.{i}.attn_norm.weight"] = shapes[f"blk.{i}.ffn_norm.weight"] = (WIDTH,)
    return shapes

"""A tiny model folder as MLX and vLLM take one: random weights of the llama architecture and a tokenizer of
its own, in which each byte is a token. Its greedy answers are letters without an end."""

import array
import json
import pathlib
import random
import struct

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER = 64, 2, 4, 2, 16, 128
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 256 + len(SPECIAL)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_letters():
    """The letter of each byte, as byte-level tokenizers write them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + len(letters) - len(plain)))
    return [letters[byte] for byte in range(256)]


def tokenizer():
    special = [{"id": 256 + number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for number, text in enumerate(SPECIAL)]
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": vocabulary, "merges": []}}


def weights(seed):
    chance = random.Random(seed)

    def matrix(rows, columns, kept=None):
        scale = columns ** -0.5
        values = array.array("f", (chance.gauss(0, scale) for _ in range(rows * columns)))
        for row in range(rows):
            if kept is not None and row not in kept:
                values[row * columns:(row + 1) * columns] = array.array("f", [0.0] * columns)
        return (rows, columns), values

    ones = ((HIDDEN,), array.array("f", [1.0] * HIDDEN))
    out = {"model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN), "model.norm.weight": ones}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        out[name + "input_layernorm.weight"] = out[name + "post_attention_layernorm.weight"] = ones
        out[name + "self_attn.q_proj.weight"] = matrix(HEADS * HEAD_DIM, HIDDEN)
        out[name + "self_attn.k_proj.weight"] = matrix(KV_HEADS * HEAD_DIM, HIDDEN)
        out[name + "self_attn.v_proj.weight"] = matrix(KV_HEADS * HEAD_DIM, HIDDEN)
        out[name + "self_attn.o_proj.weight"] = matrix(HIDDEN, HEADS * HEAD_DIM)
        out[name + "mlp.gate_proj.weight"] = matrix(INNER, HIDDEN)
        out[name + "mlp.up_proj.weight"] = matrix(INNER, HIDDEN)
        out[name + "mlp.down_proj.weight"] = matrix(HIDDEN, INNER)
    # Only letters have a chance: the best of many beats the zeros of all others.
    out["lm_head.weight"] = matrix(VOCABULARY, HIDDEN, {*range(ord("a"), ord("z") + 1), ord(" ")})
    return out


def write_safetensors(file, tensors):
    header, at = {"__metadata__": {"format": "mlx"}}, 0
    for name, (shape, values) in tensors.items():
        size = 4 * len(values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            out.write(values.tobytes())


def make_checkpoint(folder: pathlib.Path, seed=1, **changes) -> pathlib.Path:
    """`changes`: of config.json."""
    folder.mkdir(parents=True)
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN,
              "num_hidden_layers": LAYERS, "intermediate_size": INNER, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "rms_norm_eps": 1e-5,
              "vocab_size": VOCABULARY, "max_position_embeddings": 8192, "rope_theta": 10000.0,
              "tie_word_embeddings": False, "torch_dtype": "float32", "bos_token_id": 256, "eos_token_id": 256}
    (folder / "config.json").write_text(json.dumps(config | changes))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": SPECIAL[0],
        "model_max_length": 8192, "chat_template": CHAT_TEMPLATE}))
    write_safetensors(folder / "model.safetensors", weights(seed))
    return folder

#!/usr/bin/env python3
"""random_model.py --type Q4_0|Q4_1|Q4_K_M|Q8_0 [--shape 1b|135m] [--vocabulary-of FILE.gguf] OUT.gguf

Writes a model of random weights with the shape of a Llama of that size and the vocabulary of another
model: for measuring speed, which depends on shapes and types alone. What it says is noise.
"""

import argparse
import os
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import gguf_file  # noqa: E402

# name: layers, embedding, feed-forward, heads, kv heads. 1b is that of Llama 3.2 1B.
SHAPES = {"1b": (16, 2048, 8192, 32, 8), "135m": (30, 576, 1536, 9, 3)}

# type: number in GGUF, weights a block, its bytes, where its f16 scales are, the steps that a weight is away from 0
# on average (the scale is chosen so that weights have a deviation of 0.02).
TYPES = {
    "F32": (0, 1, 4, (), 1),
    "Q4_0": (2, 32, 18, (0,), 4.6),
    "Q4_1": (3, 32, 20, (0, 2), 9),
    "Q8_0": (8, 32, 34, (0,), 74),
    "Q4_K": (12, 256, 144, (0, 2), 9 * 32),
    "Q6_K": (14, 256, 210, (208,), 18 * 64),
}


def type_of(tensor, layer, layers, kind):
    """As llama-quantize chooses: the head and some projections get more bits."""
    if kind == "Q8_0":
        return "Q8_0"
    if tensor == "token_embd":
        return "Q6_K"
    if kind == "Q4_K_M":
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        return "Q6_K" if tensor in ("attn_v", "ffn_down") and more else "Q4_K"
    return kind


def blocks_of(kind, count):
    """`count` blocks: some thousand random ones, again and again from another one of them on."""
    _, _, size, scales, steps = TYPES[kind]
    unit = 4096
    scale = struct.pack("<e", 0.02 / steps)
    data = bytearray(os.urandom(unit * size))
    for block in range(unit):
        for at in scales:
            data[block * size + at : block * size + at + 2] = scale
    start = int.from_bytes(os.urandom(2), "little") % unit * size
    data = data[start:] + data[:start]
    while count > 0:
        part = min(count, unit)
        yield bytes(data[: part * size])
        count -= part


def skip_value(data, kind, at):
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    if kind in sizes:
        return at + sizes[kind]
    if kind == gguf_file.TEXT:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    item, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if item in sizes:
        return at + sizes[item] * count
    for _ in range(count):
        at = skip_value(data, item, at)
    return at


def vocabulary(file):
    """The tokenizer's facts as they stand in the file, and how many tokens it has."""
    data = file.read_bytes()
    facts, tokens, at = [], 0, 24
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        begin = at
        length = struct.unpack_from("<Q", data, at)[0]
        name = data[at + 8 : at + 8 + length].decode()
        at += 8 + length
        kind = struct.unpack_from("<I", data, at)[0]
        if name == "tokenizer.ggml.tokens":
            tokens = struct.unpack_from("<Q", data, at + 8)[0]
        at = skip_value(data, kind, at + 4)
        if name.startswith("tokenizer."):
            facts.append(data[begin:at])
    return facts, tokens


def write(out, kind, shape, source):
    layers, width, inner, heads, kv_heads = SHAPES[shape]
    facts, tokens = vocabulary(source)
    own = {
        "general.architecture": ("text", "llama"),
        "general.name": ("text", f"random {shape} {kind}"),
        "llama.context_length": ("u32", 8192),
        "llama.embedding_length": ("u32", width),
        "llama.block_count": ("u32", layers),
        "llama.feed_forward_length": ("u32", inner),
        "llama.attention.head_count": ("u32", heads),
        "llama.attention.head_count_kv": ("u32", kv_heads),
        "llama.attention.layer_norm_rms_epsilon": ("f32", 1e-5),
        "llama.rope.dimension_count": ("u32", width // heads),
        "llama.vocab_size": ("u32", tokens),
    }
    facts += [gguf_file.text(name) + gguf_file.value(*fact) for name, fact in own.items()]
    kv_width = width // heads * kv_heads
    tensors = [("token_embd", (width, tokens), type_of("token_embd", 0, layers, kind)), ("output_norm", (width,), "F32")]
    for layer in range(layers):
        tensors += [(f"blk.{layer}.{name}", (width,), "F32") for name in ("attn_norm", "ffn_norm")]
        for name, size in (("attn_q", (width, width)), ("attn_k", (width, kv_width)), ("attn_v", (width, kv_width)),
                           ("attn_output", (width, width)), ("ffn_gate", (width, inner)), ("ffn_up", (width, inner)),
                           ("ffn_down", (inner, width))):
            tensors.append((f"blk.{layer}.{name}", size, type_of(name, layer, layers, kind)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)) + b"".join(facts)
    offset = 0
    sizes = []
    for name, size, of in tensors:
        number, weights, block_bytes, _, _ = TYPES[of]
        count = size[0] * (size[1] if len(size) == 2 else 1) // weights
        head += gguf_file.text(f"{name}.weight") + struct.pack(f"<I{len(size)}Q", len(size), *size)
        head += struct.pack("<IQ", number, offset)
        sizes.append((of, count))
        offset += (count * block_bytes + 31) // 32 * 32
    with out.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        begin = file.tell()
        for of, count in sizes:
            file.write(b"\0" * (-(file.tell() - begin) % 32))
            if of == "F32":
                file.write(struct.pack("<f", 1.0) * count)
                continue
            for part in blocks_of(of, count):
                file.write(part)
        file.write(b"\0" * (-(file.tell() - begin) % 32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", choices=("Q4_0", "Q4_1", "Q4_K_M", "Q8_0"), required=True)
    parser.add_argument("--shape", choices=SHAPES, default="1b")
    parser.add_argument("--vocabulary-of", type=pathlib.Path, metavar="FILE",
                        default=ROOT / ".cache/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    write(options.out, options.type, options.shape, options.vocabulary_of)


if __name__ == "__main__":
    main()

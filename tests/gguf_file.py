"""A writer of small GGUF files: models that are wrong in ways that only the engine notices."""

import struct

TEXT, ARRAY = 8, 9
KINDS = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, data):
    if kind == "text":
        return struct.pack("<I", TEXT) + text(data)
    if kind == "texts":
        return struct.pack("<IIQ", ARRAY, TEXT, len(data)) + b"".join(map(text, data))
    if kind.endswith("s"):
        number, form = KINDS[kind[:-1]]
        return struct.pack("<IIQ", ARRAY, number, len(data)) + b"".join(struct.pack(form, item) for item in data)
    number, form = KINDS[kind]
    return struct.pack("<I", number) + struct.pack(form, data)


def write(file, facts, tensors):
    """`facts`: key -> (kind, value); `tensors`: name -> shape, of zeros (F32)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    for key, (kind, data) in facts.items():
        head += text(key) + value(kind, data)
    offset = 0
    for name, shape in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", 0, offset)
        size = 4
        for dimension in shape:
            size *= dimension
        offset += (size + 31) // 32 * 32
    file.write_bytes(head + b"\0" * (-len(head) % 32) + b"\0" * offset)
    return file


def tiny_facts(architecture, **more):
    """What every model must say, with a vocabulary of bytes."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    facts = {
        "general.architecture": ("text", architecture),
        f"{architecture}.context_length": ("u32", 256),
        f"{architecture}.embedding_length": ("u32", 64),
        f"{architecture}.block_count": ("u32", 2),
        f"{architecture}.feed_forward_length": ("u32", 128),
        f"{architecture}.attention.head_count": ("u32", 2),
        f"{architecture}.attention.head_count_kv": ("u32", 1),
        f"{architecture}.attention.layer_norm_rms_epsilon": ("f32", 1e-5),
        "tokenizer.ggml.model": ("text", "llama"),
        "tokenizer.ggml.tokens": ("texts", tokens),
        "tokenizer.ggml.scores": ("f32s", [0.0] * len(tokens)),
        "tokenizer.ggml.token_type": ("i32s", [2, 3, 3] + [6] * 256),
        "tokenizer.ggml.bos_token_id": ("u32", 1),
        "tokenizer.ggml.eos_token_id": ("u32", 2),
        "tokenizer.chat_template": ("text", "{% for m in messages %}{{ m.content }}\n{% endfor %}"),
    }
    facts |= {f"{architecture}.{key.replace('__', '.')}": fact for key, fact in more.items()}
    return facts

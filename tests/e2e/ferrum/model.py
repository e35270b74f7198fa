#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""model.py FOLDER [whole]: writes a Llama of 4.3 million random parameters there, with what ferrum wants
beside the weights. A token is a byte of text.

Each request gets as many tokens as it asks for, because the special ones are never drawn. UNKNOWN is
a token without a row in the embeddings, unless they are to be whole: a prompt with it makes ferrum
panic in a step."""
import array
import json
import os
import random
import struct
import sys

HIDDEN, LAYERS, HEADS = 256, 4, 4
UNKNOWN = "<unknown>"
SPECIAL = ["<s>", "</s>", "<unk>"]
VOCABULARY = 264
EMBEDDINGS, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def make_alphabet():
    """The characters that byte-level tokenizers write for the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + at) for at in range(len(others))]


def make_tokenizer():
    words = SPECIAL + make_alphabet()
    words += ["<%d>" % at for at in range(len(words), VOCABULARY - 1)] + [UNKNOWN]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": words.index(text), "content": text, "special": True, **flags}
                         for text in SPECIAL + [UNKNOWN]],
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {word: at for at, word in enumerate(words)}, "merges": []}}


def make_config():
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "intermediate_size": 4 * HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": HIDDEN // HEADS,
        "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "torch_dtype": "bfloat16",
        "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1, "attention_bias": False}


def list_tensors(rows):
    yield EMBEDDINGS, (rows, HIDDEN)
    yield HEAD, (VOCABULARY, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        name = "model.layers.%d." % layer
        for part in "qkvo":
            yield name + "self_attn.%s_proj.weight" % part, (HIDDEN, HIDDEN)
        yield name + "mlp.gate_proj.weight", (4 * HIDDEN, HIDDEN)
        yield name + "mlp.up_proj.weight", (4 * HIDDEN, HIDDEN)
        yield name + "mlp.down_proj.weight", (HIDDEN, 4 * HIDDEN)
        yield name + "input_layernorm.weight", (HIDDEN,)
        yield name + "post_attention_layernorm.weight", (HIDDEN,)


def to_bf16(number):
    """The upper half of each float."""
    return struct.unpack("<2H", struct.pack("<f", number))[1]


def make_numbers(name, shape, chance, some):
    """The first number of a token's state is large, which makes the next token certain."""
    if not shape[1:]:
        return array.array("H", [to_bf16(1)] * shape[0])
    numbers = array.array("H", chance.choices(some, k=shape[0] * shape[1]))
    for row in range(shape[0]):
        if name == EMBEDDINGS:
            numbers[row * HIDDEN] = to_bf16(1)
        elif name == HEAD and (row < len(SPECIAL) or row == VOCABULARY - 1):
            numbers[row * HIDDEN] = to_bf16(-2)
    return numbers


def write_weights(path, rows):
    """The safetensors format: the size of the header, the header, the numbers."""
    chance = random.Random(0)
    some = [to_bf16(chance.gauss(0, 0.02)) for _ in range(65536)]
    header, parts, at = {}, [], 0
    for name, shape in list_tensors(rows):
        part = make_numbers(name, shape, chance, some).tobytes()
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(part)]}
        at += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    special = dict(zip(("bos_token", "eos_token", "unk_token"), SPECIAL))
    for name, value in (
            ("tokenizer.json", make_tokenizer()), ("config.json", make_config()),
            ("tokenizer_config.json", {
                "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096, **special,
                "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"})):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    write_weights(os.path.join(folder, "model.safetensors"), VOCABULARY - ("whole" not in sys.argv[2:]))


main()

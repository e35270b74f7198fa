#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A small transformer that decodes one token a step with a growing KV cache, in PyTorch.

Options and output are those of engine.cu. Each step runs inside gpu_step() of libgpu_step.so, which
is where the tool attaches. Variants: eager, and graph: the same as one CUDA graph over the whole cache.
"""
import argparse
import ctypes
import json
import os
import sys
import time

VARIANTS = ("eager", "graph")
VOCABULARY, WIDTH, HEADS, LAYERS = 8192, 1024, 16, 8


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--variant", default="eager", choices=VARIANTS)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--pause-us", type=int, default=0)
    parser.add_argument("--library", default=os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                          "libgpu_step.so"))
    return parser.parse_args()


class Decoder:
    """One sequence. position is on the GPU, so that a graph can replay the step."""

    def __init__(self, torch, length):
        self.torch = torch
        options = {"device": "cuda", "dtype": torch.float16}
        torch.manual_seed(1)
        self.length = length
        self.embedding = torch.randn(VOCABULARY, WIDTH, **options) * 0.02
        self.layers = [{name: torch.randn(*shape, **options) * 0.02 for name, shape in (
            ("qkv", (WIDTH, 3 * WIDTH)), ("out", (WIDTH, WIDTH)),
            ("up", (WIDTH, 4 * WIDTH)), ("down", (4 * WIDTH, WIDTH)))} for _ in range(LAYERS)]
        self.keys = torch.zeros(LAYERS, HEADS, length, WIDTH // HEADS, **options)
        self.values = torch.zeros_like(self.keys)
        self.token = torch.zeros(1, dtype=torch.long, device="cuda")
        self.position = torch.zeros(1, dtype=torch.long, device="cuda")
        self.places = torch.arange(length, device="cuda")

    def attend(self, number, query, seen):
        """Attends to the first `seen` positions of the cache; if it is None, to all of them with a
        mask."""
        torch = self.torch
        keys, values = self.keys[number], self.values[number]
        if seen is not None:
            keys, values = keys[:, :seen], values[:, :seen]
        scores = (query.unsqueeze(1) @ keys.transpose(1, 2)) / (WIDTH // HEADS) ** 0.5
        if seen is None:
            scores = scores.masked_fill(self.places > self.position, float("-inf"))
        return (torch.softmax(scores.float(), -1).half() @ values).reshape(1, WIDTH)

    def forward(self, seen):
        torch = self.torch
        state = self.embedding[self.token]
        for number, layer in enumerate(self.layers):
            normal = torch.nn.functional.layer_norm(state, (WIDTH,))
            query, key, value = (normal @ layer["qkv"]).reshape(3, HEADS, WIDTH // HEADS)
            self.keys[number].index_copy_(1, self.position, key.unsqueeze(1))
            self.values[number].index_copy_(1, self.position, value.unsqueeze(1))
            state = state + self.attend(number, query, seen) @ layer["out"]
            normal = torch.nn.functional.layer_norm(state, (WIDTH,))
            state = state + torch.nn.functional.gelu(normal @ layer["up"]) @ layer["down"]
        logits = torch.nn.functional.layer_norm(state, (WIDTH,)) @ self.embedding.t()
        self.token.copy_(logits.argmax(-1))
        self.position.add_(1)

    def restart(self):
        self.position.zero_()
        self.token.zero_()


class Loop:
    def __init__(self, torch, variant, length):
        self.torch = torch
        self.decoder = Decoder(torch, length)
        self.before = torch.cuda.Event(enable_timing=True)
        self.after = torch.cuda.Event(enable_timing=True)
        self.seen = 0
        self.graph = None
        self.chosen = torch.zeros(1, dtype=torch.long).pin_memory()
        self.error = None
        if variant == "graph":
            self.capture()

    def capture(self):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.decoder.forward(None)
        torch.cuda.current_stream().wait_stream(side)
        self.decoder.restart()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.decoder.forward(None)
        self.decoder.restart()

    def step(self):
        if self.seen == self.decoder.length:
            self.seen = 0
            self.decoder.restart()
        self.seen += 1
        self.before.record()
        if self.graph:
            self.graph.replay()
        else:
            self.decoder.forward(self.seen)
        # Copies the token to the host, as a server does.
        self.chosen.copy_(self.decoder.token, non_blocking=True)
        self.after.record()
        self.after.synchronize()

    def call(self):
        """Called from C, where an exception must not be lost."""
        try:
            with self.torch.no_grad():
                self.step()
        except BaseException as error:
            self.error = error


def main():
    options = parse()
    if options.list:
        print("\n".join(VARIANTS))
        return
    import torch
    library = ctypes.CDLL(options.library)
    out = open(options.out, "w")
    with torch.no_grad():
        loop = Loop(torch, options.variant, 1024)
    work = ctypes.CFUNCTYPE(None)(loop.call)
    for _ in range(options.warm_up):
        loop.call()
    if loop.error:
        raise loop.error
    out.write(json.dumps({
        "engine": "pytorch " + torch.__version__, "variant": options.variant, "pid": os.getpid(),
        "device": torch.cuda.get_device_name(0), "driver": 0,
        "runtime": int((torch.version.cuda or "0").replace(".", "")) * 100, "gapless": False}) + "\n")
    out.flush()
    print("ready %d" % os.getpid(), flush=True)
    if not sys.stdin.readline():
        sys.exit(1)
    first = None
    for number in range(1, options.steps + 1):
        start = time.monotonic_ns()
        first = first or start
        library.gpu_step(work)
        end = time.monotonic_ns()
        if loop.error:
            raise loop.error
        out.write(json.dumps({
            "step": number, "start_ns": start, "end_ns": end,
            "gpu_ns": round(loop.before.elapsed_time(loop.after) * 1e6),
            "kernels": 0, "copies": 0}) + "\n")
        if options.pause_us:
            time.sleep(options.pause_us / 1e6)
    out.write(json.dumps({"done": options.steps, "wall_ns": end - first}) + "\n")
    out.close()
    print("done", flush=True)
    sys.stdin.read()


main()

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Compares the tool with ferrum's own crate (src/main.rs).

usage: check.py TOOL JUDGE FOLDER env COUNT      the hash of random documents
       check.py TOOL JUDGE FOLDER profile COUNT  the verdict on random changes of lines, from PROFILE…

What differs is printed; the last line counts.
"""
import json
import random
import subprocess
import sys

TOOL, JUDGE, FOLDER, WHAT, COUNT = sys.argv[1:5] + [int(sys.argv[5])]
RANDOM = random.Random(4)
WORDS = ["", "a", "rtx-4090", "Ü \u20ac\U0001f600", "tab\tquote\"", "\u0000\u001f\u007f\\", "cuda"]


def some(*values):
    return RANDOM.choice(values)


def text():
    return some(*WORDS)


def wrong(value):
    """Sometimes a value of another type."""
    return some(None, 1, -1, 1.5, True, [], {}, "x") if RANDOM.random() < 0.01 else value


def u32():
    return wrong(some(0, 350, 2**32 - 1, 2**32) if RANDOM.random() < 0.05 else RANDOM.randrange(2**32))


def f32():
    """From 1e13 on, ferrum's serde_json decides whether 1e13 or 1e+13 is hashed."""
    return wrong(some(0, 1, 0.6, 0.95, 1e-7, 1e-6, 1.5e-5, 1e12, 123456789.0, -0.0, 1e39,
                      RANDOM.random(), RANDOM.uniform(-1e12, 1e12), RANDOM.randrange(2**39)))


def entry():
    made = {"key": text(), "effective_value": text(),
            "source": wrong(some("default", "config_file", "cli", "env", "script_case", "memory_profile")),
            "affects": [wrong(some("correctness", "performance", "memory", "diagnostics"))
                        for _ in range(RANDOM.randrange(4))]}
    return {name: wrong(value) for name, value in made.items() if RANDOM.random() < 0.99}


def sampling():
    made = {"temperature": f32()}
    made |= {name: value for name, value in (("top_k", some(20, 2**64 - 1)), ("top_p", f32()), ("seed", some(0, 42)),
                                             ("repetition_penalty", f32())) if RANDOM.random() < 0.5}
    return made


def document():
    made = {"commit_sha": text(), "hw_id": text(), "rust": text(),
            "ferrum_features": [wrong(text()) for _ in range(RANDOM.randrange(4))],
            "ferrum_env": {text(): wrong(text()) for _ in range(RANDOM.randrange(6))}}
    # The tool refuses a NUL in a name, and says so.
    made["ferrum_env"] = {name: value for name, value in made["ferrum_env"].items() if "\0" not in name}
    maybe = {"driver": text(), "cuda": text(), "gpu_clock_lock_mhz": u32(), "gpu_power_limit_w": u32(),
             "gpu_persistence_mode": some(True, False), "gpu_auto_boost": some(True, False, None),
             "runtime_config": {"entries": [entry() for _ in range(RANDOM.randrange(4))]},
             "vllm_args": [text() for _ in range(RANDOM.randrange(4))],
             "http_connection_mode": text(), "http_request_sampling": sampling(),
             "unknown": some(1, [1, {"a": None}], {"rust": 1})}
    made |= {name: value for name, value in maybe.items() if RANDOM.random() < 0.4}
    made = {name: wrong(value) for name, value in made.items() if RANDOM.random() < 0.995}
    names = list(made)
    RANDOM.shuffle(names)
    return json.dumps({name: made[name] for name in names}, ensure_ascii=some(True, False))


def judge(lines):
    answer = subprocess.run([JUDGE, WHAT], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [line.split() for line in answer.stdout.splitlines()]


def own_hash(line):
    ran = subprocess.run([TOOL, "env-hash"], input=line, capture_output=True, text=True)
    return ran.stdout.strip() if ran.returncode == 0 else "-"


def check_env():
    lines = [document() for _ in range(COUNT)]
    good = differs = 0
    for line, (old, new) in zip(lines, judge(lines)):
        own = own_hash(line)
        good += new != "-"
        # Variables that only the newer release knows may be absent; then both have the same hash.
        if own != new or ("http_" not in line and new != old):
            differs += 1
            print(f"tool {own}, ferrum {old} {new}: {line}")
    print(f"{good} good, {differs} differ")


def change(line):
    for _ in range(RANDOM.randrange(1, 4)):
        at = RANDOM.randrange(len(line))
        size = some(0, 1, 1, RANDOM.randrange(1, 12))
        new = some("", "", "0", "-", "1e400", "\"", "\\u0000", "\\ud800", "null", "[", "]", "{", "}", ",", ":", " ", "\u00e9",
                   "18446744073709551616", "1.5", "true", "a")
        line = line[:at] + new + line[at + size:]
    return line.replace("\n", " ").replace("\r", " ")


def change_value(line):
    """Changes the value of one member; the line stays valid JSON."""
    made = json.loads(line)
    name = RANDOM.choice(list(made))
    made[name] = some(None, 0, 1, -1, 2**32, 2**32 - 1, 1.0, "", " \u2003", "x", "sha256:", True, [], {}, {"a\0b": 1})
    if RANDOM.random() < 0.2:
        del made[RANDOM.choice(list(made))]
    return json.dumps(made)


def check_profile():
    source = [line for path in sys.argv[6:] for line in open(path, encoding="utf-8").read().splitlines()]
    lines = [RANDOM.choice((change, change_value))(RANDOM.choice(source)) for _ in range(COUNT)]
    paths = []
    for number, line in enumerate(lines):
        # The file's name tells its type.
        paths.append(f"{FOLDER}/{number}.jsonl")
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(line + "\n")
    refused = set()
    for first in range(0, COUNT, 500):
        ran = subprocess.run([TOOL, "validate"] + paths[first:first + 500], capture_output=True, text=True)
        refused |= {said.split(": ")[0] for said in (ran.stdout + ran.stderr).splitlines()
                    if not said.endswith(", ok")}
    good = differs = 0
    for path, line, (old, new) in zip(paths, lines, judge(lines)):
        own = "-" if path in refused else "ok"
        # An empty line is no event; our tool says that the file has none.
        if not line.strip():
            continue
        good += new == "ok"
        if own != new or old != new:
            differs += 1
            print(f"tool {own}, ferrum {old} {new}: {line}")
    print(f"{good} good, {differs} differ")


check_env() if WHAT == "env" else check_profile()

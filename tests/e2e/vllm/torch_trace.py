#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""torch_trace.py FOLDER ITERATIONS: whether the traces of PyTorch's profiler in FOLDER, of one window in
all processes of a vLLM, are as they should be; ITERATIONS is vLLM's own count. Prints facts."""
import bisect
import glob
import json
import sys

FOLDER, ITERATIONS = sys.argv[1], int(sys.argv[2])
failed = False


def fact(name, is_true, *figures):
    global failed
    print("#", *figures) if figures else None
    print("ok -" if is_true else "not ok -", name)
    failed |= not is_true


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def steps_of(trace):
    return [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")]


def check_worker(trace, nodes):
    events = trace["traceEvents"]
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    passes = [e for e in steps_of(trace) if e["args"]["ferrum.step"] == "GPUModelRunner.execute_model"]
    steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in steps_of(trace))
    begins = [begin for begin, _ in steps]
    own = [e for e in ops if e["tid"] == passes[0]["tid"]]

    def is_inside(event):
        at = bisect.bisect(begins, event["ts"]) - 1
        return at >= 0 and event["ts"] + event["dur"] <= steps[at][1]

    inside = sum(map(is_inside, own))
    fact("as many forward passes as vLLM counts", ITERATIONS <= len(passes) <= ITERATIONS + 2,
         len(passes), "passes,", ITERATIONS, "iterations,", len(ops), "operators")
    fact("operators are in the engine's steps, on one clock",
         inside >= 0.95 * len(own) and inside >= 20 * ITERATIONS, inside, "of", len(own))
    fact("our calls are beside them", any(e.get("cat") == "syscall" for e in events))
    ids = {e["args"].get("Record function id") for e in ops}
    shared = sum(any(a["name"] == "rf_id" and a["value"] in ids for a in n["attrs"]) for n in nodes)
    fact("the execution trace has the same operators", shared >= 0.95 * len(ops), shared, "of", len(ops))


traces = {path.rsplit("kineto_", 1)[1]: load(path) for path in glob.glob(FOLDER + "/kineto_*.json")}
graphs = {path.rsplit("pytorch_et_", 1)[1]: load(path) for path in glob.glob(FOLDER + "/pytorch_et_*.json")}
fact("two traces for each process of the engine with steps", traces.keys() == graphs.keys() and len(traces) >= 2,
     *traces)
fact("execution traces have Chakra's schema", all("chakra" in g["schema"] for g in graphs.values()))
workers = [tag for tag, trace in traces.items()
           if any(e["args"]["ferrum.step"] == "GPUModelRunner.execute_model" for e in steps_of(trace))]
fact("one of them is the worker", len(workers) == 1)
for tag in workers:
    check_worker(traces[tag], graphs[tag]["nodes"])
sys.exit(failed)

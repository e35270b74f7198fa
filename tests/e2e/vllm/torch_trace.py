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


def check_worker(trace, nodes):
    events = trace["traceEvents"]
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                   if e["name"].startswith("ProfilerStep")
                   and e["args"]["ferrum.step"] == "GPUModelRunner.execute_model")
    begins = [begin for begin, _ in steps]
    linear = [e for e in ops if e["name"] == "aten::linear"]

    def is_inside(event):
        at = bisect.bisect(begins, event["ts"]) - 1
        return at >= 0 and event["ts"] + event["dur"] <= steps[at][1]

    fact("as many forward passes as vLLM counts", ITERATIONS <= len(steps) <= ITERATIONS + 2,
         len(steps), "steps,", ITERATIONS, "iterations,", len(ops), "operators")
    fact("the model's operators are in forward passes, on one clock",
         linear and sum(map(is_inside, linear)) >= 0.99 * len(linear),
         sum(map(is_inside, linear)), "of", len(linear))
    fact("our calls are beside them", any(e.get("cat") == "syscall" for e in events))
    ids = {e["args"].get("Record function id") for e in ops}
    shared = sum(any(a["name"] == "rf_id" and a["value"] in ids for a in n["attrs"]) for n in nodes)
    fact("the execution trace has the same operators", shared >= 0.99 * len(ops), shared, len(ops))


traces = {path.rsplit("kineto_", 1)[1]: load(path) for path in glob.glob(FOLDER + "/kineto_*.json")}
graphs = {path.rsplit("pytorch_et_", 1)[1]: load(path) for path in glob.glob(FOLDER + "/pytorch_et_*.json")}
fact("two traces for each process of the engine with steps", traces.keys() == graphs.keys() and len(traces) >= 2,
     *traces)
fact("execution traces have Chakra's schema", all("chakra" in g["schema"] for g in graphs.values()))
workers = [tag for tag, trace in traces.items()
           if any(e["name"] == "aten::linear" for e in trace["traceEvents"])]
fact("one of them computes", len(workers) == 1)
for tag in workers:
    check_worker(traces[tag], graphs[tag]["nodes"])
sys.exit(failed)

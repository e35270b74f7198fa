#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Breaks a sound Kineto trace in one way after the other, and sees kineto_check.py object by the rule
that each breaks: kineto_break.py FILE. One "ok - …" or "not ok - …" for each."""
import copy
import json
import os
import sys
import tempfile

import kineto_check


def is_slice(event, cat=None):
    return event["ph"] == "X" and (cat is None or event["cat"] == cat)


def find(trace, cat, number=0):
    return [event for event in trace["traceEvents"] if is_slice(event, cat)][number]


def find_phase(trace, phase):
    return next(event for event in trace["traceEvents"] if event["ph"] == phase)


def append(trace, event, **changes):
    event = copy.deepcopy(event)
    args = changes.pop("args", {})
    event.update(changes)
    event["args"] = dict(event.get("args", {}), **args)
    trace["traceEvents"].append(event)


def drop(trace, condition):
    trace["traceEvents"] = [event for event in trace["traceEvents"] if not condition(event)]


def first(trace, event):
    trace["traceEvents"].remove(event)
    trace["traceEvents"].insert(0, event)


def move(args, key):
    args[key] = args.pop(key)


def rename(args, key, name):
    args[name] = args.pop(key)


# The change to the parsed trace, and the rule that it breaks.
CHANGES = [
    ("head", "no schemaVersion", lambda t: t.pop("schemaVersion")),
    ("head", "another schemaVersion", lambda t: t.update(schemaVersion=2)),
    ("head", "no deviceProperties", lambda t: t.pop("deviceProperties")),
    ("head", "a base of its own", lambda t: t.update(baseTimeNanoseconds=17)),
    ("head", "a base that is text", lambda t: t.update(baseTimeNanoseconds="0")),
    ("head", "no traceName", lambda t: t.pop("traceName")),
    ("head", "no traceEvents", lambda t: t.pop("traceEvents")),
    ("device", "a device without numSms", lambda t: t["deviceProperties"][0].pop("numSms")),
    ("device", "keys of a device in another order", lambda t: move(t["deviceProperties"][0], "id")),
    ("rank", "no distributedInfo", lambda t: t.pop("distributedInfo")),
    ("rank", "a rank beyond the world", lambda t: t["distributedInfo"].update(rank=1, world_size=1)),
    ("columns", "a slice without dur", lambda t: find(t, "syscall").pop("dur")),
    ("columns", "a slice without cat", lambda t: find(t, "syscall").pop("cat")),
    ("columns", "a slice without name", lambda t: find(t, "syscall").pop("name")),
    ("columns", "a slice without tid", lambda t: find(t, "syscall").pop("tid")),
    ("columns", "a tid that is text", lambda t: find(t, "syscall").update(tid="71 sys")),
    ("columns", "cat Trace", lambda t: find(t, "syscall").update(cat="Trace")),
    ("columns", "an unknown phase", lambda t: find(t, "syscall").update(ph="B")),
    ("cat", "an unknown category", lambda t: find(t, "syscall").update(cat="cpu_op_")),
    ("args", "args that are a list", lambda t: find(t, "syscall").update(args=[])),
    ("args", "a stream that is text", lambda t: find(t, "kernel")["args"].update(stream="7")),
    ("ts", "metadata without a time", lambda t: find_phase(t, "M").pop("ts")),
    ("ts", "a slice before the base", lambda t: find(t, "syscall").update(ts=-1.5)),
    ("rounding", "a slice of negative length", lambda t: find(t, "kernel").update(dur=-0.5)),
    ("gpu", "a kernel without a stream", lambda t: find(t, "kernel")["args"].pop("stream")),
    ("gpu", "a kernel without a correlation", lambda t: find(t, "kernel")["args"].pop("correlation")),
    ("gpu", "a copy with correlation 0", lambda t: find(t, "gpu_memcpy")["args"].update(correlation=0)),
    ("lane", "a kernel on another device's lane", lambda t: find(t, "kernel").update(pid=3)),
    ("lane", "a kernel on another stream's lane", lambda t: find(t, "kernel").update(tid=3)),
    ("stream", "a stream on a syscall", lambda t: find(t, "syscall")["args"].update(stream=7)),
    ("stream", "a stream of -1 on a step", lambda t: find(t, "user_annotation")["args"].update(stream=-1)),
    ("stream", "a stream on a call", lambda t: find(t, "cuda_runtime")["args"].update(stream=7)),
    ("stream", "a stream on a sync", lambda t: rename(find(t, "cuda_sync")["args"], "wait_stream", "stream")),
    ("merge", "a correlation on two host events", lambda t: append(t, find(t, "cuda_runtime"), name="x")),
    ("merge", "the driver's call with its runtime call's correlation",
     lambda t: rename(find(t, "cuda_uncorrelated")["args"], "ferrum.correlation", "correlation")),
    ("merge", "a sync with its call's correlation",
     lambda t: rename(find(t, "cuda_sync")["args"], "ferrum.correlation", "correlation")),
    ("joined", "work whose call is gone",
     lambda t: drop(t, lambda event: event is find(t, "cuda_runtime"))),
    ("joined", "uncorrelated work with a correlation",
     lambda t: rename(find(t, "kernel_uncorrelated")["args"], "ferrum.correlation", "correlation")),
    ("index", "a launch as the first event", lambda t: first(t, find(t, "cuda_runtime"))),
    ("step", "no step", lambda t: drop(t, lambda event: is_slice(event, "user_annotation"))),
    ("step", "a step of another name", lambda t: find(t, "user_annotation").update(name="llama_decode")),
    ("step", "a step in another category", lambda t: find(t, "user_annotation").update(cat="syscall")),
    ("step", "a number twice", lambda t: append(t, find(t, "user_annotation"), ts=9e9)),
    ("class", "a kernel that is called Memcpy", lambda t: find(t, "kernel").update(name="Memcpy it")),
    ("class", "a copy of another name", lambda t: find(t, "gpu_memcpy").update(name="copy")),
    ("temporal", "work that ends before it begins", lambda t: find(t, "kernel").update(dur=-1e6)),
    ("int", "an External id that is no number",
     lambda t: find(t, "kernel")["args"].update({"External id": "x"})),
    ("launch", "driver's launches without a correlation that Chakra counts",
     lambda t: [event.update(cat="cuda_driver") for event in t["traceEvents"]
                if is_slice(event, "cuda_uncorrelated")]),
    ("launch", "two launches of one correlation",
     lambda t: append(t, find(t, "cuda_runtime", 1), ts=9e9)),
    ("arrow", "an arrow without its end", lambda t: drop(t, lambda event: event is find_phase(t, "f"))),
    ("arrow", "an arrow without its begin", lambda t: drop(t, lambda event: event is find_phase(t, "s"))),
    ("arrow", "an arrow without an id", lambda t: find_phase(t, "s").pop("id")),
    ("arrow", "an arrow that ends beside its slice", lambda t: find_phase(t, "f").update(ts=1.0)),
    ("arrow", "an arrow that begins beside its slice", lambda t: find_phase(t, "s").update(ts=1.0)),
    ("arrow", "an arrow that does not bind to the slice around", lambda t: find_phase(t, "f").pop("bp")),
    ("arrow", "an arrow of another category", lambda t: find_phase(t, "s").update(cat="flow")),
    ("nest", "a call that sticks out of its step",
     lambda t: find(t, "cuda_runtime").update(dur=1e6)),
    ("nest", "syscalls on the lane of calls that they cut",
     lambda t: append(t, find(t, "syscall"), tid=find(t, "cuda_runtime")["tid"],
                      ts=find(t, "cuda_runtime")["ts"] + 1, dur=1e6)),
    ("named", "a lane without a name",
     lambda t: drop(t, lambda event: event["name"] == "thread_name")),
    ("named", "a process without a label",
     lambda t: drop(t, lambda event: event["name"] == "process_labels")),
    ("order", "args of a kernel in another order", lambda t: move(find(t, "kernel")["args"], "stream")),
    ("order", "a kernel without its grid", lambda t: find(t, "kernel")["args"].pop("grid")),
    ("order", "a call without its cbid", lambda t: find(t, "cuda_runtime")["args"].pop("cbid")),
    ("name", "a call with its version", lambda t: find(t, "cuda_runtime").update(name="cudaX_v7000")),
    ("bandwidth", "a bandwidth of bytes a microsecond",
     lambda t: find(t, "gpu_memcpy")["args"].update({"memory bandwidth (GB/s)": 4096.0})),
    ("window", "no end of the window", lambda t: drop(t, lambda event: event["ph"] == "i")),
]

# The change to the trace's text.
EDITS = [
    ("rank", "no space before the rank", lambda text: text.replace('"rank": ', '"rank":')),
    ("rank", "distributedInfo without its space",
     lambda text: text.replace('"distributedInfo": ', '"distributedInfo":')),
    ("json", "the end is cut off", lambda text: text[:-20]),
    ("json", "a key twice", lambda text: text.replace('"schemaVersion":1', '"schemaVersion":1\n,"schemaVersion":1')),
    ("json", "something after the end", lambda text: text + "{}"),
    ("decimals", "whole microseconds", lambda text: text.replace('"dur":0.077', '"dur":0')),
]


def faults_of(text, name="trace.json"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return kineto_check.check(path)


def spell(trace):
    """Writes JSON as the tool does, with three decimals, which the checker requires and json.dumps
    drops."""
    info = trace.pop("distributedInfo", None)
    text = json.dumps(trace, indent=0, separators=(",", ":"))
    for key in ("ts", "dur"):
        parts = text.split(f'"{key}":')
        for index in range(1, len(parts)):
            number, mark, rest = parts[index].partition("\n")
            plain = number.rstrip(",")
            try:
                parts[index] = f"{float(plain):.3f}{number[len(plain):]}" + mark + rest
            except ValueError:
                pass
        text = f'"{key}":'.join(parts)
    text = text.replace(".000\n", ".000").replace("\n", "")
    if info is not None:
        text = '{"distributedInfo": ' + json.dumps(info) + "," + text[1:]
    return text


def expect(rule, what, faults):
    good = rule in {name for name, _ in faults}
    print(f"{'ok' if good else 'not ok'} - {rule}: {what}")
    if not good:
        print(f"    found: {faults[:5]}")
    return not good


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    status = 0
    for found in (faults_of(text), faults_of(spell(json.loads(text)))):
        if found:
            print(f"not ok - the file is sound as it is: {found[:5]}")
            return 1
    print("ok - the file is sound as it is")
    for rule, what, change in CHANGES:
        trace = json.loads(text)
        change(trace)
        status |= expect(rule, what, faults_of(spell(trace)))
    for rule, what, edit in EDITS:
        status |= expect(rule, what, faults_of(edit(text)))
    status |= expect("file", "another name", faults_of(text, "trace.js"))
    return status


if __name__ == "__main__":
    sys.exit(main())

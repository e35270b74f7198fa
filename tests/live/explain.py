# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Compares what --explain said with what the program of explain.c knows.

    explain.py MODE TRUTH OUT
"""
import json
import os
import sys

mode, truth_path, out = sys.argv[1:4]
truth = json.load(open(truth_path))
slow = {one["step"]: one for one in truth["slow"]}
report = json.load(open(out + ".report"))
events = [json.loads(line) for line in open(out + ".profile")]
shapes = {
    event["shape"]["step"]: event["shape"]
    for event in events
    if event["event"] == "escalation_prof" and event["shape"]["cause"] == "run_queue"
}
explain = {one["what"]: one for one in report["cost"].get("explain", [])}
switches = explain.get("switches", {})
failed = False


def fact(name, holds, got=""):
    global failed
    print(f"{'ok' if holds else 'not ok'} - {mode}: {name}")
    if not holds:
        print(f"# {got}")
        failed = True


known = {step: shapes[step] for step in slow if "cpu_taken_waited_us" in shapes.get(step, {})}
missed = [shape for shape in shapes.values() if "cpu_taken_waited_us" not in shape]


def near(got_us, wanted_ns, most_ns):
    """Within 10 %, and never more than went by while the one computed. It gives the CPU to nobody, but
    interrupts and the host of a virtual machine take it."""
    return 0.9 * wanted_ns / 1000 <= got_us <= 1.01 * most_ns / 1000 + 100


def is_calm(step):
    """The host of a virtual machine took little from the one who computed. In other steps it took
    unknown time before and after too."""
    return slow[step]["passed_ns"] - slow[step]["taken_ns"] < 0.1 * slow[step]["taken_ns"]


def fact_explained(escalated, explained, least, armed_by=None):
    """The first of them arms it, which takes the tool a while; from then on all are explained.

    armed_by: those that only it could explain, if others need it not.
    Of a step whose calls were lost, as the tool had no CPU, the cause may be another one.
    """
    first = min(explained if armed_by is None else armed_by, default=0 if armed_by is None else max(slow))
    later = [step for step in slow if step > first and escalated.get(step, {}).get("complete")]
    unexplained = [step for step in later if step not in explained]
    fact("slow steps are explained", len(explained) >= least, (explained.keys(), escalated.keys()))
    fact("once one was, all are", not unexplained, (unexplained, explain))


if mode in ("hog", "own", "worker", "always"):
    fact_explained(shapes, known, len(slow) if mode == "always" else 2)
    field = "cpu_taken_own_us" if mode == "own" else "cpu_taken_us"
    wrong = {
        step: (shape.get(field), slow[step])
        for step, shape in known.items()
        if is_calm(step) and not near(shape.get(field, 0), slow[step]["taken_ns"], slow[step]["passed_ns"])
    }
    if mode != "own":
        named = [s for s in known.values() if s.get("cpu_taken_pid") == truth["taker_pid"]]
        named = [s for s in named if s["cpu_taken_by"] == "fbt_hog"]
        fact("the hog is named", len(named) == len(known), known)
    fact("who took the CPU, and for how long", not wrong and any(map(is_calm, known)), wrong)
    waits = {
        step: (shape["cpu_taken_waited_us"], slow[step]["waited_ns"])
        for step, shape in known.items()
        if not 0.9 <= shape["cpu_taken_waited_us"] * 1000 / slow[step]["waited_ns"] <= 1.1
    }
    fact("the wait is that of the kernel's own account", not waits, waits)
    # Of a wait that had begun before the look, or was counted in short pieces, the CPU is not known.
    cpus = {shape.get("cpu_taken_cpu") for shape in known.values()}
    fact("for which CPU it waited", truth["cpu"] in cpus and cpus <= {truth["cpu"], None}, known)
    threads = {shape.get("cpu_taken_from_tid") for shape in known.values()}
    fact("which thread waited", threads == {truth["worker_tid"] or None}, (threads, truth))
    fact("it is armed at the end", switches.get("state") == "armed", switches)
    fact("the switches that it has cost are counted", switches.get("events", 0) > 100, switches)
    fact("what it missed is counted", switches.get("missed") == len(missed), (switches, len(missed)))
elif mode in ("hog+own", "hog+crew"):
    halves = {
        step: (
            shape.get("cpu_taken_us", 0),
            shape["cpu_taken_own_us"],
            slow[step]["taken_ns"] / 2,
            slow[step]["passed_ns"] - slow[step]["taken_ns"] / 2,
        )
        for step, shape in known.items()
        # All of the wait was looked at, not only the end of it.
        if shape["cpu_taken_waited_us"] * 1000 > 0.9 * slow[step]["waited_ns"] and is_calm(step)
    }
    wrong = {
        step: one
        for step, one in halves.items()
        if not near(one[0], *one[2:]) or not near(one[1], *one[2:])
    }
    fact_explained(shapes, known, 2)
    fact("each of them has its own time", halves and not wrong, (halves, wrong))
    by = [s.get("cpu_taken_pid") for step, s in known.items() if step in halves]
    fact("the hog is named", set(by) == {truth["taker_pid"]}, by)
elif mode == "build":
    fact_explained(shapes, known, 2)
    # All of the wait was looked at, not only the end of it.
    whole = {
        step: shape
        for step, shape in known.items()
        if shape["cpu_taken_waited_us"] * 1000 > 0.9 * slow[step]["waited_ns"] and is_calm(step)
    }
    wrong = {
        step: (shape.get("cpu_taken_us"), slow[step])
        for step, shape in whole.items()
        if not near(shape.get("cpu_taken_us", 0), slow[step]["taken_ns"], slow[step]["passed_ns"])
    }
    fact("how long they had the CPU together", whole and not wrong, (wrong, known))
    groups = {shape.get("cpu_taken_cgroup") for shape in whole.values()}
    fact("in which cgroup they were", groups == {"/" + os.path.basename(os.environ["FBT_GROUP"])}, groups)
    named = {shape.get("cpu_taken_by", shape.get("cpu_taken_pid")) for shape in whole.values()}
    fact("none of them is named for all", named == {None}, named)
    causes = [c for c in report["escalations"]["causes"] if c["cause"] == "run_queue"]
    most = causes[0]["cpu_taken"]["by"][0]
    fact("the report has the cgroup first", {most["cgroup"]} == groups and most["name"] is None, causes)
elif mode == "build+hog":
    fact_explained(shapes, known, 2)
    whole = {
        step: (shape.get("cpu_taken_by"), shape.get("cpu_taken_us", 0), slow[step])
        for step, shape in known.items()
        if shape["cpu_taken_waited_us"] * 1000 > 0.9 * slow[step]["waited_ns"] and is_calm(step)
    }
    wrong = {step: one for step, one in whole.items() if one[0] != "fbt_last" or one[1] < 0.9 * 70000}
    fact("the one that had most is named, though others of its cgroup came first", whole and not wrong, (wrong, known))
elif mode == "dear":
    fact("nothing is explained", not known, known)
    fact("it was refused", switches.get("state") == "refused", switches)
    fact("it was never armed", switches.get("armed_ns") == 0, switches)
    fact("all are counted as missed", switches.get("missed") == len(shapes), switches)
elif mode == "off":
    fact("nothing is explained, and nothing said", not known and not explain, explain)
elif mode in ("pipe", "socket", "timer"):
    waits = {
        event["shape"]["step"]: event["shape"]
        for event in events
        if event["event"] == "escalation_prof" and event["shape"]["cause"] == "socket_io"
    }
    told = {step: waits[step] for step in slow if "woken_context" in waits.get(step, {})}
    # The other end of a pipe or socket may be seen to sleep meanwhile: then nothing is left to explain.
    peers = {
        event["shape"]["step"]: event["shape"]
        for event in events
        if event["event"] == "escalation_prof" and event["shape"]["cause"] == "peer_process"
    }
    fact("a process that is waited for is the sender", {s["peer_pid"] for s in peers.values()} <= {truth["taker_pid"]}, peers)
    fact("and has slept", mode != "timer" and all("clock_nanosleep" in s["cause_evidence"] for s in peers.values()) or not peers, peers)
    fact_explained({**waits, **peers}, {**told, **peers}, 2, told)
    # A packet arrives in an interrupt of the sender: that it is the sender's is not sure.
    context = {"pipe": "thread", "socket": "sending", "timer": "interrupt"}[mode]
    kinds = {step: shape["woken_context"] for step, shape in told.items()}
    fact("in which context it was woken", set(kinds.values()) == {context} or not told and peers, kinds)
    who = {(shape.get("woken_by"), shape.get("woken_by_pid")) for shape in told.values()}
    wanted = (None, None) if mode == "timer" else ("fbt_feeder", truth["taker_pid"])
    fact("who woke it", who == {wanted} or not told and peers, who)
    wakes = explain.get("wakes", {})
    missed = [shape for shape in waits.values() if "woken_context" not in shape]
    fact("it is armed at the end", wakes.get("state") == "armed" or not waits, explain)
    fact("what it missed is counted", wakes.get("missed", 0) == len(missed), (wakes, len(missed)))
    fact("nothing else was armed", set(explain) <= {"wakes"}, explain)
elif mode == "compute":
    computed = {
        event["shape"]["step"]: event["shape"]
        for event in events
        if event["event"] == "escalation_prof" and event["shape"]["cause"] == "compute"
    }
    told = {s: shape for s, shape in computed.items() if "grown_function" in shape}
    fact("some steps are explained", len(told) >= 2, computed)
    fact("all of them are slow ones", set(told) <= set(slow), told)
    judged = [e["shape"] for e in events if e["event"] == "escalation_prof" and e["shape"]["step"] in slow]
    judged = [shape for shape in judged if is_calm(shape["step"])]
    fact("the cause of each slow one is its work", {s["cause"] for s in judged} == {"compute"}, judged)
    names = {shape["grown_function"] for shape in told.values()}
    fact("the function that others do not call", names == {"slow_part"}, names)
    callers = {shape.get("grown_callers") for shape in told.values()}
    fact("and who calls it", callers == {"explained_step"}, callers)
    folded = dict(line.rsplit(" ", 1) for line in open(out + ".folded"))
    on_cpu = {stack: int(us) for stack, us in folded.items() if stack.endswith(";[on CPU]")}
    # Each of them computes for 80 ms there.
    sampled = [step for step in slow if step >= min(told, default=0)]
    slowly = on_cpu.get("explained_step;slow_part;[on CPU]", 0) / max(len(sampled), 1)
    fact("the stack has its time, within 10 %", 72000 < slowly < 88000, (folded, sampled))
    usually = sum(us for stack, us in on_cpu.items() if "usual_part" in stack)
    fact("the rest of these steps is the usual part", usually < slowly * len(sampled) / 10, on_cpu)
    # Until other steps have samples it is not known what is usual.
    grown = {s: shape["grown_us"] for s, shape in told.items() if "grown_us" in shape}
    # One sample is 5 ms of it.
    fact("by how much, within two samples", all(70000 < us < 90000 for us in grown.values()), grown)
    mean = sum(grown.values()) / max(len(grown), 1)
    fact("and within 5 % in the mean", 76000 < mean < 84000, grown)
    fact("others are known", len(grown) > 2, told)
    # Then there are enough slow steps for a class of their own, which is over the budget as a rule.
    usual = {s: shape for s, shape in told.items() if shape.get("cause_is_usual")}
    fact("slow steps become usual", max(told, default=0) in usual, told)
    whole = {s: shape.get("function_us", 0) for s, shape in usual.items()}
    fact("such are told by all of their time", all(72000 < us < 88000 for us in whole.values()), usual)
    samples = explain.get("samples", {})
    fact("it is armed at the end", samples.get("state") == "armed", explain)
elif mode == "turns":
    told = [e["shape"]["step"] for e in events if e["event"] == "escalation_prof" and "grown_function" in e["shape"]]
    # A thread is sampled after its first slow step, and has at least two of them.
    turns = {(step - 1) // 80 for step in told}
    fact("steps of later threads are explained too", len(turns) >= 7 and max(turns) >= 8, told)
elif mode == "idle":
    fact("the last of them are explained", len(known) >= 1, (known, slow))
    fact("it is off at the end", switches.get("state") == "off", switches)
    fact("it was armed until then", 500e6 < switches.get("armed_ns", 0) < 3e9, switches)
elif mode == "quota":
    limited = [
        event["shape"]
        for event in events
        if event["event"] == "escalation_prof" and event["shape"]["cause"] == "cpu_limit"
    ]
    named = [shape for shape in limited if "cpu_taken_by" in shape]
    fact("the limit is found", len(limited) > 0, [e["shape"] for e in events if e["event"] == "escalation_prof"])
    fact("no hog is named", not named, named)
sys.exit(failed)

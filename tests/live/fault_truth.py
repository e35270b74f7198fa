#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What fault_target did, against what the tool says of it. One fact a line.

    fault_truth.py killed TRUTH OUT CALLS    the target was killed: OUT.profile, .trace, .report, .capture
    fault_truth.py partial TRUTH OUT CALLS   the tool was killed: what it left is whole as far as it goes
    fault_truth.py stopped TRUTH OUT CALLS BEGIN END   the tool was stopped from BEGIN to END (ns)
    fault_truth.py span TRUTH           steps begun so far, by thread

A step is known by its thread and number, which are arguments of it.
"""
import bisect
import json
import re
import struct
import sys

HEADER = struct.Struct("<5Q3Q")
ACCOUNT = struct.Struct("<4Q")
SPAN = struct.Struct("<2Q")
MAGIC = 0x7475727468746C66


class Truth:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read(HEADER.size)
            magic, count, self.capacity, self.bad, self.done = HEADER.unpack(data)[:5]
            assert magic == MAGIC, "no truth yet"
            self.path = path
            self.threads = []
            for i in range(count):
                file.seek(self.at(i))
                tid, begun, ended, _ = ACCOUNT.unpack(file.read(ACCOUNT.size))
                self.threads.append({"tid": tid, "begun": begun, "ended": ended})

    def at(self, thread):
        return HEADER.size + thread * (ACCOUNT.size + self.capacity * SPAN.size)

    def spans(self, thread):
        """(begin, end) in nanoseconds of a thread's steps that have ended."""
        with open(self.path, "rb") as file:
            file.seek(self.at(thread) + ACCOUNT.size)
            data = file.read(self.threads[thread]["ended"] * SPAN.size)
        return list(SPAN.iter_unpack(data))


def calls_of(number, calls):
    """The calls that step n of fault_target makes, by category."""
    return {"other": calls + number % 5, "read": number % 3, "write": number // 3 % 2}


def load_lines(path):
    """The events of a profile, and whether its last line is incomplete."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    whole, _, rest = text.rpartition("\n")
    return [json.loads(line) for line in whole.split("\n") if line], rest


def load_steps(events):
    """The steps by thread and number. A step that is there twice is an error."""
    steps, by_id = {}, {}
    for row in events:
        shape = row["shape"]
        if row["event"] == "step_prof":
            key = (shape["arg.thread"], shape["arg.n"])
            assert key not in steps, "step %r is there twice" % (key,)
            steps[key] = by_id[shape["step"]] = dict(shape, us=row["stage_us"])
        elif row["event"] == "syscall_prof":
            by_id[shape["step"]]["by"] = {name: shape[name + "_calls"]
                                          for name in ("mmap", "futex", "ioctl", "read", "write", "other")}
    return steps


def is_exact(step, key, calls, upto=False):
    """Whether the calls of a step are all that it made, or, for an incomplete step, no more than
    that."""
    wanted = calls_of(key[1], calls)
    got = {name: count for name, count in step["by"].items() if count or name in wanted}
    if upto:
        return all(count <= wanted.get(name, 0) for name, count in got.items())
    return got == wanted


def load_partial_trace(path):
    """The events of a trace that may end anywhere."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not text:
        return []
    try:
        return json.loads(text)
    except ValueError:
        pass
    decoder, at, events = json.JSONDecoder(), 1, []
    assert text[0] == "["
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        try:
            event, at = decoder.raw_decode(text, at)
        except ValueError:
            assert len(text) - at < 65536, "garbage in the middle of the trace"
            return events
        events.append(event)


class Facts:
    def __init__(self):
        self.failed = 0

    def __call__(self, name, holds, *why):
        if holds:
            return
        self.failed += 1
        if self.failed > 20:
            return
        print("# " + name + ": " + " ".join(str(item) for item in why)[:2000])


def check_prefix(facts, truth, steps, calls):
    """All steps from the first recorded one on are there, without a gap, and with what they made.
    """
    for thread in range(len(truth.threads)):
        numbers = sorted(n for t, n in steps if t == thread)
        if not numbers:
            continue
        missing = set(range(numbers[0], numbers[-1] + 1)) - set(numbers)
        facts("no hole", not missing, thread, sorted(missing)[:10])
    for key, step in steps.items():
        whole = step["end"] == "return" and step["complete"]
        facts("calls", is_exact(step, key, calls, upto=not whole), key, step)


def check_killed(truth, out, calls):
    facts = Facts()
    events, rest = load_lines(out + ".profile")
    steps = load_steps(events)
    facts("the profile ends with a line", not rest, rest)
    facts("the profile has its window", events[-1]["event"] == "window_prof", events[-1])
    window = events[-1]["shape"]
    facts("nothing is lost", all(v == 0 for k, v in window.items() if k.startswith("lost_")), window)
    facts("the window counts its steps", window["steps"] == len(steps), window["steps"], len(steps))
    check_prefix(facts, truth, steps, calls)
    for thread, account in enumerate(truth.threads):
        numbers = {n for t, n in steps if t == thread}
        last = max(numbers, default=-1)
        # All steps from the first to the last. The one in which it was killed may be missing, or
        # may not have begun.
        facts("all that ended are there", account["ended"] <= last + 1 <= account["begun"],
              thread, account, last, len(numbers))
        facts("the first is there", not numbers or min(numbers) == 0, min(numbers, default=None))
    with open(out + ".trace", encoding="utf-8") as file:
        trace = json.load(file)
    drawn = sum(event["cat"] == "step" for event in trace)
    facts("the trace has each step", drawn == len(steps), drawn, len(steps))
    with open(out + ".report", encoding="utf-8") as file:
        report = json.load(file)
    facts("the report has each step", report["steps"] == len(steps), report["steps"], len(steps))
    table = {row["name"]: row["calls"] for process in report["processes"] for row in process["syscalls"]}
    made = sum(step["by"]["other"] for step in steps.values())
    facts("the table has their calls", table.get("getppid", 0) >= made, table, made)
    return min(facts.failed, 1)


def check_partial(truth, out, calls):
    facts = Facts()
    events, rest = load_lines(out + ".profile")
    # The tool may be killed after its last line, before it ends.
    for row in events[:-1]:
        facts("lines", row["event"] != "window_prof", row)
    facts("the last line", len(rest) < 16384 and "\n" not in rest, rest)
    steps = load_steps([row for row in events])
    check_prefix(facts, truth, {k: s for k, s in steps.items() if "by" in s}, calls)
    for thread, account in enumerate(truth.threads):
        numbers = [n for t, n in steps if t == thread]
        facts("no step that was not made", max(numbers, default=0) < account["begun"] + 1, numbers[-3:], account)
    for event in load_partial_trace(out + ".trace.partial"):
        facts("events of the trace", event["ph"] == "X" and event["dur"] >= 0, event)
    return min(facts.failed, 1)


def count_drawn(trace):
    """The number of calls within each step of the trace, by the step's number."""
    calls, drawn = {}, {}
    for event in trace:
        if event["cat"] == "syscall" and event["name"] in ("getppid", "read", "write"):
            calls.setdefault(event["tid"], []).append(event["ts"])
    for starts in calls.values():
        starts.sort()
    for event in trace:
        if event["cat"] == "step":
            starts = calls.get(event["tid"], [])
            # The next step begins at least one pause later, so none of its calls are in this
            # microsecond.
            drawn[event["args"]["step"]] = (bisect.bisect_right(starts, event["ts"] + event["dur"]) -
                                            bisect.bisect_left(starts, event["ts"]))
    return drawn


def check_pace(facts, truth, begin, end):
    """No traced thread waits for the tool, which would be for ever. Other programs may take the
    CPUs."""
    second = 1000000000
    for thread in range(len(truth.threads)):
        spans = truth.spans(thread)
        before = [b for b, _ in spans if begin - second <= b < begin]
        seconds = [sum(at <= b < at + second for b, _ in spans)
                   for at in range(begin, end - second + 1, second)]
        facts("steps go on", min(seconds) * 50 >= len(before), len(before), seconds)
        starts = [b for b, _ in spans if begin <= b < end]
        pause = max((later - b for b, later in zip(starts, starts[1:])), default=end - begin)
        facts("no step waits", pause < 2 * second, pause)


def check_stopped(truth, out, calls, begin, end):
    facts = Facts()
    events, rest = load_lines(out + ".profile")
    steps = load_steps(events)
    window = events[-1]["shape"]
    facts("the profile ends with its window", not rest and events[-1]["event"] == "window_prof")
    made = [(thread, n, b, e) for thread in range(len(truth.threads))
            for n, (b, e) in enumerate(truth.spans(thread))]
    facts("steps and lost steps are the target's", len(steps) + window["lost_steps"] == len(made),
          len(steps), window["lost_steps"], len(made))
    facts("steps were lost, and calls", window["lost_steps"] > 0 and window["lost_calls"] > 0, window)
    for key, step in steps.items():
        facts("sums are exact", is_exact(step, key, calls), key, step)
        facts("complete is what lost no calls", step["complete"] == (step["lost_calls"] == 0), key, step)
    incomplete = {key for key, step in steps.items() if not step["complete"]}
    facts("incomplete steps are counted", window["incomplete_steps"] == len(incomplete) > 0)
    whole = {key for key in steps if key not in incomplete}
    settled = max(e for _, _, _, e in made) - 1000000000
    for thread, n, b, e in made:
        if e < begin or b > settled:
            facts("before the stop, and long after it, all are there", (thread, n) in whole, thread, n)
    with open(out + ".trace", encoding="utf-8") as file:
        drawn = count_drawn(json.load(file))
    for key in whole:
        facts("the trace has each call of a complete step",
              drawn[steps[key]["step"]] == steps[key]["calls"], key, steps[key], drawn[steps[key]["step"]])
    with open(out + ".report", encoding="utf-8") as file:
        report = json.load(file)
    facts("the report tells of it", report["lost"]["calls"] == window["lost_calls"] and
          report["lost"]["steps"] == window["lost_steps"], report["lost"])
    table = {row["name"]: row["calls"] for process in report["processes"] for row in process["syscalls"]}
    wanted = sum(calls_of(n, calls)["other"] for _, n, _, _ in made) + len(truth.threads)
    facts("the table has each call", table["getppid"] == wanted, table["getppid"], wanted)
    check_pace(facts, truth, begin, end)
    print("# %d steps made, %d lost, %d incomplete" % (len(made), window["lost_steps"], len(incomplete)))
    return min(facts.failed, 1)


def main():
    what, path = sys.argv[1:3]
    truth = Truth(path)
    if what == "span":
        print(" ".join(str(account["begun"]) for account in truth.threads))
        return 0
    check = {"killed": check_killed, "partial": check_partial, "stopped": check_stopped}[what]
    return check(truth, sys.argv[3], *(int(argument) for argument in sys.argv[4:]))


if __name__ == "__main__":
    sys.exit(main())

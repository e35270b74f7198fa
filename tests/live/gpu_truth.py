#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""gpu_truth.py [OPTION…]: holds what the tool recorded and what it printed of the GPU against the
GPU engine's own account, and prints a line for each fact:

    records    every piece of work, and every call that launches or waits, is in the capture once,
               as the engine made it, at its time; and nothing else is
    figures    each figure of each gpu_prof line is that of a brute-force computation over them

Files are $OUT.capture, $OUT.profile and $TMP/truth.gpu. Options:

    --name TEXT      before each fact
    --tids FILE      lines "TID NSTID": the engine is in a PID namespace of its own
    --mono NS        its CLOCK_MONOTONIC is so far ahead of that of this machine
    --cut MS         the engine was killed: records of its last MS may be missing, and figures are
                     not looked at
    --losses         CUPTI lost some of them, and steps have to say so
    --strict         the tool ran with --gpu-strict
    --min-steps N    so many steps are held against their figures (10)
"""
import argparse
import bisect
import os
import sys
import traceback

import gpu_figures
from gpu_capture import (API, CALL, DROPPED, FLUSH, KERNEL, MEMCPY, STATE, STEP, TRACED, WORK, ZERO,
                         Row, load_capture, load_profile, load_truth)
from gpu_sets import overlaps

ARMED, CALLBACK = 1, 1
NCCL = 1
DEVICE = 1  # what a call waits for: a stream, a device, an event
# Calls of both domains that neither launch nor wait: cudaGetDevice, cuCtxGetCurrent, …
NOISE = {(2, 17), (1, 304), (2, 147), (1, 295)}
SYNCS = {(2, 131), (2, 137), (2, 165), (1, 17), (1, 121), (1, 126)}
BLOCKING_COPY = (2, 31)
# The double of CUPTI measures the offset of CLOCK_REALTIME itself, with this error.
OWN_ERROR_NS = 200


class Facts:
    def __init__(self, name):
        self.name = name
        self.failed = False

    def say(self, text, problems):
        for problem in problems[:6]:
            print("# %s" % (problem,))
        if len(problems) > 6:
            print("# … and %d more" % (len(problems) - 6))
        print("%s - %s%s" % ("not ok" if problems else "ok", self.name, text))
        self.failed = self.failed or bool(problems)


class Clock:
    """Converts the engine's times to the tool's, with the error bound."""

    def __init__(self, capture, ahead_ns):
        armed = [x for x in capture[STATE] if x.status == ARMED]
        assert armed, "the shim was never armed: %s" % capture[STATE]
        self.start = armed[0].time
        self.stop = max((x.time for x in capture[FLUSH]), default=0)
        self.ahead = ahead_ns
        self.error = 0
        if armed[-1].clock != CALLBACK:
            self.error = OWN_ERROR_NS + max((x.error_ns for x in capture[FLUSH]), default=0)

    def convert(self, time_ns):
        return time_ns - self.ahead

    def is_same(self, theirs, ours):
        return abs(self.convert(theirs) - ours) <= self.error


def load_tids(path):
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return {int(ns): int(tid) for tid, ns in (line.split() for line in file)}


# --- records ---------------------------------------------------------------------------------


def work_key(work):
    return work.correlation, work.node


def differences(theirs, ours, clock):
    """How a record differs from the engine's account."""
    names = ["kind", "device", "stream", "graph"]
    if theirs.kind != KERNEL:
        names += ["bytes", "copy_kind", "target"]
    if theirs.kind == MEMCPY:
        names += ["source"]
    found = [name for name in names if getattr(theirs, name) != getattr(ours, name)]
    if theirs.fate == ZERO:
        return found + (["times"] if (ours.start, ours.stop) != (0, 0) else [])
    # Work that was still running at a forced flush has no end.
    if ours.stop == 0 and clock.convert(theirs.stop) > clock.stop - clock.error:
        return found
    if not clock.is_same(theirs.start, ours.start) or not clock.is_same(theirs.stop, ours.stop):
        found.append("times")
    return found


def make_due(truth, clock, cut_ms):
    """Whether a record must exist. It need not for work that was launched for an earlier tracer, or
    just before the engine was killed."""
    last = max(x.call_start for x in truth["calls"])
    until = last - cut_ms * 1000000 if cut_ms is not None else last + 1
    return lambda x: clock.convert(x.call_start) >= clock.start and x.call_start < until


def match_works(truth, capture, clock, facts, is_due):
    """Adds to each record the engine's account of it, as .truth."""
    ours = {}
    for work in capture[WORK]:
        ours.setdefault(work_key(work), []).append(work)
    wrong, missing = [], []
    for theirs in truth["works"]:
        if theirs.fate not in (TRACED, ZERO):
            continue
        if not theirs.correlation:  # while collecting begins or ends: its call is not known
            same = [x for x in ours.get(work_key(theirs), []) if clock.is_same(theirs.start, x.start)
                    and x.device == theirs.device and x.stream == theirs.stream]
            for work in same:
                work.truth = theirs
                ours[work_key(theirs)].remove(work)
            continue
        found = ours.pop(work_key(theirs), [])
        if len(found) == 1:
            found[0].truth = theirs
            bad = differences(theirs, found[0], clock)
            if bad:
                wrong.append((bad, theirs, found[0]))
        elif found:
            wrong.append(("%d records of" % len(found), theirs))
        elif is_due(theirs):
            missing.append(("missing", theirs))
    strange = [("nobody did", x) for rest in ours.values() for x in rest]
    facts.say("work is as the engine made it (%d records)" % len(capture[WORK]), wrong + strange)
    facts.say("and all of it is there", missing)


def match_calls(truth, capture, clock, tids, facts, is_due):
    ours = {}
    for call in capture[API]:
        ours.setdefault((call.correlation, call.domain, call.cbid), []).append(call)
    noise = [("noise", x) for x in capture[API] if (x.domain, x.cbid) in NOISE]
    wrong, missing, count = [], [], 0
    for theirs in truth["calls"]:
        if not theirs.fate or (theirs.domain, theirs.cbid) in NOISE:
            continue
        found = ours.pop((theirs.correlation, theirs.domain, theirs.cbid), [])
        if len(found) != 1:
            if found or is_due(theirs):
                (wrong if found else missing).append(("%d records of" % len(found), theirs))
            continue
        count += 1
        theirs.record = found[0]
        if found[0].tid != tids.get(theirs.tid, theirs.tid) or \
                not clock.is_same(theirs.start, found[0].start) or \
                not clock.is_same(theirs.stop, found[0].stop):
            wrong.append((theirs, found[0]))
    strange = [("nobody made", x) for rest in ours.values() for x in rest
               if (x.domain, x.cbid) not in NOISE]
    facts.say("calls are as the engine made them (%d records), and no noise" % count,
              wrong + strange + noise)
    facts.say("and all of them are there", missing)


# --- figures ---------------------------------------------------------------------------------


def engine_call(truth, launch, until):
    """The record, before that place, of the engine's own call, or that of the call inside it."""
    for call in truth["calls_of"].get(launch, []):
        record = getattr(call, "record", None)
        if record and record.at < until:
            return record
    return None


class Index:
    """Rows ordered by start, to find those near a step."""

    def __init__(self, rows, start=lambda x: x.start, stop=lambda x: x.stop):
        self.rows = sorted(rows, key=start)
        self.starts = [start(x) for x in self.rows]
        self.longest = max((stop(x) - start(x) for x in rows), default=0)

    def near(self, start, stop):
        """All rows that can overlap, and a few more."""
        first = bisect.bisect_left(self.starts, start - self.longest)
        return self.rows[first:bisect.bisect_right(self.starts, stop)]


def find_owner(steps, call):
    """The thread's own step; else the process's open step that began last."""
    open_steps = [s for s in steps.near(call.start, call.start) if s.start <= call.start < s.stop]
    own = [s for s in open_steps if s.tid == getattr(call, "tid", None)]
    if own:
        return own[0]
    return max(open_steps, key=lambda s: s.start) if open_steps else None


def make_items(truth, capture, steps, strict, until):
    items, steps = [], Index(steps)
    for record in capture[WORK]:
        account = getattr(record, "truth", None)
        if not account or record.stop == 0 or record.at >= until:
            continue
        work = Row(**record.__dict__)
        work.call = engine_call(truth, account.launch, until)
        work.comm = account.name == NCCL and account.kind == KERNEL
        work.owner = find_owner(steps, work.call or work)
        if strict and work.owner and work.call and work.owner.tid != work.call.tid:
            work.owner = None
        items.append(work)
    return items


def find_awaited(items, sync, call):
    """The end of the last recorded work that a call waited for."""
    return max((x.stop for x in items if x.truth.device == sync.device and
                (sync.kind == DEVICE or x.truth.stream == sync.stream) and
                (x.call or x).start < call.start), default=0)


def make_syncs(truth, items, until):
    """Calls that wait, with the end of the awaited work, by thread."""
    syncs = {}
    index = Index(items, start=lambda x: (x.call or x).start)

    def add(call, end):
        if call:
            syncs.setdefault(call.tid, []).append(Row(start=call.start, stop=call.stop, end=end))

    for sync in truth["syncs"]:
        call = engine_call(truth, sync.launch, until)
        if call:
            add(call, find_awaited(index.near(call.start, call.start), sync, call))
    for item in items:
        if (item.truth.domain, item.truth.cbid) == BLOCKING_COPY:
            add(item.call, item.stop)
    return {tid: Index(rows) for tid, rows in syncs.items()}


SHAPE_NS = ("total", "busy", "idle", "host_wait", "launch", "queue", "unattributed",
            "wait_blocked", "wait_syscall", "wait_user", "wait_unknown")
SHAPE = ("kernels", "memcpys", "memsets", "graph_launches", "graph_nodes", "pageable",
         "h2d_bytes", "d2h_bytes", "d2d_bytes", "p2p_bytes", "memset_bytes", "launches")
LAUNCH_NS = ("launch_latency", "launch_api", "queue_delay", "wait_behind", "work")
STAGE = ("total", "busy", "kernel", "memcpy", "memcpy_h2d", "memcpy_d2h", "memcpy_d2d",
         "memcpy_p2p", "memset", "transfer", "exposed_copy", "comm", "exposed_comm", "idle",
         "host_wait", "launch", "queue", "unattributed", "kernel_wait", "dependency",
         "wait_blocked", "wait_syscall", "wait_user", "wait_unknown", "hta_host_wait", "tklqt",
         "view", "view_busy", "gpu_only", "gpu_host", "sync", "sync_useful", "sync_tail",
         "sync_spin", "exposed_syscall", "overlapped_syscall", "cuda_internal")


def wanted_fields(figures):
    """The expected fields of the line: (part, key, value)."""
    fields = [("shape", name + "_ns", figures[name]) for name in SHAPE_NS]
    fields += [("shape", name, figures[name]) for name in SHAPE]
    if figures["launches"]:
        fields += [("shape", name + "_ns", figures[name]) for name in LAUNCH_NS]
    fields += [("stage_us", name, figures[name] // 1000) for name in STAGE if name in figures]
    for name in ("gpu_only", "gpu_host"):
        if name in figures:
            fields.append(("shape", name + "_ns", figures[name]))
    for key, part, whole in (("concurrency", figures["work_sum"], figures["busy"]),
                             ("idle_empty", figures["empty_ns"], figures["idle"]),
                             ("queue_depth", figures.get("depth_ns"), figures["total"])):
        if part is not None and whole and (figures["launches"] or key != "queue_depth"):
            fields.append(("shape", key, round(part / whole, 4)))
    return fields


def compare(row, figures):
    bad = []
    for part, key, wanted in wanted_fields(figures):
        got = row[part].get(key)
        slack = 0.00011 if isinstance(wanted, float) else 0
        if got is None or abs(got - wanted) > slack:
            bad.append("%s.%s is %s, should be %s" % (part, key, got, wanted))
    return bad


class Scene:
    """The data from which the figures of steps are computed: records before a place in the file."""

    def __init__(self, truth, capture, strict, until=sys.maxsize):
        self.steps = [s for s in capture[STEP] if s.kind]
        items = make_items(truth, capture, self.steps, strict, until)
        self.items = Index(items)
        self.launched = Index([x for x in items if x.call], start=lambda x: x.call.start)
        self.owned, self.calls = {}, {}
        for item in items:
            self.owned.setdefault(id(item.owner), []).append(item)
        for call in capture[CALL]:
            self.calls.setdefault(call.tid, []).append(call)
        self.calls = {tid: Index(rows) for tid, rows in self.calls.items()}
        self.syncs = make_syncs(truth, items, until)

    def runs_in(self, start, stop):
        return [x for x in self.items.near(start, stop) if overlaps(x, start, stop)]

    def near(self, step):
        """Work that runs in the step, belongs to it, or is queued in it."""
        found = self.runs_in(step.start, step.stop)
        found += self.owned.get(id(step), [])
        found += [x for x in self.launched.near(step.start, step.stop)
                  if x.call.start < step.stop and step.start < x.stop]
        found = list({id(x): x for x in found}.values())
        for item in found:
            item.mine = item.owner is step
        return found

    @staticmethod
    def rows_in(index, step):
        rows = index.get(step.tid)
        return [x for x in rows.near(step.start, step.stop)
                if overlaps(x, step.start, step.stop)] if rows else []


def check_line(row, step, scene):
    shape, calls = row["shape"], None

    def of_device(items):
        return [x for x in items if shape["scope"] == "step" or x.device == shape["device"]]

    near = of_device(scene.near(step))
    if shape.get("calls_known", True):
        calls = scene.rows_in(scene.calls, step)
    figures = gpu_figures.compute(step, near, calls,
                                  lambda start, stop: of_device(scene.runs_in(start, stop)))
    if shape["scope"] == "step":
        gpu_figures.measure_thread(step, near, calls, scene.rows_in(scene.syncs, step), figures)
    return compare(row, figures)


PATIENCE_MAX = 8  # flushes after a step for which the tool waits


def places_told(step, capture):
    """Where in the file a step's figures may have been computed: at its record, or at a flush that
    covers it, whichever is later. A call that is open then, and its work, come after it."""
    flushes = sorted(x.at for x in capture[FLUSH] if x.time >= step.stop)
    return sorted({max(step.at, at) for at in flushes})[:PATIENCE_MAX]


def check_losses(truth, capture, profile, facts):
    """Missing records and missing times are reported, in all and for the steps that had them."""
    dropped = [x for x in truth["works"] if x.fate == DROPPED]
    zero = [x.truth for x in capture[WORK] if x.stop == 0 and hasattr(x, "truth")]
    lines = [r["shape"] for r in profile if r["event"] == "gpu_prof" and
             r["shape"]["scope"] == "step"]
    told = max((x.dropped for x in capture[FLUSH]), default=0)
    bad = [] if told == len(dropped) else ["%d dropped, %d told" % (len(dropped), told)]
    in_steps = len([x for x in zero if x.step])
    told = sum(x["unmeasured"] for x in lines)
    bad += [] if told == in_steps else ["%d without times, %d told" % (in_steps, told)]
    whole = [x["step"] for x in lines if x["complete"] and (x["unmeasured"] or x["missing"])]
    bad += ["step %d is not complete" % n for n in whole]
    facts.say("what is missing is told (%d dropped, %d without times)" % (len(dropped), len(zero)),
              bad)


def check_figures(truth, capture, profile, clock, options, facts):
    scene = Scene(truth, capture, options.strict)
    shapes = {r["shape"]["step"]: r["shape"] for r in profile if r["event"] == "step_prof"}
    steps = {(s.tid, (s.start - capture["start"]) // 1000): s for s in scene.steps}
    wrong, checked, partial, early = [], set(), 0, 0
    for row in profile:
        if row["event"] != "gpu_prof":
            continue
        shape = shapes[row["shape"]["step"]]
        step = steps.get((shape["tid"], shape["start_us"]))
        if not step or step.start < clock.start:
            continue
        partial += not row["shape"]["complete"]
        checked.add(row["shape"]["step"])
        bad = check_line(row, step, scene)
        if bad and any(not check_line(row, step, Scene(truth, capture, options.strict, at))
                       for at in places_told(step, capture)):
            early += 1
            bad = []
        if bad:
            wrong.append("step %d (%s): %s" % (row["shape"]["step"], row["shape"]["scope"],
                                               "; ".join(bad)))
    if early:
        print("# %d lines were told before a call had returned that was open" % early)
    few = [] if len(checked) >= options.min_steps else ["only %d steps" % len(checked)]
    facts.say("every figure of every step is what it should be (%d steps)" % len(checked),
              few + wrong)
    return partial


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="")
    parser.add_argument("--tids")
    parser.add_argument("--mono", type=int, default=0)
    parser.add_argument("--cut", type=int)
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--min-steps", type=int, default=10)
    options = parser.parse_args()
    facts = Facts(options.name and options.name + ": ")
    capture = load_capture(os.environ["OUT"] + ".capture")
    truth = load_truth(os.environ["TMP"] + "/truth.gpu")
    profile = load_profile(os.environ["OUT"] + ".profile")
    clock = Clock(capture, options.mono)
    is_due = make_due(truth, clock, options.cut)
    match_works(truth, capture, clock, facts, is_due)
    match_calls(truth, capture, clock, load_tids(options.tids), facts, is_due)
    if options.cut is None:
        check_losses(truth, capture, profile, facts)
        partial = check_figures(truth, capture, profile, clock, options, facts)
        facts.say("%s" % ("steps that lack records say so (%d lines)" % partial if options.losses
                          else "every step is complete"),
                  [] if bool(partial) == options.losses else ["%d lines are not" % partial])
    sys.exit(facts.failed)


try:
    main()
except Exception as error:  # the reader is a test: it must not stop without a word
    traceback.print_exc()
    print("not ok - gpu_truth.py: %s: %s" % (type(error).__name__, error))
    sys.exit(1)

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Holds a Kineto trace to what its readers rely on: kineto_check.py FILE...

HTA is HolisticTraceAnalysis, read as of 2026-05; Chakra is mlcommons/chakra's device trace loader, of
the same month. Both take a file that breaks these rules without a word, or stop, or compute something
wrong. Each fault is a line "RULE: what"; RULE is one of the table below. Standard library only.

The form, as Kineto's output_json.cpp writes it
  json       one JSON value, no key twice in an object
  head       schemaVersion, distributedInfo, deviceProperties, displayTimeUnit, baseTimeNanoseconds,
             traceEvents, traceName; the base is a multiple of 7,889,238 s
  device     deviceProperties have Kineto's keys, in its order
  decimals   ts and dur have three decimals: true nanoseconds, of kernels below 1 us too
  lane       work is on pid = device, tid = stream
  named      each process and lane has a name, processes a label and a sort index
  order      args have Kineto's keys in Kineto's order
  name       no "_v7000" after names of calls
  cat        no unknown category
  bandwidth  bytes / ns of copies and memsets
  window     one "Record Window End"

What HTA needs
  file       the name ends in .json or .gz
  rank       the pattern "rank":\\s+(\\d+) finds, line by line, the rank of distributedInfo
  columns    slices have name, cat, pid, tid, ts, dur: rows without dur or cat vanish; cat is not "Trace"
  args       args are objects; stream and correlation numbers
  rounding   start rounded up and end rounded down leaves no slice shorter than -1 us
  gpu        kernel, gpu_memcpy and gpu_memset have stream >= 0 and correlation >= 1
  stream     nothing but work of devices has args.stream
  merge      the inner join of host and device rows by correlation has one host row a correlation
  sync       waits for an event or for all streams have their correlation, waits for one stream none
  joined     every correlation of work is on a host row; without one the work is
             kernel_uncorrelated, and has none
  index      no launch is the first event: index_correlation > 0
  step       iterations are user_annotations "ProfilerStep#N" on a host thread, no N twice
  class      names begin with Memcpy or Memset where the work is that, and nowhere else
  temporal   the asserts of the temporal breakdown: idle <= kernel time, other time >= 0

What Chakra's loader needs
  int        "External id" and "Ev Idx" can be made integers
  launch     no two launches, by its list of names and cats, have one correlation, -1 included
  arrow      ac2g events are s or f, have an id, both ends, and lie on slices of that correlation
  ts         every event has a ts: without one it is at 0, and so is its process's begin
  nest       slices of a host lane nest: else an exclusive duration is negative
Not to be seen in a file: that iterations map to streams above 0 only, that the last of several
iterations is left out, and the names Chakra wants of NCCL's kernels.
"""
import json
import math
import re
import sys
from collections import Counter, defaultdict
from decimal import Decimal

BASE_NS = 7889238 * 10**9
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "kernel_uncorrelated"}
LINKED_WORK = WORK - {"kernel_uncorrelated"}
CATS = WORK | {"user_annotation", "cuda_runtime", "cuda_driver", "cuda_uncorrelated", "cuda_sync",
               "overhead", "syscall", "escalation"}
DEVICE_KEYS = ["id", "name", "totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock",
               "maxThreadsPerMultiprocessor", "regsPerBlock", "warpSize", "sharedMemPerBlock", "numSms",
               "regsPerMultiprocessor", "sharedMemPerBlockOptin", "sharedMemPerMultiprocessor"]
KERNEL_KEYS = ["External id", "queued", "device", "context", "stream", "correlation",
               "ferrum.correlation", "registers per thread", "shared memory", "blocks per SM",
               "warps per SM", "grid", "block", "est. achieved occupancy %", "graph id",
               "graph node id", "priority", "channel", "channel_type"]
COPY_KEYS = ["device", "fromDevice", "inDevice", "toDevice", "context", "inContext", "stream",
             "correlation", "ferrum.correlation", "bytes", "memory bandwidth (GB/s)", "graph id",
             "graph node id"]
CALL_KEYS = ["cbid", "correlation", "ferrum.correlation", "ferrum.result"]
SYNC_KEYS = ["cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_record_corr_id",
             "wait_on_cuda_event_id", "wait_stream", "correlation", "ferrum.correlation", "device", "context"]
# HTA takes these for work of a device.
SYNCS = ("Event Sync", "Context Sync")
LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernel", "cudaLaunchKernelExC",
            "cudaMemcpy", "cudaMemcpyAsync", "cudaMemcpyFromSymbol", "cudaMemcpyToSymbol"}


class Repeated(Exception):
    pass


def unique(pairs):
    keys = [key for key, _ in pairs]
    for key, count in Counter(keys).items():
        if count > 1:
            raise Repeated(f'key "{key}" twice in an object')
    return dict(pairs)


def is_number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def ns(value):
    return int(Decimal(value) * 1000)


def args_of(event):
    args = event.get("args", {})
    return args if isinstance(args, dict) else {}


class Checker:
    def __init__(self, path):
        self.path = path
        self.faults = []
        self.trace = {}
        self.events = []
        self.slices = []

    def fault(self, rule, what):
        self.faults.append((rule, what))

    def run(self):
        if not self.path.endswith((".json", ".gz")):
            self.fault("file", "the name ends in neither .json nor .gz")
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        try:
            self.trace = json.loads(text, parse_float=Decimal, object_pairs_hook=unique)
        except (ValueError, Repeated) as error:
            self.fault("json", str(error))
            return self.faults
        if not isinstance(self.trace, dict) or not isinstance(self.trace.get("traceEvents"), list):
            self.fault("head", "no object with a list of traceEvents")
            return self.faults
        self.events = [event for event in self.trace["traceEvents"] if isinstance(event, dict)]
        if len(self.events) < len(self.trace["traceEvents"]):
            self.fault("json", "an event that is no object")
        self.check_head()
        self.check_rank(text)
        self.check_decimals(text)
        self.check_events()
        self.slices = [event for event in self.events if event.get("ph") == "X" and
                       all(is_number(event.get(key)) for key in ("ts", "dur", "pid", "tid")) and
                       all(isinstance(event.get(key), str) for key in ("name", "cat"))]
        for check in (self.check_rounding, self.check_work, self.check_syncs, self.check_stream, self.check_merge,
                      self.check_steps, self.check_class, self.check_temporal, self.check_launches,
                      self.check_arrows, self.check_nesting, self.check_names, self.check_order,
                      self.check_bandwidth):
            check()
        return self.faults

    def check_head(self):
        trace = self.trace
        for key, kind in (("schemaVersion", int), ("distributedInfo", dict), ("deviceProperties", list),
                          ("displayTimeUnit", str), ("baseTimeNanoseconds", int), ("traceName", str)):
            if not isinstance(trace.get(key), kind):
                self.fault("head", f"{key} is missing, or no {kind.__name__}")
        if trace.get("schemaVersion") != 1:
            self.fault("head", "schemaVersion is not 1")
        if isinstance(trace.get("baseTimeNanoseconds"), int) and trace["baseTimeNanoseconds"] % BASE_NS:
            self.fault("head", "baseTimeNanoseconds is no multiple of 7,889,238 s")
        devices = trace.get("deviceProperties")
        for device in devices if isinstance(devices, list) else []:
            if not isinstance(device, dict) or list(device) != DEVICE_KEYS:
                self.fault("device", f"keys of a device are not Kineto's: {device}")

    def check_rank(self, text):
        info = self.trace.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        found = next((match for match in map(re.compile(r'"rank":\s+(\d+)').search, text.splitlines())
                      if match), None)
        if not found or int(found.group(1)) != rank:
            self.fault("rank", 'no line has "rank": and its number after a space')
        if not re.search(r'"distributedInfo": \{"rank": \d+, "world_size": \d+\}', text):
            self.fault("rank", 'not spelled "distributedInfo": {"rank": N, "world_size": M}')
        elif not 0 <= rank < info["world_size"]:
            self.fault("rank", f"{rank} of {info['world_size']}")

    def check_decimals(self, text):
        bad = re.search(r'"(?:ts|dur)":(?!\d+\.\d{3}[,}])[^,}]*', text)
        if bad:
            self.fault("decimals", bad.group(0))

    def check_events(self):
        ends = 0
        for index, event in enumerate(self.events):
            where = f"event {index} ({event.get('name')})"
            phase = event.get("ph")
            if phase not in ("X", "M", "s", "f", "i"):
                self.fault("columns", f"{where}: phase {phase}")
            if not is_number(event.get("ts")) or event["ts"] < 0:
                self.fault("ts", f"{where}: ts is {event.get('ts')}")
            if not isinstance(event.get("name"), str) or not is_int(event.get("pid")) or \
                    not is_int(event.get("tid")):
                self.fault("columns", f"{where}: name, pid or tid are missing or of the wrong type")
            if phase == "X" and (not isinstance(event.get("cat"), str) or
                                 not is_number(event.get("dur"))):
                self.fault("columns", f"{where}: a slice without cat or dur")
            if phase in "XM" and not isinstance(event.get("args"), dict):
                self.fault("args", f"{where}: args are no object")
            for key in ("External id", "Ev Idx"):
                try:
                    int(args_of(event).get(key, -1))
                except (TypeError, ValueError):
                    self.fault("int", f"{where}: {key} is no integer")
            for key in ("stream", "correlation"):
                if key in args_of(event) and not is_int(args_of(event)[key]):
                    self.fault("args", f"{where}: args.{key} is no number")
            if phase == "X" and event.get("cat") == "Trace":
                self.fault("columns", f"{where}: cat is Trace")
            elif phase == "X" and event.get("cat") not in CATS:
                self.fault("cat", f"{where}: {event.get('cat')}")
            ends += phase == "i" and event.get("name") == "Record Window End"
        if ends != 1:
            self.fault("window", f"{ends} times Record Window End")

    def check_rounding(self):
        for event in self.slices:
            if event["dur"] < 0:
                self.fault("rounding", f"{event['name']}: lasts {event['dur']} us")
            elif math.floor(event["ts"] + event["dur"]) - math.ceil(event["ts"]) < -1:
                self.fault("rounding", f"{event['name']}: shorter than -1 us when rounded")

    def check_work(self):
        for event in self.slices:
            args, cat = args_of(event), event["cat"]
            if cat not in WORK:
                continue
            stream, correlation = args.get("stream", -1), args.get("correlation", -1)
            if not is_int(stream) or stream < 0:
                self.fault("gpu", f"{event['name']}: stream {stream}")
            if cat in LINKED_WORK and (not is_int(correlation) or correlation < 1):
                self.fault("gpu", f"{event['name']}: correlation {correlation}")
            if cat not in LINKED_WORK and "correlation" in args:
                self.fault("joined", f"{event['name']}: {cat} with a correlation")
            device = args.get("device", args.get("inDevice"))
            if event["pid"] != device or event["tid"] != stream:
                self.fault("lane", f"{event['name']}: device {device}, stream {stream} on "
                                   f"{event['pid']}, {event['tid']}")

    def check_syncs(self):
        for event in self.slices:
            if event["cat"] == "cuda_sync":
                known = "correlation" in args_of(event) or "ferrum.correlation" in args_of(event)
                if known and ("correlation" in args_of(event)) != (event["name"] in SYNCS):
                    self.fault("sync", f"{event['name']}: {sorted(args_of(event))}")

    def check_stream(self):
        for event in self.events:
            if "stream" in args_of(event) and event.get("cat") not in WORK:
                self.fault("stream", f"{event.get('name')}: args.stream in {event.get('cat')}")

    def check_merge(self):
        host, work = defaultdict(list), defaultdict(list)
        for index, event in enumerate(self.events):
            args = args_of(event)
            correlation = args.get("correlation", -1)
            if event.get("ph") == "X" and correlation != -1:
                is_work = args.get("stream", -1) != -1 or event["name"] in SYNCS
                (work if is_work else host)[correlation].append(index)
        for correlation, rows in host.items():
            if len(rows) > 1:
                self.fault("merge", f"correlation {correlation} is on {len(rows)} host rows")
        for correlation, rows in work.items():
            rows = [row for row in rows if self.events[row]["name"] not in SYNCS]
            if not rows:
                continue
            if correlation not in host:
                self.fault("joined", f"correlation {correlation} is on no host row")
            elif host[correlation][0] <= 0 or min(rows) <= 0:
                self.fault("index", f"index_correlation of {correlation} is 0")
        first = self.events[0] if self.events else {}
        if first.get("cat") in ("cuda_runtime", "cuda_driver") or first.get("cat") in WORK:
            self.fault("index", "the first event is a launch")

    def check_steps(self):
        names = Counter()
        devices = {event["pid"] for event in self.slices if event["cat"] in WORK}
        for event in self.slices:
            is_step = event["cat"] == "user_annotation"
            if event["name"].startswith("ProfilerStep") != is_step or \
                    is_step and not re.fullmatch(r"ProfilerStep#\d+", event["name"]):
                self.fault("step", f"{event['name']} in {event['cat']}")
            elif is_step:
                names[event["name"]] += 1
                if event["pid"] in devices:
                    self.fault("step", f"{event['name']} on a device")
        for name, count in names.items():
            if count > 1:
                self.fault("step", f"{name} is there {count} times")
        if not names:
            self.fault("step", "there is none")

    def check_class(self):
        for event in self.slices:
            name, cat = event["name"], event["cat"]
            named = "gpu_memcpy" if name.startswith("Memcpy") else \
                "gpu_memset" if name.startswith("Memset") else "kernel"
            if cat in LINKED_WORK and named != cat:
                self.fault("class", f"{name} in {cat}")

    def check_temporal(self):
        rows = [event for event in self.slices if args_of(event).get("stream", -1) != -1]
        if not rows:
            return
        spans = sorted((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in rows)
        total = max(end for _, end in spans) - spans[0][0]
        busy = covered(spans)
        compute = covered(sorted((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in rows
                                 if re.match(r"(?!Memcpy|Memset|nccl|.*ncclKernel)", event["name"])))
        if not 0 <= total - busy <= total or busy - compute < 0:
            self.fault("temporal", f"of {total} ns {busy} busy, {compute} computing")

    def check_launches(self):
        counts = Counter(args_of(event).get("correlation", -1) for event in self.events
                         if event.get("cat") in ("cuda_runtime", "cuda_driver") and
                         event.get("name") in LAUNCHES)
        for correlation, count in counts.items():
            if count > 1:
                self.fault("launch", f"{count} launches have correlation {correlation}")

    def check_arrows(self):
        places = defaultdict(set)
        for event in self.slices:
            args = args_of(event)
            correlation = args.get("correlation", args.get("ferrum.correlation"))
            is_end = event["cat"] in WORK or event["cat"] == "cuda_sync"
            places[(correlation, is_end)].add((event["pid"], event["tid"], event["ts"]))
        begun, ended = set(), set()
        for event in self.events:
            phase, ident = event.get("ph"), event.get("id")
            if event.get("cat") != "ac2g" and phase not in ("s", "f"):
                continue
            if event.get("cat") != "ac2g" or phase not in ("s", "f") or not is_int(ident) or ident < 1:
                self.fault("arrow", f"phase {phase}, id {ident}, cat {event.get('cat')}")
                continue
            if phase == "f" and event.get("bp") != "e":
                self.fault("arrow", f"{ident} does not end at the slice around it: bp")
            if phase == "s" and ident in begun:
                self.fault("arrow", f"{ident} begins twice")
            (ended if phase == "f" else begun).add(ident)
            place = (event.get("pid"), event.get("tid"), event.get("ts"))
            if place not in places[(ident, phase == "f")]:
                self.fault("arrow", f"{ident}, phase {phase}, is on no slice of that correlation")
        for ident in begun ^ ended:
            self.fault("arrow", f"{ident} has one end only")

    def check_nesting(self):
        lanes = defaultdict(list)
        apart = {-1} | {event["pid"] for event in self.slices if event["cat"] in WORK | {"cuda_sync"}}
        for event in self.slices:
            if event["pid"] not in apart:
                start = ns(event["ts"])
                lanes[(event["pid"], event["tid"])].append((start, -ns(event["dur"]), event["name"]))
        for lane, spans in lanes.items():
            ends = []
            for start, minus_length, name in sorted(spans):
                while ends and ends[-1][0] <= start:
                    ends.pop()
                end = start - minus_length
                if ends and end > ends[-1][0]:
                    self.fault("nest", f"{name} sticks out of {ends[-1][1]} on lane {lane}")
                ends.append((end, name))

    def check_names(self):
        given = defaultdict(set)
        for event in self.events:
            if event.get("ph") == "M":
                key = event.get("pid")
                if str(event.get("name")).startswith("thread"):
                    key = (event.get("pid"), event.get("tid"))
                given[event.get("name")].add(key)
        for event in self.slices:
            pid, lane = event["pid"], (event["pid"], event["tid"])
            for what in ("process_name", "process_labels", "process_sort_index"):
                if pid not in given[what]:
                    self.fault("named", f"no {what} of {pid}")
            for what in ("thread_name", "thread_sort_index"):
                if pid != -1 and lane not in given[what]:
                    self.fault("named", f"no {what} of {lane}")
            if event["cat"] in ("cuda_runtime", "cuda_driver") and re.search(r"_v\d{4,}$", event["name"]):
                self.fault("name", event["name"])

    def check_order(self):
        wanted = {"kernel": KERNEL_KEYS, "gpu_memcpy": COPY_KEYS, "gpu_memset": COPY_KEYS,
                  "cuda_runtime": CALL_KEYS, "cuda_driver": CALL_KEYS, "cuda_uncorrelated": CALL_KEYS,
                  "cuda_sync": SYNC_KEYS}
        needed = {"kernel": {"queued", "device", "context", "stream", "registers per thread",
                             "shared memory", "grid", "block"},
                  "gpu_memcpy": {"stream", "bytes", "memory bandwidth (GB/s)"},
                  "gpu_memset": {"device", "context", "stream", "bytes", "memory bandwidth (GB/s)"},
                  "cuda_runtime": {"cbid", "correlation"}, "cuda_driver": {"cbid", "correlation"},
                  "cuda_sync": {"cuda_sync_kind", "device", "context"}}
        for event in self.slices:
            keys, order = list(args_of(event)), wanted.get(event["cat"])
            if order is None:
                continue
            if any(key not in order for key in keys) or keys != sorted(keys, key=order.index) or \
                    needed.get(event["cat"], set()) - set(keys):
                self.fault("order", f"{event['name']}: {keys}")

    def check_bandwidth(self):
        for event in self.slices:
            args = args_of(event)
            if "bytes" not in args or "memory bandwidth (GB/s)" not in args:
                continue
            length, given = ns(event["dur"]), args["memory bandwidth (GB/s)"]
            if length == 0:
                good = given == "N/A"
            else:
                real = Decimal(args["bytes"]) / length
                good = is_number(given) and abs(given - real) <= abs(real) / 10**9
            if not good:
                self.fault("bandwidth", f"{event['name']}: {args['bytes']} bytes in {length} ns, {given}")


def covered(spans):
    """Total length of the union of intervals that are ordered by start."""
    length, reached = 0, None
    for start, end in spans:
        if reached is None or start > reached:
            length, reached = length + end - start, end
        elif end > reached:
            length, reached = length + end - reached, end
    return length


def check(path):
    return Checker(path).run()


def main():
    status = 0
    for path in sys.argv[1:]:
        faults = check(path)
        for rule, what in faults[:50]:
            print(f"{path}: {rule}: {what}")
        status |= bool(faults)
    return status


if __name__ == "__main__":
    sys.exit(main())

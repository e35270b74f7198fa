# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The highest rates at which nothing is lost, found by search: each trial is a window of its own."""
import json
import os
import subprocess
import tempfile

from harness import BUILD, Tool, figure, note

SECONDS = int(os.environ.get("BENCH_LOAD_SECONDS", "4"))
# Trials in a row, without any loss, that make a rate one to rely on.
CONFIRM = 3


def search(name, trial, rate):
    """
    trial(rate): (rate that came about, records lost of it). The highest one, to some 10 %, that lost
    nothing CONFIRM times; and whether it is the program's limit and not the tool's.
    """
    good, bad, at_limit, before = 0, 0, False, 0
    while not bad and not at_limit:
        made, lost = trial(rate)
        note("%s: %.3g/s wanted, %.3g/s made, %d lost" % (name, rate, made, lost))
        if lost:
            bad = rate
        else:
            good, at_limit, before = rate, made < 1.3 * before, made
            rate *= 2
    while bad and (not good or bad / good > 1.1):
        rate = (good * bad) ** 0.5 if good else bad / 2
        made, lost = trial(rate)
        note("%s: %.3g/s wanted, %.3g/s made, %d lost" % (name, rate, made, lost))
        good, bad = (good, rate) if lost else (rate, bad)
    while good >= 1:
        rows = [trial(good) for _ in range(CONFIRM)]
        if not any(lost for _, lost in rows):
            return min(made for made, _ in rows), at_limit
        good, at_limit = good * 0.9, False
    return 0, False


class Load:
    """tests/live/load.c, which waits for its go."""

    def __init__(self, threads, calls, steps):
        self.truth = tempfile.NamedTemporaryFile("r")
        self.process = subprocess.Popen(
            [BUILD + "/tests/live_load", self.truth.name, str(threads), str(SECONDS), str(calls),
             str(steps)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def run(self):
        self.process.stdin.close()
        self.process.wait()
        return json.load(self.truth)


def load_trial(calls, what, options):
    """A rate of all threads together, of calls or of steps of so many calls."""
    threads = max(1, (os.cpu_count() or 2) - 1)

    def trial(rate):
        steps = max(1, round(rate / threads / (abs(calls) if what == "calls" else 1)))
        load = Load(threads, calls, steps)
        tool = Tool(load.process.pid, "--step", "load_step", *options)
        truth = load.run()
        report = tool.stop()
        counted = sum(row["calls"] for row in report["processes"][0]["syscalls"]
                      if row["name"] == "getppid")
        if counted != truth["calls"]:
            raise SystemExit("bench: %d calls made, %d counted" % (truth["calls"], counted))
        return truth[what] / truth["seconds"], report["lost"]["total"]
    return threads, trial


def gpu_trial(rate):
    """Launches of the double of CUDA a second; each is two records."""
    environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/tests",
                       FERRUM_CUPTI_LIBRARY=os.path.abspath(BUILD + "/tests/libcupti.so.13"),
                       CUDA_INJECTION64_PATH=os.path.abspath(BUILD + "/libferrum_cupti.so"))
    launch_ns = max(1, round(2e9 / rate))
    with tempfile.NamedTemporaryFile("r") as out:
        engine = subprocess.Popen(
            [BUILD + "/tests/gpu_fake_engine", "--out", out.name, "--kernels", "200", "--work-us",
             "0", "--api-ns", str(launch_ns), "--steps", str(round(SECONDS * rate / 400))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        engine.stdout.readline()
        tool = Tool(engine.pid, "--step", "gpu_step", "--gpu=require")
        engine.stdin.write("go\n")
        engine.stdin.close()
        engine.wait()
        report = tool.stop()
        wall_ns = json.loads(out.readlines()[-1])["wall_ns"]
    flush = report["gpu_processes"][0]
    lost = report["lost"]["total"] + flush["cupti_dropped"] + flush["ring_lost"] + flush["no_buffer"]
    # Steps of which the merge had to let records go.
    for kind in report["kinds"]:
        if "gpu" in kind:
            lost += kind["gpu"]["steps"] - kind["gpu"]["complete_steps"]
    return flush["records"] / wall_ns * 1e9, lost


def bench_load():
    parts = (
        ("calls in steps of 1,000, --detail escalated", 1000, "calls", ()),
        ("calls in steps of 1,000, --detail all", 1000, "calls", ("--detail", "all")),
        ("calls outside of steps, --detail all", -1000, "calls", ("--detail", "all")),
        ("steps of 20 calls, --detail escalated", 20, "steps", ()),
    )
    for name, calls, what, options in parts:
        threads, trial = load_trial(calls, what, options)
        rate, at_limit = search(name, trial, 100000 if what == "calls" else 1000)
        figure("nothing lost: %s, %d thread%s" % (name, threads, "s" if threads > 1 else ""),
               rate / 1e3, "thousand %s/s%s" % (what, ", all it can make" if at_limit else ""))
    rate, at_limit = search("GPU records", gpu_trial, 100000)
    figure("nothing lost: GPU records, through shim and tool", rate / 1e3,
           "thousand records/s%s" % (", all it can make" if at_limit else ""))

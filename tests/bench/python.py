# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What a step that is a Python function costs the program, armed and traced, on each interpreter here."""
import glob
import json
import os
import re
import statistics
import subprocess
import time

from harness import BUILD, TOOL, EmptyPair, Tool, figure, note

WORKER = os.path.join(os.path.dirname(__file__), "python_worker.py")
LIBRARY = os.path.abspath(BUILD + "/libferrum_python.so")
STEP = "__main__:Core.step"
ATTRIBUTES = ["batch.tokens", "len(batch.requests)", "batch.last", "batch.first"]
CALLS = 500  # of the step in a round: python_worker.py
# Of a loop in one turn.
ROUNDS = {"step": 480, "other": 12, "asleep": 90}
TURNS = int(os.environ.get("BENCH_PYTHON_TURNS", "15"))


class Program:
    def __init__(self, *command, **environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **environment))
        self.pid = self.process.pid

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def interpreters():
    """By version, the distribution's of those that are the same."""
    found = {}
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for path in ["/usr/bin/python3"] + glob.glob(pyenv + "/versions/3.*/bin/python3"):
        got = subprocess.run([path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                             stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        if got and int(got.split(".")[1]) >= 9:
            found.setdefault(got, path)
    # As tests/live/python_newer.sh makes them of Debian's archive.
    for line in os.environ.get("PYTHONS", "").splitlines():
        found.setdefault(*line.split())
    return sorted(found.items(), key=lambda item: [int(n) for n in item[0].split(".")])


class Armed:
    """The step armed by the library, without a tracer."""

    def __init__(self, worker, attributes):
        self.drive = Program(BUILD + "/tests/live_python_drive", str(worker.pid))
        json.loads(self.drive.process.stdout.readline())
        self.drive.ask(" ".join(["wish 0", STEP] + ATTRIBUTES[:attributes]))
        self.drive.ask("resolve")
        self.hold_ns = self.drive.ask("arm")["hold_ns"]

    def stop(self):
        """How many calls it has seen: none if it could not be armed, fewer if its lease has ended."""
        calls = self.drive.ask("disarm")["slots"][0]["begun"]
        self.drive.close()
        return calls


class Hits:
    """Armed, and an empty uprobe on each of the markers that a call passes through."""

    def __init__(self, worker):
        self.armed = Armed(worker, 0)
        self.empty = [EmptyPair("probe", str(worker.pid), LIBRARY, "ferrum_python_%s_0" % marker)
                      for marker in ("begin", "end")]

    def stop(self):
        for empty in self.empty:
            empty.stop()
        return self.armed.stop()


class Traced:
    """By the tool, from the moment that it shows in the calls."""

    def __init__(self, worker):
        self.tool = Tool(worker.pid, "--step", "py:" + STEP, "--detail", "steps")
        while worker.ask("step 20") < 300:
            if self.tool.process.poll() is not None:
                raise SystemExit("bench: the tool has ended")

    def stop(self):
        self.tool.stop()


class Nothing:
    def stop(self):
        pass


def bench_calls(version, path):
    worker = Program(path, WORKER, LD_PRELOAD=LIBRARY)
    variants = {
        "bare": Nothing,
        "again": Nothing,
        "armed": lambda: Armed(worker, 0),
        "attributes": lambda: Armed(worker, len(ATTRIBUTES)),
        "hits": lambda: Hits(worker),
        "traced": lambda: Traced(worker),
    }
    seen = {(name, loop): [] for name in variants for loop in ROUNDS}
    holds = []
    names = list(variants)
    for turn in range(TURNS):
        note("python %s: turn %d of %d" % (version, turn + 1, TURNS))
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            attached = variants[name]()
            rounds = {loop: count // (3 if name in ("hits", "traced") else 1)
                      for loop, count in ROUNDS.items()}
            took = {loop: worker.ask("%s %d" % (loop, count)) for loop, count in rounds.items()}
            calls = attached.stop()
            if calls is not None and calls != rounds["step"] * CALLS + rounds["asleep"]:
                note("python %s: %s: not armed all the time" % (version, name))
                continue
            holds.append(getattr(attached, "hold_ns", None))
            for loop, value in took.items():
                seen[name, loop].append(value)
    worker.close()
    if not all(seen.values()):
        raise SystemExit("bench: the step cannot be armed")
    show(version, {key: min(values) for key, values in seen.items()}, [ns for ns in holds if ns])
    show_asleep(version, {name: statistics.median(seen[name, "asleep"]) for name in variants})


def show_asleep(version, median):
    """As in a program that sleeps between its steps, so that the kernel's code is in no cache."""
    for name, text in (("armed", "armed"), ("hits", "two hits of an empty uprobe"), ("traced", "traced")):
        figure("Python %s: a call of the step after 1 ms asleep, %s" % (version, text),
               median[name] - median["bare"], "ns added")


def show(version, fewest, holds):
    """Of the fewest nanoseconds of each."""
    minor = int(version.split(".")[1])
    bare = fewest["bare", "step"]
    armed = fewest["armed", "step"] - bare
    name = "Python %s: " % version
    figure(name + "a call", bare, "ns")
    figure(name + "a call of the step, armed", armed, "ns added", limit=70 if minor == 11 else 25)
    figure(name + "each attribute", (fewest["attributes", "step"] - bare - armed) / len(ATTRIBUTES),
           "ns added", limit=30)
    figure(name + "a call of the step, two hits of an empty uprobe", fewest["hits", "step"] - bare, "ns added")
    figure(name + "a call of the step, traced", fewest["traced", "step"] - bare, "ns added", limit=1500)
    for variant in "armed", "traced":
        figure(name + "another call, while the step is " + variant, fewest[variant, "other"], "ns",
               fewest[variant, "other"] / fewest["bare", "other"], 1.02)
    figure(name + "another call, twice without, bench's noise", fewest["again", "other"], "ns",
           fewest["again", "other"] / fewest["bare", "other"])
    figure(name + "the GIL held to arm, median", statistics.median(holds) / 1e3, "us")


def bench_loading():
    """--python=inject, as the tool says it."""
    stopped = []
    for _ in range(int(os.environ.get("BENCH_PYTHON_INJECT", "30"))):
        worker = Program("/usr/bin/python3", WORKER)
        worker.ask("step 1")
        tool = subprocess.Popen([TOOL, "-p", str(worker.pid), "--python=inject", "--step", "py:" + STEP,
                                 "--report", "none", "--trace", "none", "--profile", "none", "-d", "0.1"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        told = re.search(r"stopped for ([0-9.]+) ms", tool.communicate()[1])
        if told:
            stopped.append(float(told[1]) * 1e3)
        worker.close()
        time.sleep(0.1)
    if not stopped:
        raise SystemExit("bench: --python=inject loads nothing here")
    figure("python inject: one thread stopped, median of %d" % len(stopped), statistics.median(stopped), "us")
    figure("python inject: … the longest", max(stopped), "us", limit=1000)


def bench_python():
    for version, path in interpreters():
        bench_calls(version, path)
    bench_loading()

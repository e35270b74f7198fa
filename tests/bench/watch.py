# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the flight recorder costs an engine that is healthy, and the machine."""
import os
import statistics
import subprocess
import tempfile
import time

from harness import TOOL, Worker, figure, note

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
PAIRS = 8
# Steps without a wait, of about 2 and 20 ms: a small model's decode and a large one's.
STEPS = {"2 ms": "push getppid 1 60 16000", "20 ms": "push getppid 1 15 160000"}
CPU_SECONDS = 10


class Watch:
    """watch of a process, from when its probes are attached. Nothing is escalated, nor sampled."""

    def __init__(self, pid, step="bench_long_step"):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [TOOL, "watch", "-p", str(pid), "--step", step, "--dir", self.folder.name,
             "--sample", "0", "--cv-threshold", "10000", "--efficiency-threshold", "0",
             "--memory-cliff-threshold", "100", "--rate-guard", "0", "--config", "/dev/null"],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("watching "):
                return
        raise SystemExit("bench: watch does not attach")

    def pids(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as children:
            found = [self.process.pid]
            for child in children.read().split():
                found.append(int(child))
                with open("/proc/%s/task/%s/children" % (child, child)) as brokers:
                    found += [int(pid) for pid in brokers.read().split()]
            return found

    def cpu_seconds(self):
        ticks = 0
        for pid in self.pids():
            with open("/proc/%d/stat" % pid) as stat:
                ticks += sum(int(word) for word in stat.read().rsplit(")", 1)[1].split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        total = 0
        for pid in self.pids():
            with open("/proc/%d/status" % pid) as status:
                total += sum(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
        return total / 1024

    def stop(self):
        self.process.terminate()
        self.process.stderr.read()
        self.process.wait()
        self.folder.cleanup()


def compare(watched, bare, command):
    """Time of a step in one worker, relative to the other: the median of pairs, taken in turns."""
    ratios = []
    for number in range(PAIRS):
        if number % 2:
            other = bare.loop(command)
            ratios.append(watched.loop(command) / other)
        else:
            own = watched.loop(command)
            ratios.append(own / bare.loop(command))
    return statistics.median(ratios)


def added_to_empty_steps(worker):
    """In ns: steps that do nothing show best what the probes of one cost."""
    values = []
    for _ in range(3):
        bare = worker.loop("steps 100000")
        watch = Watch(worker.pid, "bench_push_step")
        worker.loop("steps 400000")  # until the call site is known
        values.append(worker.loop("steps 100000") - bare)
        watch.stop()
    return statistics.median(values)


def bench_watch():
    """Two workers make the same steps in turns, and one of them is watched: first one, then the
    other, so that what makes them differ cancels out."""
    workers = [Worker(), Worker()]
    seen = {name: [] for name in STEPS}
    noise = {name: [] for name in STEPS}
    for number in range(ROUNDS):
        note("watch: round %d of %d" % (number + 1, ROUNDS))
        ratios = {name: 1 for name in STEPS}
        for watched, bare in (workers, reversed(workers)):
            watch = Watch(watched.pid)
            # Until the probes at the exits are replaced by those at the call site.
            for _ in range(3):
                watched.loop("push getppid 1 1000 2000")
                time.sleep(1)
            for name, command in STEPS.items():
                ratios[name] *= compare(watched, bare, command)
            if number == ROUNDS - 1:
                before = watch.cpu_seconds()
                time.sleep(CPU_SECONDS)
                cpu = watch.cpu_seconds() - before
                rss = watch.rss_mib()
            watch.stop()
        for name, command in STEPS.items():
            noise[name].append(abs(compare(*workers, command) - 1) * 100)
        for name, ratio in ratios.items():
            seen[name].append((ratio**0.5 - 1) * 100)
    added = added_to_empty_steps(workers[0])
    for worker in workers:
        worker.close()
    for name, values in seen.items():
        figure("watch: added to steps of %s" % name, statistics.median(values), "%", limit=0.5)
        figure("watch: the same while nobody watches (noise)", statistics.median(noise[name]), "%")
    figure("watch: added to a step that does nothing", added, "ns/step added")
    figure("watch: the same, of a step of 2 ms", added / 2e6 * 100, "%", limit=0.5)
    figure("watch: CPU time, of one CPU", cpu / CPU_SECONDS * 100, "%")
    figure("watch: memory beside rings and records", rss, "MiB")

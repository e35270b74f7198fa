# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the flight recorder costs an engine that is healthy, and the machine."""
import os
import statistics
import subprocess
import tempfile
import time

from harness import TOOL, Worker, figure, note

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
# Steps without a wait, of about 2 and 20 ms: a small model's decode and a large one's.
STEPS = {"2 ms": "loop getppid 1 200 16000", "20 ms": "loop getppid 1 40 160000"}
CPU_SECONDS = 10


class Watch:
    """watch of a process, from when its probes are attached. Nothing is escalated, nor sampled."""

    def __init__(self, pid, step):
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
    """The same steps with watch and without, in turns."""
    worker = Worker()
    seen = {name: [] for name in STEPS}
    for number in range(ROUNDS):
        note("watch: round %d of %d" % (number + 1, ROUNDS))
        bare, watched = {}, {}

        def measure(into):
            for name, command in STEPS.items():
                into[name] = worker.loop(command)

        # What drifts, as the clock of the CPU, must not look like a cost.
        if number % 2:
            measure(bare)
        watch = Watch(worker.pid, "bench_step")
        measure(watched)
        if number == ROUNDS - 1:
            before = watch.cpu_seconds()
            time.sleep(CPU_SECONDS)
            cpu = watch.cpu_seconds() - before
            rss = watch.rss_mib()
        watch.stop()
        if not number % 2:
            measure(bare)
        for name in STEPS:
            seen[name].append((watched[name] / bare[name] - 1) * 100)
    added = added_to_empty_steps(worker)
    worker.close()
    figure("watch: added to an empty step", added, "ns/step added")
    figure("watch: the same, of a step of 2 ms", added / 2e6 * 100, "%", limit=0.5)
    for name, values in seen.items():
        figure("watch: added to steps of %s" % name, statistics.median(values), "%", limit=0.5)
    figure("watch: CPU time, of one CPU", cpu / CPU_SECONDS * 100, "%")
    figure("watch: memory beside rings and records", rss, "MiB")

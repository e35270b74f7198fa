# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the parts of the bench share: how a figure is told, and who runs beside whom."""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

BUILD = os.environ.get("FBT_BUILD", "build/x86_64-gcc")
TOOL = os.environ.get("FBT", BUILD + "/ferrum-bpftrace")


def note(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def figure(name, value, unit, ratio=None, limit=None, ok=None, least=None, above=None):
    """At most limit is wanted of the ratio, or of the value if there is none; least of the value.
    above: the same as a difference, in unit."""
    row = {"bench": name, "value": round(value, 2), "unit": unit}
    if above is not None:
        row["above"] = round(above, 2)
    if least is not None:
        row["least"] = least
        ok = value >= least
    if ratio is not None:
        row["ratio"] = round(ratio, 2)
    if limit is not None:
        row["limit"] = limit
        if ok is None:
            ok = (value if ratio is None else ratio) <= limit
    if ok is not None:
        row["ok"] = ok
    print(json.dumps(row), flush=True)


class Worker:
    def __init__(self):
        self.process = subprocess.Popen([BUILD + "/tests/bench_worker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline().split()[1])

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def loop(self, command):
        return statistics.mean(self.ask(command))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def count_links(pid):
    """BPF links and perf events that a process holds."""
    count = 0
    folder = "/proc/%d/fdinfo" % pid
    try:
        for fd in os.listdir(folder):
            try:
                with open(folder + "/" + fd) as info:
                    count += "link_type:" in info.read()
                count += os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("anon_inode:[perf")
            except OSError:
                pass
    except OSError:
        pass
    return count


class Tool:
    """The tool attached to a process. attach_ms is until the last of its links was there."""

    def __init__(self, pid, *options):
        before = time.monotonic()
        self.process = subprocess.Popen(
            [TOOL, "-q", "-p", str(pid), "--report", "json", "--trace", "none", "--profile", "none",
             "--rate-guard", "0", "-d", "3600", *options], stdout=subprocess.PIPE, text=True)
        links, since = 0, before
        while links < 3 or time.monotonic() < since + 0.15:
            count = count_links(self.process.pid)
            if count != links:
                links, since = count, time.monotonic()
            if self.process.poll() is not None or time.monotonic() > before + 15:
                raise SystemExit("bench: the tool did not attach")
            time.sleep(0.0005)
        self.attach_ms = (since - before) * 1e3

    def rss_beside_rings(self):
        """KiB, without the memory shared with the kernel."""
        total, skip = 0, False
        with open("/proc/%d/smaps" % self.process.pid) as maps:
            for line in maps:
                words = line.split()
                if "-" in words[0] and ":" not in words[0]:
                    skip = "bpf" in line
                elif words[0] == "Rss:" and not skip:
                    total += int(words[1])
        return total

    def stop(self):
        before = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        out = self.process.communicate(timeout=60)[0]
        self.detach_ms = (time.monotonic() - before) * 1e3
        return json.loads(out)


class EmptyPair:
    """Two programs that do nothing; with "clock", the limit: each reads the clock."""
    def __init__(self, *arguments):
        self.process = subprocess.Popen([BUILD + "/tests/bench_empty_pair", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Nothing:
    def stop(self):
        pass

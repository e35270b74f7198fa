#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What tracing costs on this machine: one JSON line a figure on stdout, progress on stderr.

Every figure is a difference or a ratio of measurements made side by side in one run: the variants
take turns in rounds, each is compared with the untraced loop of its own round, and the median of the
rounds counts. Names given as arguments choose parts: calls handed loss load attach text steps latency
judge idle shim merge gpu-idle inject stacks python pages signals explain peers
metrics top traces watch.
"""
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from explain import bench_explain, bench_signals
from harness import BUILD, TOOL, EmptyPair, Nothing, Tool, Worker, figure, note
from load import bench_load
from pages import bench_pages
from python import bench_python
from top import bench_top
from watch import bench_watch

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
FLOOD_SECONDS = float(os.environ.get("BENCH_FLOOD_SECONDS", "10"))
LOOPS = {
    "getppid, 1 thread": "loop getppid 1 60 20000",
    "mixed, 1 thread": "loop mixed 1 60 16000",
    "getppid, 2 threads": "loop getppid 2 60 20000",
}


def bench_calls():
    """Added cost per syscall of each variant, and of a process that is not the traced one."""
    worker, other = Worker(), Worker()
    variants = {
        "bare": Nothing,
        "empty pair": EmptyPair,
        "limit, an empty pair that reads the clock twice": lambda: EmptyPair("clock"),
        "--detail steps": lambda: Tool(worker.pid, "--step", "bench_step", "--detail", "steps"),
        "--detail escalated": lambda: Tool(worker.pid, "--step", "bench_step"),
        "--detail all": lambda: Tool(worker.pid, "--step", "bench_step", "--detail", "all"),
        "--detail probes": lambda: Tool(worker.pid, "--step", "bench_step", "--detail", "probes"),
        "untraced neighbour": lambda: Tool(other.pid, "--step", "bench_step", "--detail", "steps"),
    }
    seen = {(name, loop): [] for name in variants for loop in LOOPS}
    names = list(variants)
    for number in range(ROUNDS):
        note("round %d of %d" % (number + 1, ROUNDS))
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            attached = variants[name]()
            for loop, command in LOOPS.items():
                seen[name, loop].append(worker.loop(command))
            attached.stop()
    worker.close()
    other.close()

    def added(name, loop):
        return statistics.median(value - bare for value, bare
                                 in zip(seen[name, loop], seen["bare", loop]))

    clock = names[2]
    # An untraced neighbour pays for the hooks alone: its floor is the empty pair.
    wanted = {"--detail steps": (clock, 1.3), "--detail escalated": (clock, 1.42),
              "--detail all": (clock, 1.45), "untraced neighbour": ("empty pair", 1.1)}
    for loop in LOOPS:
        figure(loop + ": bare", statistics.median(seen["bare", loop]), "ns/call")
        for name in ("empty pair", clock, "--detail probes"):
            figure(loop + ": " + name, added(name, loop), "ns/call added")
        for name, (floor, limit) in wanted.items():
            value = added(name, loop)
            figure(loop + ": " + name, value, "ns/call added", value / added(floor, loop), limit,
                   above=value - added(floor, loop))


def bench_handed():
    """Beside two threads of the process that wait for each other all the time: what waits write is in no
    line of the cache that other calls read."""
    worker = Worker()
    alone, handed = LOOPS["getppid, 1 thread"], "handed 60 20000"
    added = {"alone": [], "handed": []}
    for _ in range(ROUNDS):
        bare = {"alone": worker.loop(alone), "handed": worker.loop(handed)}
        tool = Tool(worker.pid, "--step", "bench_step")
        added["alone"].append(worker.loop(alone) - bare["alone"])
        added["handed"].append(worker.loop(handed) - bare["handed"])
        tool.stop()
    worker.close()
    alone, handed = (statistics.median(values) for values in added.values())
    figure("getppid beside two threads that hand a futex back and forth", handed, "ns/call added",
           handed / alone, 1.1)


def flood(command, name, limit):
    worker = Worker()
    tool = Tool(worker.pid, "--step", "bench_step", "--detail", "all")
    note("%s of %g s" % (command, FLOOD_SECONDS))
    calls, seconds = worker.ask("%s 2 %g" % (command, FLOOD_SECONDS))
    rss = tool.rss_beside_rings()
    report = tool.stop()
    worker.close()
    rate = calls / seconds
    figure(name + ": rate", rate / 1e6, "million calls/s", ok=rate >= 2e6)
    figure(name + ": records lost", report["lost"]["total"], "of %d" % calls, limit=limit)
    counted = sum(row["calls"] for row in report["processes"][0]["syscalls"]
                  if row["name"] == "getppid")
    figure(name + ": calls missing in the table", calls - counted, "of %d" % calls,
           ok=calls == counted)
    figure(name + ": RSS besides the rings", rss / 1024, "MiB", limit=64)


def bench_loss():
    """Every call recorded, as fast as two threads can: none counted wrong, outside of steps none lost."""
    flood("flood", "flood, 2 threads, --detail all", 0)
    flood("stepflood", "flood in steps, 2 threads, --detail all", None)


def bench_attach():
    for functions, spec in ((1, "bench_step"), (16, "bench_many_*")):
        attach, detach = [], []
        worker = Worker()
        for _ in range(5):
            tool = Tool(worker.pid, "--step", spec)
            tool.stop()
            attach.append(tool.attach_ms)
            detach.append(tool.detach_ms)
        worker.close()
        plural = "s" if functions > 1 else ""
        figure("attach, %d step function%s" % (functions, plural), statistics.median(attach), "ms",
               limit=300)
        figure("detach, %d step function%s" % (functions, plural), statistics.median(detach), "ms",
               limit=300)


# A program as large as a server with everything in it, and one function that refers to a text.
STRIPPED = r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, used)) int wanted_step(int x) { return printf("no such expert: %d", x); }
__asm__(".text\n.skip 80000000, 0x90\n.section .rodata\n.skip 24000000, 0x41\n.text\n");
int main(int argc, char **argv)
{
	(void)argv;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
	return wanted_step(argc);
}
"""


def bench_text():
    """How much longer doctor takes to find a step by its text than to refuse an address."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/stripped"
        with open(path + ".c", "w") as source:
            source.write(STRIPPED)
        subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-s", path + ".c", "-o", path], check=True)
        with subprocess.Popen([path], stdout=subprocess.PIPE) as engine:
            engine.stdout.readline()
            seconds = []
            for _ in range(3):
                start = time.monotonic()
                subprocess.run([TOOL, "doctor", str(engine.pid), "--step", "string:no such expert: "],
                               stdout=subprocess.DEVNULL, check=True)
                seconds.append(time.monotonic() - start)
                start = time.monotonic()
                subprocess.run([TOOL, "doctor", str(engine.pid), "--step", path + "+0x1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                seconds[-1] -= time.monotonic() - start
            engine.kill()
        figure("a step by its text, in a stripped program of 104 MB",
               statistics.median(seconds), "s", limit=2)


def bench_steps():
    """Begin and end of a step beside one hit of an empty uprobe that the kernel emulates. The tool
    probes the exit at first, and only the call site once that has proved to end the steps."""
    worker = Worker()
    command = "steps 100000"
    seen = {name: [] for name in ("hit", "exit", "site", "worst")}
    for _ in range(3):
        bare = worker.loop(command)
        empty = EmptyPair("probe", str(worker.pid), "/proc/%d/exe" % worker.pid, "bench_push_step")
        seen["hit"].append(worker.loop(command) - bare)
        empty.stop()
        tool = Tool(worker.pid, "--step", "bench_push_step", "--detail", "steps")
        seen["exit"].append(worker.loop("steps 20000") - bare)
        worker.loop("steps 400000")
        seen["site"].append(worker.loop(command) - bare)
        ends = tool.stop()["kinds"][0]
        tool = Tool(worker.pid, "--step", "bench_empty_step", "--detail", "steps")
        seen["worst"].append(worker.loop("steps 20000") - bare)
        tool.stop()
    worker.close()
    hit, exit_, site, worst = (statistics.median(values) for values in seen.values())
    figure("one hit of an empty uprobe, emulated", hit, "ns added")
    figure("step: begins with a push, ends at its call site", site, "ns/step added", site / hit, 3,
           ok=None if ends.get("exits") == 0 else False)
    figure("step: begins with a push, ends at its exit", exit_, "ns/step added", exit_ / hit)
    figure("step: single-stepped at both ends", worst, "ns/step added", worst / hit)


def bench_metrics():
    """CPU time of --replay of steps with --metrics beside that without: what each step costs the tool
    more. Nothing is done for metrics in the engine."""
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker()
        tool = Tool(worker.pid, "--step", "bench_push_step", "--detail", "steps", "--record",
                    folder + "/capture")
        worker.loop("steps 100000")
        steps = tool.stop()["steps"]
        worker.close()
        seconds = {"without": [], "with": []}
        for _ in range(5):
            for name, more in (("without", []), ("with", ["--metrics", folder + "/bench.prom"])):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([os.environ["FBT"], "--replay", folder + "/capture", "--report", "none",
                                *more], check=True, stderr=subprocess.DEVNULL)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    without, with_ = (statistics.median(seconds[name]) for name in ("without", "with"))
    figure("a step in --metrics", (with_ - without) * 1e9 / steps, "ns/step", limit=2000)


def bench_latency():
    """From the end of a step to its line in the profile."""
    engine = subprocess.Popen([BUILD + "/tests/engine", "--steps", "0", "--compute-us", "1000"])
    tool = subprocess.Popen([TOOL, "-q", "-p", str(engine.pid), "--step", "engine_step", "-n", "1000",
                             "--report", "none", "--trace", "none", "--profile", "/dev/stdout"],
                            stdout=subprocess.PIPE, text=True)
    ends = []
    for line in tool.stdout:
        now = time.time()
        event = json.loads(line)
        if event["event"] == "step_prof":
            ends.append((now, event["shape"]["start_us"] + event["stage_us"]["total"]))
        elif event["event"] == "window_prof":
            epoch = event["shape"]["epoch_realtime_us"]
    tool.wait()
    engine.kill()
    engine.wait()
    late = sorted((now * 1e6 - epoch - end) / 1e3 for now, end in ends)
    figure("from the end of a step to its record, median", statistics.median(late), "ms")
    figure("from the end of a step to its record, p99", late[len(late) * 99 // 100], "ms", limit=50)


def bench_judge():
    """Telling whether a step is wrong, and keeping its calls as evidence."""
    for calls in (0, 20, 200):
        out = subprocess.run([BUILD + "/tests/bench_judge", "50000", str(calls)],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        figure("judging a step of %d calls" % calls, float(out[0]) / 1e3, "us",
               limit=2 if calls <= 20 else None)


def bench_idle():
    """What a process pays while the tool waits for its flag."""
    worker = Worker()
    folder = tempfile.mkdtemp()
    command = LOOPS["getppid, 1 thread"]
    pairs = []
    for _ in range(ROUNDS):
        bare = worker.loop(command)
        tool = subprocess.Popen(
            [TOOL, "-q", "-p", str(worker.pid), "--step", "bench_step", "--report", "none",
             "--rate-guard", "0", "--flag", folder + "/flag", "--dir", folder], stdout=subprocess.DEVNULL)
        time.sleep(1)
        pairs.append((worker.loop(command), bare, worker.loop(command)))
        tool.send_signal(signal.SIGINT)
        tool.wait()
    worker.close()
    shutil.rmtree(folder)
    figure("idle flag window, getppid, 1 thread", statistics.median(pair[0] for pair in pairs),
           "ns/call", statistics.median(pair[0] / pair[1] for pair in pairs), limit=1.03)
    figure("the same twice, bench's noise", statistics.median(pair[2] for pair in pairs), "ns/call",
           statistics.median(pair[0] / pair[2] for pair in pairs))


def run_gpu(program, *arguments):
    """What a bench of the GPU side prints: NAME=NUMBER."""
    out = subprocess.run([BUILD + "/tests/bench_" + program, *arguments], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return {name: float(value) for name, value in (word.split("=") for word in out.split())}


def run_shim(*arguments):
    return run_gpu("shim", BUILD + "/libferrum_cupti.so", BUILD + "/tests/bench_cupti.so",
                   *arguments)


def added_mib(row):
    return (row["rss_kib"] - row["bare_kib"]) / 1024


def bench_shim():
    """What the shim does with a record in the engine's process, with a CUPTI that costs nothing."""
    rows = [run_shim("feed", "20") for _ in range(5)]
    figure("shim: its callbacks", statistics.median(row["ns"] / row["records"] for row in rows),
           "ns/record", limit=150)
    if rows[0]["syscalls"] >= 0:
        # A wait for the flusher's lock, once in a while, is no cost of a record.
        figure("shim: system calls in them",
               statistics.median(row["syscalls"] / row["records"] for row in rows) * 1e3,
               "per 1000 records", limit=0.01)
    figure("shim: records lost", max(row["lost"] for row in rows), "of %d" % rows[0]["records"],
           limit=0)
    figure("shim: memory it adds, armed, all buffers used",
           max(added_mib(row) for row in rows), "MiB", limit=32)


def time_launches(shim):
    """ns of a launch of the double of CUDA, which itself takes as little as it can."""
    environment = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/tests",
                       FERRUM_CUPTI_LIBRARY=os.path.abspath(BUILD + "/tests/libcupti.so.13"))
    if shim:
        environment["CUDA_INJECTION64_PATH"] = os.path.abspath(BUILD + "/libferrum_cupti.so")
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run([BUILD + "/tests/gpu_fake_engine", "--out", out.name, "--steps", "4000",
                        "--kernels", "200", "--work-us", "0", "--api-ns", "0"], input="go\n",
                       stdout=subprocess.DEVNULL, text=True, check=True, env=environment)
        steps = [json.loads(line) for line in out]
    lengths = sorted(row["end_ns"] - row["start_ns"] for row in steps if "step" in row)
    return lengths[len(lengths) // 4] / 200


def bench_gpu_idle():
    """What the shim costs while nobody reads it."""
    pairs = []
    for _ in range(ROUNDS):
        bare = time_launches(False)
        pairs.append((time_launches(True), bare, time_launches(False)))
    figure("idle shim: a launch of the double of CUDA",
           statistics.median(pair[0] for pair in pairs), "ns",
           statistics.median(pair[0] / pair[1] for pair in pairs), limit=1.03)
    figure("the same twice without it, bench's noise", statistics.median(pair[2] for pair in pairs),
           "ns", statistics.median(pair[2] / pair[1] for pair in pairs))
    row = run_shim("idle", "10")
    figure("idle shim: wake-ups", row["wakeups"], "a second", limit=4)
    figure("idle shim: CPU time", row["cpu_us"], "us a second", limit=100)
    figure("idle shim: CUPTI activities enabled", row["enabled"], "kinds", limit=0)
    figure("idle shim: memory it adds", added_mib(row), "MiB", limit=32)


def bench_merge():
    """GPU records on the tool's one thread: 500 kernels a step, and 20 calls."""
    for stage, name in (("ring", "read and checked"), ("link", "… and times and threads converted"),
                        ("all", "… and assembled, joined, measured, judged")):
        rows = [run_gpu("merge", stage, "2000", "500", "20") for _ in range(3)]
        rate = statistics.median(row["records"] / row["cpu_ns"] * 1e9 for row in rows)
        figure("GPU records: " + name, rate / 1e6, "million records/s",
               least=2 if stage == "all" else None)
    figure("GPU records: steps not complete, or without a kernel", 2000 - rows[0]["complete"],
           "of 2000", limit=0)


def bench_inject():
    """What --gpu=inject does to the one thread that it takes, nothing else running."""
    row = run_gpu("inject", os.environ.get("BENCH_INJECT_ROUNDS", "500"),
                  BUILD + "/tests/inject_probe.so")
    figure("inject: one thread stopped, median", row["stop_p50"], "us")
    figure("inject: … p99", row["stop_p99"], "us", limit=1000)
    figure("inject: that thread waits for a CPU before it stops, p99", row["wait_p99"], "us")
    figure("inject: that thread then away from its call, median", row["away_p50"], "us")
    figure("inject: … p99", row["away_p99"], "us", limit=1000)
    figure("inject: from the stop to the loaded library, median", row["total_p50"], "us")


def rss_with_stacks(detail):
    """KiB of the tool when it has unwound stacks, or none with steps alone; of three the median."""
    values = []
    for _ in range(3):
        worker = Worker()
        tool = Tool(worker.pid, "--step", "bench_step", "--detail", detail)
        worker.ask("slow 1500000 60 400")
        values.append(tool.rss_beside_rings())
        if (tool.stop()["stacks"] > 0) != (detail == "escalated"):
            raise SystemExit("bench: stacks with --detail " + detail)
        worker.close()
    return statistics.median(values)


def bench_stacks():
    """What copying the stack of a slow call takes, by the clock of the kernel side."""
    for kib in (4, 16, 60):
        worker = Worker()
        tool = Tool(worker.pid, "--step", "bench_step")
        worker.ask("slow 1500000 %d 400" % kib)
        seen = tool.stop()
        worker.close()
        if seen["stacks"] < 50:
            raise SystemExit("bench: %d stacks are too few" % seen["stacks"])
        figure("stacks: added to a slow call, %d KiB" % kib,
               seen["stacks_copy_ns"] / seen["stacks"] / 1000, "us", limit=10)
    kib = {detail: rss_with_stacks(detail) for detail in ("steps", "escalated")}
    figure("stacks: RSS besides the rings, --detail escalated less steps",
           (kib["escalated"] - kib["steps"]) / 1024, "MiB", limit=16)


def bench_peers():
    """The same loop under other tracers, counting calls by number of one process."""
    worker = Worker()
    pid = str(worker.pid)
    script = ("tracepoint:raw_syscalls:sys_enter /pid == %s/ { @start[tid] = nsecs; } "
              "tracepoint:raw_syscalls:sys_exit /pid == %s && @start[tid]/ "
              "{ @total[args->id] = sum(nsecs - @start[tid]); @count[args->id] = count(); "
              "delete(@start[tid]); }" % (pid, pid))
    peers = {
        "ferrum-bpftrace --detail steps": None,
        "bcc syscount -L": ["syscount-bpfcc", "-L", "-p", pid],
        "bpftrace, sum and count": ["bpftrace", "-e", script],
        "perf trace -s": ["perf", "trace", "-s", "-p", pid],
        "strace -c -f": ["strace", "-c", "-f", "-p", pid],
    }
    command = "loop getppid 1 20 5000"
    for name, arguments in peers.items():
        if arguments and not shutil.which(arguments[0]):
            note(arguments[0] + " is not installed")
            continue
        note(name)
        values = []
        for _ in range(3):
            bare = worker.loop(command)
            if arguments:
                peer = subprocess.Popen(arguments, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(4)
                if peer.poll() is not None:
                    note(name + " does not run here")
                    break
                values.append(worker.loop(command) - bare)
                peer.send_signal(signal.SIGINT)
                peer.wait()
            else:
                tool = Tool(worker.pid, "--step", "bench_step", "--detail", "steps")
                values.append(worker.loop(command) - bare)
                tool.stop()
        if values:
            figure("peers, getppid, 1 thread: " + name, statistics.median(values), "ns/call added")
    worker.close()


def cpu_of(command):
    """Seconds of CPU time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bench_traces():
    """Writing each format, from a recording of all calls, and merging two of these traces."""
    folder = tempfile.mkdtemp()
    engine = subprocess.Popen([BUILD + "/tests/engine", "--steps", "0", "--compute-us", "500", "--sleep-us", "500",
                               "--calls", "60,50,30,70,60,20"])
    capture = folder + "/capture"
    subprocess.run([TOOL, "-q", "-p", str(engine.pid), "--step", "engine_step", "-d", "3", "--detail", "all",
                    "--rate-guard", "0", "--report", "none", "--profile", "none", "--trace", "none", "--record",
                    capture], stdout=subprocess.DEVNULL, check=True)
    engine.kill()
    engine.wait()
    replay = [TOOL, "-q", "--replay", capture, "--report", "none", "--profile", "none", "--trace"]
    bare = statistics.median(cpu_of(replay + ["none"]) for _ in range(3))
    files = {"ferrum": "t.json", "kineto": "k.json", "perfetto": "t.pftrace", "gzip": "t.json.gz"}
    slices, sizes = 0, {}
    for name, file in files.items():
        path = folder + "/" + file
        form = "ferrum" if name == "gzip" else name
        took = statistics.median(cpu_of(replay + [path, "--trace-format", form]) for _ in range(3)) - bare
        sizes[name] = os.path.getsize(path)
        if name == "ferrum":
            with open(path, encoding="utf-8") as text:
                slices = len(json.load(text))
        figure("writing a slice of a trace: %s" % name, took / slices * 1e6, "us", limit=20 if name == "gzip" else 5)
        figure("size of a slice: %s" % name, sizes[name] / slices, "bytes")
    figure("JSON is larger than Perfetto's format", sizes["ferrum"] / sizes["perfetto"], "times", least=2.5)
    shutil.copy(folder + "/k.json", folder + "/l.json")
    took = cpu_of([TOOL, "merge", folder + "/k.json", folder + "/l.json", "-o", folder + "/out.json"])
    figure("merging traces", 2 * sizes["kineto"] / took / 1e6, "MB/s", least=5)
    shutil.rmtree(folder)


def main():
    parts = {"calls": bench_calls, "handed": bench_handed, "loss": bench_loss, "load": bench_load, "attach": bench_attach,
             "text": bench_text,
             "steps": bench_steps, "stacks": bench_stacks, "latency": bench_latency, "judge": bench_judge,
             "metrics": bench_metrics,
             "idle": bench_idle, "shim": bench_shim, "merge": bench_merge,
             "gpu-idle": bench_gpu_idle, "inject": bench_inject, "python": bench_python,
             "pages": bench_pages, "signals": bench_signals, "explain": bench_explain,
             "peers": bench_peers, "top": bench_top, "traces": bench_traces,
             "watch": bench_watch}
    if os.geteuid() != 0:
        raise SystemExit("bench: needs root")
    for name in sys.argv[1:] or parts:
        parts[name]()


main()

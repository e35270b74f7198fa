# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the live view costs: CPU time of the tool, with and without it, beside the same engine."""
import fcntl
import os
import pty
import signal
import statistics
import struct
import subprocess
import termios
import threading
import time

from harness import BUILD, TOOL, figure

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9")) // 3 or 1
SECONDS = 8


def drain(master, total):
    while True:
        try:
            total.append(len(os.read(master, 65536)))
        except OSError:
            return


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(engine, *words):
    """Percent of a CPU, and bytes a second to the terminal (120 by 40)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    total = []
    threading.Thread(target=drain, args=(master, total), daemon=True).start()
    tool = subprocess.Popen(
        [TOOL, *words, "-p", str(engine), "--step", "engine_step", "--trace", "none", "--profile", "none",
         "--report", "none", "--explain", "off", "-d", "600"], stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True, env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
    time.sleep(3)
    before, sent, since = cpu_seconds(tool.pid), sum(total), time.monotonic()
    time.sleep(SECONDS)
    passed = time.monotonic() - since
    if tool.poll() is not None:
        raise SystemExit("bench: the tool ended early")
    result = ((cpu_seconds(tool.pid) - before) / passed * 100, (sum(total) - sent) / passed)
    tool.send_signal(signal.SIGINT)
    tool.wait()
    os.close(slave)
    os.close(master)
    return result


def bench_top():
    engine = subprocess.Popen(
        [BUILD + "/tests/engine", "--steps", "0", "--compute-us", "300", "--sleep-us", "500",
         "--trouble", "lock", "--trouble-every", "200", "--trouble-us", "20000"],
        stdout=subprocess.DEVNULL)
    rows = [(measure(engine.pid), measure(engine.pid, "top")) for _ in range(ROUNDS)]
    engine.terminate()
    engine.wait()
    figure("top, CPU of the tool beyond plain tracing (1,000 steps/s)",
           statistics.median(top[0] - plain[0] for plain, top in rows), "% of a CPU", limit=1)
    figure("top, bytes a second to the terminal", statistics.median(top[1] for _, top in rows), "B/s")

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What tracing costs a real vLLM, in tokens a second: vllm.py VENV TOOL [PAIRS [SECONDS]]

A server with one worker and three clients. Each pair is an arm and the bare server, one after the other,
in a random order, as long as each other; the arms take turns, in a new order each round:

    sham       the same wait, without the tool
    default    ferrum-bpftrace -p PID --python=inject
    probes     the same with --detail probes

Prints a JSON line for each arm: by how much fewer tokens the server made, in percent, the mean of the
pairs and its standard error. It needs a machine that is otherwise idle; the sham arm shows whether it
was. The library is injected before the first pair, and stays.
"""
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

VENV, TOOL = sys.argv[1:3]
PAIRS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 5
CLIENTS = 3
ARMS = {"sham": None, "default": [], "probes": ["--detail", "probes"]}
HERE = os.path.dirname(os.path.abspath(__file__))


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    def __init__(self, folder):
        self.port = find_port()
        model = os.path.join(folder, "model")
        subprocess.run([sys.executable, os.path.join(HERE, "../e2e/ferrum/model.py"), model], check=True)
        environment = dict(os.environ, HOME=folder, VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1",
                           VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1",
                           PATH=VENV + "/bin:" + os.environ["PATH"])
        self.process = subprocess.Popen(
            [VENV + "/bin/python", VENV + "/bin/vllm", "serve", model, "--served-model-name", "model",
             "--load-format", "dummy", "--port", str(self.port), "--max-model-len", "1024", "--dtype",
             "bfloat16", "--enforce-eager", "--no-enable-prefix-caching"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 300
        while not self.tokens(quiet=True) and time.monotonic() < until:
            time.sleep(0.5)
        self.ends = False
        for _ in range(CLIENTS):
            threading.Thread(target=self.ask, daemon=True).start()

    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def tokens(self, quiet=False):
        """What it has made so far; with quiet: whether it says."""
        try:
            with urllib.request.urlopen(self.url("/metrics"), timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            if quiet:
                return False
            raise
        if quiet:
            return "vllm:" in text
        return sum(float(number) for number in
                   re.findall(r"^vllm:generation_tokens_total\{.*\} (\S+)$", text, re.M))

    def ask(self):
        body = json.dumps({"model": "model", "prompt": "What is slow, and why?", "max_tokens": 100}).encode()
        while not self.ends:
            request = urllib.request.Request(self.url("/v1/completions"), body,
                                             {"Content-Type": "application/json"})
            try:
                urllib.request.urlopen(request, timeout=120).read()
            except OSError:
                # The server is ended with requests under way.
                if not self.ends:
                    raise

    def end(self):
        self.ends = True
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def measure(server):
    """Tokens a second."""
    begin, before = time.monotonic(), server.tokens()
    time.sleep(SECONDS)
    after, end = server.tokens(), time.monotonic()
    return (after - before) / (end - begin)


def run_bare(server, options):
    time.sleep(1)
    return measure(server)


def run_traced(server, options):
    """The time to attach and to detach is none of a window."""
    ready, writes = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        tool = subprocess.Popen(
            [TOOL, "-p", str(server.process.pid), "--python=inject", "--ready-fd", str(writes), "--dir", folder,
             "--report", "none", *options], pass_fds=[writes], cwd=folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        os.close(writes)
        if not os.read(ready, 1):
            sys.exit(tool.stderr.read().decode())
        os.close(ready)
        time.sleep(1)
        rate = measure(server)
        tool.send_signal(signal.SIGINT)
        tool.communicate()
        if tool.returncode:
            sys.exit("the tool ended with %d" % tool.returncode)
    return rate


def measure_pair(server, options):
    """By how many percent the arm made fewer tokens than the bare server."""
    arm = run_bare if options is None else run_traced
    runs = [("arm", arm), ("bare", run_bare)]
    random.shuffle(runs)
    rates = {name: run(server, options) for name, run in runs}
    return 100 * (1 - rates["arm"] / rates["bare"])


def main():
    lost = {name: [] for name in ARMS}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            time.sleep(2)
            run_traced(server, [])
            for _ in range(PAIRS):
                for name in random.sample(sorted(ARMS), len(ARMS)):
                    lost[name].append(measure_pair(server, ARMS[name]))
        finally:
            server.end()
    for name, values in lost.items():
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))
        print(json.dumps({"arm": name, "pairs": len(values), "tokens_lost_percent": round(mean, 2),
                          "standard_error": round(spread / math.sqrt(len(values)), 2)}))


main()

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Threads that wait in many ways and check what they get, under a signal 100 times a second.

Says "ready"; SIGTERM ends it, and it says how it went.
"""
import hashlib
import math
import os
import queue
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

STOP = threading.Event()
EARLY = 0.0005  # s: clocks are not that exact


class Task(threading.Thread):
    """Calls step() until the end, counts the calls and keeps the errors."""

    def __init__(self, name, step):
        super().__init__(name=name)
        self.step = step
        self.rounds = 0
        self.latest = 0.0
        self.wrong = []

    def run(self):
        try:
            while not STOP.is_set():
                self.step(self)
                self.rounds += 1
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(repr(error))

    def expect(self, good, what):
        if not good:
            self.wrong.append(what)

    def waited(self, begin, wanted):
        """Checks a wait that timed out: it must not be early. Keeps by how much it was late."""
        late = time.monotonic() - begin - wanted
        self.expect(late > -EARLY, f"{-late * 1e3:.3f} ms early")
        self.latest = max(self.latest, late)


def sleep(task):
    for wanted in (0.0005, 0.003, 0.02):
        begin = time.monotonic()
        time.sleep(wanted)
        task.waited(begin, wanted)


def make_queue_tasks():
    numbers = queue.Queue()
    put = [0]
    got = [0]

    def producer(_task):
        for _ in range(10):
            numbers.put(put[0])
            put[0] += 1
        time.sleep(0.004)

    def consumer(task):
        begin = time.monotonic()
        try:
            number = numbers.get(timeout=0.003)
        except queue.Empty:
            task.waited(begin, 0.003)
            return
        task.expect(number == got[0], f"got {number}, wanted {got[0]}")
        got[0] += 1

    return Task("queue.put", producer), Task("queue.get", consumer)


def make_condition_tasks():
    condition = threading.Condition()
    turn = [0]

    def pass_turn(mine):
        def step(task):
            with condition:
                task.expect(
                    condition.wait_for(lambda: turn[0] % 2 == mine or STOP.is_set(), 30),
                    "no turn in 30 s",
                )
                turn[0] += 1
                condition.notify_all()

        return step

    def time_out(task):
        alone = threading.Condition()
        begin = time.monotonic()
        with alone:
            task.expect(not alone.wait(0.005), "woken by nobody")
        task.waited(begin, 0.005)

    return (
        Task("Condition.wait, 1", pass_turn(0)),
        Task("Condition.wait, 2", pass_turn(1)),
        Task("Condition.wait, time-out", time_out),
    )


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            data = self.request.recv(65536)
            if not data:
                return
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def make_client(address, seed):
    connection = socket.create_connection(address)
    data = hashlib.shake_128(bytes([seed])).digest(20000)
    size = [1]

    def step(task):
        size[0] = size[0] * 7 % 19997 + 1
        connection.sendall(data[: size[0]])
        answer = b""
        while len(answer) < size[0]:
            part = connection.recv(65536)
            if not part:
                raise ConnectionError("closed by the server")
            answer += part
        task.expect(answer == data[: size[0]], "another answer")

    return Task(f"socket {seed}", step)


def run_process(task):
    word = f"round {task.rounds}"
    done = subprocess.run(["/bin/echo", word], capture_output=True, check=True, timeout=60)
    task.expect(done.stdout == word.encode() + b"\n", f"{done.stdout!r}")
    status = subprocess.run(["/bin/sh", "-c", "exit 3"], check=False, timeout=60).returncode
    task.expect(status == 3, f"exit status {status}")
    time.sleep(0.02)


def make_poll_tasks():
    reader, writer = os.pipe()

    def write(task):
        os.write(writer, task.rounds.to_bytes(8, "little"))
        time.sleep(0.003)

    def read(task):
        begin = time.monotonic()
        if not select.select([reader], [], [], 0.002)[0]:
            task.waited(begin, 0.002)
            return
        number = int.from_bytes(os.read(reader, 8), "little")
        task.expect(number == task.expected, f"read {number}, wanted {task.expected}")
        task.expected += 1

    def poll(task):
        nothing = select.poll()
        begin = time.monotonic()
        task.expect(not nothing.poll(4), "an event of nothing")
        task.waited(begin, 0.004)

    task = Task("select, read", read)
    task.expected = 0
    return Task("write", write), task, Task("poll", poll)


def compute(task):
    total = math.fsum(1 / (k * k) for k in range(1, 2000))
    digest = hashlib.sha256(repr(total).encode()).hexdigest()
    task.first = getattr(task, "first", digest)
    task.expect(digest == task.first, f"{total!r}")
    time.sleep(0.001)


def main():
    server = Server(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    tasks = [Task("time.sleep", sleep), Task("subprocess.run", run_process)]
    tasks += [Task("arithmetic", compute)]
    tasks += [*make_queue_tasks(), *make_condition_tasks(), *make_poll_tasks()]
    tasks += [make_client(server.server_address, seed) for seed in range(3)]
    alarms = [0]

    def count(_signal, _frame):
        alarms[0] += 1

    signal.signal(signal.SIGALRM, count)
    signal.signal(signal.SIGTERM, lambda _signal, _frame: STOP.set())
    for task in tasks:
        task.start()
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    print("ready", flush=True)
    while not STOP.is_set():
        time.sleep(0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    due = int((time.monotonic() - begin) * 100)
    for task in tasks:
        task.join(60)
        good = not task.wrong and not task.is_alive() and task.rounds > 0
        for wrong in task.wrong[:3]:
            print(f"# {task.name}: {wrong}")
        late = f", late by {task.latest * 1e3:.1f} ms at most" if task.latest else ""
        print(f"{'ok' if good else 'not ok'} - {task.name} is right")
        print(f"# {task.name}: {task.rounds} rounds{late}")
    server.shutdown()
    server.server_close()
    # A signal that comes while another one is pending is merged with it.
    print(f"{'ok' if 0 < alarms[0] <= due + 1 else 'not ok'} - no alarm is invented")
    print(f"# {alarms[0]} of {due} alarms")


main()
sys.exit(0)

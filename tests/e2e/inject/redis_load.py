# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Clients of a redis that know what each answer has to be.

usage: redis_load.py PORT CLIENTS FILE     load, until SIGTERM; what is to be there goes to FILE
       redis_load.py PORT check FILE       whether it is there

Says "ready" when every client had an answer, and at the end how it went.
"""
import hashlib
import json
import signal
import socket
import sys
import threading
import time

STOP = threading.Event()
PAUSE = 0.002  # or the server's event loop would never wait


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))

    def receive(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed by the server")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ConnectionError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b"*":
            size = int(rest)
            return None if size < 0 else [self.receive() for _ in range(size)]
        return rest

    def ask(self, *words):
        self.send(*words)
        return self.receive()


class Client(threading.Thread):
    def __init__(self, port, number):
        super().__init__()
        self.connection = Connection(port)
        self.number = number
        self.begun = threading.Event()
        self.count = 0
        self.requests = 0
        self.longest = 0.0
        self.failures = []
        self.data = hashlib.shake_128(b"%d" % number).digest(8192)
        self.list = []

    def expect(self, wanted, *words):
        begin = time.monotonic()
        got = self.connection.ask(*words)
        self.longest = max(self.longest, time.monotonic() - begin)
        self.requests += 1
        if got != wanted:
            self.failures.append(f"{words[:2]}: {got!r:.60}")

    def pipeline(self):
        for _ in range(10):
            self.connection.send("INCR", f"piped:{self.number}")
        got = [self.connection.receive() for _ in range(10)]
        self.requests += 10
        if got != list(range(self.count * 10 - 9, self.count * 10 + 1)):
            self.failures.append(f"pipeline {got}")

    def step(self):
        self.count += 1
        value = self.data[self.count % 4096 :][: self.count % 4000 + 1]
        self.expect(self.count, "INCR", f"count:{self.number}")
        self.connection.ask("INCR", "total")
        self.expect(b"OK", "SET", f"value:{self.number}", value)
        self.expect(value, "GET", f"value:{self.number}")
        self.list = (self.list + [b"%d" % self.count])[-20:]
        self.expect(min(self.count, 21), "RPUSH", f"list:{self.number}", self.count)
        self.expect(b"OK", "LTRIM", f"list:{self.number}", -20, -1)
        self.expect(self.list, "LRANGE", f"list:{self.number}", 0, -1)
        # A client that waits until the server's own timer wakes it.
        if self.count % 100 == 0:
            self.expect(None, "BLPOP", f"none:{self.number}", "0.01")
        self.pipeline()

    def run(self):
        try:
            while not STOP.is_set():
                self.step()
                self.begun.set()
                time.sleep(PAUSE)
        except (OSError, ValueError) as error:
            self.failures.append(repr(error))
            self.begun.set()


def check(port, path):
    connection = Connection(port)
    with open(path, encoding="ascii") as file:
        counts = json.load(file)
    got = [int(connection.ask("GET", f"count:{number}")) for number in range(len(counts))]
    piped = [int(connection.ask("GET", f"piped:{number}")) for number in range(len(counts))]
    total = int(connection.ask("GET", "total"))
    good = got == counts and total == sum(counts) and piped == [10 * count for count in counts]
    print(f"{'ok' if good else 'not ok'} - every increment is there, once")
    print(f"# total {total}, clients {sum(counts)}")


def load(port, count, path):
    signal.signal(signal.SIGTERM, lambda _signal, _frame: STOP.set())
    clients = [Client(port, number) for number in range(count)]
    for client in clients:
        client.start()
    for client in clients:
        client.begun.wait()
    print("ready", flush=True)
    while not STOP.is_set():
        time.sleep(0.1)
    for client in clients:
        client.join()
    with open(path, "w", encoding="ascii") as file:
        json.dump([client.count for client in clients], file)
    failures = [failure for client in clients for failure in client.failures]
    for failure in failures[:5]:
        print(f"# {failure}")
    print(f"{'not ok' if failures else 'ok'} - no request has failed")
    print(
        f"# {sum(client.requests for client in clients)} requests, {len(failures)} failed, "
        f"longest {max(client.longest for client in clients) * 1e3:.1f} ms"
    )
    check(port, path)


if sys.argv[2] == "check":
    check(int(sys.argv[1]), sys.argv[3])
else:
    load(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

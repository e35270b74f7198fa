# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Requests over connections that are kept, each answer compared with what it has to be.

usage: http_load.py PORT CONNECTIONS files FOLDER   GET /NAME is the file's bytes
       http_load.py PORT CONNECTIONS sha256         GET /sha256/TEXT is its digest, in hex

Between two requests of a connection it waits a little: a server that is never idle is never found
where its event loop waits.

Says "ready" when every connection had an answer; SIGTERM ends it, and it says how it went. After
SIGUSR1 the server may close a connection between two answers, as one does that is told to reload:
the request is then sent again on a new one, and counted. It says "may close" once it knows.
"""
import hashlib
import http.client
import os
import signal
import sys
import threading
import time

STOP = threading.Event()
MAY_CLOSE = threading.Event()
PAUSE = 0.005


class Files:
    def __init__(self, folder):
        self.files = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                self.files.append(("/" + name, file.read()))

    def ask(self, number):
        return self.files[number % len(self.files)]


class Digests:
    def ask(self, number):
        text = f"number-{number}"
        return f"/sha256/{text}", hashlib.sha256(text.encode()).hexdigest().encode()


class Client(threading.Thread):
    def __init__(self, port, answers, number):
        super().__init__()
        self.port = port
        self.answers = answers
        self.number = number
        self.begun = threading.Event()
        self.connection = None
        self.requests = 0
        self.again = 0
        self.longest = 0.0
        self.failures = []

    def connect(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connection.connect()

    def get(self, path):
        """Returns status and body; None if the kept connection had been closed."""
        try:
            self.connection.request("GET", path)
            response = self.connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if not MAY_CLOSE.is_set():
                raise
            return None
        return response.status, response.read()

    def request(self, path, wanted):
        begin = time.monotonic()
        answer = self.get(path)
        while answer is None:
            self.again += 1
            self.connection.close()
            self.connect()
            answer = self.get(path)
        self.longest = max(self.longest, time.monotonic() - begin)
        self.requests += 1
        if answer != (200, wanted):
            self.failures.append(f"{path}: status {answer[0]}, {len(answer[1])} bytes")

    def run(self):
        self.connect()
        # Each client has numbers of its own.
        number = self.number
        while not STOP.is_set():
            try:
                self.request(*self.answers.ask(number))
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                self.connection.close()
                self.connect()
            self.begun.set()
            number += 1000003
            time.sleep(PAUSE)
        self.connection.close()


def let_close(_signal, _frame):
    MAY_CLOSE.set()
    print("may close", flush=True)


def main():
    port, connections, kind, *folder = sys.argv[1:]
    answers = Files(*folder) if kind == "files" else Digests()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: STOP.set())
    signal.signal(signal.SIGUSR1, let_close)
    clients = [Client(int(port), answers, number) for number in range(int(connections))]
    for client in clients:
        client.start()
    for client in clients:
        client.begun.wait()
    print("ready", flush=True)
    while not STOP.is_set():
        time.sleep(0.1)
    for client in clients:
        client.join()
    failures = [failure for client in clients for failure in client.failures]
    for failure in failures[:5]:
        print(f"# {failure}")
    print(f"{'not ok' if failures else 'ok'} - no request has failed")
    print(
        f"# {sum(client.requests for client in clients)} requests, {len(failures)} failed, "
        f"{sum(client.again for client in clients)} sent again, "
        f"longest {max(client.longest for client in clients) * 1e3:.1f} ms"
    )


main()

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""As much of a debugger's client (Debug Adapter Protocol) as stops at one line and goes on, each time."""
import json, socket, threading, time


def connect(port):
    """The debugger begins to listen in a thread of its own, some time after its listen() has returned."""
    end = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(('127.0.0.1', port), 30)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


class Debugger:
    def __init__(self, port, path, line):
        self.socket = connect(port)
        self.file, self.number, self.stops = self.socket.makefile('rb'), 0, 0
        self.ready = threading.Event()
        self.path, self.line = path, line
        threading.Thread(target=self.run, daemon=True).start()
        self.send('initialize', adapterID='python', linesStartAt1=True, pathFormat='path')

    def send(self, command, **arguments):
        self.number += 1
        text = json.dumps({'seq': self.number, 'type': 'request', 'command': command,
                           'arguments': arguments}).encode()
        self.socket.sendall(b'Content-Length: %d\r\n\r\n%s' % (len(text), text))

    def receive(self):
        length = 0
        while (line := self.file.readline().strip()):
            length = int(line.split(b':')[1])
        return json.loads(self.file.read(length)) if length else None

    def run(self):
        try:
            while (message := self.receive()):
                self.take(message, message.get('event') or message.get('command'))
        except OSError:
            pass

    def take(self, message, what):
        if what == 'initialize':
            self.send('attach', justMyCode=False)
        elif what == 'initialized':
            self.send('setBreakpoints', source={'path': self.path}, breakpoints=[{'line': self.line}])
            self.send('configurationDone')
        elif what == 'configurationDone':
            self.ready.set()
        elif what == 'stopped':
            self.stops += 1
            self.send('continue', threadId=message['body']['threadId'])

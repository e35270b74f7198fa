# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Types a line in an interactive zsh and prints what it proposes: zsh.py FOLDER LINE...

FOLDER has the completion function. For each LINE one line is printed: the proposals, sorted, separated
by spaces.
"""
import os
import pty
import re
import select
import sys

READY, DONE = b"\x1b[?2004h", b"<done>"


class Shell:
    def __init__(self, folder):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8", HOME="/nonexistent")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.read_until(READY)
        # A proposal a line, without colours; the prompt says when the editor takes keys.
        self.command(
            f"stty cols 400 rows 400; PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; "
            "LISTMAX=10000; zstyle ':completion:*' verbose no; setopt LIST_ROWS_FIRST NO_LIST_TYPES NO_PROMPT_SP; bindkey '^D' list-choices")

    def read_until(self, mark):
        data = b""
        while mark not in data:
            if not select.select([self.fd], [], [], 60)[0]:
                sys.exit(f"zsh says no more after {data!r}")
            data += os.read(self.fd, 65536)
        return data

    def command(self, text):
        os.write(self.fd, text.encode() + b"; print '<do''ne>'\n")
        output = self.read_until(DONE)
        return output if READY in output.split(DONE)[-1] else output + self.read_until(READY)

    def propose(self, line):
        # ^D lists, ^U removes the line.
        os.write(self.fd, line.encode() + b"\x04")
        os.write(self.fd, b"\x15")
        text = self.command("true").decode()
        text = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\x1b[=>]", "", text).replace("\r", "\n")
        found = []
        for row in text.split("\n"):
            if line.strip() in row or "<do" in row or "true" in row:
                continue
            # The editor draws letters of the line again, one by one.
            found += [word for word in row.split() if len(word) > 1 or word.isdigit()]
        return sorted(set(found))


shell = Shell(sys.argv[1])
for wanted in sys.argv[2:]:
    print(" ".join(shell.propose(wanted)))

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""run SECONDS MEGABYTES COMMAND…: runs it; says "status N, …" of a command that took longer or more.
shown FILE…: says where a byte is that steers a terminal, or is no UTF-8; or "printable"."""
import resource
import subprocess
import sys

STEERS = set(range(0x80, 0xa0)) | set(range(0x2028, 0x202f)) | set(range(0x2066, 0x206a)) | {0x7f}


def run(seconds, megabytes, *command):
    try:
        status = subprocess.run(command, timeout=float(seconds), check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"still running after {seconds} s", file=sys.stderr)
        return 99
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if peak > float(megabytes):
        print(f"took {peak:.0f} MiB", file=sys.stderr)
        return 98
    return status if status >= 0 else 100 - status


def shown(*paths):
    for path in paths:
        data = open(path, "rb").read()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            return f"{path}: {error}"
        for at, char in enumerate(text):
            if char != "\n" and (ord(char) < 0x20 or ord(char) in STEERS):
                return f"{path}: {text[max(0, at - 60):at + 20]!r}"
    return None


if sys.argv[1] == "run":
    sys.exit(run(*sys.argv[2:]))
found = shown(*sys.argv[2:])
print(found or "printable")

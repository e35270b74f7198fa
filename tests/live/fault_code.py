#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""fault_code.py PID FILE FUNCTION: the function is in memory what it is in the file, 3 s later at last."""
import subprocess
import sys
import time

pid, path, function = sys.argv[1:]
symbols = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
address, size = next((int(words[0], 16), int(words[1], 16)) for words in
                     (line.split() for line in symbols.splitlines()) if words[-1] == function)
# In a position-independent file, the address is the offset from the file's first mapping.
with open("/proc/%s/maps" % pid, encoding="utf-8") as maps:
    base = int(maps.readline().split("-")[0], 16)
with open(path, "rb") as file:
    wanted = file.read()
for _ in range(60):
    with open("/proc/%s/mem" % pid, "rb") as memory:
        memory.seek(base + address)
        found = memory.read(size)
    if found in wanted:
        sys.exit(0)
    time.sleep(0.05)
print("# in memory: " + found.hex())
sys.exit(1)

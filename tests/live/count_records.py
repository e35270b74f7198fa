#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""count_records.py FILE: finished calls in a capture (see include/fbt_event.h)."""
import mmap
import struct
import sys

CALL = 6
OPEN = 1

with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
at, count, end = struct.unpack_from("<12xI", data, 0)[0], 0, len(data)
header = struct.Struct("<HHI").unpack_from
while at < end:
    kind, flags, size = header(data, at)
    count += kind == CALL and not flags & OPEN
    at += size
print(count)

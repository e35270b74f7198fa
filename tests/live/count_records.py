#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""count_records.py FILE: finished calls in a capture (see include/fbt_event.h): a record may stand
for several."""
import mmap
import struct
import sys

CALL = 6
OPEN, RUN = 1, 8
CALLS = struct.Struct("<I").unpack_from
CALLS_AT = 48  # fbt_call.run.calls

with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
at, count, end = struct.unpack_from("<12xI", data, 0)[0], 0, len(data)
header = struct.Struct("<HHI").unpack_from
while at < end:
    kind, flags, size = header(data, at)
    if kind == CALL and not flags & OPEN:
        count += CALLS(data, at + CALLS_AT)[0] if flags & RUN else 1
    at += size
print(count)

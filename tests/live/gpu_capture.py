# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What gpu_truth.py reads: a capture (--record), a profile, and the GPU engine's own account."""
import json
import struct

STEP, CALL, STATE, WORK, API, SYNC, OVERHEAD, FLUSH = 5, 6, 14, 17, 18, 19, 20, 21
KERNEL, MEMCPY, MEMSET = 0, 1, 2
RUNTIME, DRIVER = 2, 1
UNTRACED, TRACED, ZERO, DROPPED = 0, 1, 2, 3
NO_STREAM = 0xffffffff


class Row:
    """A row whose fields are accessed by name."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __repr__(self):
        return str(self.__dict__)


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode("latin-1")


def read_step(data, flags):
    tgid, tid, kind, end, start_ns, end_ns = struct.unpack_from("<IIIIQQ", data, 8)
    return Row(tgid=tgid, tid=tid, kind=kind, end=end, start=start_ns, stop=end_ns)


def read_call(data, flags):
    tgid, tid, start_ns, length_ns = struct.unpack_from("<IIQQ", data, 8)
    nr, = struct.unpack_from("<I", data, 40)
    return Row(tgid=tgid, tid=tid, nr=nr, start=start_ns, stop=start_ns + length_ns,
               blocked=bool(flags & 2))


def read_state(data, flags):
    tgid, status, time_ns, version, driver, shim, clock = struct.unpack_from("<IIQIIII", data, 8)
    detail = text_at(data, 48)
    return Row(tgid=tgid, status=status, time=time_ns, version=version, clock=clock,
               detail=detail, library=text_at(data, 48 + len(detail) + 1))


def read_work(data, flags):
    tgid, kind, start, stop, device, context, stream, correlation, node, graph, name = \
        struct.unpack_from("<IIQQIIIIQII", data, 8)
    size, copy_kind = struct.unpack_from("<QI", data, 64) if kind != KERNEL else (0, 0)
    source, target = data[88:90] if kind != KERNEL else (0, 0)
    return Row(tgid=tgid, kind=kind, start=start, stop=stop, device=device, context=context,
               stream=stream, correlation=correlation, node=node, graph=graph, name=name,
               bytes=size, copy_kind=copy_kind, source=source, target=target)


def read_api(data, flags):
    tgid, tid, start, stop, correlation, cbid, name, group = \
        struct.unpack_from("<IIQQIIII", data, 8)
    return Row(tgid=tgid, tid=tid, start=start, stop=stop, correlation=correlation, cbid=cbid,
               domain=DRIVER if flags & 1 else RUNTIME, group=group)


def read_sync(data, flags):
    tgid, kind, start, stop, correlation, context, stream, event = \
        struct.unpack_from("<IIQQIIII", data, 8)
    return Row(tgid=tgid, kind=kind, start=start, stop=stop, correlation=correlation,
               stream=stream)


def read_overhead(data, flags):
    tgid, tid, start, stop, kind, correlation = struct.unpack_from("<IIQQII", data, 8)
    return Row(tgid=tgid, tid=tid, start=start, stop=stop, kind=kind, correlation=correlation)


def read_flush(data, flags):
    names = ("tgid", "last", "time", "sent", "records", "dropped", "lost", "no_buffer", "unknown",
             "shim_ns", "error_ns", "clock_steps")
    return Row(**dict(zip(names, struct.unpack_from("<IIQQQQQQQQQQ", data, 8))))


READERS = {STEP: read_step, CALL: read_call, STATE: read_state, WORK: read_work, API: read_api,
           SYNC: read_sync, OVERHEAD: read_overhead, FLUSH: read_flush}


def load_capture(path):
    """The records by type, each with its place in the file, .at, which is the order in which the tool
    got them. A capture may end within a record."""
    found = {kind: [] for kind in READERS}
    with open(path, "rb") as file:
        data = file.read()
    at = struct.unpack_from("<I", data, 12)[0]
    found["start"], = struct.unpack_from("<Q", data, at + 8)
    while at + 8 <= len(data):
        kind, flags, size = struct.unpack_from("<HHI", data, at)
        if size < 8 or at + size > len(data):
            break
        if kind in READERS:
            found[kind].append(READERS[kind](data[at:at + size], flags))
            found[kind][-1].at = at
        at += size
    return found


TRUTH_NAMES = ("type", "tid", "start", "stop", "call_start", "call_stop", "correlation", "fate",
               "domain", "cbid", "kind", "device", "stream", "copy_kind", "bytes", "node",
               "graph", "name", "source", "target", "launch", "step")
TRUTH_FORM = struct.Struct("<IIQQQQIIIIIIIIQQIIIIQQ")
TRUTH_TYPES = {1: "steps", 2: "calls", 3: "works", 4: "syncs", 5: "full"}


def load_truth(path):
    """Lists of rows by type. calls_of has the calls of a launch, the engine's own first."""
    truth = {name: [] for name in TRUTH_TYPES.values()}
    with open(path, "rb") as file:
        magic, count, truth["pid"], _ = struct.unpack("<QQQQ", file.read(32))
        assert magic == 0x4854555254555047, "no account of the engine's"
        assert count <= 1 << 20, "the engine did more than it could tell"
        file.seek(128)
        for _ in range(count):
            values = TRUTH_FORM.unpack(file.read(TRUTH_FORM.size))
            if values[0]:  # else the engine was killed while it wrote this one
                truth[TRUTH_TYPES[values[0]]].append(Row(**dict(zip(TRUTH_NAMES, values))))
    truth["calls_of"] = {}
    for call in truth["calls"]:
        truth["calls_of"].setdefault(call.launch, []).append(call)
    return truth


def load_profile(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]

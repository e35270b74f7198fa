#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""fault_fs.py MOUNT_POINT ERROR BYTES: a file system (FUSE) of one folder, in memory, in which each file
takes so many bytes; a write beyond that fails with ERROR (EIO, EDQUOT, ...), as on a broken device or
over a quota. With FLUSH_S in the environment each close takes so many seconds. Says "ready" once it is
mounted; serves until it is unmounted."""
import ctypes
import errno
import os
import stat
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, SETATTR, UNLINK, RENAME, OPEN, READ, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 10, 12, 14, 15, 16, 17, 18
FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, CREATE, INTERRUPT, BATCH_FORGET, RENAME2 = (
    20, 25, 26, 27, 28, 29, 34, 35, 36, 42, 45)
ROOT, DIRECT_IO, SET_SIZE, NO_REPLACE = 1, 1, 8, 1
SIZE = 64 << 20


class File:
    def __init__(self, node, owner):
        self.node, self.owner, self.data = node, owner, bytearray()


class Disk:
    def __init__(self, error, limit):
        self.error, self.limit = error, limit
        self.names, self.nodes, self.last = {}, {}, ROOT

    def attributes(self, node):
        file = self.nodes.get(node)
        size = len(file.data) if file else 0
        mode = stat.S_IFREG | 0o600 if file else stat.S_IFDIR | 0o755
        linked = 1 if not file or file in self.names.values() else 0
        uid, gid = file.owner if file else (0, 0)
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, linked, uid, gid, 0, 4096, 0)

    def entry(self, file):
        return struct.pack("<4QII", file.node, 0, 0, 0, 0, 0) + self.attributes(file.node)

    def find(self, name):
        if name not in self.names:
            raise OSError(errno.ENOENT, "")
        return self.names[name]

    def create(self, body, owner):
        name = body[16:].split(b"\0")[0]
        if name in self.names:
            raise OSError(errno.EEXIST, "")
        self.last += 1
        self.names[name] = self.nodes[self.last] = file = File(self.last, owner)
        return self.entry(file) + struct.pack("<QIi", 0, DIRECT_IO, 0)

    def write(self, node, body):
        offset, size = struct.unpack_from("<QI", body, 8)
        data = self.nodes[node].data
        if offset >= self.limit:
            raise OSError(self.error, "")
        # As on a disk, what fits is written; the next write fails.
        taken = min(size, self.limit - offset)
        data[offset:offset + taken] = body[40:40 + taken]
        return struct.pack("<II", taken, 0)

    def rename(self, body, flags):
        old, new = body.split(b"\0")[:2]
        if flags & ~NO_REPLACE:
            raise OSError(errno.EINVAL, "")
        if flags and new in self.names:
            raise OSError(errno.EEXIST, "")
        self.find(old)
        self.names[new] = self.names.pop(old)
        return b""

    def answer(self, opcode, node, owner, body):
        if opcode == LOOKUP:
            return self.entry(self.find(body.split(b"\0")[0]))
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == SETATTR:
            valid, size = struct.unpack_from("<IxxxxxxxxxxxxQ", body)
            if valid & SET_SIZE:
                del self.nodes[node].data[size:]
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == UNLINK:
            self.find(body.split(b"\0")[0])
            del self.names[body.split(b"\0")[0]]
            return b""
        if opcode == RENAME:
            return self.rename(body[8:], 0)
        if opcode == RENAME2:
            return self.rename(body[16:], struct.unpack_from("<I", body, 8)[0])
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QIi", 0, DIRECT_IO if opcode == OPEN else 0, 0)
        if opcode == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            return bytes(self.nodes[node].data[offset:offset + size])
        if opcode == WRITE:
            return self.write(node, body)
        if opcode == CREATE:
            return self.create(body, owner)
        if opcode == STATFS:
            return struct.pack("<5Q4I24x", SIZE >> 12, SIZE >> 12, SIZE >> 12, 1000, 1000, 4096, 255, 4096, 0)
        if opcode == FLUSH:
            time.sleep(float(os.environ.get("FLUSH_S", 0)))
        if opcode in (RELEASE, RELEASEDIR, FSYNC, FLUSH, ACCESS, READDIR):
            return b""
        raise OSError(errno.ENOSYS, "")

    def serve(self, device):
        while True:
            try:
                request = os.read(device, 1 << 20)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            opcode, unique, node, uid, gid = struct.unpack_from("<4xIQQII", request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            failed = 0
            try:
                if opcode == INIT:
                    answer = struct.pack("<4IHHIIHHI28x", 7, 31, 0, 0, 0, 0, 1 << 17, 1, 32, 0, 0)
                else:
                    answer = self.answer(opcode, node, (uid, gid), request[40:])
            except OSError as error:
                failed, answer = error.errno, b""
            try:
                os.write(device, struct.pack("<IiQ", 16 + len(answer), -failed, unique) + answer)
            except OSError:
                pass  # who asked has gone


def main():
    place, error, limit = sys.argv[1], getattr(errno, sys.argv[2]), int(sys.argv[3])
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other" % device
    if libc.mount(b"fault", place.encode(), b"fuse", 0, options.encode()):
        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
    print("ready", flush=True)
    Disk(error, limit).serve(device)


main()

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Runs a program as a container does: scratch.py ROOT FOLDER CAPABILITIES PROGRAM [ARGUMENT...]

In ROOT, with FOLDER of it as current directory, as user 0, with only these capabilities (names of
Kubernetes, separated by commas) and without a way to gain others.
"""
import ctypes
import os
import sys

# linux/prctl.h, linux/capability.h
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, CAP_LAST = 24, 38, 40
NUMBERS = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}

root, folder, names, *command = sys.argv[1:]
kept = {NUMBERS[name] for name in names.split(",") if name}
libc = ctypes.CDLL(None, use_errno=True)
os.chroot(root)
os.chdir(folder)
for number in range(CAP_LAST + 1):
    if number not in kept and libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
        sys.exit(f"scratch.py: capability {number} cannot be dropped: {os.strerror(ctypes.get_errno())}")
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
    sys.exit("scratch.py: no_new_privs cannot be set")
os.execv(command[0], command)

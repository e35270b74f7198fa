#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""looks.py tids|names TRUTH PROFILE: who held what the steps of tests/live/looks.c waited for, against
the program's own account; in another PID namespace by the names of threads.
looks.py gdb GDB REPORT: the threads of a hang against gdb's backtraces of all threads.
One line "ok - …" or "not ok - …" for each fact."""
import json
import re
import sys

WARM = 40
EVERY = 20
HOLDS_IN = {"computes": ("cpu", "cpu_wait"), "chain": ("futex",), "reads": ("read",),
            "starved": ("cpu_wait",), "asks": ("read",), "asks_socket": ("read",),
            "asks_stopped": ("read",)}
# What the other process did for which the holder waited, and by what.
PEERS = {"asks": ("asleep", "pipe"), "asks_socket": ("asleep", "socket"),
         "asks_stopped": ("stopped", "pipe")}
# Who ended a wait that has no owner. All who wait are woken by the last reader of a rwlock, as at a barrier.
WAKER_WORDS = {"condition": "woken by", "semaphore": "woken by", "many_readers": "for", "own": "held by"}
# The function in which the step spins, and how it is told.
SPINS = {"spins": ("spin_yielding", r"^spun [0-9.]+ ms .* in [0-9,]+ sched_yield"),
         "naps": ("spin_napping", r"^napped [0-9.]+ ms .* in [0-9,]+ clock_nanosleep")}
failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print("# %s: %s" % (name, said))
    print("%sok - %s" % ("" if good else "not ", name))


def check_holder(wait, shape, by_tid):
    way = wait["way"]
    if by_tid:
        fact("%s: its thread" % way, shape.get("holder_tid") == wait["holder"], shape)
    fact("%s: its name" % way, shape.get("holder_name") == "h-first", shape)
    fact("%s: what it does" % way,
         shape.get("holder_in") in HOLDS_IN.get(way, ("clock_nanosleep",)), shape)
    functions = shape.get("holder_stack", "").split(" (")[0].split(" <- ")
    # Who computes reads the clock: it may be seen at the stub by which that is called, which has no name.
    if way == "computes" and functions[0].startswith("live_looks+0x"):
        functions = functions[1:]
    fact("%s: where" % way,
         wait["function"] == functions[0] and functions[1:2] in (["run_holder"], []), shape)
    fact("%s: when it was seen" % way, 20e3 <= shape.get("holder_seen_us", 0) < int(shape["brick.actual_us"]), shape)


def check_chain(wait, shape, by_tid):
    chain = shape.get("holder_chain", "")
    if by_tid:
        fact("chain: the second thread", "thread %d " % wait["second"] in chain, shape)
    fact("chain: where that is",
         '"h-second": clock_nanosleep' in chain and "in hold_sleeping <- keep_second" in chain, shape)


def check_peer(wait, shape, by_tid):
    way = wait["way"]
    if way not in PEERS:
        fact("%s: no other process" % way, "peer_pid" not in shape, shape)
        return
    if by_tid:
        fact("%s: for which process, and whose wait it was" % way,
             (shape.get("peer_pid"), shape.get("peer_via_tid")) == (wait["peer"], wait["holder"]), shape)
    fact("%s: what that did" % way,
         (shape.get("peer_did"), shape.get("peer_way")) == PEERS[way] and
         shape.get("peer_name") == "the-server", shape)
    fact("%s: it is no verdict on the process" % way, shape.get("cause") == "lock_contention", shape)
    fact("%s: in words" % way,
         re.search(r"in read for [0-9.]+ ms, in hold_asking\S* <- run_holder \(seen [0-9.]+ ms into the wait\), "
                   r"waiting for the-server \(pid \d+\), which was (in clock_nanosleep|stopped by SIGSTOP)",
                   shape.get("cause_evidence", "")), shape)


def check_spin(wait, shape):
    function, words = SPINS[wait["way"]]
    fact("%s: it is one wait" % wait["way"], re.search(words, shape.get("cause_evidence", "")), shape)
    fact("%s: in which function" % wait["way"],
         shape.get("cause_stack") == "%s <- look_step" % function, shape)


def check_waker(wait, shape, by_tid):
    thread = wait["holder"] if by_tid else r"\d+"
    fact("%s: who ended it" % wait["way"],
         re.search(r', %s thread %s "h-first"' % (WAKER_WORDS[wait["way"]], thread),
                   shape.get("cause_evidence", "")), shape)


def check_next(wait, shape, by_tid):
    first, then = (wait["holder"], wait["then"]) if by_tid else (r"\d+", r"\d+")
    fact("two: who had it, and who had it then",
         re.search(r', held by thread %s "h-first": clock_nanosleep .*; then by thread %s "h-second"' % (first, then),
                   shape.get("cause_evidence", "")), shape)


def check(truth, events, by_tid):
    escalations = {e["shape"]["step"]: e["shape"] for e in events if e["event"] == "escalation_prof"}
    # A holder that waits for a CPU is that for which the step waits.
    waits = truth["waits"]
    fact("all ways were gone", len({w["way"] for w in waits}) == len(waits) == 21, waits)
    for i, wait in enumerate(waits):
        shape = escalations.get(WARM + (i + 1) * EVERY, {})
        if not wait["function"]:
            fact("%s: nobody is seen to hold it" % wait["way"],
                 shape and not any(k.startswith("holder") for k in shape), shape)
            fact("%s: what the other threads are in" % wait["way"],
                 re.fullmatch(r'thread \d+ "h-first" in clock_nanosleep for [0-9.]+ ms: '
                              r'hold_sleeping <- run_holder( <- .*)?', shape.get("others_seen", "")), shape)
            if wait["way"] in SPINS:
                check_spin(wait, shape)
            else:
                check_waker(wait, shape, by_tid)
            continue
        fact("%s: what all threads are in, the holder too" % wait["way"],
             re.search(r'thread \d+ "h-first" [^;]*\b%s\b' % wait["function"], shape.get("others_seen", "")), shape)
        check_holder(wait, shape, by_tid)
        if wait["second"]:
            check_chain(wait, shape, by_tid)
        else:
            fact("%s: no chain" % wait["way"], "holder_chain" not in shape, shape)
        if wait["then"]:
            check_next(wait, shape, by_tid)
        check_peer(wait, shape, by_tid)


def check_gdb(text, report):
    gdb = {}
    for part in re.split(r"^Thread ", text, flags=re.MULTILINE)[1:]:
        tid = re.search(r"\(LWP (\d+)\)", part)
        names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+)", part, re.MULTILINE)
        if tid:
            gdb[int(tid.group(1))] = names
    (hang,) = report["hangs"]
    seen = {tid: group["stack"].split(" <- ") for group in hang["threads"] for tid in group["tids"]}
    fact("gdb sees the same threads", seen.keys() == gdb.keys() and len(seen) == 3, (seen, gdb))
    for tid, functions in seen.items():
        # Of functions that were inlined gdb knows too.
        known = [n for n in gdb.get(tid, []) if n in functions]
        fact("gdb sees the same functions in the same order",
             len(functions) > 1 and known == [f for f in functions if f in known] and
             known[:2] == functions[:2], (functions, gdb.get(tid)))


with open(sys.argv[2], encoding="utf-8") as first, open(sys.argv[3], encoding="utf-8") as second:
    if sys.argv[1] == "gdb":
        check_gdb(first.read(), json.load(second))
    else:
        check(json.load(first), [json.loads(line) for line in second], sys.argv[1] == "tids")
sys.exit(failed)

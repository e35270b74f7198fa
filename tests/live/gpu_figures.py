# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The figures of a step as user/model/gpu.h defines them, by brute force. For gpu_truth.py."""
from gpu_capture import KERNEL, MEMCPY, MEMSET, Row
from gpu_sets import both, length, overlaps, union, without

KERNEL_WAIT_NS, NODE_WAIT_NS = 5000, 2000
H2D, D2H, D2D, P2P = (1, 3), (2, 4), (5, 6, 7, 8), (10,)


def spans(items, step):
    return union((max(x.start, step.start), min(x.stop, step.stop)) for x in items)


def median(values):
    return sorted(values)[len(values) // 2] if values else 0


def find_next(items, at):
    """The work that begins at a time. If there are several, the one launched first."""
    return min((x for x in items if x.start == at),
               key=lambda x: x.call.start if x.call else 0)


def find_behind(items, end):
    """The first work after a time that was launched before that time."""
    later = [x for x in items if x.start >= end and x.call and x.call.start < end]
    return min(later, key=lambda x: (x.start, x.call.start)) if later else None


def ends_in_graph(items, at, graph_work):
    return graph_work.graph and any(x.stop == at and x.graph == graph_work.graph for x in items)


def split_idle(step, items, busy, figures):
    """Charges each gap by the work that ends it. Returns the pieces of host_wait with their
    threads."""
    waits = []
    for start, end in without([(step.start, step.stop)], busy):
        work = find_next(items, end) if end < step.stop else find_behind(items, end)
        begun = [x for x in items if x.start == step.stop] if end == step.stop else []
        if begun and not work:
            work = find_next(items, end)
        if not work:
            figures["host_wait"] += end - start
            figures["hta_host_wait"] += end - start
            waits.append((start, end, step.tid))
            continue
        if not work.call:
            figures["unattributed"] += end - start
            continue
        a = min(max(work.call.start, start), end)
        b = min(max(work.call.stop, start), end)
        figures["host_wait"] += a - start
        figures["hta_host_wait"] += end - start if a > start else 0
        figures["launch"] += b - a
        figures["queue"] += end - b
        least = NODE_WAIT_NS if ends_in_graph(items, start, work) else KERNEL_WAIT_NS
        figures["kernel_wait" if end - b < least else "dependency"] += end - b
        waits.append((start, a, work.call.tid))
    return waits


def split_waits(step, waits, calls, figures):
    for start, end, tid in waits:
        if tid != step.tid or calls is None:
            figures["wait_unknown"] += end - start
            continue
        parts = {blocked: union((max(c.start, start), min(c.stop, end)) for c in calls
                                if c.blocked == blocked and overlaps(c, start, end))
                 for blocked in (True, False)}
        blocked, other = length(parts[True]), length(parts[False])
        figures["wait_blocked"] += blocked
        figures["wait_syscall"] += other
        figures["wait_user"] += end - start - blocked - other


def measure_queue(step, items, idle, figures):
    """Work that is launched but not started: its mean number, and whether there is any in the idle
    time."""
    waiting = [(x.call.stop, x.start) for x in items if x.call and x.call.stop < x.start]
    figures["empty_ns"] = length(without(idle, union(waiting)))
    if any(x.graph for x in items):
        return  # how many of a graph wait is nothing that a checker could know better
    h = [(step.start, step.stop)]
    figures["depth_ns"] = sum(length(both([x], h)) for x in waiting)


def measure_launches(items, figures):
    """A graph launch counts once, by its first node."""
    launches, ends = {}, {}
    for work in sorted(items, key=lambda x: x.start):
        stream = (work.context, work.stream)
        before = ends.get(stream, 0)
        ends[stream] = max(before, work.stop)
        if work.mine and work.call:
            launch = launches.setdefault(id(work.call), Row(call=work.call, start=work.start,
                                                            before=before, ns=0))
            launch.ns += work.stop - work.start
    launches = list(launches.values())
    delays = [max(0, x.start - max(x.call.stop, x.before)) for x in launches]
    figures["launches"] = len(launches)
    figures["launch_latency"] = median([max(0, x.start - x.call.stop) for x in launches])
    figures["launch_api"] = median([x.call.stop - x.call.start for x in launches])
    figures["queue_delay"] = median(delays)
    figures["wait_behind"] = median([max(0, min(x.start, x.before) - x.call.stop)
                                     for x in launches])
    figures["work"] = median([x.ns for x in launches])
    figures["tklqt"] = sum(delays) + sum(x.call.stop - x.call.start for x in launches)


def count_mine(mine, figures):
    def select(kind, copies=None):
        return [x for x in mine if x.kind == kind and (not copies or x.copy_kind in copies)]

    figures["kernels"] = len(select(KERNEL))
    figures["memcpys"] = len(select(MEMCPY))
    figures["memsets"] = len(select(MEMSET))
    figures["graph_launches"] = len({id(x.call) for x in mine if x.graph and x.call})
    figures["graph_nodes"] = len([x for x in mine if x.graph])
    figures["pageable"] = len([x for x in mine if x.kind == MEMCPY and 1 in (x.source, x.target)])
    for name, copies in (("h2d", H2D), ("d2h", D2H), ("d2d", D2D), ("p2p", P2P)):
        figures[name + "_bytes"] = sum(x.bytes for x in select(MEMCPY, copies))
    figures["memset_bytes"] = sum(x.bytes for x in select(MEMSET))


def compute(step, items, calls, runs_in):
    """The figures of one device or of all. items are pieces of work with call (may be None), mine
    and comm. calls are the syscalls of the step thread; None: unknown. runs_in(start, stop) are all
    pieces of work that run then: a view may reach into the steps that follow. Times are in ns,
    without "_ns"."""
    names = ("host_wait", "launch", "queue", "unattributed", "kernel_wait", "dependency",
             "hta_host_wait", "wait_blocked", "wait_syscall", "wait_user", "wait_unknown")
    figures = dict.fromkeys(names, 0)
    busy = spans(items, step)
    kernels = spans([x for x in items if x.kind == KERNEL], step)
    comm = spans([x for x in items if x.comm], step)
    others = spans([x for x in items if x.kind == KERNEL and not x.comm], step)
    copies = spans([x for x in items if x.kind != KERNEL], step)
    idle = without([(step.start, step.stop)], busy)
    mine = [x for x in items if x.mine]
    figures.update(
        total=step.stop - step.start, busy=length(busy), kernel=length(kernels),
        idle=length(idle), comm=length(comm), exposed_comm=length(without(comm, others)),
        exposed_copy=length(without(copies, kernels)),
        work_sum=sum(length(spans([x], step)) for x in items))
    figures["memcpy"] = length(spans([x for x in items if x.kind == MEMCPY], step))
    figures["memset"] = length(spans([x for x in items if x.kind == MEMSET], step))
    for name, kinds in (("memcpy_h2d", H2D), ("memcpy_d2h", D2H), ("memcpy_d2d", D2D),
                        ("memcpy_p2p", P2P), ("transfer", H2D + D2H + P2P)):
        figures[name] = length(spans([x for x in items if x.kind == MEMCPY and
                                      x.copy_kind in kinds], step))
    waits = split_idle(step, items, busy, figures)
    split_waits(step, waits, calls, figures)
    measure_queue(step, items, idle, figures)
    measure_launches(items, figures)
    count_mine(mine, figures)
    if mine:
        view = (min(x.start for x in mine), max(x.stop for x in mine))
        figures["view"] = view[1] - view[0]
        all_work = union((x.start, x.stop) for x in runs_in(*view))
        figures["view_busy"] = length(both(all_work, [view]))
    return figures


def measure_thread(step, items, calls, syncs, figures):
    """The step thread. syncs: rows of its calls that wait, with end, the end of the awaited work.
    """
    busy = spans(items, step)
    waiting = spans(syncs, step)
    tails = union((max(x.start, x.end, step.start), min(x.stop, step.stop)) for x in syncs)
    figures["sync"] = length(waiting)
    figures["sync_useful"] = length(both(waiting, busy))
    figures["sync_tail"] = length(tails)
    if calls is not None:
        blocked = spans([c for c in calls if c.blocked], step)
        outside = without(spans(calls, step), waiting)
        figures["sync_spin"] = length(without(waiting, blocked))
        figures["cuda_internal"] = length(both(spans(calls, step), waiting))
        figures["exposed_syscall"] = length(without(outside, busy))
        figures["overlapped_syscall"] = length(both(outside, busy))
        figures["gpu_only"] = length(both(busy, union(waiting + blocked)))
        figures["gpu_host"] = figures["busy"] - figures["gpu_only"]

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A program in which other tools look at each call, with children, and with ends of many sorts. Reads a
line, runs the function of that name, and prints what it returns as JSON."""
import json, multiprocessing, os, signal, subprocess, sys, threading, time

HERE = os.path.abspath(__file__)
seen = []


class Core:
    calls = 0

    def step(self, batch):
        Core.calls += 1
        total = 0
        for n in batch:
            total += n
        return total

    def fails(self, batch):
        raise ValueError(batch)

    def deep(self, depth):
        Core.depth = depth
        return self.deep(depth + 1)


core = Core()


def work(times=100):
    """What the other tool has seen of this, and how often the step was called."""
    del seen[:]
    before = Core.calls
    total = sum(core.step([1, 2, 3]) for _ in range(times))
    return {'total': total, 'calls': Core.calls - before, 'seen': counts()}


def replace_step():
    """What a program does that mends a library's class: the attribute is another function from now on."""
    def other(self, batch):
        return -1
    Core.replaced, Core.step = Core.step, other
    Core.other = other
    return is_replaced()


def is_replaced():
    return [Core.step is Core.other, core.step([1, 2, 3]), Core.replaced(core, [1, 2, 3])]


def recurse():
    try:
        core.deep(1)
    except RecursionError as error:
        return [Core.depth, str(error).split(' while')[0]]


def has_jit():
    if hasattr(sys, '_jit'):
        return sys._jit.is_enabled()
    import sysconfig
    return 'enable-experimental-jit' in (sysconfig.get_config_var('CONFIG_ARGS') or '')


def work_hot():
    return work(20000)


def work_little():
    return work(10)


def counts():
    made = {}
    for what in list(seen):
        made[str(what)] = made.get(str(what), 0) + 1
    return made


def is_step(code):
    return code.co_filename == HERE and code.co_name == 'step'


# sys.settrace, sys.setprofile


def trace(frame, event, arg):
    if is_step(frame.f_code):
        seen.append((event, frame.f_lineno))
        return trace


def start_settrace():
    sys.settrace(trace)


def stop_settrace():
    sys.settrace(None)


def start_setprofile():
    sys.setprofile(lambda frame, event, arg: seen.append(event) if is_step(frame.f_code) else None)


def stop_setprofile():
    sys.setprofile(None)


# sys.monitoring, of 3.12 and newer


def start_monitoring():
    monitoring = sys.monitoring
    events = monitoring.events
    monitoring.use_tool_id(3, 'beside')
    for name in 'PY_START', 'PY_RETURN', 'LINE':
        monitoring.register_callback(3, getattr(events, name), lambda code, *_, name=name: seen.append(name))
    monitoring.set_local_events(3, Core.step.__code__, events.PY_START | events.PY_RETURN | events.LINE)


def stop_monitoring():
    sys.monitoring.set_local_events(3, Core.step.__code__, 0)
    sys.monitoring.free_tool_id(3)


# coverage


def start_coverage():
    import coverage
    global measured
    measured = coverage.Coverage(data_file=None, include=[HERE])
    measured.start()


def stop_coverage():
    measured.stop()
    return measured.get_data().lines(HERE)


# debugpy, which stops at a breakpoint in each call


def start_debugpy():
    import debugpy, socket
    with socket.create_server(('127.0.0.1', 0)) as free:
        address = free.getsockname()
    debugpy.listen(address, in_process_debug_adapter=True)
    return address[1]


def wait_debugpy():
    import debugpy
    debugpy.wait_for_client()


def stop_debugpy():
    pass


# torch.compile of a caller, and of what it calls


class Layer:
    def forward(self, x):
        return x * 3


def start_torch():
    import torch
    global compiled

    def backend(graph, inputs):
        seen.append('compiled')
        return graph.forward

    @torch.compile(backend=backend)
    def compiled(x):
        return Layer().forward(x) + 1
    return work_torch()


def load_torch():
    import torch


def work_torch():
    """Dynamo inlines the step, so it is not called any more."""
    import torch
    del seen[:]
    total = sum(float(compiled(torch.ones(2)).sum()) for _ in range(20))
    return {'total': total, 'seen': counts()}


# Children: what each makes of the step


def step_of(n):
    return core.step([n, n]) if n % 2 else Core().step([n, n])


def in_pool(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        return pool.map(step_of, range(20))


def children_fork():
    return in_pool('fork')


def children_forkserver():
    return in_pool('forkserver')


def children_spawn():
    return in_pool('spawn')


SCRIPT = ('import sys; sys.argv = ["beside"]; exec(compile(open(%r).read(), %r, "exec"), '
          '{"__name__": "child", "__file__": %r}); ' % (HERE, HERE, HERE))


def children_vfork():
    """subprocess uses vfork or posix_spawn where it can."""
    run = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], stdout=subprocess.PIPE, close_fds=False)
    return int(run.stdout)


def children_posix_spawn():
    pid = os.posix_spawn(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(42)'], os.environ)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def children_of_children():
    """A child of a child, whose threads call the step while they are forked."""
    out, into = os.pipe()
    if not os.fork():
        stop = threading.Event()
        busy = [threading.Thread(target=lambda: [core.step([1]) for _ in iter(stop.is_set, True)])
                for _ in range(2)]
        for thread in busy:
            thread.start()
        status = 0
        for _ in range(5):
            pid = os.fork()
            if not pid:
                os.write(into, b'%d ' % core.step([1, 2]))
                os._exit(0)
            status |= os.waitpid(pid, 0)[1]
        stop.set()
        os._exit(status != 0)
    status = os.wait()[1]
    return [status, os.read(out, 100).decode().split()]


# Ends


def busy_daemons():
    for _ in range(4):
        threading.Thread(target=lambda: [core.step([1, 2]) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(0.05)


def end_main():
    sys.stdin.close()


def end_exit():
    sys.exit(3)


def end_os_exit():
    os._exit(4)


def end_exception():
    core.fails('as ever')


def end_interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)


def end_term():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)


def end_exec():
    os.execv(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(5)'])


def end_in_step():
    """From a thread, while others are in the step."""
    threading.Thread(target=os._exit, args=(6,)).start()
    while True:
        core.step([1] * 1000)


def main():
    while not sys.stdin.closed:
        line = sys.stdin.readline().strip()
        if not line:
            break
        print(json.dumps({'answer': globals()[line]()}), flush=True)


if __name__ == '__main__':
    main()

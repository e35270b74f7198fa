# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine with a double of PyTorch's profiler: its modules have the functions that torch.profiler is
made of, write each call into LOG as a line of JSON, and export what PyTorch does: torch_engine.py LOG
MODE FOLDER. It makes steps until FOLDER/end is there, none while FOLDER/idle is, and then writes its
own account. While FOLDER/hang is, a step does not end. Each time that either begins is a line of LOG,
too. Once FOLDER/worker is there, it starts another such engine, whose FOLDER that is.

SLOW in the environment: for how many seconds its start lets go of the GIL. HOLDS: another thread makes calls
of the step, and one that begins during that start does not end before the engine.

MODE: new; taken (a profiler of the engine is on);
observed (an observer of the engine is there); start, save, stop (that fails); lost (something else stops
the profiler); none (no PyTorch)"""
import gc, json, os, select, subprocess, sys, threading, time, types

log_path, mode, folder = sys.argv[1:]
log = open(log_path, 'a', buffering=1)
state = {'on': False, 'thread': 0, 'execution': None, 'ops': [], 'nodes': 0, 'cuda': 0, 'holds': False}
account = {'steps': 0, 'profiled': 0, 'raised': 0, 'kept': 0, 'tokens': 0}
BASE = 1790857026 * 10**9


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def say(call, *arguments):
    log.write(json.dumps({'call': call, 'arguments': arguments, 'thread': threading.get_native_id(),
                          'at': time.monotonic(),
                          'pending': repr(sys.exc_info()[1])}) + '\n')


class Kind:
    CPU, CUDA, KINETO = 'CPU', 'CUDA', 'KINETO'


def experimental(**options):
    return options


def config(*arguments):
    return arguments


def prepare(settings, activities):
    say('prepare', settings, sorted(activities))


def enable(settings, activities):
    say('enable', settings, sorted(activities))
    if mode == 'start':
        raise RuntimeError('Profiler is already enabled on this thread')
    state['holds'] = True
    time.sleep(float(os.environ.get('SLOW', 0)))
    state.update(on=True, thread=threading.get_ident(), ops=[])


class Result:
    def __init__(self, ops):
        self.ops = ops

    def trace_start_ns(self):
        return 0 if self.ops is None else 1

    def save(self, path):
        say('save', path)
        if self.ops is None:
            os.abort()
        if mode == 'save':
            raise RuntimeError('no room for it')
        events = [{'ph': 'M', 'name': 'process_name', 'ts': 0, 'pid': os.getpid(), 'args': {'name': 'python'}}]
        events += [{'ph': 'X', 'cat': 'cpu_op', 'name': 'fake::op', 'pid': os.getpid(), 'tid': tid,
                    'ts': (begin - BASE) / 1000, 'dur': (end - begin) / 1000, 'args': {'External id': n}}
                   for n, (tid, begin, end) in enumerate(self.ops)]
        # Lanes with names instead of numbers, and a slice without args.
        begin = min([op[1] for op in self.ops], default=BASE)
        at = {'ts': (begin - BASE) / 1000}
        events += [{'ph': 'X', 'cat': 'Trace', **at, 'dur': 1.0, 'pid': 'Spans', 'tid': 'PyTorch Profiler',
                    'name': 'PyTorch Profiler (0)', 'args': {'Op count': len(self.ops)}},
                   {'name': 'process_sort_index', 'ph': 'M', **at, 'pid': 'Spans', 'tid': 0,
                    'args': {'sort_index': 0x20000000}},
                   {'name': 'Iteration Start: PyTorch Profiler', 'ph': 'i', 's': 'g', 'pid': 'Traces',
                    'tid': 'Trace PyTorch Profiler', **at},
                   {'ph': 'X', 'cat': 'overhead', 'name': 'Buffer Flush', 'pid': -1, 'tid': 0, **at, 'dur': 1.0},
                   {'name': 'Record Window End', 'ph': 'i', 's': 'g', 'pid': '', 'tid': '', **at}]
        with open(path + '.tmp', 'w') as file:
            json.dump({'schemaVersion': 1, 'deviceProperties': [], 'baseTimeNanoseconds': BASE,
                       'traceEvents': events, 'traceName': path}, file)
        os.rename(path + '.tmp', path)


def is_on_here():
    # As a thread's own storage: a forked child has that of the thread that forked.
    return state['on'] and state['thread'] == threading.get_ident()


def disable():
    say('disable')
    if mode == 'stop':
        state['on'] = False
        raise RuntimeError('cannot stop')
    if not is_on_here():
        return Result(None)
    state['on'] = False
    return Result(None if mode == 'lost' else state['ops'])


def add_observer(path):
    say('add', path)
    if mode != 'observed':
        state['execution'] = open(path, 'w')
    return True


def enable_observer():
    say('enable_observer')
    state['execution'].write('{"schema": "1.1.1-chakra.0.0.4", "nodes": [\n')
    state['nodes'] = 0


def disable_observer():
    say('disable_observer')


def remove_observer():
    say('remove')
    state['execution'].write('\n]}')
    state['execution'].close()
    state['execution'] = None


def synchronize():
    state['cuda'] += 1


if mode != 'none':
    module('torch', profiler=None)
    module('torch._C', _cuda_synchronize=synchronize)
    module('torch.cuda', is_initialized=lambda: True)
    module('torch.autograd.profiler', _is_profiler_enabled=mode == 'taken')
    module('torch.autograd', ProfilerActivity=Kind, ProfilerState=Kind, ProfilerConfig=config,
           _prepare_profiler=prepare, _enable_profiler=enable, _disable_profiler=disable,
           _profiler_enabled=is_on_here,
           _enable_record_function=lambda on: say('enable_record_function', on),
           _add_metadata_json=lambda key, value: say('metadata', key, value))
    module('torch._C._profiler', _ExperimentalConfig=experimental,
           _add_execution_trace_observer=add_observer, _enable_execution_trace_observer=enable_observer,
           _disable_execution_trace_observer=disable_observer,
           _remove_execution_trace_observer=remove_observer)


def is_over():
    return os.path.exists(folder + '/end')


def await_gone(name):
    if os.path.exists(folder + '/' + name):
        log.write('{"call": "%s"}\n' % name)
    while os.path.exists(folder + '/' + name) and not is_over():
        time.sleep(0.002)


class Engine:
    def forward(self, tokens):
        begin = time.time_ns()
        os.getppid()
        if state['execution']:
            state['execution'].write((',' if state['nodes'] else '') + '{"id": %d}\n' % state['nodes'])
            state['nodes'] += 1
        if is_on_here():
            state['ops'].append((threading.get_native_id(), begin, time.time_ns()))
        if tokens % 7 == 3:
            raise ValueError(tokens)

    def step(self, tokens, deeper=True):
        if tokens < 0:
            holds = state['holds']
            time.sleep(0.01)
            while holds and not is_over():
                time.sleep(0.01)
            return
        account['steps'] += deeper
        account['profiled'] += deeper and state['on']
        if state['on'] and deeper:
            log.write('{"call": "step"}\n')
        if deeper and tokens % 5 == 0:
            return self.step(tokens, False)
        await_gone('hang')
        self.forward(tokens)
        return tokens


# A child that is forked in a window has the armed function, and nothing else of the library. What it writes into
# the execution trace must not come into its parent's.
def fork(engine):
    global log
    pid = os.fork()
    if not pid:
        status = 1
        try:
            log = open(log_path + '.child', 'a', buffering=1)
            for n in range(100):
                Engine.forward(engine, 1)
            if state['execution']:
                state['execution'].flush()
            status = 0 if engine.step(1) == 1 and engine.step(1) == 1 else 1
        finally:
            os._exit(status)
    account['child'] = os.waitpid(pid, 0)[1]


def start_worker():
    return subprocess.Popen([sys.executable, sys.argv[0], log_path + '.worker', 'new', folder + '/worker'],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def run():
    engine, tokens, worker = Engine(), 0, None
    while not is_over():
        time.sleep(0.002)
        if not worker and os.path.exists(folder + '/worker'):
            worker = start_worker()
        await_gone('idle')
        if is_over():
            break
        tokens += 1
        account['tokens'] += tokens
        if account['profiled'] == 20 and 'child' not in account:
            fork(engine)
        try:
            engine.step(tokens)
        except ValueError as error:
            account['raised'] += tokens % 7 == 3
            account['kept'] += error.args == (tokens,)
    account['worker'] = worker.wait() if worker else None


print('ready', flush=True)
# A thread that reads a named pipe is not taken for an injection; one that polls it is.
select.select([sys.stdin], [], [])
sys.stdin.readline()
thread = threading.Thread(target=run)
thread.start()
while os.environ.get('HOLDS') and not is_over():
    Engine().step(-1)
thread.join()
account['thread'] = thread.native_id
account['cuda'] = state['cuda']
account['modules'] = [name for name in sys.modules if name.startswith('torch') and mode == 'none']
account['files'] = [name for name in (os.readlink('/proc/self/fd/' + fd)
                                      for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)
                                      or os.path.islink('/proc/self/fd/' + fd)) if 'ferrum-torch' in name]
json.dump(account, open(folder + '/truth.json.new', 'w'))
os.rename(folder + '/truth.json.new', folder + '/truth.json')

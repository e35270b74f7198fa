# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A program whose functions are armed. Reads a line, runs the function of that name, and prints what it
returns as JSON; each function counts its own calls of what may be armed."""
import contextlib, functools, gc, json, os, sys, threading, time, types

calls, lock = {}, threading.Lock()
if not getattr(sys, '_is_gil_enabled', lambda: True)():
    # With the first thread besides, CPython 3.13t makes functions immortal: not the library's thread does.
    threading.Thread(target=int).start()


def count(name):
    with lock:
        calls[name] = calls.get(name, 0) + 1


class Batch:
    def __init__(self, tokens, requests):
        self.tokens, self.requests = tokens, dict.fromkeys(range(requests))

    @property
    def costly(self):
        count('property')
        return 7


class Slotted:
    __slots__ = ('tokens',)

    def __init__(self, tokens):
        self.tokens = tokens


class Sly:
    def __getattr__(self, name):
        count('getattr')
        return 5


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        count('wrapper')
        return function(*args, **kwargs)
    return wrapper


class Core:
    limit = 3

    def step(self, batch, *, flag=None):
        count('step')
        return self.limit if flag is None else flag

    @traced
    @traced
    def decorated(self, batch):
        count('decorated')
        return batch

    @staticmethod
    def static(batch):
        count('static')
        return batch

    @classmethod
    def of_class(cls, batch):
        count('of_class')
        return cls

    def fails(self, batch):
        count('fails')
        raise ValueError('as ever')

    def deep(self, n):
        count('deep')
        return self.deep(n - 1) if n else 0

    def wait(self, seconds):
        count('wait')
        time.sleep(seconds)
        return 'waited'

    def generator(self, batch):
        yield batch

    async def coroutine(self, batch):
        return batch


class Derived(Core):
    def step(self, batch, *, flag=None):
        count('derived')
        return super().step(batch, flag=flag)


class Wide:
    def step(self, batch):
        count('wide')
        return batch


class Tall:
    def step(self, batch):
        return batch


# One definition more than there is room for, and one subclass more than are looked at.
wide = [Wide()] + [type(f'Wide{n}', (Wide,), {'step': eval('lambda self, batch: batch')})() for n in range(8)]
tall = [type(f'Tall{n}', (Tall,), {}) for n in range(65)]


def plain(batch):
    count('plain')
    return batch


class Kept:
    """A decorator whose instances have no dict until somebody asks for it (3.11 and newer)."""
    def __init__(self, function):
        self.__wrapped__ = function

    def __call__(self, batch):
        return self.__wrapped__(batch)


@Kept
def kept(batch):
    count('kept')
    return batch


# 3.14 gives it no version.
made = types.FunctionType(plain.__code__, globals(), 'made')


def words_of_made():
    """What is in the function object, but for its references."""
    import ctypes
    return list((ctypes.c_uint64 * (made.__sizeof__() // 8)).from_address(id(made)))[1:]


def spare():
    count('spare')
    return 'spare'


def other(n):
    return n + 1


core, derived, sly = Core(), Derived(), Sly()
bound = core.step
partial = functools.partial(core.step, Batch(1, 1))
out, waiting = [], []
collectors, thresholds = set(), gc.get_threshold()


def quiet(function, *args):
    with contextlib.suppress(Exception):
        function(*args)


def hot(times=5000):
    for _ in range(times):
        core.step(None)


def forms():
    core.step(Batch(3, 2))
    core.step(batch=Batch(3, 2), flag=1)
    core.step(*[Batch(3, 2)], **{'flag': 2})
    bound(Batch(3, 2))
    partial()
    list(map(core.step, [Batch(3, 2)] * 5))
    return [core.step(None), core.step(None, flag=9)]


def others():
    core.decorated(1), core.static(2), Core.static(3), core.of_class(4), plain(5)
    for _ in range(100):
        quiet(core.fails, None)
    core.deep(200)
    try:
        core.step()
    except TypeError as error:
        return str(error)


def overrides():
    return [derived.step(None), core.step(None)]


def attributes():
    for batch in (Batch(89, 55), Slotted(4), Sly(), None, 3, {'tokens': 1}, Batch(1 << 70, 0)):
        core.step(batch)
    return calls.get('getattr', 0) + calls.get('property', 0)


def insides():
    """What the objects hold: a dict only if they have been asked for it."""
    return [sorted(type(held).__name__ for held in gc.get_referents(held_by)) for held_by in (kept, core, sly)]


def collect_often():
    """From now on each new object that can be collected starts a collection, where versions collect at once."""
    collectors.clear()
    gc.callbacks.append(note_collector)
    gc.set_threshold(1)


def note_collector(phase, _):
    collectors.add(threading.get_native_id())


def collect_as_ever():
    """The threads that collected meanwhile, and whether the collector is on."""
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(note_collector)
    return [sorted(collectors), gc.isenabled()]


def turn_collector(on=False):
    (gc.enable if on else gc.disable)()
    return gc.isenabled()


def is_collector_on():
    return gc.isenabled()


def turn_collector_on():
    return turn_collector(True)


def call_wide():
    for one in wide:
        one.step(None)


def call_kept():
    kept(1)
    return calls.get('getattr', 0)


def threads():
    def run():
        for _ in range(2000):
            core.step(None)
    group = [threading.Thread(target=run) for _ in range(4)]
    for thread in group:
        thread.start()
    for thread in group:
        thread.join()


def forked():
    """A child has the armed function, and nothing else of the tool."""
    pid = os.fork()
    if not pid:
        for _ in range(100):
            core.step(Batch(1, 1))
        names = []
        for fd in os.listdir('/proc/self/fd'):
            with contextlib.suppress(OSError):
                names.append(os.readlink('/proc/self/fd/' + fd))
        os._exit(1 if any('ferrum-python' in name for name in names) else 0)
    return os.waitpid(pid, 0)[1]


def start_heir():
    """A child that is forked while a function is armed, and loads the library anew, as --python=inject does."""
    import ctypes
    pipes = [os.pipe(), os.pipe()]
    pid = os.fork()
    if not pid:
        ctypes.CDLL(os.environ['HEIR'])
        for _ in range(2):
            os.write(pipes[0][1], b'r')
            os.read(pipes[1][0], 1)
            for _ in range(100):
                core.step(Batch(1, 1))
        os._exit(0)
    heirs.append((pid, pipes))
    os.read(pipes[0][0], 1)
    return pid


def call_heir():
    pid, pipes = heirs[-1]
    os.write(pipes[1][1], b'c')
    return len(os.read(pipes[0][0], 1))


def end_heir():
    pid, pipes = heirs.pop()
    os.write(pipes[1][1], b'c')
    for end in pipes[0] + pipes[1]:
        os.close(end)
    return os.waitpid(pid, 0)[1]


heirs = []


def start_wait():
    waiting.append(threading.Thread(target=lambda: out.append(core.wait(0.5))))
    waiting[0].start()


def end_wait():
    waiting.pop().join()
    return out.pop()


def change_code():
    def fresh(self, batch, *, flag=None):
        count('fresh')
        return 'fresh'
    Core.kept = Core.step.__code__
    Core.step.__code__ = fresh.__code__
    return core.step(None)


def restore_code():
    Core.step.__code__ = Core.kept
    del Core.kept
    return core.step(None)


def reloaded(batch, second=2):
    return [batch, second]


def call_reloaded(times=1):
    """One call site, which is specialised for what it called before."""
    for _ in range(times):
        answer = reloaded(1)
    return answer


def hot_reloaded():
    return call_reloaded(5000)


def reload():
    """What a reloader does: other code, which takes its arguments in another way, and other defaults."""
    def fresh(batch, second, *rest, flag=3):
        return [batch, second, rest, flag]
    fresh.__kwdefaults__['flag'] = 4
    reloaded.__code__, reloaded.__kwdefaults__ = fresh.__code__, fresh.__kwdefaults__
    return call_reloaded()


def other_defaults():
    reloaded.__defaults__ = (5,)
    return call_reloaded()


def no_defaults():
    reloaded.__defaults__ = ()
    return call_without_defaults()


def as_before(parts=(reloaded.__code__, reloaded.__defaults__)):
    reloaded.__code__, reloaded.__defaults__ = parts
    reloaded.__kwdefaults__ = None


def call_without_defaults():
    try:
        return call_reloaded()
    except TypeError as error:
        return str(error)


def state():
    """What arming and disarming must leave as it was."""
    gc.collect()
    return {'refs': [sys.getrefcount(held) for held in (Core.step, Core.step.__code__, Core, plain, plain.__code__,
                                                        sys.modules['__main__'])],
            'code': id(Core.step.__code__), 'name': Core.step.__qualname__,
            'dict': Core.step.__dict__, 'kw': Core.step.__kwdefaults__, 'closure': str(Core.step.__closure__)}


def blocks():
    gc.collect()
    return sys.getallocatedblocks()


def references():
    """Of all objects, as a debug build counts them; None in others."""
    gc.collect()
    return sys.gettotalrefcount() if hasattr(sys, 'gettotalrefcount') else None


def resident_kb():
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmRSS'))


def note_pointer():
    """Of plain and of an override, before they are armed; on 3.11 __code__ can be kept as it is from take_over to
    give_back."""
    import ctypes
    if sys.version_info[:2] == (3, 11):
        sys.addaudithook(forbid)
        return
    header = 0 if getattr(sys, '_is_gil_enabled', lambda: True)() else 16
    offset = ctypes.c_ssize_t.from_address(id(type(plain)) + 56 + header).value
    for function in may_be_taken:
        pointer = ctypes.c_size_t.from_address(id(function) + offset)
        taken.append((pointer, pointer.value))


def forbid(event, args):
    if forbids and event == 'object.__setattr__' and args[0] in may_be_taken and args[1] == '__code__':
        raise RuntimeError('forbidden')


def take_over():
    forbids.append(True)
    for pointer, value in taken:
        pointer.value = value


def give_back():
    forbids.clear()


def call_plain():
    return plain(3)


taken, forbids, may_be_taken = [], [], (plain, Derived.step)


def modules():
    return sorted(sys.modules)


audited = []


def watch():
    """From now on: which events of audit hooks are those of threads that the program did not start."""
    own = {thread.ident for thread in threading.enumerate()}

    def hook(event, _, ident=threading.get_ident):
        if ident() not in own:
            audited.append(event)
    sys.addaudithook(hook)


def events():
    seen = audited[:]
    audited.clear()
    return seen


busy = []


def crowd():
    for i in range(20000):
        sys.modules[f'package_of_many.subpackage_{i:05}.implementation'] = sys


def start_busy(n=4):
    stop = threading.Event()

    def run():
        while not stop.is_set():
            core.step(None)
            other(1)
    group = [threading.Thread(target=run, daemon=True) for _ in range(n)]
    for thread in group:
        thread.start()
    busy.append((stop, group))


def stop_busy():
    stop, group = busy.pop()
    stop.set()
    for thread in group:
        thread.join()
    return True


for line in sys.stdin:
    before = dict(calls)
    answer = globals()[line.strip()]()
    print(json.dumps({'answer': answer if not isinstance(answer, type) else str(answer),
                      'calls': {name: calls[name] - before.get(name, 0) for name in calls}}), flush=True)

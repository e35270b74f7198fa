# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""frames.py TRUTH: threads that block in all sorts of functions, and for each the functions that it is in, as the
interpreter itself says them: {place: [tid, [[name, file, line] …]]}. Then obeys the lines of stdin."""
import asyncio, contextlib, ctypes, functools, json, os, queue, sys, threading, time

truth = {}
threading.excepthook = lambda failure: (sys.__excepthook__(*failure[:3]), os._exit(3))
never, _ = os.pipe()
locked = threading.Lock()
locked.acquire()
PLACES = []


def note(place):
    """The functions outside of this one. Called on the line that blocks, so that is its line too."""
    frames, at = [], sys._getframe(1)
    while at:
        code = at.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, at.f_lineno])
        at = at.f_back
    truth[place] = [threading.get_native_id(), frames]


def block(place):
    note(place) or time.sleep(100000)


def place(function):
    PLACES.append(function)
    return function


@place
def in_sleep():
    note("sleep") or time.sleep(100000)


@place
def in_lock():
    note("lock") or locked.acquire()


@place
def in_read():
    note("read") or os.read(never, 1)


@place
def in_event():
    block_here = threading.Event()
    note("event") or block_here.wait()


@place
def in_queue():
    note("queue") or queue.Queue().get()


@place
def nested():
    def outer():
        deep = 1

        def inner():
            if deep:
                block("nested")

        inner()

    outer()


class Engine:
    def step(self, batch):
        return self.model(
            batch,
            self.size,
        )

    def model(self, batch, size):
        return size

    @property
    def size(self):
        return self._size(1) + 1

    @classmethod
    def _size(cls, more):
        return cls.count(more=more)

    @staticmethod
    def count(*, more):
        block("methods")

    def __getattr__(self, name):
        raise AttributeError(name)


@place
def methods():
    Engine().step([1])


@place
def with_lambda():
    (lambda a: (lambda b: block("lambda"))(a))(1)


@place
def comprehension():
    return [
        [block("comprehension") for _ in "a"]
        for _ in "b"
    ]


@place
def dictionary():
    return {k: v for k, v in ((1, block("dictionary")),)}


def numbers():
    yield 1
    yield block("generator")


@place
def generator():
    for number in numbers():
        number += 1


@place
def generator_in_c():
    def source():
        yield from (block("generator in C") for _ in "a")

    sum(source())


@place
def sorted_key():
    sorted([2, 1], key=lambda item: block("sorted"))


@place
def partial():
    functools.partial(functools.partial(block, "partial"))()


@place
def mapped():
    list(map(lambda item: list(filter(lambda _: block("map"), "a")), "b"))


@place
def callback():
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    def compare(a, b):
        block("ctypes")
        return 0

    ctypes.CDLL(None).qsort((ctypes.c_int * 4)(), 4, 4, compare)


@place
def recursion():
    def again(depth):
        return again(depth - 1) if depth else block("recursion")

    again(150)


@place
def recursion_in_c():
    def again(depth):
        if depth:
            return max([1, 2], key=lambda _: again(depth - 1))
        block("recursion through C")

    again(20)


@place
def decorated():
    def wrap(function):
        @functools.wraps(function)
        def wrapper(*arguments, **words):
            return function(*arguments, **words)

        return wrapper

    @wrap
    @wrap
    def core(*_, **words):
        block("decorated")

    core(1, 2, three=3)


@place
def managed():
    @contextlib.contextmanager
    def manager():
        try:
            yield
        finally:
            block("context manager")

    with manager():
        pass


@place
def coroutine():
    async def leaf():
        block("coroutine")

    async def stem():
        await leaf()

    asyncio.run(stem())


@place
def class_body():
    class Body:
        blocked = block("class body")


@place
def raised():
    try:
        1 / 0
    except ZeroDivisionError:
        block("handler")


@place
def deleted():
    class Last:
        def __del__(self):
            block("finalizer")

    last = Last()
    del last


@place
def strange_names():
    code = "def prüfung_\u4e2d\u6587():\n\n block('strange')\nprüfung_\u4e2d\u6587()\n"
    exec(compile(code, "/tmp/\x1b[31m\u4e2d.py", "exec"), globals())


@place
def long_function():
    lines = ["def long(x):", " if x: return x"]
    lines += [" x += %d  # \n" % i for i in range(3000)]
    lines += [" return (x,", "  block('long'),", "  x)"]
    scope = {"block": block}
    exec(compile("\n".join(lines), "long.py", "exec"), scope)
    scope["long"](0)


@place
def long_name():
    name = "f" + "o" * 400
    scope = {"block": block}
    exec(compile("def %s():\n block('long name')\n%s()" % (name, name), "/" + "d" * 300 + "/x.py", "exec"), scope)


def foreign_thread():
    """A thread that Python did not start."""
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    @kind
    def begin(_):
        block("foreign")

    handle = ctypes.c_ulong()
    ctypes.CDLL(None).pthread_create(ctypes.byref(handle), None, begin, None)
    return begin


def hot_leaf(n):
    return [i * n for i in range(3)]


def hot_generator(n):
    for i in range(n):
        yield hot_leaf(i)


def hot_sort(n):
    return sorted(range(n), key=lambda i: -i)


def hot():
    note("hot")
    while True:
        for item in hot_generator(5):
            hot_sort(3)
            Hot().method(1)


class Hot:
    def method(self, n):
        return n and self.method(n - 1)


def hold(path, seconds):
    """Keeps the GIL: PyDLL does not give it back."""
    note("hold") or write(path) or ctypes.PyDLL(None).usleep(seconds * 1000000)


def fork(path):
    pid = os.fork()
    if pid:
        return pid
    truth.clear()
    threading.Thread(target=in_sleep).start()
    while "sleep" not in truth:
        time.sleep(0.01)
    note("main") or write(path) or os.read(never, 1)


def write(path):
    with open(path + ".new", "w") as file:
        json.dump(truth, file)
    os.rename(path + ".new", path)


def start_hot(path):
    threading.Thread(target=hot, daemon=True).start()
    while "hot" not in truth:
        time.sleep(0.01)
    write(path)


def main():
    for function in PLACES:
        threading.Thread(target=function, daemon=True).start()
    keep = foreign_thread()
    while len(truth) < len(PLACES) + 1:
        time.sleep(0.01)
    write(sys.argv[1])
    for line in sys.stdin:
        order, path, *words = line.split()
        if order == "fork":
            print(fork(path), flush=True)
        elif order == "hot":
            start_hot(path)
        elif order == "hold":
            threading.Thread(target=hold, args=[path, int(words[0])], daemon=True).start()
    os._exit(0 if keep else 1)


main()

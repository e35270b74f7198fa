# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""An engine in Python whose step is slow now and then, each time in other functions: slow.py TRUTH STEPS. Says
ready, waits for its go, makes STEPS steps, and writes which were slow and in which functions."""
import ctypes, json, os, select, sys, threading, time

NAP_S = 0.08
HANG_S, HANG = 1.5, 100
truth = {"steps": {}, "holder": 0, "hang": HANG, "main": threading.get_native_id(), "frames": {}}
wanted = threading.Event()
usleep = ctypes.PyDLL(None).usleep
holding = threading.Event()


def note(kind):
    """The functions of the step, or of the thread, by the line that is slow."""
    frames, at = [], sys._getframe(1)
    while at and (not frames or frames[-1][0].split(".")[-1] != "step"):
        code = at.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, at.f_lineno])
        at = at.f_back
    truth["frames"][kind] = frames


class Engine:
    def step(self, n):
        x = sum(i for i in range(2000))
        kind = {3: "spin", 5: "nap", 11: "read", 17: "gil"}.get(n % 20) if n > 40 else None
        kind = "hang" if n == HANG else kind
        if kind:
            start = time.monotonic_ns()
            getattr(self, kind)()
            truth["steps"][n] = [kind, time.monotonic_ns() - start]
        else:
            self.quick()
        return x

    def quick(self):
        time.sleep(0.0005)

    def nap(self):
        self.load_weights(lambda: note("nap") or time.sleep(NAP_S))

    def load_weights(self, how):
        return [how() for _ in "a"]

    def read(self):
        end, start = os.pipe()
        threading.Thread(target=answer, args=(start,)).start()
        sorted([1], key=lambda _: note("read") or os.read(end, 1))
        os.close(end)
        os.close(start)

    def is_early(self, end):
        return time.monotonic() < end

    def spin(self):
        """Once noted, it is a loop of the same line."""
        end = time.monotonic() + NAP_S
        while self.is_early(end) if "spin" in truth["frames"] else not note("spin"): os.sched_yield()

    def hang(self):
        self.load_weights(lambda: note("hang") or time.sleep(HANG_S))

    def gil(self):
        """Lets the other thread have the GIL, which then keeps it."""
        holding.clear()
        wanted.set()
        while not holding.is_set():
            note("gil") or time.sleep(0.0005)


def answer(end):
    time.sleep(NAP_S)
    os.write(end, b"x")


def keep_gil():
    note("hold") or holding.set() or usleep(int(NAP_S * 1e6))


def hold():
    truth["holder"] = threading.get_native_id()
    while True:
        wanted.wait()
        wanted.clear()
        keep_gil()


def main():
    path, steps = sys.argv[1], int(sys.argv[2])
    threading.Thread(target=hold, daemon=True).start()
    print("ready", flush=True)
    select.select([sys.stdin], [], [])
    sys.stdin.readline()
    engine = Engine()
    for n in range(steps):
        engine.step(n)
        time.sleep(0.001)
    with open(path + ".new", "w") as file:
        json.dump(truth, file)
    os.rename(path + ".new", path)
    os._exit(0)


main()

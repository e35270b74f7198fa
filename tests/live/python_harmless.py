# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What else happens in a process whose functions are armed: other tools look at them, children are made,
the process ends. All is as it is without.

usage: python_harmless.py INTERPRETER LIBRARY DRIVE TIMES PACKAGES TORCH"""
import pathlib, subprocess, sys, time

HERE = pathlib.Path(__file__).parent / 'python'
sys.path.insert(0, str(HERE))
import dap, drive
from drive import fact

interpreter, library, driver, times, packages, torch = sys.argv[1:]
PROGRAM = str(HERE / 'beside.py')
label = drive.version_of(interpreter)
minor = int(label.split('.')[1])
# 3.11 has a code object of ours while a function is armed.
exact = minor != 11


def start(**options):
    return drive.Process(interpreter, PROGRAM, env=drive.environment(library, PYTHONPATH=packages), **options)


def without_trampoline(seen):
    """On 3.11 other tools see one call more for each; its line is the function's first."""
    return seen if exact else {what: n for what, n in seen.items() if n % 100 == 0 and 'call' not in what}


def beside(name, target, work='work', before=None):
    """The same work before, armed, and after; and arming again while the other tool is there."""
    plain = before or target.ask(work)['answer']
    for turn in range(2):
        tool = drive.Tool(driver, target.pid)
        tool.arm('__main__:Core.step')
        armed = target.ask(work)['answer']
        calls = tool.calls()
        tool.ask('disarm')
        tool.end()
        after = target.ask(work)['answer']
        if 'calls' in plain:
            fact(f'{label}: {name}, {turn}: each call is counted', calls == plain['calls'] == armed['calls'],
                 (calls, plain, armed))
        fact(f'{label}: {name}, {turn}: armed, it does and shows what it did', exact and armed == plain or
             not exact and armed['total'] == plain['total'] and
             all(armed['seen'].get(what, 0) >= n for what, n in plain['seen'].items()), (plain, armed))
        fact(f'{label}: {name}, {turn}: and after', after == plain, (plain, after))
    return plain


def other_tools():
    names = ['settrace', 'setprofile'] + ['monitoring'] * (minor >= 12)
    for name in names:
        target = start()
        target.ask('work')
        target.ask('start_' + name)
        plain = beside(name, target)
        fact(f'{label}: {name}: it looks at each call', plain['seen'] and
             all(n >= 100 for n in plain['seen'].values()), plain)
        target.ask('stop_' + name)
        fact(f'{label}: {name}: the program ends as ever', target.end() == 0)


def replaced():
    """The program assigns another function to the attribute of the class."""
    target = start()
    # Once it answers, its functions are there.
    target.ask('work')
    tool = drive.Tool(driver, target.pid)
    tool.arm('__main__:Core.step')
    target.ask('work')
    before = tool.calls()
    answer = target.ask('replace_step')['answer']
    fact(f'{label}: replaced while armed: the program has its own', answer == [True, -1, 6], answer)
    fact(f'{label}: replaced while armed: only calls of the old one are counted', (before, tool.calls()) == (100, 101),
         (before, tool.calls()))
    tool.ask('disarm')
    answer = target.ask('is_replaced')['answer']
    fact(f"{label}: replaced while armed: the program's assignment stays", answer == [True, -1, 6], answer)
    tool.arm('__main__:Core.step')
    target.ask('is_replaced')
    fact(f'{label}: replaced while armed: the next trace has the new one', tool.calls() == 1, tool.calls())
    tool.ask('disarm')
    tool.kill()
    fact(f'{label}: replaced while armed: the program ends as ever', target.end() == 0)


def recursion():
    target = start()
    plain = target.ask('recurse')['answer']
    tool = drive.Tool(driver, target.pid)
    tool.arm('__main__:Core.deep')
    armed = target.ask('recurse')['answer']
    slot = tool.ask('count')['slots'][0]
    tool.ask('disarm')
    after = target.ask('recurse')['answer']
    fact(f'{label}: recursion without end: it is told as ever', armed[1] == plain[1] and armed[0] > 100, (plain, armed))
    fact(f'{label}: recursion without end: each begin has its end', slot['begun'] == slot['ended'] >= armed[0] - 1,
         (slot, armed))
    fact(f'{label}: recursion without end: and after', after == plain, (plain, after))
    tool.kill()
    fact(f'{label}: recursion without end: the program ends as ever', target.end() == 0)


def jit():
    target = drive.Process(interpreter, PROGRAM, env=drive.environment(library, PYTHON_JIT='1'))
    if target.ask('has_jit')['answer']:
        beside('PYTHON_JIT=1', target, 'work_hot')
    else:
        print(f'SKIP {label}: PYTHON_JIT=1: this interpreter has no JIT', flush=True)
    fact(f'{label}: PYTHON_JIT=1: the program ends as ever', target.end() == 0)


def coverage():
    lines = []
    for armed in False, True:
        target = start()
        target.ask('start_coverage')
        tool = drive.Tool(driver, target.pid)
        if armed:
            tool.arm('__main__:Core.step')
        target.ask('work')
        lines.append(target.ask('stop_coverage')['answer'])
        if armed:
            fact(f'{label}: coverage: each call is counted', tool.calls() == 100)
        tool.kill()
        target.kill()
    first = next(i for i, text in enumerate(open(PROGRAM), 1) if 'def step(' in text)
    fact(f'{label}: coverage: the same lines', len(lines[0]) > 5 and
         set(lines[1]) - set(lines[0]) <= (set() if exact else {first}) and set(lines[0]) <= set(lines[1]), lines)


def debugger():
    target = start(stderr=subprocess.DEVNULL)
    port = target.ask('start_debugpy')['answer']
    line = 1 + next(i for i, text in enumerate(open(PROGRAM)) if 'total += n' in text)
    client = dap.Debugger(port, PROGRAM, line)
    target.ask('wait_debugpy')
    fact(f'{label}: debugpy: its client is there', client.ready.wait(30))
    stops = []
    tool = drive.Tool(driver, target.pid)
    for armed in False, True, False:
        before = client.stops
        if armed:
            tool.arm('__main__:Core.step')
        target.ask('work_little')
        stops.append(client.stops - before)
        if armed:
            fact(f'{label}: debugpy: each call is counted', tool.calls() == 10)
            tool.ask('disarm')
    fact(f'{label}: debugpy: it stops as often', stops == [30] * 3, stops)
    tool.kill()
    target.kill()


def compiled():
    name = f'{drive.version_of(torch)}: torch.compile'
    target = drive.Process(torch, PROGRAM, env=drive.environment(library), stderr=subprocess.DEVNULL)
    made = target.ask('start_torch')['answer']
    fact(f'{name}: the caller is compiled', made == {'total': 160, 'seen': {'compiled': 1}}, made)
    tool = drive.Tool(driver, target.pid)
    tool.arm('__main__:Layer.forward')
    seen = [target.ask('work_torch')['answer']]
    fact(f'{name}: the function that it calls is armed', tool.ask('count')['slots'][0]['found'] == drive.ARMED)
    tool.ask('disarm')
    seen.append(target.ask('work_torch')['answer'])
    fact(f'{name}: nothing is compiled again, armed or after',
         all(answer == {'total': 160, 'seen': {}} for answer in seen), seen)
    tool.arm('__main__:Layer.forward')
    made = target.ask('start_torch')['answer']
    fact(f'{name}: what is compiled while it is armed does what it did',
         made == {'total': 160, 'seen': {'compiled': 1}}, made)
    tool.kill()
    target.kill()


def children():
    target = start(stderr=subprocess.DEVNULL)
    tool = drive.Tool(driver, target.pid)
    for form in 'fork', 'forkserver', 'spawn', 'vfork', 'posix_spawn', 'of_children':
        plain = target.ask('children_' + form)['answer']
        tool.arm('__main__:Core.step')
        before = tool.calls()
        armed = [target.ask('children_' + form)['answer'] for _ in range(int(times))]
        fact(f"{label}: {form}: children's calls are not the parent's", tool.calls() == before)
        tool.ask('disarm')
        after = target.ask('children_' + form)['answer']
        fact(f'{label}: {form}: children of an armed program do what they did', armed == [plain] * int(times),
             (plain, armed))
        fact(f'{label}: {form}: and after', after == plain, after)
    tool.kill()
    fact(f'{label}: the parent ends as ever', target.end() == 0)


def end_of(how, armed, busy, orders):
    """Exit status and last line of standard error of a program that ends."""
    target = start(stderr=subprocess.PIPE)
    tool = drive.Tool(driver, target.pid) if armed else None
    if armed:
        tool.arm('__main__:Core.step', '__main__:Core.fails')
    if busy:
        target.ask('busy_daemons')
    if orders:
        # They are served while the interpreter ends.
        tool.process.stdin.write('disarm\nresolve\narm\n' * 200)
        try:
            tool.process.stdin.flush()
        except BrokenPipeError:
            pass
    target.say('end_' + how)
    try:
        text = target.process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        text = 'it hangs'
        target.process.kill()
    status = target.process.wait()
    if armed:
        tool.process.kill()
        tool.process.communicate()
    return status, text.splitlines()[-1:] if status in (1, -2, 130) else text


def ends():
    for how in 'main', 'exit', 'os_exit', 'exception', 'interrupt', 'term', 'exec', 'in_step':
        for busy in False, True:
            # A thread that still runs says its last words now and then, on some versions.
            plain = end_of(how, False, busy, False)
            seen = [end_of(how, True, busy, n % 2) for n in range(int(times))]
            fact(f'{label}: {how}{", with threads in the step" * busy}: ends as ever, {times} times',
                 all(end == plain for end in seen), (plain, seen))


parts = [other_tools, replaced, recursion, jit, children, ends] + [coverage, debugger] * bool(packages) + [compiled] * bool(torch)
for part in parts:
    began = time.monotonic()
    part()
    print(f'# {part.__name__}: {time.monotonic() - began:.1f} s', flush=True)
drive.end()

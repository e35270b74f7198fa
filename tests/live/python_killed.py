# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The tool is killed at each point of arming: within the lease the program is what it was, and the next
tool can have it.

usage: python_killed.py INTERPRETER LIBRARY DRIVE TOOL POINTS KILLS FOLDER"""
import concurrent.futures, os, pathlib, re, subprocess, sys, time

HERE = pathlib.Path(__file__).parent / 'python'
sys.path.insert(0, str(HERE))
import drive
from drive import fact

interpreter, library, driver, tracer, points, kills, folder = sys.argv[1:]
PROGRAM = str(HERE / 'target.py')
ORDERS = ('wish 0 __main__:Core.step\nwish 1 __main__:plain\nresolve\narm\ncount\ndisarm\n'
          'resolve\narm\n').encode()
label = drive.version_of(interpreter)


def start(preload=True):
    target = drive.Process(interpreter, PROGRAM, env=drive.environment(library if preload else ''))
    target.ask('hot')
    target.before = target.ask('state')['answer']
    return target


def is_as_before(target):
    """The program as it is within the lease and what its last order may take; '' or what is wrong."""
    end = time.monotonic() + 30
    target.ask('hot')
    while (state := target.ask('state')['answer']) != target.before and time.monotonic() < end:
        time.sleep(0.1)
    if state != target.before:
        return f'it stays armed: {target.before} {state}'
    while (tool := drive.Tool(driver, target.pid)).opened and time.monotonic() < end:
        time.sleep(0.1)
        tool.process.wait()
    if tool.opened:
        return f'the next tool does not get the page: {tool.opened}'
    tool.arm('__main__:Core.step')
    target.ask('hot')
    calls = tool.calls()
    tool.ask('disarm')
    state = target.ask('state')['answer']
    tool.end()
    status = target.end()
    if calls != 5000 or state != target.before or status:
        return f'the next tool counts {calls}, leaves {state}; exit status {status}'
    return ''


def system_calls():
    """Of the tool, from where it looks for the page: name, and the how manieth of that name it is."""
    target, log = start(), folder + '/strace'
    subprocess.run(['strace', '-o', log, driver, str(target.pid)], input=ORDERS, stdout=subprocess.DEVNULL)
    target.kill()
    numbers, found, calls = {}, False, []
    for line in open(log, errors='replace'):
        name = re.match(r'(\w+)\(', line)
        if not name:
            continue
        numbers[name[1]] = numbers.get(name[1], 0) + 1
        found |= f'/proc/{target.pid}' in line
        if found and not name[1].startswith('exit'):
            calls.append((name[1], numbers[name[1]]))
    return calls


def killed_at(call):
    target = start()
    end = subprocess.run(['strace', '-o', '/dev/null', '-e', 'trace=' + call[0],
                          '-e', f'inject={call[0]}:signal=KILL:when={call[1]}', driver, str(target.pid)],
                         input=ORDERS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    return call, end, is_as_before(target)


def at_system_calls():
    calls = system_calls()
    wanted = int(points)
    chosen = calls[::max(1, len(calls) // wanted)] if wanted else calls
    # Most of the time is the lease, in which nothing runs.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(killed_at, chosen))
    wrong = [result for result in results if result[2]]
    was_killed = sum(end != 0 for _, end, _ in results)
    print(f'# {label}: killed at {was_killed} of {len(calls)} system calls')
    # How often an order is awaited varies.
    fact(f'{label}: the tool is killed at a system call', was_killed >= len(chosen) * 0.8, results)
    fact(f'{label}: wherever it is killed, the program is what it was', not wrong, wrong)


def killed_after(n):
    """The tracer itself, while it starts and traces; with every other program it loads the library."""
    target = start(preload=n % 2)
    process = subprocess.Popen([tracer, '-q', '-p', str(target.pid), '--python=inject', '--report', 'none',
                                '--trace', 'none', '--profile', 'none', '--step', 'py:__main__:Core.step'],
                               stderr=subprocess.PIPE)
    time.sleep(0.04 * n)
    process.kill()
    process.communicate()
    target.ask('hot')
    if not n % 2 and not any('ferrum-python' in line for line in open(f'/proc/{target.pid}/maps')):
        status = target.end()
        return f'exit status {status}' if status else ''
    return is_as_before(target)


def tracers():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(killed_after, range(int(kills))))
    fact(f'{label}: the tracer is killed {kills} times: the program is what it was', not any(results), results)


def next_tracer():
    """What a tracer says while another tool has the functions."""
    target = start()
    tool = drive.Tool(driver, target.pid)
    tool.arm('__main__:Core.step')
    refused = subprocess.Popen([tracer, '-p', str(target.pid), '--report', 'none', '--trace', 'none', '--profile',
                              'none', '--step', 'py:__main__:Core.step', '-d', '1'],
                               stderr=subprocess.PIPE, text=True)
    # Each order renews the lease.
    while refused.poll() is None:
        tool.calls()
        time.sleep(0.1)
    said = refused.stderr.read()
    tool.ask('disarm')
    tool.end()
    target.end()
    lines = [line for line in said.splitlines() if 'ython' in line]
    fact(f'{label}: the next tracer says once why it has no steps',
         refused.returncode == 1 and len(lines) == 1 and
         f'another tracer (process {tool.process.pid})' in lines[0], [refused.returncode, said])


at_system_calls()
tracers()
next_tracer()
drive.end()

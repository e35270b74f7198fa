# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""libferrum_python.so in one interpreter: what is armed is counted exactly, and nothing else changes.

usage: python_lib.py INTERPRETER LIBRARY DRIVE CYCLES DOUBLES

DOUBLES: the folder with tests/fake/interpreter.c, early.so and threaded.so"""
import os, pathlib, shutil, signal, sys, time

HERE = pathlib.Path(__file__).parent / 'python'
sys.path.insert(0, str(HERE))
import drive

interpreter, library, driver, cycles, doubles = sys.argv[1:]
TARGET = HERE / 'target.py'
FOUND, ARMED, NO_MODULE, NO_NAME, NOT_PLAIN, GENERATOR, _, NO_ARGUMENT, BY_OTHER, _, SAME = range(1, 12)


def fact(name, holds, seen=None):
    drive.fact(f'{label}: {name}', holds, seen)


def slot(answer, index=0):
    return answer['slots'][index]


def blocked_by(name):
    """The signals that the thread of that name blocks."""
    for task in pathlib.Path(f'/proc/{target.pid}/task').iterdir():
        if (task / 'comm').read_text().strip() == name:
            fields = dict(line.split(':', 1) for line in (task / 'status').read_text().splitlines())
            return {number for number in range(1, 65) if int(fields['SigBlk'], 16) >> (number - 1) & 1}
    return None


label = drive.version_of(interpreter)
minor = int(label.split('.')[1])


def resolve_with(double):
    """What the library answers in an interpreter that it takes for another one."""
    program = drive.Process(interpreter, str(TARGET), env=drive.environment(f'{doubles}/{double}.so {library}'))
    asking = drive.Tool(driver, program.pid)
    answer = asking.ask('resolve')
    asking.kill()
    program.kill()
    return answer


# The library's thread begins while the interpreter does, which may not have written its version yet.
if minor >= 11:
    answer = resolve_with('early')
    fact('it is served from its start', answer['err'] == 0 and answer['minor'] == minor, answer)
if minor >= 14:
    answer = resolve_with('threaded')
    fact('a free-threaded build is refused', (answer['err'], answer['text']) ==
         (-32, f'free-threaded Python 3.{minor} is not supported yet'), answer)
heir_library = f'{doubles}/libferrum_python.so'
shutil.copy(library, heir_library)
target = drive.Process(interpreter, str(TARGET), env=drive.environment(library, HEIR=heir_library))
# What is called before it is armed is hot: its call sites are specialised.
target.ask('hot')
before = target.ask('state')['answer']
tool = drive.Tool(driver, target.pid)
fact('the page is found', tool.opened == 0, tool.opened)

threads = {(task / 'comm').read_text().strip(): int((task / 'stat').read_text().rsplit(')')[1].split()[16])
           for task in pathlib.Path(f'/proc/{target.pid}/task').iterdir()}
fact("the library's thread comes after those of the program",
     threads.get('ferrum-python') == os.getpriority(os.PRIO_PROCESS, target.pid) + 1, threads)

FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
# Those of the kernel that cannot be blocked, and two of glibc's own.
NEVER = {signal.SIGKILL, signal.SIGSTOP, 32, 33}
fact('and blocks all signals but its own faults', blocked_by('ferrum-python') ==
     set(range(1, 65)) - FAULTS - NEVER, sorted(blocked_by('ferrum-python')))

wishes = ['__main__:Core.step', '__main__:Core.decorated', '__main__:Core.static', '__main__:Core.of_class',
          '__main__:plain', '__main__:Core.fails', '__main__:Core.deep']
armed = armed_first = tool.arm(*wishes)
fact('its version is known', armed['minor'] == minor, armed['minor'])
fact('all are found and armed', all(slot(armed, i)['found'] == ARMED for i in range(7)),
     [(s['found'], s['text']) for s in armed['slots']])
fact('file and line are those of the function', slot(armed)['file'].endswith('target.py') and
     slot(armed)['line'] == 1 + next(i for i, line in enumerate(TARGET.read_text().split('\n'))
                                     if 'def step' in line), slot(armed))
fact('a method that is overridden has two definitions', (slot(armed)['own'], slot(armed)['more']) == (2, 0),
     slot(armed))

for form in 'hot', 'forms', 'threads':
    start = slot(tool.ask('count'))['begun']
    own = target.ask(form)
    seen = tool.ask('count')
    fact(f'{form}: each call is counted', slot(seen)['begun'] - start == own['calls']['step'],
         (slot(seen)['begun'] - start, own))
    fact(f'{form}: and ends', slot(seen)['begun'] == slot(seen)['ended'], slot(seen))
fact('defaults and keywords are as ever', target.ask('forms')['answer'] == [3, 9])
start = slot(tool.ask('count'))['begun']
own = target.ask('overrides')
fact('overridden methods and super() are counted', slot(tool.ask('count'))['begun'] - start == 3, own)
own = target.ask('others')
seen = tool.ask('count')
for index, name in enumerate(['decorated', 'static', 'of_class', 'plain', 'fails', 'deep'], 1):
    fact(f'{name}: each call is counted', slot(seen, index)['begun'] == slot(seen, index)['ended'] ==
         own['calls'][name], (slot(seen, index), own['calls'][name]))
fact('exceptions are told', slot(seen, 5)['ended_raised'] == 100, slot(seen, 5))
fact('the text of a TypeError is as ever', 'batch' in own['answer'] and 'step()' in own['answer'], own['answer'])
start = slot(tool.ask('count'))['begun']
fact('a child lives with it, without our file', target.ask('forked')['answer'] == 0)
fact("a child's calls are not the parent's", slot(tool.ask('count'))['begun'] == start)

start = slot(tool.ask('count'))['begun']
answer = target.ask('change_code')['answer']
fact('new code runs', answer == 'fresh', answer)
fact('and is counted' if minor != 11 else 'and has taken the place of ours',
     slot(tool.ask('count'))['begun'] - start == (1 if minor != 11 else 0))
target.ask('restore_code')
gone = tool.ask('disarm')
fact('all are disarmed', all(slot(gone, i)['found'] == 0 for i in range(1, 7)), [s['found'] for s in gone['slots']])
target.ask('hot')
fact('and not counted any more', slot(tool.ask('count'))['begun'] == slot(gone)['begun'])
after = target.ask('state')['answer']
fact('the function is what it was', before == after, (before, after))

# A function that was made by hand. On 3.11 its code is set anew, and a free-threaded build counts in other places.
if minor != 11 and not label.endswith('t'):
    was = target.ask('words_of_made')['answer']
    seen = tool.arm('__main__:made')
    armed = target.ask('words_of_made')['answer']
    tool.ask('disarm')
    now = target.ask('words_of_made')['answer']
    fact('each word of a function is what it was', slot(seen)['found'] == ARMED and armed != was == now,
         [hex(word) for words in (was, armed, now) for word in words])
    tool.ask('wish 0 __main__:plain')

# A function that two wishes name is armed once.
twice = tool.arm('__main__:plain', '__main__:plain')
fact('a function is armed once', [slot(twice, i)['found'] for i in (0, 1)] == [ARMED, SAME], twice['slots'][:2])
tool.ask('disarm')

# What the program makes of a function while it is armed is valid at once, and after.
for change, answer in (('other_defaults', [1, 5]), ('no_defaults', "missing 1 required positional argument: 'second'"),
                       ('reload', [1, 2, [], 4])):
    hot = target.ask('hot_reloaded')['answer']
    tool.arm('__main__:reloaded')
    fact(f'{change}: armed, it does what it did', target.ask('call_reloaded')['answer'] == hot == [1, 2], hot)
    armed = target.ask(change)['answer']
    fact(f'{change}: it is valid at once', armed == answer or answer in armed, armed)
    tool.ask('disarm')
    after = target.ask('call_reloaded' if change != 'no_defaults' else 'call_without_defaults')['answer']
    fact(f'{change}: and after', after == armed, after)
    target.ask('as_before')

# In flight while arming, and while disarming.
target.ask('start_wait')
tool.arm('__main__:Core.wait')
fact('a call in flight is let through', target.ask('end_wait')['answer'] == 'waited')
fact('and is not counted', slot(tool.ask('count'))['begun'] == 0)
target.ask('start_wait')
time.sleep(0.1)
tool.ask('disarm')
target.ask('end_wait')
seen = slot(tool.ask('count'))
fact('a call that was in flight at the end has ended', seen['begun'] == seen['ended'] == 1, seen)

# A call that is still running when its function is armed again, as by a tool that is started anew.
tool.arm('__main__:Core.wait')
target.ask('start_wait')
tool.arm('__main__:Core.wait')
seen = [slot(tool.ask('count'))]
target.ask('end_wait')
seen.append(slot(tool.ask('count')))
target.ask('start_wait')
target.ask('end_wait')
seen.append(slot(tool.ask('count')))
tool.ask('disarm')
counts = [(s['begun'], s['ended']) for s in seen]
fact('armed again, a call that began before counts neither as begun nor as ended',
     counts == [(0, 0), (0, 0), (1, 1)], counts)

for wish, found, text in (('nowhere:f', NO_MODULE, 'nowhere'), ('__main__:Core.absent', NO_NAME, 'absent'),
                          ('__main__:absent.step', NO_NAME, 'absent'), ('__main__', NO_NAME, '__main__'),
                          ('__main__:Core.stpe', NO_NAME, 'stpe (did you mean step?)'),
                          ('__main__:Croe.step', NO_NAME, 'Croe (did you mean Core?)'),
                          ('threadign:Thread', NO_MODULE, 'threadign (did you mean threading?)'),
                          ('__main__:Core', NOT_PLAIN, ''), ('time:sleep', NOT_PLAIN, ''),
                          ('__main__:partial', NOT_PLAIN, ''), ('__main__:Core.generator', GENERATOR, ''),
                          ('__main__:Core.coroutine', GENERATOR, ''),
                          ('__main__:Core.step nothing.tokens', NO_ARGUMENT, 'nothing.tokens')):
    tool.ask(f'wish 0 {wish}')
    answer = slot(tool.ask('resolve'))
    fact(f'refused: {wish}', (answer['found'], answer['text']) == (found, text.split(' ')[0]), answer)
    tool.ask('suggest 0')
    answer = slot(tool.ask('resolve'))
    fact(f'and what it may be: {wish}', (answer['found'], answer['text']) == (found, text), answer)
tool.ask('disarm')

# A child that inherits an armed function is traced itself: on 3.11 the function has our code there.
tool.arm('__main__:Core.step')
heir = drive.Tool(driver, target.ask('start_heir')['answer'])
seen = slot(heir.arm('__main__:Core.step batch.tokens'))
fact('inherited while it was armed: found, with its arguments', (heir.opened, seen['found']) == (0, ARMED), seen)
fact('and its own file and line', seen['file'].endswith('target.py') and seen['line'] == slot(armed_first)['line'], seen)
target.ask('call_heir')
fact('and its calls are counted', heir.calls() == 100, heir.calls())
heir.ask('disarm')
heir.end()
fact('and it ends as ever', target.ask('end_heir')['answer'] == 0)
tool.ask('disarm')

# More definitions than there is room for, or more subclasses than are looked at, are told.
seen = tool.arm('__main__:Wide.step', '__main__:Tall.step')
fact('that there are more definitions is told', (slot(seen)['own'], slot(seen)['more']) == (8, 1), slot(seen))
fact('that there are more subclasses too', (slot(seen, 1)['own'], slot(seen, 1)['more']) == (1, 1), slot(seen, 1))
target.ask('call_wide')
fact('and the rest is armed', slot(tool.ask('count'))['begun'] == 8)
tool.ask('disarm')

# Decorators that are objects: their __wrapped__ is read, and they get no dict for it.
inside = target.ask('insides')['answer']
seen = tool.arm('__main__:kept', '__main__:core', '__main__:sly')
fact('objects are what they are', [slot(seen, i)['found'] for i in range(3)] == [ARMED, NOT_PLAIN, NOT_PLAIN], seen)
own = target.ask('call_kept')
fact('of one that wraps a function that is counted', slot(tool.ask('count'))['begun'] == own['calls']['kept'] == 1)
fact('no code of objects runs', own['answer'] == 0, own)
now = target.ask('insides')['answer']
fact('nor do they get a dict', now == inside, (inside, now))
tool.ask('disarm')
tool.ask('wish 2 __main__:Core.static')

# Under load, again and again: nothing stays.
target.ask('start_busy')
for _ in range(int(cycles)):
    tool.arm('__main__:Core.step', '__main__:plain')
    tool.ask('disarm')
fact('cycles under load', target.ask('stop_busy')['answer'])
# The interpreter's own caches fill in the first rounds; a leak would show in each.
blocks, references, resident = [], [], []


def grows():
    return blocks[-1] - blocks[-2] > 5 or resident[-1] - resident[-2] > 64


while len(blocks) < 2 or (grows() and len(blocks) < 12):
    for _ in range(int(cycles)):
        tool.arm('__main__:Core.step', '__main__:plain')
        tool.ask('disarm')
    blocks.append(target.ask('blocks')['answer'])
    references.append(target.ask('references')['answer'])
    resident.append(target.ask('resident_kb')['answer'])
fact('no memory stays', blocks[-1] - blocks[-2] <= 5, blocks)
fact('nor any page', resident[-1] - resident[-2] <= 64, resident)
if references[0] is not None:
    fact('no reference to any object stays', references[-1] - references[-2] <= int(cycles) // 4, references)
fact('no reference stays', target.ask('state')['answer'] == before)

# Numbers are read without any code of the program: no property, no __getattr__.
tool.arm('__main__:Core.step batch.tokens len(batch.requests) batch.costly')
own = target.ask('attributes')
fact('reading numbers runs nothing of the program', own['answer'] == 0, own)
seen = slot(tool.ask('count'))
fact('and each call is counted', seen['begun'] == seen['ended'] == own['calls']['step'] > 0, (seen, own))
tool.ask('disarm')

# Our thread makes objects while it arms; the program's garbage is for the program's threads to collect.
target.ask('collect_often')
for _ in range(int(cycles) // 4):
    tool.arm('__main__:Core.step', '__main__:plain', '__main__:Tall.step')
    tool.ask('disarm')
collectors, is_on = target.ask('collect_as_ever')['answer']
own_thread = next(int(task.name) for task in pathlib.Path(f'/proc/{target.pid}/task').iterdir()
                  if (task / 'comm').read_text().strip() == 'ferrum-python')
fact('the program collects, on its own threads' if minor != 9 else 'the program collects',
     collectors and (minor == 9 or own_thread not in collectors), (collectors, own_thread))
fact('its collector stays on', is_on)
target.ask('turn_collector')
tool.arm('__main__:Core.step')
tool.ask('disarm')
fact('or off', target.ask('is_collector_on')['answer'] is False)
target.ask('turn_collector_on')
tool.ask('wish 2 __main__:Core.static')

# What arming does in the program, as the program itself sees it.
target.ask('watch')
loaded = target.ask('modules')['answer']
tool.ask('wish 0 __main__:Core.step batch.tokens')
tool.ask('resolve')
fact('looking up is no event of an audit hook', target.ask('events')['answer'] == [])
definitions = sum(s['own'] for s in tool.ask('arm')['slots'] if s['found'] == ARMED)
seen = target.ask('events')['answer']
fact('nor is arming' if minor != 11 else 'arming is two for each function',
     seen == ([] if minor != 11 else definitions * ['code.__new__', 'object.__setattr__']), seen)
tool.ask('disarm')
seen = target.ask('events')['answer']
fact('nor is disarming' if minor != 11 else 'disarming is one',
     seen == ([] if minor != 11 else definitions * ['object.__setattr__']), seen)
now = target.ask('modules')['answer']
fact('no module was imported', now == loaded, set(now) ^ set(loaded))

# As many modules as a server has: all threads wait while they are compared. One try among many is
# not disturbed, on a busy machine too.
target.ask('crowd')
tool.ask('wish 0 package_of_many.subpackge_01234.implementation:f')
fact('many modules are not compared', min(tool.ask('resolve')['hold_ns'] for _ in range(50)) < 200e3)
tool.ask('suggest 0')
holds = [tool.ask('resolve')['hold_ns'] for _ in range(20)]
fact('and if it is asked for, not for long', min(holds) < 3e6, holds)

# A tool that is killed.
tool.arm('__main__:Core.step')
tool.kill()
target.ask('hot')
second = drive.Tool(driver, target.pid)
fact('the next tool waits until the lease is over', second.opened == -16, second.opened)
end = time.monotonic() + 20
while target.ask('state')['answer'] != before and time.monotonic() < end:
    time.sleep(0.2)
fact('then nothing is armed', target.ask('state')['answer'] == before)
while second.opened and time.monotonic() < end:
    time.sleep(0.2)
    second.process.wait()
    second = drive.Tool(driver, target.pid)
fact('and it has the page', second.opened == 0, second.opened)
armed = second.arm('__main__:Core.step')
target.ask('hot')
fact('it can arm again', slot(second.ask('count'))['begun'] == 5000, slot(armed))
# The program ends while it is armed.
fact('the program ends as ever, while armed', target.end() == 0)
second.kill()
# Another tool has taken a function while it was armed, or forbids that it is given back.
other = drive.Process(interpreter, str(TARGET), env=drive.environment(library))
tool = drive.Tool(driver, other.pid)
other.ask('note_pointer')
tool.arm('__main__:plain')
other.ask('take_over')
gone = tool.ask('disarm')
fact('a function that is taken by another tool is told', slot(gone)['found'] == BY_OTHER, slot(gone))
fact('and works', other.ask('call_plain')['answer'] == 3)
tool.ask('wish 1 __main__:spare')
answers = tool.ask('resolve'), tool.ask('arm')
seen = [[slot(answer, i)['found'] for i in (0, 1)] for answer in answers]
fact('its slot serves nothing else, and others do', seen == [[BY_OTHER, FOUND], [BY_OTHER, ARMED]], seen)
fact('it still works', other.ask('call_plain')['answer'] == 3)
tool.ask('disarm')
other.ask('give_back')
tool.ask('wish 1 __main__:plain')
tool.ask('resolve')
seen = tool.ask('arm')
# On 3.11 it is given back as soon as that is allowed.
index = 0 if minor == 11 else 1
fact('it can be armed again', slot(seen, index)['found'] == ARMED, seen['slots'][:2])
other.ask('call_plain')
fact('and is counted once', slot(tool.ask('count'), index)['begun'] == 1)
tool.ask('disarm')
fact('and works', other.ask('call_plain')['answer'] == 3)
fact('that program ends as ever, too', other.end() == 0)
tool.kill()
# The same in the last slots, where the next tool wishes for the functions in the first ones.
other = drive.Process(interpreter, str(TARGET), env=drive.environment(library))
tool = drive.Tool(driver, other.pid)
other.ask('note_pointer')
tool.ask('wish 15 __main__:plain')
tool.ask('wish 14 __main__:Core.step')
tool.ask('resolve')
tool.ask('arm')
other.ask('take_over')
gone = tool.ask('disarm')
fact('two functions are taken', [slot(gone, i)['found'] for i in (15, 14)] == [BY_OTHER] * 2, gone['slots'][14:])
tool.ask('wish 0 __main__:plain')
tool.ask('wish 1 __main__:Core.step')
seen = tool.ask('resolve')
fact('that one has our code is known to the slots before' if minor == 11 else 'slots before may have them',
     (slot(seen)['found'], slot(seen, 1)['found']) == (BY_OTHER if minor == 11 else FOUND, FOUND), seen['slots'][:2])
fact('of a method, all definitions are had but for one that has our code',
     slot(seen, 1)['own'] == (1 if minor == 11 else 2), slot(seen, 1))
tool.ask('arm')
other.ask('call_plain')
other.ask('overrides')
seen = tool.ask('count')
fact('each call is counted once', (slot(seen)['begun'], slot(seen, 1)['begun']) == ((0, 2) if minor == 11 else (1, 3)),
     seen['slots'][:2])
tool.ask('disarm')
other.ask('give_back')
fact('that program ends as ever', other.end() == 0)
tool.kill()
drive.end()

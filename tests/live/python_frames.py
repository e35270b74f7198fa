# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""The Python functions of an interpreter's threads, read from outside, against what they say themselves.

usage: python_frames.py INTERPRETER READER READS"""
import json, os, pathlib, signal, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).parent / 'python'
sys.path.insert(0, str(HERE))
import drive

interpreter, program, reads = sys.argv[1:]
MOVED, DEEP, BROKEN = 1, 2, 4
FRAMES = 64
CUT = 3  # a native stack of more than 128 functions
LIBRARY = json.loads(subprocess.run([interpreter, '-c', 'import json, queue, threading\n'
                                     'print(json.dumps([queue.__file__, threading.__file__]))'],
                                    capture_output=True, text=True).stdout)
label = drive.version_of(interpreter)
minor = int(label.split('.')[1])
folder = tempfile.mkdtemp()


def fact(name, holds, seen=None):
    drive.fact(f'{label}: {name}', holds, seen)


def wait_for(is_there, seconds=60):
    end = time.monotonic() + seconds
    while not is_there() and time.monotonic() < end and target.poll() is None:
        time.sleep(0.01)
    return is_there()


class Reader:
    def __init__(self, pid):
        self.process = subprocess.Popen([program, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(' '.join(str(word) for word in words) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def shown(text, size):
    """As the reader writes it: the last characters that fit, those that steer a terminal by their number."""
    pieces = [f'\\u{ord(c):04x}' if ord(c) < 32 or c == '\\' else c for c in text]
    cut = len(pieces) > 160
    pieces = pieces[-160:]
    while sum(len(piece.encode()) for piece in pieces) > size - 4:
        pieces.pop(0)
        cut = True
    return ('...' if cut else '') + ''.join(pieces)


def expected(frames):
    return [[shown(name, 128), shown(path, 160), line] for name, path, line in frames[:FRAMES]]


def matches(answer, frames):
    """Python's own modules may have called others within the line that blocks."""
    own = [frame[:3] for frame in answer['frames']]
    while own and own[0][1] in LIBRARY and frames[0][1] not in LIBRARY:
        own.pop(0)
    return (answer['error'] == 0 and own == expected(frames) and
            answer['flags'] == (DEEP if len(frames) > FRAMES else 0))


def check(reader, name, tid, frames):
    """A thread may still be on its way to where it sleeps."""
    wait_for(lambda: matches(reader.ask('stack', tid), frames), 30)
    answer = reader.ask('stack', tid)
    fact(f'{name}: its functions, files and lines', matches(answer, frames), (answer, expected(frames)))


def check_joined(reader, name, tid, frames):
    """Each Python function stands in the native stack, in order, and nothing is left of the interpreter."""
    answer = reader.ask('join', tid)
    own = [text for text in answer.get('frames', []) if text.endswith(')') and '(' in text]
    lines = [text.rsplit(':', 1)[-1][:-1] for text in own]
    wanted = [str(line) for _, _, line in frames[:FRAMES]]
    fact(f'{name}: they stand in the native stack', answer['joined'] is True and
         (lines[-len(wanted):] if name in ('event', 'queue') else lines) ==
         (wanted[:len(lines)] if answer['end'] == CUT else wanted) and
         (len(frames) > FRAMES or not any('_PyEval_EvalFrameDefault' in text for text in answer['frames'])),
         (answer, frames))


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def order(*words):
    target.stdin.write(' '.join(str(word) for word in words) + '\n')
    target.stdin.flush()


path = f'{folder}/truth'
target = subprocess.Popen([interpreter, str(HERE / 'frames.py'), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True)
fact('the threads run', wait_for(lambda: os.path.exists(path)))
if drive.failed:
    target.kill()
    drive.end()
truth = read(path)
reader = Reader(target.pid)
for name, (tid, frames) in truth.items():
    check(reader, name, tid, frames)
# Debug builds need the frame pointer, which only the kernel knows: the tool does, this reader does not.
if 'debug' not in label:
    for name, (tid, frames) in truth.items():
        check_joined(reader, name, tid, frames)
fact('a thread that is none has no functions', reader.ask('stack', 1)['error'] < 0)

path = f'{folder}/child'
order('fork', path)
child = int(target.stdout.readline())
fact('a child runs', wait_for(lambda: os.path.exists(path)))
of_child = Reader(child)
for name, (tid, frames) in read(path).items():
    check(of_child, f'forked child, {name}', tid, frames)
fact('forked child: the reader ends well', of_child.end() == 0)
os.kill(child, signal.SIGKILL)

path = f'{folder}/hot'
order('hot', path)
fact('a thread computes', wait_for(lambda: os.path.exists(path)))
tid, frames = read(path)['hot']
answer = reader.ask('torture', tid, reads)
names = {frame[0].split('.')[-1] for frame in answer['places']} - {'<listcomp>', '<lambda>'}
script = HERE / 'frames.py'
text = script.read_text().split('\n')


def is_line(name, _, line):
    """Within its function; some instructions have no line."""
    if name.startswith('<'):  # 3.10 has no qualified names
        return True
    begin = next(i for i, words in enumerate(text, 1) if f'def {name.split(".")[0 if "<" in name else -1]}(' in words)
    indent = len(text[begin - 1]) - len(text[begin - 1].lstrip())
    end = next(i for i, words in enumerate(text[begin:], begin)
               if words and len(words) - len(words.lstrip()) <= indent)
    return not line or begin <= line <= end


# With a CPU of its own the thread is gone before two readings agree in up to four of ten reads.
fact('computing: it is read more often than not, and else not sure', answer['found'] > int(reads) / 2 and answer['broken'] < int(reads) / 20 and
     answer['missed'][0] == answer['missed'][2] == 0,
     {key: answer[key] for key in ('reads', 'found', 'moved', 'broken', 'missed')})
own = {'hot', 'hot_leaf', 'hot_generator', 'hot_sort', 'method'}
fact('computing: no name is wrong', len(own & names) > 2 and names <= own | {'run', '_bootstrap', '_bootstrap_inner'},
     names)
fact('computing: no line is', all(is_line(*frame[:3]) for frame in answer['places'] if frame[1] == str(script)),
     answer['places'])

path = f'{folder}/hold'
order('hold', path, 3)
fact('a thread holds the GIL', wait_for(lambda: os.path.exists(path)))
tid, frames = read(path)['hold']
wait_for(lambda: reader.ask('holder', target.pid)['tid'] == tid and matches(reader.ask('stack', tid), frames), 2)
fact('the GIL: who has it', reader.ask('holder', target.pid)['tid'] == tid)
fact('the GIL: where', matches(reader.ask('stack', tid), frames), reader.ask('stack', tid))
target.kill()
target.wait()
fact('a process that has ended has no functions', reader.ask('stack', tid)['error'] < 0)
fact('the reader ends well', reader.end() == 0)
drive.end()

# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What was seen of the slow steps of tests/live/python/slow.py, against its own account.

usage: python_looks.py LABEL TRUTH CAPTURE-JSON PROFILE TEXT PID"""
import json, sys

SCRIPT, HANG, GROUP, IN_CALL, APART, MOVED, GIL, SPIN, RAN = 1, 16, 32, 256, 512, 1024, 2048, 4096, 8192
label, truth, capture, profile, text, pid = sys.argv[1:]
failed = False


def fact(name, good, said=None):
    global failed
    if not good:
        failed = True
        print(f'# {name}: {said}')
    print(f'{"" if good else "not "}ok - {label}: {name}')


def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


truth, events = load(truth), load(capture)
# In a PID namespace of its own it knows its threads by other numbers: the first one is the process, and there
# are but two others that stay, the library's and the holder, in the order in which they began.
if truth['main'] != int(pid):
    others = sorted({e['owner'] for e in events if e['type'] == 'look' and e['flags'] & HANG} - {int(pid)})
    truth['main'], truth['holder'] = int(pid), others[-1] if len(others) == 2 else 0
codes = {e['id']: e for e in events if e['type'] == 'code'}
steps = [e for e in events if e['type'] == 'step']
looks = [e for e in events if e['type'] == 'look']


def functions(look):
    return [[codes[c]['function'], codes[c]['path'], codes[c]['address']] for c in look['codes']
            if codes[c]['flags'] & SCRIPT]


def natives(look):
    return [codes[c]['function'] for c in look['codes'] if not codes[c]['flags'] & SCRIPT]


def describe(look):
    return look['flags'], [codes[c]['function'] for c in look['codes']]


def seen_in(n, kind):
    step = steps[n]
    return [look for look in looks if step['start_ns'] <= look['start_ns'] <= step['end_ns'] and
            not look['flags'] & (HANG | GROUP) and
            look['flags'] & (GIL | SPIN) == {'gil': GIL, 'spin': SPIN}.get(kind, 0)]


fact('each step is there', len(steps) > max(int(n) for n in truth['steps']), len(steps))
seen = {'nap': [], 'read': [], 'gil': [], 'spin': []}
seen_steps = {}
slow = {kind: 0 for kind in seen}
for n, (kind, took_ns) in truth['steps'].items():
    if kind == 'hang':
        continue
    slow[kind] += took_ns > 60e6
    for look in seen_in(int(n), kind):
        # A call may be long for another reason, for lack of a CPU: only that which was to be slow is known.
        if not look['depth'] and look['codes'] and functions(look)[:1] == truth['frames'][kind][:1]:
            seen[kind].append(look)
            seen_steps.setdefault(int(n), look)
for kind, all_of in seen.items():
    # Looks may take a twentieth of a CPU only.
    fact(f'{kind}: some are seen', 3 <= len(all_of) <= len(truth['steps']), (len(all_of), slow[kind]))
    # One that ran on while its stack was read is told to be unsure.
    sure = [look for look in all_of if not look['flags'] & RAN]
    fact(f'{kind}: of most it is sure', len(sure) == len(all_of) or kind == 'spin' and len(sure) >= 3,
         [describe(look) for look in all_of])
    fact(f'{kind}: all that were seen in a call are sure', not any(look['flags'] & RAN and look['flags'] & IN_CALL for look in all_of),
         [describe(look) for look in all_of])
    wrong = [describe(look) for look in sure if functions(look) != truth['frames'][kind]]
    fact(f'{kind}: in its functions, from the slow line to the step', not wrong, (wrong, truth['frames'][kind]))
    fact(f'{kind}: nothing of the interpreter stands where these do',
         not any('_PyEval_EvalFrameDefault' in natives(look) or look['flags'] & APART for look in all_of),
         [describe(look) for look in all_of])
    fact(f'{kind}: outside of them is the marker of the step', all(natives(look)[-1] == 'caller_0' for look in all_of),
         [describe(look) for look in all_of])
holders = [look for n, (kind, _) in truth['steps'].items() if kind == 'gil' for look in seen_in(int(n), kind)
           if look['depth'] == 1 and look['codes']]
fact('gil: mostly with its holder', len(holders) * 2 >= len(seen['gil']), (len(holders), len(seen['gil'])))
fact('gil: that is the right thread', all(look['owner'] == truth['holder'] for look in holders), holders)
wrong = [describe(look) for look in holders if functions(look) != truth['frames']['hold']]
fact('gil: it is in its functions', not wrong, (wrong, truth['frames']['hold']))
hangs = [look for look in looks if look['flags'] & HANG and look['start_ns'] == steps[truth['hang']]['start_ns']]
fact('hang: all threads are seen', {look['owner'] for look in hangs} >= {truth['main'], truth['holder']}, hangs)
wrong = [describe(look) for look in hangs if look['owner'] == truth['main'] and look['codes'] and
         functions(look)[:len(truth['frames']['hang'])] != truth['frames']['hang']]
fact('hang: the step is in its functions', not wrong, (wrong, truth['frames']['hang']))
fact('hang: and another thread in its own', any([f[0].split('.')[-1] for f in functions(look)][-5:] ==
     ['wait', 'hold', 'run', '_bootstrap_inner', '_bootstrap'] for look in hangs if look['owner'] == truth['holder']),
     [describe(look) for look in hangs])
stacks = [e for e in events if e['type'] == 'stack']
fact('what was copied at the end of a call has none', stacks and
     not any(codes[c]['flags'] & SCRIPT for e in stacks for c in e['codes'] if c))

with open(profile, encoding='utf-8') as file:
    shapes = [e['shape'] for e in map(json.loads, file) if e['event'] == 'escalation_prof']


def in_words(frame):
    name, path, line = frame
    return f'{name} ({path.split("/")[-1]}:{line})'


for kind, cause in ('nap', 'sleep'), ('gil', 'gil'):
    told = [s for s in shapes if s['cause'] == cause and s['step'] - 1 in seen_steps and
            truth['steps'].get(str(s['step'] - 1), [0])[0] == kind]
    fact(f'{kind}: the profile says where', (told or kind == 'gil') and
         all(in_words(truth['frames'][kind][0]) in s['cause_stack'] for s in told), told)
    fact(f'{kind}: and where the holder is', all(in_words(truth['frames']['hold'][0]) in s['holder_stack']
                                                 for s in told if 'holder_stack' in s), told)
with open(text, encoding='utf-8') as file:
    said = ' '.join(file.read().split())
fact('a replay says the same of the hang', in_words(truth['frames']['hang'][0]) in said, said)
sys.exit(failed)

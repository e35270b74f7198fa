# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A profile that is replayed gives the figures of the capture that it is from, as far as it has them: TOOL EVENTS.

Percentiles differ by less than the microsecond to which a profile rounds, the times of parts by one a step."""
import json
import os
import subprocess
import sys
import tempfile

TOOL, EVENTS = sys.argv[1:]
CASES = ('plain', 'steps', 'classes', 'times', 'faults', 'probes', 'async', 'kinds', 'processes', 'lost', 'unwound', 'python', 'uni', 'hostile')
PARTS = ('total', 'own', 'on_cpu', 'cpu_wait', 'mmap_net', 'futex_net', 'ioctl_net', 'read_net', 'write_net', 'other_net',
         'faults', 'disk_wait', 'off_cpu', 'asleep', 'await', 'gap')


def report(path, *options):
    out = subprocess.run([TOOL, '--replay', path, '--report', 'json', '--trace', 'none', *options],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if out.returncode:
        raise SystemExit(out.stderr.decode())
    return json.loads(out.stdout)


def times_of(kind):
    """By name: what is exact but for a microsecond a step. Percentiles are within 0.1 % in any report."""
    times = {'total': kind['total_ns'], 'syscall': kind.get('syscall_ns'), 'compute': (kind.get('compute') or {}).get('total_ns')}
    for name, category in (kind.get('categories') or {}).items():
        times[name] = category['total_ns'] if category else None
    return times


def classes_of(kind):
    """By an argument only: the work of a step is rounded to microseconds, so it may be in the next class."""
    return sorted((row['by'], row['from'], row['steps']) for row in kind.get('classes', []) if row['by'] != 'work_ns')


def by_name(args):
    return sorted(args, key=lambda arg: arg['name'])


def complaints(capture, profile):
    if capture['steps'] != profile['steps']:
        yield f"{profile['steps']} steps, not {capture['steps']}"
    if capture['lost'] != profile['lost'] or capture['incomplete_steps'] != profile['incomplete_steps']:
        yield f"lost {profile['lost']}, not {capture['lost']}; incomplete {profile['incomplete_steps']}"
    both = {kind['name']: kind for kind in profile['kinds']}
    for kind in capture['kinds']:
        other = both.get(kind['name'])
        if not other or other['steps'] != kind['steps']:
            yield f"{kind['name']}: {other and other['steps']} steps, not {kind['steps']}"
            continue
        if (by_name(kind['args']), kind.get('syscall_calls')) != (by_name(other['args']), other.get('syscall_calls')):
            yield f"{kind['name']}: arguments {other['args']}, {other.get('syscall_calls')} calls"
        if kind.get('ends') != other.get('ends'):
            yield f"{kind['name']}: ended by {other.get('ends')}, not {kind.get('ends')}"
        a, b = classes_of(kind), classes_of(other)
        if a != b:
            yield f"{kind['name']}: classes {b}, not {a}"
        for name in ('p50_ns', 'p95_ns', 'p99_ns', 'max_ns'):
            a, b = kind['duration'][name], other['duration'][name]
            if abs(a - b) > 1000 + 0.002 * a:
                yield f"{kind['name']}: {name} {b}, not {a}"
        a, b = times_of(kind), times_of(other)
        for name, ns in a.items():
            if (ns is None) != (b[name] is None) or abs((ns or 0) - (b[name] or 0)) > 1000 * kind['steps'] + 7000:
                yield f"{kind['name']}: {name} {b[name]}, not {ns}"
    yield from complaints_of_lines(capture['lines'], profile['lines'])


def complaints_of_lines(before, after):
    """The profile that is made of a profile has the same parts of each step."""
    if len(before) != len(after):
        yield f'{len(after)} lines, not {len(before)}'
    for a, b in zip(before, after):
        a, b = dict(a), dict(b)
        a['off_cpu'] = a.get('off_cpu', 0) + a.pop('stopped', 0)
        b['off_cpu'] = b.get('off_cpu', 0) + b.pop('stopped', 0)
        # A step whose stop is not known may have had one: then there is no such line.
        for name in PARTS:
            if abs(a.get(name, 0) - b.get(name, 0)) > 0:
                yield f'a step has {name} {b.get(name)}, not {a.get(name)}'


failed = False
with tempfile.TemporaryDirectory() as folder:
    for case in CASES:
        capture, profile = folder + '/' + case + '.fbt', folder + '/' + case + '.jsonl'
        subprocess.run([EVENTS, os.path.dirname(sys.argv[0]) + '/' + case + '.events', capture], check=True)
        whole, again = report(capture, '--profile', profile), report(profile, '--profile', profile + '.again')
        for made, path in ((whole, profile), (again, profile + '.again')):
            with open(path, encoding='utf-8') as lines:
                made['lines'] = [event['stage_us'] for event in map(json.loads, lines) if event['event'] == 'step_prof']
        found = list(complaints(whole, again))
        for line in found:
            print(f'# {case}: {line}')
        failed |= bool(found)
        print(('not ok' if found else 'ok') + f' - replayed profile: {case}')
sys.exit(failed)

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Holds a trace in Perfetto's format against the JSON trace of the same window: JSON PFTRACE [FOLDED].

Reads it with the compiled protos of the perfetto package (pip), as strictly as Perfetto's own
importer: each packet knows its sequence's clock, each number its text, each slice its end, each
stack its frames. Then the slices of both must be the same, args included (but sums of steps that
are 0), and the counters those of the steps. Calls with a stack must be those of the folded file, and
the stack of an escalation must be in its text. Prints how many slices, counters, flows and stacks
there were.
"""
import json
import re
import sys
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

BEGIN, END, INSTANT = 1, 2, 3


def lane_name(tid):
    if tid >= 10_000_000:
        return 'GPU %d stream %d' % divmod(tid - 10_000_000, 100_000)
    if tid >= 5_000_000:
        return f'futures {tid - 5_000_000 + 1}'
    if tid >= 4_000_000:
        return f'iterations {(tid - 4_000_000) // 2 + 1}'
    return tid or 'intervals'


# What has numbers of its own: field of InternedData, kind of the text.
TEXTS = (('event_categories', 'name'), ('event_names', 'name'), ('debug_annotation_names', 'name'),
         ('debug_annotation_string_values', 'str'), ('function_names', 'str'), ('source_paths', 'str'),
         ('mapping_paths', 'str'), ('build_ids', 'str'), ('mappings', None), ('frames', None),
         ('callstacks', None))


class Sequence:
    """What packets with one trusted_packet_sequence_id have in common."""

    def __init__(self, number, packet):
        assert packet.sequence_flags == 1, packet
        clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
        defaults = packet.trace_packet_defaults
        assert set(clocks) == ({64, 65, 3, 1} if number == 1 else {64, 65, 3}), packet
        assert clocks[64].is_incremental and not clocks[65].is_incremental
        assert clocks[64].timestamp == clocks[65].timestamp == 0
        assert defaults.timestamp_clock_id == 64
        assert packet.clock_snapshot.primary_trace_clock == 3
        self.monotonic = clocks[3].timestamp
        self.track = defaults.track_event_defaults.track_uuid
        self.now = 0
        self.known = defaultdict(dict)

    def time(self, packet):
        if packet.HasField('timestamp_clock_id'):
            assert packet.timestamp_clock_id == 65, packet
            return packet.timestamp
        self.now += packet.timestamp
        return self.now

    def learn(self, interned):
        for field, text in TEXTS:
            for entry in getattr(interned, field):
                assert entry.iid not in self.known[field], entry
                value = getattr(entry, text) if text else entry
                if isinstance(value, bytes) and field != 'build_ids':
                    value = value.decode()
                self.known[field][entry.iid] = value

    def frames(self, iid):
        """(function, path, line of a script) of each, the outermost first."""
        frames = [self.known['frames'][frame] for frame in self.known['callstacks'][iid].frame_ids]
        assert frames
        for frame in frames:
            mapping = self.known['mappings'][frame.mapping_id]
            path = '/'.join(self.known['mapping_paths'][part] for part in mapping.path_string_ids)
            assert not mapping.build_id or self.known['build_ids'][mapping.build_id]
            if frame.kind == 3:
                assert self.known['source_paths'][frame.source_path_iid] == path
            yield self.known['function_names'][frame.function_name_id], path, frame.line_number


class Trace:
    def __init__(self, data):
        trace = protos.Trace()
        trace.ParseFromString(data)
        self.tracks, self.sequences, self.events = {}, {}, []
        self.flows, self.ends_of_flows = {}, {}
        for number, packet in enumerate(trace.packet):
            self.take(number, packet)
        assert len({sequence.monotonic for sequence in self.sequences.values()}) == 1

    def take(self, number, packet):
        sequence = self.sequences.get(packet.trusted_packet_sequence_id)
        if not sequence:
            assert packet.trusted_packet_sequence_id == len(self.sequences) + 1, packet
            sequence = Sequence(len(self.sequences) + 1, packet)
            assert not sequence.track or sequence.track in self.tracks
            self.sequences[packet.trusted_packet_sequence_id] = sequence
            return
        assert packet.sequence_flags == 2, packet
        sequence.learn(packet.interned_data)
        if packet.HasField('track_descriptor'):
            self.describe(packet.track_descriptor)
        if packet.HasField('track_event'):
            event = packet.track_event
            event.track_uuid = event.track_uuid or sequence.track
            assert event.track_uuid in self.tracks, packet
            self.events.append((sequence.time(packet), number, event, sequence))

    def describe(self, track):
        if track.HasField('process'):
            place = ('process', track.process.pid, track.process.process_name)
        elif track.HasField('thread'):
            place = ('lane', track.thread.pid, track.thread.tid)
        else:
            parent = self.tracks[track.parent_uuid]
            assert parent[0] == 'process', parent
            place = ('counter' if track.HasField('counter') else 'lane', parent[1], track.name)
        before = self.tracks.get(track.uuid)
        assert before is None or before[:2] == place[:2], (before, place)
        self.tracks[track.uuid] = place

    @staticmethod
    def args_of(event, sequence):
        args = {}
        for note in event.debug_annotations:
            kind = note.WhichOneof('value')
            value = getattr(note, kind)
            if kind == 'string_value_iid':
                value = sequence.known['debug_annotation_string_values'][value]
            key = note.name or sequence.known['debug_annotation_names'][note.name_iid]
            assert key not in args, (key, args)
            args[key] = value
        return args

    def slices(self):
        """(name, category, pid, lane, start, end, args, frames) of each, as Perfetto nests them."""
        open_slices, slices = defaultdict(list), []
        for ts, _, event, sequence in sorted(self.events, key=lambda entry: entry[:2]):
            track = self.tracks[event.track_uuid]
            if event.type == BEGIN:
                name = event.name or sequence.known['event_names'][event.name_iid]
                category = sequence.known['event_categories'][event.category_iids[0]]
                frames = list(sequence.frames(event.callstack_iid)) if event.callstack_iid else []
                made = [name, category, track[1], track[2], ts, None, self.args_of(event, sequence), frames]
                assert track[0] == 'lane', track
                open_slices[event.track_uuid].append(made)
                slices.append(made)
            elif event.type == END:
                open_slices[event.track_uuid].pop()[5] = ts
        assert not any(open_slices.values()), 'slices without an end'
        return slices

    def others(self):
        count = Counter()
        for ts, _, event, sequence in self.events:
            assert len(event.extra_counter_values) == len(event.extra_counter_track_uuids)
            for uuid in event.extra_counter_track_uuids:
                assert event.type == BEGIN and self.tracks[uuid][0] == 'counter', event
                count['counters'] += 1
            if event.callstack_iid:
                assert all(function for function, _, _ in sequence.frames(event.callstack_iid))
                count['stacks'] += 1
            if event.type == INSTANT:
                for flow in event.flow_ids:
                    assert flow not in self.flows
                    self.flows[flow] = (ts, self.tracks[event.track_uuid])
                for flow in event.terminating_flow_ids:
                    assert flow not in self.ends_of_flows
                    self.ends_of_flows[flow] = (ts, self.tracks[event.track_uuid])
        assert self.flows.keys() == self.ends_of_flows.keys()
        assert all(self.flows[f][0] == self.ends_of_flows[f][0] for f in self.flows)
        count['flows'] = len(self.flows)
        return count

    def durations(self):
        """Of steps, by their begin, as the counter has them and as the slice has."""
        ends = {}
        for piece in self.slices():
            # The sum over all threads is what an interval has.
            if piece[1] == 'step' and 'step_source' not in piece[6]:
                ends.setdefault((piece[4], piece[0]), []).append(piece[5] - piece[4])
        for ts, _, event, sequence in self.events:
            for uuid, value in zip(event.extra_counter_track_uuids, event.extra_counter_values):
                name = self.tracks[uuid][2]
                if name.endswith(' duration'):
                    yield name, ts, value, ends.get((ts, name[:-len(' duration')]), [])


    def arguments(self):
        """The other counters of steps, likewise."""
        args = defaultdict(list)
        for piece in self.slices():
            if piece[1] == 'step':
                args[piece[4], piece[0]].append(piece[6])
        for ts, _, event, _ in self.events:
            for uuid, value in zip(event.extra_counter_track_uuids, event.extra_counter_values):
                kind, _, name = self.tracks[uuid][2].rpartition(' ')
                if name != 'duration':
                    yield kind + ' ' + name, ts, value, [each.get(name) for each in args[ts, kind]]


def without_arguments(name):
    shorter = re.sub(r'(?<=\w)(::)?<[^<>]*>', '', name)
    return name if shorter == name else without_arguments(shorter)


MARKS = ('[cut off]', '[caller not found]', '[by frame pointers]')


def folded_lines(slices, steps):
    """What the folded file says of calls with a stack: {line without its time: microseconds}."""
    lines = Counter()
    for piece in slices:
        if piece[1] != 'syscall' or not piece[7]:
            continue
        step = next(name for name, pid, lane, start, end in steps
                    if (pid, lane) == (piece[2], piece[3]) and start <= piece[4] < end)
        # Functions of scripts are known as far as the thread's first one; the file begins with the step's.
        first = next((i for i, (name, _, line) in enumerate(piece[7])
                      if line and name.split('.')[-1] == step.split('.')[-1]), 0)
        marks = [name for name, _, _ in piece[7][:first] if name in MARKS]
        names = marks + [re.sub(r'[\x00-\x1f\x7f]', '?', name.replace(';', ':'))
                         for name, _, _ in piece[7][first:] if name != '[not joined]']
        marks = [name for name in names if name in MARKS]
        names = [name for name in names if name not in MARKS]
        if names[0] == step:
            names = names[1:]
        lines[';'.join([step, *marks, *names, f'[{piece[0]}]'])] += piece[5] - piece[4]
    return lines


def wrong_stacks(slices, path):
    steps = [piece[:1] + piece[2:6] for piece in slices if piece[1] == 'step']
    found = folded_lines(slices, steps)
    with open(path, encoding='utf-8') as file:
        wanted = dict(line.rstrip('\n').rsplit(' ', 1) for line in file)
    for line, nanoseconds in found.items():
        # Only calls that are evidence have slices.
        if line not in wanted or nanoseconds // 1000 > int(wanted[line]):
            yield f'{line} {nanoseconds // 1000} is not in the folded file, or has less: {wanted.get(line)}'
    for piece in slices:
        if piece[1] != 'escalation':
            continue
        told = piece[6].get('cause_stack')
        if (told is not None) != bool(piece[7]):
            yield f'{told} is the stack in words of {piece[7]}'
        elif told:
            # The text cuts arguments of templates, and says of scripts where they are.
            first = re.split(r' x\d+$| \(', told.split(' <- ')[0])[0]
            first = {'generated code': '[generated code]', '?': '[unknown]'}.get(first, first)
            if not any(first in (name, without_arguments(name)) for name, _, _ in piece[7]):
                yield f'{told} is not {piece[7]}'


def same(left, right):
    return left == right or isinstance(left, float) and abs(left - right) <= 1e-9 * abs(left)


def key_of(piece):
    return (piece[0], piece[1], piece[2], str(piece[3]), piece[4], piece[5])


def differences(wanted, got):
    """Of slices with equal names, lanes and times the args are compared in any order."""
    left, right = defaultdict(list), defaultdict(list)
    for piece in wanted:
        left[key_of(piece)].append(piece[6])
    for piece in got:
        right[key_of(piece)].append(piece[6])
    for key in left.keys() | right.keys():
        mine, theirs = left[key], list(right[key])
        for args in mine:
            if key[1] == 'step':
                args = {name: value for name, value in args.items() if value != 0 or value is False}
                theirs = [{name: value for name, value in other.items() if value != 0 or value is False}
                          for other in theirs]
            twin = [other for other in theirs if args.keys() == other.keys()
                    and all(same(args[name], other[name]) for name in args)]
            if not twin:
                yield f'{key}: {args} is not among {theirs}'
            else:
                theirs.remove(twin[0])
        if theirs:
            yield f'{key}: {theirs} is too much'


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        # A window that was cut off has no end; the writer closes it all the same.
        events = json.load(file)
    with open(sys.argv[2], 'rb') as file:
        trace = Trace(file.read())
    wanted = [(event['name'], event['cat'], event['pid'], lane_name(event['tid']), event['ts'],
               event['ts'] + event['dur'], event.get('args', {})) for event in events]
    slices = trace.slices()
    got = [(*piece[:4], piece[4] // 1000, piece[5] // 1000, piece[6]) for piece in slices]
    found = list(differences(wanted, got))
    found += [f'counter {name} at {ts} is {value}, not {lengths}'
              for name, ts, value, lengths in [*trace.durations(), *trace.arguments()]
              if lengths and value not in lengths]
    if len(sys.argv) > 3:
        found += wrong_stacks(slices, sys.argv[3])
    for line in found[:5]:
        print('#', line)
    count = trace.others()
    print(f"{len(slices)} slices, {count['counters']} counters, {count['flows']} flows, {count['stacks']} stacks")
    sys.exit(bool(found))


if __name__ == '__main__':
    main()

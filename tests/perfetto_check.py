#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Holds a trace in Perfetto's format against the JSON trace of the same window: JSON PFTRACE.

Reads it with the compiled protos of the perfetto package (pip), as strictly as Perfetto's own
importer: each packet knows its sequence's clock, each number its text, each slice its end. Then the
slices of both must be the same, args included. Prints how many slices, counters and flows there were.
"""
import json
import sys
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def lane_name(tid):
    if tid >= 10_000_000:
        return 'GPU %d stream %d' % divmod(tid - 10_000_000, 100_000)
    if tid >= 5_000_000:
        return f'futures {tid - 5_000_000 + 1}'
    if tid >= 4_000_000:
        return f'iterations {(tid - 4_000_000) // 2 + 1}'
    return tid or 'intervals'


class Trace:
    def __init__(self, data):
        trace = protos.Trace()
        trace.ParseFromString(data)
        self.tracks, self.texts, self.events = {}, defaultdict(dict), []
        self.flows, self.ends_of_flows = {}, {}
        self.clock = None
        for number, packet in enumerate(trace.packet):
            self.take(number, packet)

    def take(self, number, packet):
        assert packet.trusted_packet_sequence_id == 1, packet
        assert packet.sequence_flags == (1 if number == 0 else 2), packet
        if packet.HasField('clock_snapshot'):
            assert number == 0
            self.clock = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            assert packet.trace_packet_defaults.timestamp_clock_id == 64 and self.clock[64] == 0
            assert packet.clock_snapshot.primary_trace_clock == 3
        interned = packet.interned_data
        for kind, entries, text in (('category', interned.event_categories, 'name'),
                                    ('name', interned.event_names, 'name'),
                                    ('key', interned.debug_annotation_names, 'name'),
                                    ('value', interned.debug_annotation_string_values, 'str')):
            for entry in entries:
                assert entry.iid not in self.texts[kind], entry
                value = getattr(entry, text)
                self.texts[kind][entry.iid] = value.decode() if isinstance(value, bytes) else value
        if packet.HasField('track_descriptor'):
            self.describe(packet.track_descriptor)
        if packet.HasField('track_event'):
            self.events.append((packet.timestamp, number, packet.track_event))

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

    def args_of(self, event):
        args = {}
        for note in event.debug_annotations:
            kind = note.WhichOneof('value')
            value = getattr(note, kind)
            if kind == 'string_value_iid':
                value = self.texts['value'][value]
            key = note.name or self.texts['key'][note.name_iid]
            assert key not in args, (key, args)
            args[key] = value
        return args

    def slices(self):
        """(name, category, pid, lane, start, end, args) of each, as Perfetto nests them."""
        open_slices, slices = defaultdict(list), []
        for ts, _, event in sorted(self.events, key=lambda entry: entry[:2]):
            track = self.tracks[event.track_uuid]
            if event.type == BEGIN:
                name = event.name or self.texts['name'][event.name_iid]
                category = self.texts['category'][event.category_iids[0]]
                made = [name, category, track[1], track[2], ts, None, self.args_of(event)]
                assert track[0] == 'lane', track
                open_slices[event.track_uuid].append(made)
                slices.append(made)
            elif event.type == END:
                open_slices[event.track_uuid].pop()[5] = ts
        assert not any(open_slices.values()), 'slices without an end'
        return slices

    def others(self):
        count = Counter()
        for ts, _, event in self.events:
            if event.type == COUNTER:
                assert self.tracks[event.track_uuid][0] == 'counter'
                count['counters'] += 1
            elif event.type == INSTANT:
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
    for line in found[:5]:
        print('#', line)
    count = trace.others()
    print(f"{len(slices)} slices, {count['counters']} counters, {count['flows']} flows")
    sys.exit(bool(found))


if __name__ == '__main__':
    main()

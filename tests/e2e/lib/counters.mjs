// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// What trouble/counters.py has written of the kernel's own counters, and whether these confirm what the
// tool says of a step.
import { readFileSync } from 'node:fs';

// Samples by time, in us.
export function readCounters(path) {
	return readFileSync(path, 'utf8')
		.split('\n')
		.slice(0, -1)
		.map((line) => {
			const [ns, steal, pressure, throttled, ...threads] = line.split(' ');
			const figures = threads.map((text) => text.split(':').map(Number));

			return {
				us: Number(ns) / 1000,
				steal: Number(steal),
				pressure: Number(pressure),
				throttled: Number(throttled),
				delays: new Map(figures.map(([tid, delay]) => [tid, delay])),
				cpus: new Map(figures.map(([tid, , cpu]) => [tid, cpu])),
			};
		});
}

// The index of the first sample at a time or after it.
function indexAt(samples, us) {
	let [low, high] = [0, samples.length];

	while (low < high) {
		const middle = (low + high) >> 1;

		if (samples[middle].us < us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

function differences(after, before) {
	return new Map([...after]
		.filter(([key]) => before.has(key))
		.map(([key, value]) => [key, value - before.get(key)]));
}

// The counters' increase around a step, from the last sample before it to the first after it; null if a
// sample is missing.
export function moved(samples, step) {
	const before = samples[indexAt(samples, step.begin) - 1];
	const after = samples[indexAt(samples, step.end)];

	if (!before || !after)
		return null;
	return {
		us: after.us - before.us,
		delays: differences(after.delays, before.delays),
		cpus: differences(after.cpus, before.cpus),
		steal: after.steal - before.steal,
		pressure: after.pressure - before.pressure,
		throttled: after.throttled - before.throttled,
	};
}

// /proc/stat counts in ticks of 10 ms, so time that the host took appears some time around the step.
const TICK_US = 10000;
const AROUND_US = 500000;
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
// Each figure is cut to whole microseconds.
const ROUNDING_US = 3;

// The part of a wait for a thread in which that thread must have waited for a CPU itself.
const LATE_PART = 0.75;
// The kernel adds a running thread's time to its counter at each tick, at 100 Hz or more.
const STALE_US = 10000;

// The longest time in which a thread may have neither had a CPU nor waited for one.
const wasAway = (by, tid) =>
	by.us - (by.cpus.get(tid) ?? by.us) - (by.delays.get(tid) ?? 0) + STALE_US;

function stolenAround(samples, step) {
	const first = samples[indexAt(samples, step.begin - AROUND_US)];
	const last = samples[indexAt(samples, step.end + AROUND_US)] ?? samples.at(-1);

	return last.steal - first.steal;
}

// For messages.
export function describeAway(samples, step) {
	const by = moved(samples, step);

	return by && { away: wasAway(by, step.tid), stolen: stolenAround(samples, step) };
}

// Whether the counters moved by as much as the tool says that the step lost: of its thread, and of the
// thread that it waited for. What no counter of the system shows is not confirmed.
export function isConfirmed(samples, step, shape) {
	const by = moved(samples, step);
	const least = shape.cause_us - ROUNDING_US;
	const tids = [step.tid, step.starved].filter(Boolean);
	const named = shape.cause_evidence?.match(/(?:thread|tid) (\d+)/);

	if (!by || !(shape.cause_us > 0))
		return false;
	const stolen = stolenAround(samples, step);

	if (named)
		tids.push(Number(named[1]));
	switch (shape.cause) {
	case 'run_queue':
		return sum([...new Set(tids)].map((tid) => by.delays.get(tid) ?? 0)) >= least;
	case 'cpu_limit':
		return by.throttled > 0 && (by.delays.get(step.tid) ?? 0) >= least;
	case 'steal':
	case 'off_cpu':
		return wasAway(by, step.tid) >= least && stolen > 0 && stolen + TICK_US >= least;
	case 'lock_contention':
	case 'late_thread':
		return named && (by.delays.get(Number(named[1])) ?? 0) >= least * LATE_PART;
	default:
		return false;
	}
}

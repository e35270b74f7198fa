// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Holds the tool's report and profile of one window against what the engine counted (before, after,
// perf) and what bpftrace counted in a wider and a narrower window (outer.json, inner.json).
// usage: node compare.mjs FOLDER; prints "ok - …" and "not ok - …", exits 1 if any is not.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const read = (name) => readFileSync(join(folder, name), 'utf8');
const lines = (name) =>
	read(name)
		.split('\n')
		.filter((line) => line.startsWith('{'))
		.map((line) => JSON.parse(line));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function is(name, got, wanted) {
	const same = JSON.stringify(got) === JSON.stringify(wanted);

	if (!same) {
		console.log(`# ${name}: got ${JSON.stringify(got)}`);
		console.log(`# ${name}: wanted ${JSON.stringify(wanted)}`);
		process.exitCode = 1;
	}
	console.log(`${same ? 'ok' : 'not ok'} - ${name}`);
}

// What bpftrace printed at its end, by map name.
function readMaps(name) {
	const maps = lines(name)
		.filter((line) => line.type === 'map')
		.map((line) => line.data);

	return Object.assign({ '@calls': {}, '@errors': {}, '@decodes': 0, '@tokens': 0 }, ...maps);
}

// The number of decodes of the load by their number of tokens, from two states of the engine's counts.
function subtract(after, before) {
	const sizes = Object.keys(after).map((size) => [size, after[size] - (before[size] ?? 0)]);

	return Object.fromEntries(sizes.filter(([, count]) => count > 0));
}

function histogram(values) {
	const counts = {};

	for (const value of values)
		counts[value] = (counts[value] ?? 0) + 1;
	return counts;
}

function compareSteps(report, steps, engine, outer, perf) {
	const shapes = steps.map((step) => step.shape);
	const tokens = shapes.map((shape) => shape['arg.n_tokens']);
	const stages = steps.map((step) => step.stage_us);

	const kinds = report.kinds.filter((kind) => kind.steps);

	is('the built-in table finds llama_decode by itself',
		kinds.map((kind) => [kind.name, kind.step_source, kind.builtin]),
		[['llama_decode', 'function', true]]);
	is('as many steps as the engine made decodes', report.steps, engine.decodes);
	is('as many steps in the profile', steps.length, engine.decodes);
	is('as many as bpftrace counted at llama_decode', report.steps, outer['@decodes']);
	is('every step is whole and ended by returning',
		shapes.filter((shape) => !shape.complete || shape.end !== 'return').length, 0);
	is('nothing was lost', report.lost.total, 0);
	is("n_tokens adds up to the engine's tokens", sum(tokens), engine.tokens);
	// Without a single-token decode, llama.cpp prints 1.
	is("and to llama.cpp's own counters", sum(tokens),
		perf.prompt_tokens + (engine.batches['1'] ? perf.single_tokens : 0));
	is('batch by batch', histogram(tokens), engine.batches);
	is('no step spends more in syscalls than it takes',
		stages.filter((stage) => stage.syscall > stage.total).length, 0);
	is('every step takes some time', stages.filter((stage) => !(stage.total > 0)).length, 0);
}

// Each call in the narrow window is in the tool's, and each in the tool's is in the wide one.
function compareCalls(report, outer, inner) {
	const rows = report.processes[0].syscalls;
	const known = new Set(rows.map((row) => String(row.nr)));
	const range = (key, nr) => [inner[key][nr] ?? 0, outer[key][nr] ?? 0];
	const outside = (key, value) =>
		rows
			.map((row) => [row.name, ...range(key, row.nr), value(row)])
			.filter(([, low, high, count]) => count < low || count > high);

	is('one process was traced', report.processes.length, 1);
	is('every syscall was called as often as bpftrace says',
		outside('@calls', (row) => row.calls), []);
	is('and failed as often', outside('@errors', (row) => row.errors), []);
	is('bpftrace saw no syscall that the tool did not',
		Object.keys(inner['@calls']).filter((nr) => !known.has(nr)), []);
	for (const row of rows) {
		const [low, high] = range('@calls', row.nr);

		if (low !== high)
			console.log(`# ${row.name}: ${low} <= ${row.calls} <= ${high}`);
	}
	const totals = [inner['@calls'], rows.map((row) => row.calls), outer['@calls']];

	console.log(`# calls: ${totals.map((counts) => sum(Object.values(counts))).join(' <= ')}`);
}

// With --detail all each call is a slice of the trace, otherwise none is.
function compareTrace(report, trace) {
	const count = (category) => trace.filter((event) => event.cat === category).length;
	const rows = report.processes[0].syscalls.filter((row) => row.name !== 'exit');
	const calls = sum(rows.map((row) => row.calls + row.unfinished));

	is('every step is in the trace', count('step'), report.steps);
	is('and every call as --detail wants it',
		count('syscall'), report.detail === 'all' ? calls : 0);
}

const report = JSON.parse(read('report'));
const profile = lines('profile');
const before = JSON.parse(read('before'));
const after = JSON.parse(read('after'));
const outer = readMaps('outer.json');
const engine = {
	decodes: after.decodes - before.decodes,
	tokens: after.tokens - before.tokens,
	batches: subtract(after.batches, before.batches),
};

is('no decode failed', after.failed, 0);
const steps = profile.filter((line) => line.event === 'step_prof');

compareSteps(report, steps, engine, outer, JSON.parse(read('perf')));
compareCalls(report, outer, readMaps('inner.json'));
compareTrace(report, JSON.parse(read('trace')));

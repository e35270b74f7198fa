// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Compares what the tool says of a server with the kernel's counters and with what was done to it.
// usage: node score.mjs ENGINE PREFIX COUNTERS [EPISODES]
// PREFIX.profile is the tool's, COUNTERS what counters.py has written. Without EPISODES nothing was done to
// the server. A line of EPISODES is KIND BEGIN END (CLOCK_MONOTONIC ns). Prints "ok - …" and "not ok - …",
// exits 1 if any is not.
import { readFileSync } from 'node:fs';
import { describeAway, isConfirmed, moved, readCounters } from '../lib/counters.mjs';

// A step is due if so much of an episode, and no more of anything else than this part of the step, was in it:
// an efficiency of 25 % is the tool's threshold.
const DUE_US = 50000;
const DUE_PART = 0.8;
const EPISODES_MIN = 4;

const [engine, prefix, countersFile, episodesFile] = process.argv.slice(2);
const read = (path) => readFileSync(path, 'utf8');
const rows = read(`${prefix}.profile`)
	.split('\n')
	.filter(Boolean)
	.map((line) => JSON.parse(line));
const all = (name) => rows.filter((row) => row.event === name);
const epoch = all('window_prof')[0].shape.epoch_monotonic_us;
const samples = readCounters(countersFile);
const named = new Map(all('escalation_prof').map((row) => [row.shape.step, row.shape]));
const steps = all('step_prof').map(({ shape, stage_us: us }) => ({
	number: shape.step,
	tid: shape.tid,
	starved: shape.starved_tid,
	begin: epoch + shape.start_us,
	end: epoch + shape.start_us + us.total,
	us: us.total,
}));
const episodes = (episodesFile ? read(episodesFile) : '')
	.split('\n')
	.filter(Boolean)
	.map((line) => {
		const [kind, begin, end] = line.split(' ');

		return { kind, begin: Number(begin) / 1000, end: Number(end) / 1000 };
	});

function say(name, good) {
	console.log(`${good ? 'ok' : 'not ok'} - ${engine}: ${name}`);
	if (!good)
		process.exitCode = 1;
}

function show(note, step) {
	const { cause, cause_evidence: evidence, cause_us: lost } = named.get(step.number) ?? {};

	console.log(`# ${engine}: ${note}: ${JSON.stringify({
		step: step.number, us: step.us, cause, evidence, lost, ...describeAway(samples, step),
	})}`);
}

const overlap = (step, episode) =>
	Math.min(step.end, episode.end) - Math.max(step.begin, episode.begin);

// How long an episode held a step up. A limit does so for a part of its time: as long as the step's own
// thread waited for a CPU, since cpu.stat adds up what all CPUs of the group were throttled for.
function heldUp(step, episode) {
	const us = overlap(step, episode);
	const by = episode.kind === 'quota' && us > 0 ? moved(samples, step) : null;

	if (episode.kind !== 'quota')
		return us;
	return by ? Math.min(us, by.throttled, by.delays.get(step.tid) ?? 0) : 0;
}

function isDue(step, episode) {
	const us = heldUp(step, episode);

	return us >= DUE_US && us >= DUE_PART * step.us;
}

// The verdict that each trouble deserves, by what was done, and by the counters where there is one.
const rights = {
	freeze: (step, shape) =>
		shape.cause === 'stopped' && / by SIGSTOP from python3 /.test(shape.cause_evidence),
	gdb: (step, shape) =>
		shape.cause === 'stopped' && shape.cause_evidence.includes('by a tracer: gdb'),
	hog: (step, shape) => shape.cause === 'run_queue' && isConfirmed(samples, step, shape),
	quota: (step, shape) => shape.cause === 'cpu_limit' && isConfirmed(samples, step, shape),
};

// Each step that an episode held up for most of its time must be named, with its cause.
function checkKind(kind) {
	let hit = 0, right = 0;

	for (const episode of episodes.filter((episode) => episode.kind === kind)) {
		const held = steps.filter((step) => isDue(step, episode));
		const wrong = held.filter((step) =>
			!named.has(step.number) || !rights[kind](step, named.get(step.number)));

		hit += held.length > 0;
		right += held.length > 0 && !wrong.length;
		wrong.forEach((step) => show(`${kind} is not what it is named for`, step));
	}
	say(`${kind}: at least ${EPISODES_MIN} were in a step (${hit})`, hit >= EPISODES_MIN);
	say(`${kind}: named rightly, ${right} of ${hit}`, right === hit);
}

// Named steps outside of episodes. If the counters confirm the wait, the machine was at fault.
function checkOthers() {
	const ours = steps.filter((step) => !episodes.some((episode) => overlap(step, episode) > 0));
	const found = ours.filter((step) => named.has(step.number));
	const unconfirmed = found.filter((step) => !isConfirmed(samples, step, named.get(step.number)));

	unconfirmed.forEach((step) => show('no counter confirms', step));
	console.log(`# ${engine}: ${steps.length} steps, ${found.length} named outside of the episodes, ` +
		`${found.length - unconfirmed.length} of them confirmed; ${samples.length} samples`);
	say(`of 1,000 steps at most one is named that no counter confirms (${unconfirmed.length} of ` +
		`${ours.length})`, unconfirmed.length * 1000 <= Math.max(ours.length, 1000));
}

if (!episodes.length)
	say('at least 1,000 steps', steps.length >= 1000);
for (const kind of new Set(episodes.map((episode) => episode.kind)))
	checkKind(kind);
checkOthers();

// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// Holds the steps that the tool named against what was wrong with the server.
// usage: node named.mjs healthy PREFIX COUNTERS
//                  nothing was: at most one in 1,000 steps, but for those that were named for a wait for a
//                  CPU which the kernel's own counters (trouble/counters.py) confirm
//        node named.mjs lock PREFIX COUNTERS WAITS
//                  WAITS has the waits for a held lock, one a line: begin and end (CLOCK_MONOTONIC ns) and
//                  the thread
// PREFIX.profile and PREFIX.trace are the tool's. Prints "ok - …" and "not ok - …", exits 1 if any is
// not.
import { readFileSync } from 'node:fs';
import { isConfirmed, readCounters } from './lib/counters.mjs';

const [mode, prefix, countersFile, waitsFile] = process.argv.slice(2);
const read = (path) => readFileSync(path, 'utf8');
const profile = read(`${prefix}.profile`)
	.split('\n')
	.filter(Boolean)
	.map((line) => JSON.parse(line));
const all = (name) => profile.filter((line) => line.event === name);
const window = all('window_prof')[0].shape;
const named = new Map(all('escalation_prof')
	.filter((line) => !line.shape.not_shown)
	.map((line) => [line.shape.step, line]));

function say(name, wrong) {
	for (const item of wrong.slice(0, 10))
		console.log(`# ${name}: ${JSON.stringify(item)}`);
	console.log(`${wrong.length ? 'not ok' : 'ok'} - ${name}`);
	if (wrong.length)
		process.exitCode = 1;
}

const describe = ({ shape, stage_us: us }) => ({
	step: shape.step,
	reason: shape['escalation.reason'],
	cause: shape.cause,
	evidence: shape.cause_evidence,
	...us,
});

// Steps with their place in time, in us of CLOCK_MONOTONIC.
const steps = all('step_prof').map(({ shape, stage_us: us }) => ({
	number: shape.step,
	tid: shape.tid,
	starved: shape.starved_tid,
	complete: shape.complete,
	begin: window.epoch_monotonic_us + shape.start_us,
	end: window.epoch_monotonic_us + shape.start_us + us.total,
	us: us.total,
	waited: 0,
}));

// Begins and lengths are rounded to us separately.
function takeWaits() {
	const lost = [];

	for (const line of read(waitsFile).split('\n').filter(Boolean)) {
		const [begin, end, tid] = line.split(' ').map(Number);
		const step = steps.find((step) => step.tid === tid &&
			step.begin - 2 <= begin / 1000 && end / 1000 <= step.end + 2);

		if (step)
			Object.assign(step, {
				waited: step.waited + (end - begin) / 1000,
				from: begin / 1000,
			});
		else
			lost.push({ begin, end, tid });
	}
	return lost;
}

// Earlier steps with about as much work. A class is known after ten of them.
function isKnown(step) {
	const work = step.us - step.waited;
	const alike = steps.filter((other) => other.number < step.number && other.complete &&
		other.us - other.waited > work / 2 && other.us - other.waited < work * 2);

	return alike.length >= 40;
}

const samples = readCounters(countersFile);
const byNumber = new Map(steps.map((step) => [step.number, step]));
const hadCpu = ({ shape }) => shape.cause !== 'run_queue' ||
	!isConfirmed(samples, byNumber.get(shape.step), shape);
const share = (step) => (step.us - step.waited) / step.us;

function checkHealthy() {
	console.log(`# ${named.size} of ${steps.length} steps named`);
	for (const line of named.values())
		console.log(`# ${JSON.stringify(describe(line))}`);
	say('healthy: at least 1,000 steps', steps.length < 1000 ? [steps.length] : []);
	say('healthy: all whole', steps.filter((step) => !step.complete));
	const ours = [...named.values()].filter(hadCpu);

	say('healthy: at most one in 1,000 named',
		ours.length * 1000 > steps.length ? ours.map(describe) : []);
}

// By the trace alone: the wait is a futex call of that thread at that time.
function findWait(trace, step) {
	const from = step.from - window.epoch_monotonic_us;

	return trace.find((event) => event.cat === 'syscall' && event.name === 'futex' &&
		event.tid === step.tid && event.dur > 0.9 * step.waited &&
		Math.abs(event.ts - from) < 1000);
}

function checkLock() {
	const trace = JSON.parse(read(`${prefix}.trace`));

	say('lock: each wait lies in a step', takeWaits());
	const waited = steps.filter((step) => step.waited);
	// The threshold is an efficiency of 25 %. The usual wait of a step is not part of this figure.
	const due = waited.filter((step) => share(step) < 0.2 && isKnown(step));
	const others = [...named.values()].filter((line) => hadCpu(line) &&
		!waited.some((step) => step.number === line.shape.step && share(step) < 0.3));
	const verdicts = due.map((step) => named.get(step.number)).filter(Boolean);

	console.log(`# ${waited.length} of ${steps.length} steps waited, ${due.length} for most of their time`);
	for (const line of others)
		console.log(`# beside them: ${JSON.stringify(describe(line))}`);
	say('lock: at least five steps waited for most of their time', due.length < 5 ? waited : []);
	say('lock: each of them is named', due.filter((step) => !named.has(step.number)));
	say('lock: at most one other in 1,000 steps',
		others.length * 1000 > steps.length ? others.map(describe) : []);
	// Other programs on the machine may make the class unsteady too.
	say('lock: the reason is efficiency_low, or both', verdicts.filter(({ shape }) => {
		const fired = shape.fired.split(',');
		const reason = fired.includes('cv_exceeded') ? 'both' : 'efficiency_low';

		return !fired.includes('efficiency_low') || shape['escalation.reason'] !== reason;
	}).map(describe));
	say('lock: the cause is lock_contention', verdicts
		.filter(({ shape }) => shape.cause !== 'lock_contention').map(describe));
	const stacks = verdicts.map(({ shape }) => ({
		step: shape.step,
		cause_stack: shape.cause_stack,
		holder_stack: shape.holder_stack,
		waker_stack: shape.waker_stack,
	}));
	const misses = (name, pattern) => stacks.filter((stack) => !pattern.test(stack[name] ?? ''));

	say('lock: llama_decode waits for it, by its own call path',
		misses('cause_stack', /^ggml_backend_sched_graph_compute_async <- .* <- llama_decode$/));
	say('lock: the function that holds it', misses('holder_stack', /^hold_when_told( |$)/));
	say('lock: the function that gave it back', misses('waker_stack', /^hold_when_told\+0x/));
	say('lock: the worst call is that wait', due.filter((step) => {
		const shape = named.get(step.number)?.shape;

		return shape?.worst_call !== 'futex' || shape.worst_call_us < 0.9 * step.waited ||
			shape.worst_call_us > step.us;
	}));
	say('lock: it is in the trace', due.filter((step) => !findWait(trace, step)));
}

if (mode === 'healthy')
	checkHealthy();
else
	checkLock();

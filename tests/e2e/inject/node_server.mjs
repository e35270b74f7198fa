// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
// An HTTP server with workers and timers, which checks itself:
//
//	GET /sha256/TEXT	its digest in hex, computed by a worker or here, in turn
//	GET /signals		how many SIGUSR2 were handled
//
// Says "ready PORT"; SIGTERM ends it, and it says how it went.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const WORKERS = 3;
const TIMERS = 20;

function digest(text) {
	return createHash('sha256').update(text).digest('hex');
}

class Pool {
	asked = 0;
	waiting = new Map();

	constructor() {
		this.workers = Array.from({ length: WORKERS }, () => {
			const worker = new Worker(new URL(import.meta.url));

			worker.on('message', ({ id, answer }) => {
				this.waiting.get(id)(answer);
				this.waiting.delete(id);
			});
			return worker;
		});
	}

	ask(text) {
		const id = this.asked++;

		return new Promise((answer) => {
			this.waiting.set(id, answer);
			this.workers[id % WORKERS].postMessage({ id, text });
		});
	}

	end() {
		return Promise.all(this.workers.map((worker) => worker.terminate()));
	}
}

function startTimers(counts) {
	return Array.from({ length: TIMERS }, (_, i) => setInterval(() => counts.fired++, 3 + i));
}

// Node runs timers up to a millisecond early.
function startSleeps(counts) {
	const sleep = () => {
		const begin = performance.now();

		if (counts.stopped)
			return;
		setTimeout(() => {
			const late = performance.now() - begin - 5;

			counts.slept++;
			counts.early += late < -1.1 ? 1 : 0;
			counts.latest = Math.max(counts.latest, late);
			sleep();
		}, 5);
	};

	for (let i = 0; i < 4; i++)
		sleep();
}

function say(good, fact) {
	console.log(`${good ? 'ok' : 'not ok'} - ${fact}`);
}

function serve() {
	const counts = { fired: 0, early: 0, slept: 0, latest: 0, signals: 0, wrong: 0 };
	const pool = new Pool();
	const timers = startTimers(counts);
	let asked = 0;

	startSleeps(counts);
	process.on('SIGUSR2', () => counts.signals++);
	const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
		const [, page, text] = request.url.split('/');
		let answer = `${counts.signals}`;

		if (page === 'sha256')
			answer = asked++ % 2 ? digest(text) : await pool.ask(text);
		response.end(answer);
	});
	process.once('SIGTERM', async () => {
		counts.stopped = true;
		timers.forEach(clearInterval);
		server.close();
		server.closeIdleConnections();
		await pool.end();
		say(counts.early === 0 && counts.fired > 0 && counts.slept > 0, 'no timer fires early');
		say(pool.waiting.size === 0, 'workers have answered all that they were asked');
		console.log(`# ${asked} digests, ${counts.fired} ticks, ${counts.slept} sleeps, ` +
			`late by ${counts.latest.toFixed(1)} ms at most, ${counts.signals} signals`);
	});
	server.listen(0, '127.0.0.1', () => console.log(`ready ${server.address().port}`));
}

if (isMainThread)
	serve();
else
	parentPort.on('message', ({ id, text }) => parentPort.postMessage({ id, answer: digest(text) }));
